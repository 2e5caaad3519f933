/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
#ifndef _UAPI_LINUX_DEVBUF_H
#define _UAPI_LINUX_DEVBUF_H

#include <linux/ioctl.h>
#include <linux/types.h>

/**
 * DOC: General rules of the devbuf ABI
 *
 * Each open of /dev/devbuf is a *context*. It holds a table of *ids*: 64-bit
 * numbers that name buffers, start at 1, and are never used a second time
 * while the module is loaded. An id is a name and not a key: a command that
 * gives an id which this context's table does not hold gets -ENOENT.
 *
 * Every command is an ioctl with one argument, a pointer to its struct, and can
 * be queued on an io_uring as well (see "Commands by io_uring"). The first
 * member of every struct is its size in bytes, as the caller knows the struct:
 *
 *  - a struct shorter than its first published form is refused (-EINVAL), and
 *    so is one longer than DEVBUF_STRUCT_MAX bytes (-E2BIG);
 *  - a struct longer than the driver's is accepted if all the bytes that the
 *    driver does not know are zero, and refused otherwise (-E2BIG);
 *  - members named @out_* are written by the driver, up to the caller's size:
 *    they count when the command succeeds, and for copies also when it stops
 *    half-way; what the caller left in them is ignored;
 *  - every other member that a command does not use, @pad included, must be
 *    zero; so must all flag bits that are not defined (-EINVAL).
 *
 * Members are only ever appended; a zero in an appended member means the
 * behaviour from before it existed. The layout is the same for 32-bit and
 * 64-bit callers. The driver itself runs on 64-bit kernels only.
 *
 * One errno has one meaning:
 *
 * ============ ============================================================
 * EINVAL       an argument is wrong
 * EOVERFLOW    an offset plus a length wraps around 2^64
 * ENOENT       this context's table holds no such id
 * EACCES       the handle lacks the right, or does not reach these bytes
 * EPERM        the caller lacks a capability, or is another process than the
 *              one whose memory is meant
 * EALREADY     the buffer is allocated already
 * ENODATA      the buffer is not allocated
 * EBUSY        in use
 * EDQUOT       too much is queued: wait until some of it is over
 * EOPNOTSUPP   this device or this kernel cannot do that
 * ENODEV       there is no such device, or it is gone
 * ENOMEM       out of memory, or over a limit on it
 * EMFILE       the process is at its limit of open files (likewise ENFILE)
 * EBADF        not an open file
 * EFAULT       a pointer of the caller leads nowhere
 * EINTR        a signal ended the command; @out_done_nbytes says how far it got
 * ETIMEDOUT    a deadline passed
 * EIO          the device failed
 * ECANCELED    the work was cancelled before it was done
 * ENOTTY       this driver does not know the command
 * E2BIG        the struct is newer than this driver, and uses what it adds
 * ============ ============================================================
 *
 * Mapping is mmap() of the context's file with MAP_SHARED, at offset id times
 * the page size. The mapping begins with the page that holds the buffer's
 * first byte and may be as long as the pages that hold the buffer. It needs a
 * handle that reaches every byte of those pages. It keeps the memory that was
 * the buffer's when it was made, until it is unmapped, whatever becomes of the
 * buffer, the id and the context.
 */

/** define DEVBUF_ABI_VERSION - counts incompatible changes; see DEVBUF_INFO */
#define DEVBUF_ABI_VERSION	1

/** define DEVBUF_IOC_TYPE - the ioctl type of every devbuf command */
#define DEVBUF_IOC_TYPE		0xBD

#define DEVBUF_INFO		_IO(DEVBUF_IOC_TYPE, 0x00)
#define DEVBUF_DEVICE_INFO	_IO(DEVBUF_IOC_TYPE, 0x01)
#define DEVBUF_CREATE		_IO(DEVBUF_IOC_TYPE, 0x02)
#define DEVBUF_VIEW		_IO(DEVBUF_IOC_TYPE, 0x03)
#define DEVBUF_ALLOCATE		_IO(DEVBUF_IOC_TYPE, 0x04)
#define DEVBUF_DEALLOCATE	_IO(DEVBUF_IOC_TYPE, 0x05)
#define DEVBUF_DESTROY		_IO(DEVBUF_IOC_TYPE, 0x06)
#define DEVBUF_QUERY		_IO(DEVBUF_IOC_TYPE, 0x07)
#define DEVBUF_SET_NAME		_IO(DEVBUF_IOC_TYPE, 0x08)
#define DEVBUF_EXPORT		_IO(DEVBUF_IOC_TYPE, 0x09)
#define DEVBUF_IMPORT		_IO(DEVBUF_IOC_TYPE, 0x0a)
#define DEVBUF_SYNC		_IO(DEVBUF_IOC_TYPE, 0x0b)
#define DEVBUF_COPYIN		_IO(DEVBUF_IOC_TYPE, 0x0c)
#define DEVBUF_COPYOUT		_IO(DEVBUF_IOC_TYPE, 0x0d)
#define DEVBUF_PATH		_IO(DEVBUF_IOC_TYPE, 0x0e)
#define DEVBUF_TRANSFER		_IO(DEVBUF_IOC_TYPE, 0x0f)
#define DEVBUF_WAIT		_IO(DEVBUF_IOC_TYPE, 0x10)
#define DEVBUF_CANCEL		_IO(DEVBUF_IOC_TYPE, 0x11)

/** define DEVBUF_STRUCT_MAX - bytes of the longest struct that is looked at */
#define DEVBUF_STRUCT_MAX	4096

/** define DEVBUF_DEVICE_NAME_MAX - bytes of a device name, its NUL included */
#define DEVBUF_DEVICE_NAME_MAX	32

/** define DEVBUF_NAME_MAX - bytes of a buffer's name, its NUL included */
#define DEVBUF_NAME_MAX		64

/** define DEVBUF_MAX_RANGES - most ranges that one vectored command takes */
#define DEVBUF_MAX_RANGES	1024

/** define DEVBUF_MAX_QUEUED - most ranges that a context may have queued, and waits */
#define DEVBUF_MAX_QUEUED	16384

/** define DEVBUF_MAX_QUEUED_NBYTES - most bytes of those ranges together */
#define DEVBUF_MAX_QUEUED_NBYTES	(1ULL << 36)

/** define DEVBUF_MAX_IN_FENCES - most fences that one command waits for */
#define DEVBUF_MAX_IN_FENCES	64

/**
 * DOC: Optional parts
 *
 * DEVBUF_FEATURE_URING
 *	commands by io_uring
 * DEVBUF_FEATURE_URING_CANCEL
 *	the end of a ring, or of its task, cancels the commands that are pending
 *	there. Without it (Linux before 6.7) those that have begun are waited
 *	for, and DEVBUF_WAIT occupies a worker of the ring's, which the end of
 *	the ring interrupts.
 */
#define DEVBUF_FEATURE_URING		(1ULL << 0)
#define DEVBUF_FEATURE_URING_CANCEL	(1ULL << 1)

/**
 * struct devbuf_info - DEVBUF_INFO: what this driver is
 * @size: bytes of this struct
 * @out_abi_version: DEVBUF_ABI_VERSION of the driver. A caller that was built
 *	with another one must not go on.
 * @out_features: DEVBUF_FEATURE_* bits: optional parts of the ABI that this
 *	driver offers on this kernel
 * @out_instance: a random uuid made when the module was loaded. Ids are
 *	comparable between processes that see the same instance.
 * @out_max_ranges: most ranges that one vectored command takes
 * @out_page_size: bytes of a page: the unit of mappings and exports
 */
struct devbuf_info {
	__u32 size;
	__u32 out_abi_version;
	__aligned_u64 out_features;
	__u8 out_instance[16];
	__u32 out_max_ranges;
	__u32 out_page_size;
};

/**
 * DOC: Capabilities of a device
 *
 * DEVBUF_CAP_VIEWS
 *	views of its buffers can be allocated
 * DEVBUF_CAP_TRANSFER
 *	buffers of this device and of others with its prefix copy to each other
 *	without passing through the caller
 * DEVBUF_CAP_COPY
 *	COPYIN and COPYOUT
 * DEVBUF_CAP_MAP
 *	mmap()
 * DEVBUF_CAP_PINNABLE
 *	a mapping is made of ordinary pages: direct I/O, RDMA and io_uring's
 *	registered buffers accept it (the last not in Linux 6.1, which registers
 *	no files but those of shmem). Uncached buffers are mapped so too.
 * DEVBUF_CAP_EXPORT
 *	dma-buf export
 * DEVBUF_CAP_UNCACHED
 *	DEVBUF_CREATE_UNCACHED
 * DEVBUF_CAP_CONTIGUOUS
 *	DEVBUF_CREATE_CONTIGUOUS
 * DEVBUF_CAP_REUSE
 *	DEVBUF_CREATE_REUSE has an effect
 * DEVBUF_CAP_EXTERNAL
 *	the memory is the caller's: DEVBUF_CREATE needs @user_addr
 * DEVBUF_CAP_HOST
 *	DEVBUF_CREATE_HOST. On a device with DEVBUF_CAP_LOCAL such buffers are
 *	ordinary memory of the host, with all that SYSTEM buffers can do but
 *	DEVBUF_CREATE_UNCACHED, whatever the other bits say about the device.
 * DEVBUF_CAP_LOCAL
 *	the memory is the device's own, and goes with the device: mappings then
 *	get SIGBUS, commands -ENODEV, and importers are told to let go
 * DEVBUF_CAP_ENGINE
 *	the device has an engine that copies: DEVBUF_PATH_DEVICE, DEVBUF_PATH_PEER
 * DEVBUF_CAP_OPERATIONS
 *	DEVBUF_TRANSFER takes @operation: numbers that the device's driver defines
 * DEVBUF_CAP_PEER
 *	devices can reach its memory by peer-to-peer DMA. Its dma-bufs are for
 *	importers that can be told to let go and allow peer-to-peer.
 */
#define DEVBUF_CAP_VIEWS	(1ULL << 0)
#define DEVBUF_CAP_TRANSFER	(1ULL << 1)
#define DEVBUF_CAP_COPY		(1ULL << 2)
#define DEVBUF_CAP_MAP		(1ULL << 3)
#define DEVBUF_CAP_PINNABLE	(1ULL << 4)
#define DEVBUF_CAP_EXPORT	(1ULL << 5)
#define DEVBUF_CAP_UNCACHED	(1ULL << 6)
#define DEVBUF_CAP_CONTIGUOUS	(1ULL << 7)
#define DEVBUF_CAP_REUSE	(1ULL << 8)
#define DEVBUF_CAP_EXTERNAL	(1ULL << 9)
#define DEVBUF_CAP_HOST		(1ULL << 10)
#define DEVBUF_CAP_LOCAL	(1ULL << 11)
#define DEVBUF_CAP_ENGINE	(1ULL << 12)
#define DEVBUF_CAP_OPERATIONS	(1ULL << 13)
#define DEVBUF_CAP_PEER		(1ULL << 14)

/**
 * struct devbuf_device_info - DEVBUF_DEVICE_INFO: walk the devices
 * @size: bytes of this struct
 * @pad: zero
 * @cursor: zero for the first device, afterwards the last @out_cursor
 * @out_cursor: this device's place in the walk
 * @out_caps: DEVBUF_CAP_* bits
 * @out_alignment: bytes; the alignment that every allocation has, and the
 *	largest that DEVBUF_CREATE may ask for
 * @out_total_nbytes: bytes of memory that the device has, 0 if it has no
 *	memory of its own
 * @out_free_nbytes: bytes of it that are free now; an estimate
 * @out_name: its name, "PREFIX:N", with a NUL
 * @out_numa_node: the node that its memory comes from as long as there is some,
 *	-1 for none
 * @out_pad: zero
 * @out_largest_free_nbytes: bytes of the largest free range, so of the largest
 *	buffer that there is room for now; 0 if the device cannot tell
 *
 * Ends with -ENODEV after the last device. Devices that come and go during the
 * walk may be missed, but none is seen twice.
 */
struct devbuf_device_info {
	__u32 size;
	__u32 pad;
	__aligned_u64 cursor;
	__aligned_u64 out_cursor;
	__aligned_u64 out_caps;
	__aligned_u64 out_alignment;
	__aligned_u64 out_total_nbytes;
	__aligned_u64 out_free_nbytes;
	__u8 out_name[DEVBUF_DEVICE_NAME_MAX];
	__s32 out_numa_node;
	__u32 out_pad;
	__aligned_u64 out_largest_free_nbytes;
};

/**
 * DOC: Flags of DEVBUF_CREATE
 *
 * DEVBUF_CREATE_UNCACHED
 *	CPU mappings are write-combined (where the CPU has that) or uncached
 * DEVBUF_CREATE_CPU_ACCESS
 *	the caller will map the buffer: a device whose memory the CPU cannot
 *	reach refuses
 * DEVBUF_CREATE_HOST
 *	host memory that the device can reach, rather than the device's own
 * DEVBUF_CREATE_CONTIGUOUS
 *	one range of bus addresses
 * DEVBUF_CREATE_REUSE
 *	when the buffer is deallocated, or destroyed while allocated, this
 *	context keeps its memory, and gives it, *with its old bytes*, to the
 *	next allocation in this context that is alike: same device, same number
 *	of bytes, same flags. Memory that anybody else still holds is not kept,
 *	nor is memory whose buffer was exported.
 *	Views do not take this flag.
 *
 * DEVBUF_CREATE_UNCACHED, _HOST and _CONTIGUOUS get -EOPNOTSUPP where the
 * device cannot.
 */
#define DEVBUF_CREATE_UNCACHED		(1U << 0)
#define DEVBUF_CREATE_CPU_ACCESS	(1U << 1)
#define DEVBUF_CREATE_HOST		(1U << 2)
#define DEVBUF_CREATE_CONTIGUOUS	(1U << 3)
#define DEVBUF_CREATE_REUSE		(1U << 4)

/**
 * struct devbuf_create - DEVBUF_CREATE: make a base buffer, without memory
 * @size: bytes of this struct
 * @flags: DEVBUF_CREATE_* bits
 * @device: where its memory will come from: the exact name of a device, with
 *	a NUL and zeros behind it (-ENODEV if there is none)
 * @nbytes: bytes of the buffer, not zero, and less than 2^63 (-EINVAL)
 * @alignment: bytes: zero or a power of two; more than the device's
 *	@out_alignment gets -EOPNOTSUPP
 * @user_addr: on a device with DEVBUF_CAP_EXTERNAL the address of the caller's
 *	memory, of any alignment and not zero; zero on every other device
 *	(-EINVAL). With @nbytes it may not wrap (-EOVERFLOW).
 *	DEVBUF_ALLOCATE pins it, and must come from the same address space.
 *	Memory that the caller itself may only read, and files mapped shared
 *	from a file system with write-back, give a buffer that is read only.
 *	(Kernels before 6.5 cannot pin the latter: -EOPNOTSUPP.) A mapping of
 *	uncached memory will not do: devices would see it cached.
 * @dtype: four bytes that the driver keeps and gives back, and never reads
 * @pad: zero
 * @out_id: the new id. This context's handle has every right.
 */
struct devbuf_create {
	__u32 size;
	__u32 flags;
	__u8 device[DEVBUF_DEVICE_NAME_MAX];
	__aligned_u64 nbytes;
	__aligned_u64 alignment;
	__aligned_u64 user_addr;
	__u32 dtype;
	__u32 pad;
	__aligned_u64 out_id;
};

/**
 * struct devbuf_view - DEVBUF_VIEW: name a range of bytes of a buffer
 * @size: bytes of this struct
 * @flags: zero
 * @id: a base or a view
 * @offset: bytes from the beginning of @id; less than its nbytes (-EINVAL)
 * @nbytes: bytes of the view, not zero; it may go past the end of the view
 *	@id, but not past the end of its base (-EINVAL), nor out of the bytes
 *	that the handle reaches (-EACCES)
 * @dtype: four bytes that the driver keeps and gives back
 * @pad: zero
 * @out_id: the new id. The handle has the rights of @id's, and may manage the
 *	view. It reaches the same bytes.
 * @out_base_id: id of the base. A view of a view is a view of its base.
 * @out_offset: bytes from the beginning of the base
 */
struct devbuf_view {
	__u32 size;
	__u32 flags;
	__aligned_u64 id;
	__aligned_u64 offset;
	__aligned_u64 nbytes;
	__u32 dtype;
	__u32 pad;
	__aligned_u64 out_id;
	__aligned_u64 out_base_id;
	__aligned_u64 out_offset;
};

/**
 * DOC: Flags of DEVBUF_ALLOCATE
 *
 * DEVBUF_ALLOCATE_IF_NEEDED
 *	success, and not -EALREADY, when the buffer is allocated already
 */
#define DEVBUF_ALLOCATE_IF_NEEDED	(1U << 0)

/**
 * DOC: What DEVBUF_ALLOCATE tells
 *
 * DEVBUF_ALLOCATED_REUSED
 *	the memory was kept from an earlier buffer of this context, and holds
 *	the bytes that were in it. Otherwise it is zero.
 */
#define DEVBUF_ALLOCATED_REUSED		(1U << 0)

/**
 * struct devbuf_allocate - DEVBUF_ALLOCATE: give a buffer its memory
 * @size: bytes of this struct
 * @flags: DEVBUF_ALLOCATE_* bits
 * @id: a base or a view. A view's base is allocated first, if it is not; when
 *	the device has no views (-EOPNOTSUPP) the base is left as it was.
 * @out_flags: DEVBUF_ALLOCATED_* bits
 * @out_pad: zero
 *
 * Needs the right to manage. Allocating the base by way of a view needs it for
 * the base too.
 */
struct devbuf_allocate {
	__u32 size;
	__u32 flags;
	__aligned_u64 id;
	__u32 out_flags;
	__u32 out_pad;
};

/**
 * struct devbuf_id - the argument of DEVBUF_DEALLOCATE and DEVBUF_DESTROY
 * @size: bytes of this struct
 * @flags: zero
 * @id: a base or a view
 *
 * DEVBUF_DEALLOCATE takes a buffer's memory away; success when it has none. A
 * base is -EBUSY while a view of it is allocated that this context made, and
 * still has; other views lose their memory with it. Mappings, exports
 * and attachments made before keep the old memory until they let go. Needs the
 * right to manage.
 *
 * DEVBUF_DESTROY drops one count of this context's handle (CREATE, VIEW and
 * every IMPORT added one each); with the last the id leaves the table. The
 * buffer goes with its last holder: handles, views and exports hold it.
 */
struct devbuf_id {
	__u32 size;
	__u32 flags;
	__aligned_u64 id;
};

/**
 * DOC: Rights of a handle
 *
 * DEVBUF_RIGHT_READ
 *	map for reading, COPYOUT, be the source of a TRANSFER
 * DEVBUF_RIGHT_WRITE
 *	map for writing, COPYIN, be the destination of a TRANSFER
 * DEVBUF_RIGHT_EXPORT
 *	make dma-bufs, with the other rights that the handle has
 * DEVBUF_RIGHT_MANAGE
 *	allocate, deallocate, rename
 */
#define DEVBUF_RIGHT_READ	(1U << 0)
#define DEVBUF_RIGHT_WRITE	(1U << 1)
#define DEVBUF_RIGHT_EXPORT	(1U << 2)
#define DEVBUF_RIGHT_MANAGE	(1U << 3)

/**
 * DOC: States of a buffer
 *
 * DEVBUF_STATE_VIEW
 *	it is a view
 * DEVBUF_STATE_BASE_ALLOCATED
 *	its base has memory
 * DEVBUF_STATE_ALLOCATED
 *	this very buffer or view was allocated
 * DEVBUF_STATE_READ_ONLY
 *	its memory can only be read, whatever the rights
 * DEVBUF_STATE_DEVICE_GONE
 *	its device was unplugged
 */
#define DEVBUF_STATE_VIEW		(1U << 0)
#define DEVBUF_STATE_BASE_ALLOCATED	(1U << 1)
#define DEVBUF_STATE_ALLOCATED		(1U << 2)
#define DEVBUF_STATE_READ_ONLY		(1U << 3)
#define DEVBUF_STATE_DEVICE_GONE	(1U << 4)

/**
 * struct devbuf_query - DEVBUF_QUERY: all about a buffer
 * @size: bytes of this struct
 * @flags: zero
 * @id: a base or a view
 * @out_base_id: id of the base; @id itself for a base. This context's table
 *	need not hold it.
 * @out_nbytes: bytes of the buffer
 * @out_offset: bytes from the beginning of the base
 * @out_alignment: as asked for
 * @out_dtype: as given
 * @out_create_flags: DEVBUF_CREATE_* bits of the base
 * @out_state: DEVBUF_STATE_* bits, as of a moment during the call
 * @out_rights: DEVBUF_RIGHT_* bits of this context's handle
 * @out_handle_count: how often DEVBUF_DESTROY is due
 * @out_largest_page_shift: the memory is made of pieces; the largest is 2 to
 *	this power bytes. Zero when not allocated.
 * @out_device: name of the device
 * @out_name: the buffer's name, with a NUL
 * @out_address: on a device with DEVBUF_CAP_LOCAL where the buffer begins in the
 *	device's own address space, while it is allocated; otherwise zero
 */
struct devbuf_query {
	__u32 size;
	__u32 flags;
	__aligned_u64 id;
	__aligned_u64 out_base_id;
	__aligned_u64 out_nbytes;
	__aligned_u64 out_offset;
	__aligned_u64 out_alignment;
	__u32 out_dtype;
	__u32 out_create_flags;
	__u32 out_state;
	__u32 out_rights;
	__u32 out_handle_count;
	__u32 out_largest_page_shift;
	__u8 out_device[DEVBUF_DEVICE_NAME_MAX];
	__u8 out_name[DEVBUF_NAME_MAX];
	__aligned_u64 out_address;
};

/**
 * struct devbuf_set_name - DEVBUF_SET_NAME: a name for people, in QUERY
 * @size: bytes of this struct
 * @flags: zero
 * @id: a base or a view
 * @name: with a NUL, and zeros behind it; printable ASCII (-EINVAL). Empty
 *	takes the name away. Needs the right to manage.
 */
struct devbuf_set_name {
	__u32 size;
	__u32 flags;
	__aligned_u64 id;
	__u8 name[DEVBUF_NAME_MAX];
};

/**
 * DOC: Flags of DEVBUF_EXPORT
 *
 * DEVBUF_EXPORT_WRITE
 *	importers may write. Without it the dma-buf refuses DMA towards it,
 *	writable mmap() and vmap.
 */
#define DEVBUF_EXPORT_WRITE	(1U << 0)

/**
 * struct devbuf_export - DEVBUF_EXPORT: a dma-buf of a buffer
 * @size: bytes of this struct
 * @flags: DEVBUF_EXPORT_* bits
 * @id: a base or a view that is allocated (-ENODATA)
 * @out_fd: a new file descriptor, close-on-exec. The same buffer and flags
 *	give the same dma-buf as long as somebody holds it.
 * @out_pad: zero
 * @out_offset: where the buffer's bytes begin in the dma-buf
 * @out_nbytes: bytes of the buffer
 * @out_reason: why there is none, DEVBUF_REASON_*; written when the command fails
 *	with -EOPNOTSUPP, too
 * @out_pad2: zero
 *
 * A dma-buf is always whole pages. A handle that does not reach all the bytes
 * of those pages (the holder of a view only, not aligned to pages) gets
 * -EACCES. Needs the rights to export and to read, and to write for
 * DEVBUF_EXPORT_WRITE.
 *
 * A dma-buf of memory that goes with its device (DEVBUF_CAP_LOCAL) is for dynamic
 * importers that allow peer-to-peer and have a path to the device; attaching any
 * other device to it fails (-EOPNOTSUPP, in the importer's own terms). A buffer
 * that is an imported dma-buf as a whole gives that dma-buf again; parts of it
 * have none.
 *
 * Each exported dma-buf has a reservation object of its own: drivers that must
 * be ordered against each other on overlapping views use one export of both.
 */
struct devbuf_export {
	__u32 size;
	__u32 flags;
	__aligned_u64 id;
	__s32 out_fd;
	__u32 out_pad;
	__aligned_u64 out_offset;
	__aligned_u64 out_nbytes;
	__u32 out_reason;
	__u32 out_pad2;
};

/**
 * struct devbuf_import - DEVBUF_IMPORT: put a dma-buf's buffer into the table
 * @size: bytes of this struct
 * @flags: zero
 * @fd: a dma-buf; -EINVAL for a file that is none
 * @pad: zero
 * @out_id: of a dma-buf of this driver's the id that it had where it was
 *	exported. Of any other a base on the device "IMPORT:0", allocated, of the
 *	dma-buf's size: a new id, or the one that this context has for it already.
 * @out_rights: DEVBUF_RIGHT_* bits of the handle: to read, to export, and to
 *	write if the dma-buf can be written, together with the rights that this
 *	context had before; and to manage one on IMPORT:0. The handle of a view
 *	reaches the view's bytes only.
 * @out_pad: zero
 */
struct devbuf_import {
	__u32 size;
	__u32 flags;
	__s32 fd;
	__u32 pad;
	__aligned_u64 out_id;
	__u32 out_rights;
	__u32 out_pad;
};

/**
 * DOC: Flags of DEVBUF_SYNC
 *
 * DEVBUF_SYNC_READ, DEVBUF_SYNC_WRITE
 *	what the CPU is about to do, or did; at least one
 * DEVBUF_SYNC_END
 *	the access is over; without it, it is about to begin
 */
#define DEVBUF_SYNC_READ	(1U << 0)
#define DEVBUF_SYNC_WRITE	(1U << 1)
#define DEVBUF_SYNC_END		(1U << 2)

/**
 * struct devbuf_sync - DEVBUF_SYNC: bracket CPU access through a mapping
 * @size: bytes of this struct
 * @flags: DEVBUF_SYNC_* bits
 * @id: a base or a view; needs the right to read, and for DEVBUF_SYNC_WRITE to
 *	write
 * @offset: bytes from the beginning of @id
 * @nbytes: bytes of the access, not zero, inside of @id (-EINVAL)
 *
 * At the beginning waits for work of other drivers on this range, and makes
 * what devices wrote visible to the CPU; at the end makes what the CPU wrote
 * visible to devices. Covers every dma-buf that overlaps the range, and at
 * least the range. -EBUSY when two devices that cannot reach the memory itself
 * (their DMA goes through bounce buffers) both have it mapped for writing:
 * whose bytes were meant cannot be told.
 */
struct devbuf_sync {
	__u32 size;
	__u32 flags;
	__aligned_u64 id;
	__aligned_u64 offset;
	__aligned_u64 nbytes;
};

/**
 * DOC: Paths of a copy, best first
 *
 * DEVBUF_PATH_NONE
 *	nothing was copied
 * DEVBUF_PATH_PEER
 *	one device reads or writes the other's memory
 * DEVBUF_PATH_DEVICE
 *	the device's own engine. COPYIN and COPYOUT have the CPU bring the caller's
 *	bytes to where the engine reaches them, or from there.
 * DEVBUF_PATH_DMAENGINE
 *	a DMA engine of the host
 * DEVBUF_PATH_CPU
 *	the CPU, inside the kernel: each byte is copied once, from where it is
 *	to where it goes
 */
#define DEVBUF_PATH_NONE	0
#define DEVBUF_PATH_PEER	1
#define DEVBUF_PATH_DEVICE	2
#define DEVBUF_PATH_DMAENGINE	3
#define DEVBUF_PATH_CPU		4
#define DEVBUF_PATH_COUNT	5

/**
 * DOC: Asynchronous copies
 *
 * DEVBUF_COPYIN, DEVBUF_COPYOUT and DEVBUF_TRANSFER can be *queued*: by ioctl
 * with DEVBUF_ASYNC, or by io_uring. Everything is checked when the command is
 * queued, and errors found then are the command's. What goes wrong later is the
 * error of the copy's fence (and the result of its completion on a ring).
 *
 * Implicit ordering: a queued copy runs after all that was queued before it, by
 * anybody, and either writes what it touches or reads what it writes:
 *
 *  - other queued copies of this driver's, byte by byte: copies that share no
 *    byte do not wait for each other, whichever buffer or view names them;
 *  - work of other drivers, and fences that were put there by
 *    DMA_BUF_IOCTL_IMPORT_SYNC_FILE, on every exported dma-buf whose pages the
 *    copy touches (but out_fences of this driver's copies, wherever they were
 *    put, count for nothing on a dma-buf that these touch: the bytes do);
 *
 * and those wait for it likewise: its fence is in the reservation object of each
 * of those dma-bufs before the command returns (so poll() on the dma-buf, and
 * DMA_BUF_IOCTL_EXPORT_SYNC_FILE, know of it). The order of queueing is total:
 * copies that need each other's results both ways cannot deadlock.
 *
 * Synchronous commands, DEVBUF_SYNC and DEVBUF_WAIT among them, wait for what
 * was queued before, and are not ordered against what is queued while they run.
 *
 * DEVBUF_ASYNC
 *	return as soon as the copy is queued. @out_done_nbytes and @out_path
 *	stay zero.
 * DEVBUF_ASYNC_OUT_FENCE
 *	with DEVBUF_ASYNC: @out_fence becomes a sync_file, close-on-exec, that
 *	signals when the copy is over: with the error if it failed
 * DEVBUF_ASYNC_EXPLICIT
 *	with DEVBUF_ASYNC, or by io_uring: no implicit ordering, neither of this
 *	copy after others nor of others after this one. Only @in_fences count.
 *
 * Queued copies hold the memory, of both ends; the ids may be destroyed and the
 * buffers deallocated meanwhile. When the context is closed, what it has queued
 * is cancelled, as by DEVBUF_CANCEL. A context may have DEVBUF_MAX_QUEUED ranges
 * queued, of DEVBUF_MAX_QUEUED_NBYTES together (-EDQUOT); one command of more
 * bytes is -EINVAL.
 *
 * The caller's memory must be such that direct I/O accepts it (-EFAULT); small
 * copies on a ring may do without, but need not. Its pages are pinned when the
 * copy is queued, and count against RLIMIT_MEMLOCK (-ENOMEM) until it is over.
 *
 * A copy whose fence in @in_fences signals an error does not run, and fails with
 * the same error.
 */
#define DEVBUF_ASYNC			(1U << 8)
#define DEVBUF_ASYNC_OUT_FENCE		(1U << 9)
#define DEVBUF_ASYNC_EXPLICIT		(1U << 10)

/**
 * struct devbuf_copy_range - a piece of DEVBUF_COPYIN or DEVBUF_COPYOUT
 * @id: the buffer
 * @offset: bytes from its beginning
 * @user_addr: the caller's bytes
 * @nbytes: how many, not zero
 */
struct devbuf_copy_range {
	__aligned_u64 id;
	__aligned_u64 offset;
	__aligned_u64 user_addr;
	__aligned_u64 nbytes;
};

/**
 * struct devbuf_copy - DEVBUF_COPYIN, DEVBUF_COPYOUT: between buffers and the
 * caller's memory
 * @size: bytes of this struct
 * @flags: DEVBUF_ASYNC* bits
 * @ranges: address of an array of struct devbuf_copy_range
 * @nr_ranges: its length, 1 to DEVBUF_MAX_RANGES
 * @nr_in_fences: length of @in_fences, 0 to DEVBUF_MAX_IN_FENCES
 * @out_done_nbytes: bytes copied, in the order of @ranges: all of them on
 *	success. Written when the command fails too, once copying has begun.
 * @out_path: DEVBUF_PATH_*
 * @out_fence: with DEVBUF_ASYNC_OUT_FENCE a file descriptor, otherwise zero
 * @in_fences: address of an array of __s32: sync_files to wait for before the
 *	copy begins. Only with DEVBUF_ASYNC, or by io_uring.
 * @cookie: a number of the caller's by which DEVBUF_CANCEL finds the command
 *	while it is queued; zero for none
 *
 * All ids, rights, offsets and lengths are checked before the first byte is
 * copied. Afterwards the command can stop at a page of the caller's that is
 * not there (-EFAULT), at a fatal signal (-EINTR), or at a failing device.
 *
 * Waits for work that other drivers have queued on exports of the buffers when
 * it begins, and is not ordered against what they queue later. The caller's
 * memory may be a mapping of the very same buffer; where source and destination
 * overlap in that case, the bytes of the destination are some of the source's,
 * in no promised order (DEVBUF_TRANSFER keeps the order).
 */
struct devbuf_copy {
	__u32 size;
	__u32 flags;
	__aligned_u64 ranges;
	__u32 nr_ranges;
	__u32 nr_in_fences;
	__aligned_u64 out_done_nbytes;
	__u32 out_path;
	__s32 out_fence;
	__aligned_u64 in_fences;
	__aligned_u64 cookie;
};

/**
 * DOC: Why a path cannot be taken
 *
 * DEVBUF_REASON_NONE
 *	it can
 * DEVBUF_REASON_NOT_PEERS
 *	both ends are host memory, or one device's: there is no peer
 * DEVBUF_REASON_NO_ENGINE
 *	no engine that reaches both ends was offered by a driver
 * DEVBUF_REASON_NOT_BUILT
 *	this driver has no such path
 * DEVBUF_REASON_NO_CPU_ACCESS
 *	the CPU cannot reach one of the ends
 * DEVBUF_REASON_DEVICE_GONE
 *	the device of one end was unplugged
 * DEVBUF_REASON_NO_P2PDMA
 *	this kernel has no peer-to-peer DMA (CONFIG_PCI_P2PDMA)
 * DEVBUF_REASON_NO_MOVE_NOTIFY
 *	this kernel cannot tell importers that the memory goes
 *	(CONFIG_DMABUF_MOVE_NOTIFY)
 * DEVBUF_REASON_NO_PEER_PATH
 *	the devices are under different host bridges, between which the platform
 *	is not known to pass peer-to-peer DMA
 * DEVBUF_REASON_NOT_PEER_MEMORY
 *	no other device can reach the memory of one end
 * DEVBUF_REASON_DMA_MASK
 *	the engine's addresses do not reach as far as the other end
 * DEVBUF_REASON_NOT_WHOLE
 *	only the whole of an imported dma-buf can be exported
 */
#define DEVBUF_REASON_NONE		0
#define DEVBUF_REASON_NOT_PEERS		1
#define DEVBUF_REASON_NO_ENGINE		2
#define DEVBUF_REASON_NOT_BUILT		3
#define DEVBUF_REASON_NO_CPU_ACCESS	4
#define DEVBUF_REASON_DEVICE_GONE	5
#define DEVBUF_REASON_NO_P2PDMA		6
#define DEVBUF_REASON_NO_MOVE_NOTIFY	7
#define DEVBUF_REASON_NO_PEER_PATH	8
#define DEVBUF_REASON_NOT_PEER_MEMORY	9
#define DEVBUF_REASON_DMA_MASK		10
#define DEVBUF_REASON_NOT_WHOLE		11

/**
 * struct devbuf_path - DEVBUF_PATH: how a transfer would go
 * @size: bytes of this struct
 * @flags: zero
 * @dst_id: the destination; needs the right to write
 * @src_id: the source; needs the right to read
 * @out_path: the path that DEVBUF_TRANSFER would take; DEVBUF_PATH_NONE if
 *	there is none
 * @out_pad: zero
 * @out_reasons: for each path, by number, DEVBUF_REASON_*; places from
 *	DEVBUF_PATH_COUNT on are zero
 *
 * Neither buffer need be allocated.
 */
struct devbuf_path {
	__u32 size;
	__u32 flags;
	__aligned_u64 dst_id;
	__aligned_u64 src_id;
	__u32 out_path;
	__u32 out_pad;
	__u32 out_reasons[8];
};

/**
 * DOC: Flags of DEVBUF_TRANSFER
 *
 * DEVBUF_TRANSFER_NO_CPU
 *	-EOPNOTSUPP, with nothing done, rather than DEVBUF_PATH_CPU
 */
#define DEVBUF_TRANSFER_NO_CPU	(1U << 0)

/**
 * struct devbuf_transfer_range - a piece of DEVBUF_TRANSFER
 * @dst_id: the destination
 * @dst_offset: bytes from its beginning
 * @src_id: the source, which may be the same buffer
 * @src_offset: bytes from its beginning
 * @nbytes: how many, not zero
 */
struct devbuf_transfer_range {
	__aligned_u64 dst_id;
	__aligned_u64 dst_offset;
	__aligned_u64 src_id;
	__aligned_u64 src_offset;
	__aligned_u64 nbytes;
};

/**
 * struct devbuf_transfer - DEVBUF_TRANSFER: from buffer to buffer
 * @size: bytes of this struct
 * @flags: DEVBUF_TRANSFER_* and DEVBUF_ASYNC* bits
 * @ranges: address of an array of struct devbuf_transfer_range
 * @nr_ranges: its length, 1 to DEVBUF_MAX_RANGES
 * @nr_in_fences: length of @in_fences, 0 to DEVBUF_MAX_IN_FENCES
 * @out_done_nbytes: bytes copied by the ranges that are complete, in their
 *	order: all of them on success
 * @out_path: DEVBUF_PATH_*; the last in that list which any range took
 * @out_fence: with DEVBUF_ASYNC_OUT_FENCE a file descriptor, otherwise zero
 * @in_fences: address of an array of __s32: sync_files to wait for before the
 *	copy begins. Only with DEVBUF_ASYNC, or by io_uring.
 * @cookie: a number of the caller's by which DEVBUF_CANCEL finds the command
 *	while it is queued; zero for none
 * @operation: zero to copy. Another number makes the destination of the source
 *	instead, as the driver of the device says that defines the number
 *	(DEVBUF_CAP_OPERATIONS). Both ends are of that device; -EOPNOTSUPP for what
 *	it does not know. Always DEVBUF_PATH_DEVICE.
 * @pad: zero
 *
 * Everything is checked before the first byte is copied, and other drivers'
 * queued work is waited for, as for struct devbuf_copy. The two ends of one
 * range may overlap in one base: the destination then gets what the source was
 * before (like memmove). Two buffers over the same memory of the caller are two
 * bases. Between the ranges of a command there is no such
 * promise, only their order.
 */
struct devbuf_transfer {
	__u32 size;
	__u32 flags;
	__aligned_u64 ranges;
	__u32 nr_ranges;
	__u32 nr_in_fences;
	__aligned_u64 out_done_nbytes;
	__u32 out_path;
	__s32 out_fence;
	__aligned_u64 in_fences;
	__aligned_u64 cookie;
	__u32 operation;
	__u32 pad;
};

/**
 * DOC: Flags of DEVBUF_WAIT
 *
 * DEVBUF_WAIT_READ, DEVBUF_WAIT_WRITE
 *	with @id: what the caller means to do, and so what must be over: writes,
 *	before bytes are read; reads and writes, before they are written
 */
#define DEVBUF_WAIT_READ	(1U << 0)
#define DEVBUF_WAIT_WRITE	(1U << 1)

/** define DEVBUF_NO_DEADLINE - wait for as long as it takes */
#define DEVBUF_NO_DEADLINE	(~0ULL)

/**
 * struct devbuf_wait - DEVBUF_WAIT: until queued work is over
 * @size: bytes of this struct
 * @flags: DEVBUF_WAIT_* bits: at least one with an @id, none without
 * @id: a base or a view that is allocated (-ENODATA), or zero to wait for
 *	@in_fences only. Needs the right to read.
 * @offset: bytes from the beginning of @id
 * @nbytes: bytes of the range, not zero with an @id
 * @deadline_ns: the end of the wait, in nanoseconds of CLOCK_MONOTONIC (of the
 *	initial time namespace); zero,
 *	or any time that has passed, asks and does not wait. DEVBUF_NO_DEADLINE,
 *	or any number from 2^63 on, for none.
 * @in_fences: address of an array of __s32: sync_files to wait for
 * @nr_in_fences: its length, 0 to DEVBUF_MAX_IN_FENCES
 * @pad: zero
 * @cookie: as in struct devbuf_copy
 * @out_error: zero, or the negative errno of the first of the fences waited for
 *	that signalled one
 * @out_pad: zero
 *
 * Waits for what is queued on the range when it begins: this driver's copies and
 * other drivers' work on every dma-buf whose pages it touches; and for
 * @in_fences. -ETIMEDOUT at the deadline. Does not make bytes visible to the
 * CPU: DEVBUF_SYNC does.
 */
struct devbuf_wait {
	__u32 size;
	__u32 flags;
	__aligned_u64 id;
	__aligned_u64 offset;
	__aligned_u64 nbytes;
	__aligned_u64 deadline_ns;
	__aligned_u64 in_fences;
	__u32 nr_in_fences;
	__u32 pad;
	__aligned_u64 cookie;
	__s32 out_error;
	__u32 out_pad;
};

/**
 * DOC: Flags of DEVBUF_CANCEL
 *
 * DEVBUF_CANCEL_ALL
 *	every queued command of this context; @cookie must be zero
 */
#define DEVBUF_CANCEL_ALL	(1U << 0)

/**
 * struct devbuf_cancel - DEVBUF_CANCEL: give up queued commands
 * @size: bytes of this struct
 * @flags: DEVBUF_CANCEL_* bits
 * @cookie: of the commands, which were queued in this context; not zero
 * @out_count: how many were cancelled
 * @out_pad: zero
 *
 * A copy that has not begun never will; one that has begun stops at the next
 * piece. Either ends with -ECANCELED, as its completion on a ring (at once, if
 * it had not begun) and in its fence, which signals no earlier than what it was
 * ordered after. A queued DEVBUF_WAIT ends with -ECANCELED. Commands that are
 * over, or about to be, are not found: -ENOENT if there is nothing to cancel.
 */
struct devbuf_cancel {
	__u32 size;
	__u32 flags;
	__aligned_u64 cookie;
	__u32 out_count;
	__u32 out_pad;
};

/**
 * DOC: Commands by io_uring
 *
 * Every command can be issued as IORING_OP_URING_CMD on the context's file
 * (DEVBUF_FEATURE_URING): sqe->cmd_op is the command's number as for ioctl, and
 * sqe->cmd holds a struct devbuf_uring_cmd. The result is that of the ioctl, 0 or
 * a negative errno, with these differences:
 *
 *  - The argument is copied once, when the command is issued; all memory that it
 *    names, the argument included, must stay until the completion: that is when
 *    the @out_* members are written. (With DEVBUF_ASYNC the completion says that
 *    the copy is queued, and its fence when it is over.)
 *  - Submitting does not wait for other work. (It may wait for a page of the
 *    caller's that is not there, like every submission of direct I/O.) Copies
 *    without DEVBUF_ASYNC are queued, in the order of submission, and are ordered
 *    as "Asynchronous copies" says; they complete when they are over, not in any
 *    order. Small ones, with nothing to wait for, are done at once. All other
 *    commands, and all with IOSQE_ASYNC, are done by workers of the ring's, in no
 *    particular order: who depends on it links them (IOSQE_IO_LINK).
 *  - With IORING_URING_CMD_FIXED in sqe->uring_cmd_flags the caller's bytes of
 *    DEVBUF_COPYIN and DEVBUF_COPYOUT, of all ranges, lie in the registered
 *    buffer sqe->buf_index (-EFAULT), and are not pinned again. Other commands
 *    refuse that flag (-EINVAL), and so do these with DEVBUF_ASYNC.
 *  - IORING_OP_ASYNC_CANCEL does not reach these commands: see DEVBUF_CANCEL.
 */

/**
 * struct devbuf_uring_cmd - what sqe->cmd holds
 * @arg: address of the command's struct
 * @pad: zero
 */
struct devbuf_uring_cmd {
	__aligned_u64 arg;
	__aligned_u64 pad;
};

#endif /* _UAPI_LINUX_DEVBUF_H */
