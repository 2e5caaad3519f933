/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#ifndef DEVBUF_H
#define DEVBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * DOC: libdevbuf
 *
 * Device buffers: memory with a stable id, cut into views at byte offsets,
 * filled and read by copy or through a mapping, moved from device to device,
 * and handed to other drivers as dma-bufs. The memory is the devbuf driver's
 * (devbuf_driver_open()), this process's (devbuf_host_allocator()), or comes
 * from hooks of the caller's own (devbuf_allocator_create()); what follows is
 * the same for all of them, unless it says otherwise.
 *
 * Errors
 *	Functions that can fail return 0 or a negative errno. What they return
 *	by pointer is written on success only. devbuf_last_error() gives the
 *	calling thread's last failure in words, with its numbers. The library
 *	prints nothing, and never ends the program.
 *
 *	One errno has one meaning:
 *
 *	=========== =========================================================
 *	EINVAL      an argument is wrong; so is a NULL where it is not allowed
 *	EOVERFLOW   a product or a sum of sizes and offsets wraps around
 *	ENOENT      no such id here; no driver (devbuf_driver_open())
 *	EACCES      the handle lacks the right, or does not reach these bytes
 *	EPERM       the caller lacks a capability, or is the child of a fork
 *	EALREADY    the buffer is allocated already
 *	ENODATA     the buffer is not allocated
 *	EBUSY       in use
 *	EOPNOTSUPP  this allocator, device or kernel cannot do that
 *	ENODEV      there is no such device, or it is gone
 *	ENOMEM      out of memory, or over a limit on it
 *	EMFILE      the process is at its limit of open files (likewise ENFILE)
 *	EBADF       not an open file
 *	EFAULT      a pointer of the caller leads nowhere
 *	EINTR       a signal ended the command
 *	ETIMEDOUT   a deadline passed
 *	ECANCELED   the work was cancelled before it was done
 *	EAGAIN      the queue is full (struct devbuf_queue)
 *	EDQUOT      too much is queued on one connection: wait for some of it
 *	EIO         the device, or a hook of the caller's, failed
 *	EPROTO      another ABI than this library's (devbuf_driver_open())
 *	E2BIG       a struct is newer than the library and uses what it adds
 *	=========== =========================================================
 *
 *	"Every function" below means: every function that returns an errno. The
 *	errnos listed with a function are those that it adds to -EINVAL for
 *	wrong arguments and, on the driver, -EPERM after fork.
 *
 * NULL
 *	Releasing NULL does nothing. What is asked of NULL is zero, NULL or
 *	false. Everywhere else NULL is -EINVAL, unless it has a meaning that
 *	the function states.
 *
 * Ownership
 *	Buffers and allocators are counted. Who gets one by an out pointer owns
 *	a reference, and releases it by devbuf_unref() or
 *	devbuf_allocator_unref(). "Borrowed" pointers and strings live as long
 *	as what they were asked of. A buffer holds its allocator, and a view
 *	its base.
 *
 * Units
 *	"size" counts elements of a buffer's type. "nbytes" and "offset" count
 *	bytes, always.
 *
 * Threads
 *	Every function may be called from any thread at any time, as long as
 *	the caller holds a reference on what it passes in. Two threads on one
 *	buffer are ordered by the driver, and by a lock for other buffers. A
 *	queue is used by one thread at a time. No function blocks, except for
 *	memory, for the copying itself, for the lock just named, and, on the
 *	driver, for work that other drivers or queues have queued on the bytes
 *	(devbuf_sync() and all that copies and is not asynchronous); and those
 *	that say that they wait.
 *
 * fork
 *	The child of a fork cannot use the parent's driver buffers: every
 *	function gets -EPERM, and devbuf_unref() frees memory of the child's
 *	only. It opens its own connection. Mappings that were made before live
 *	on in the child. Buffers of the host allocator are shared with the
 *	child: it sees the same bytes. (As ever, what another thread was in the
 *	middle of when the process forked stays locked in the child.)
 */

/* --- Version and errors ----------------------------------------------------------------------- */

#define DEVBUF_VERSION_MAJOR 0
#define DEVBUF_VERSION_MINOR 1
#define DEVBUF_VERSION_PATCH 0

#define DEVBUF_API           __attribute__((visibility("default")))

/**
 * devbuf_version - version of the library that runs, "0.1.0"
 */
DEVBUF_API const char *devbuf_version(void);

/**
 * devbuf_last_error - the calling thread's last failure, in words
 *
 * A sentence with the numbers, "view of 16 bytes at 8 exceeds base of 16",
 * without a newline. Success does not clear it. Empty when nothing has failed
 * in this thread. Valid until this thread's next failure.
 */
DEVBUF_API const char *devbuf_last_error(void);

/* --- Element types ---------------------------------------------------------------------------- */

/**
 * typedef devbuf_dtype - type of a buffer's elements: DLPack's DLDataType
 * @code: DEVBUF_CODE_*, with DLPack's values
 * @bits: bits of one lane
 * @lanes: 1, or the number of lanes of a vector
 *
 * Four bytes, passed by value. The same bytes are handed on to DLPack.
 */
typedef struct devbuf_dtype {
	uint8_t code;
	uint8_t bits;
	uint16_t lanes;
} devbuf_dtype;

enum devbuf_dtype_code {
	DEVBUF_CODE_INT = 0,
	DEVBUF_CODE_UINT = 1,
	DEVBUF_CODE_FLOAT = 2,
	DEVBUF_CODE_BFLOAT = 4,
	DEVBUF_CODE_COMPLEX = 5,
	DEVBUF_CODE_BOOL = 6,
	DEVBUF_CODE_FLOAT8_E3M4 = 7,
	DEVBUF_CODE_FLOAT8_E4M3 = 8,
	DEVBUF_CODE_FLOAT8_E4M3B11FNUZ = 9,
	DEVBUF_CODE_FLOAT8_E4M3FN = 10,
	DEVBUF_CODE_FLOAT8_E4M3FNUZ = 11,
	DEVBUF_CODE_FLOAT8_E5M2 = 12,
	DEVBUF_CODE_FLOAT8_E5M2FNUZ = 13,
	DEVBUF_CODE_FLOAT8_E8M0FNU = 14
};

/*
 * Each type has two forms: DEVBUF_INT8 is an expression, for arguments and
 * assignments; DEVBUF_INT8_INIT initialises, also what is static.
 */
/* clang-format off */
#define DEVBUF_BOOL_INIT                { 6, 8, 1 }
#define DEVBUF_INT8_INIT                { 0, 8, 1 }
#define DEVBUF_INT16_INIT               { 0, 16, 1 }
#define DEVBUF_INT32_INIT               { 0, 32, 1 }
#define DEVBUF_INT64_INIT               { 0, 64, 1 }
#define DEVBUF_UINT8_INIT               { 1, 8, 1 }
#define DEVBUF_UINT16_INIT              { 1, 16, 1 }
#define DEVBUF_UINT32_INIT              { 1, 32, 1 }
#define DEVBUF_UINT64_INIT              { 1, 64, 1 }
#define DEVBUF_FLOAT8_E3M4_INIT         { 7, 8, 1 }
#define DEVBUF_FLOAT8_E4M3_INIT         { 8, 8, 1 }
#define DEVBUF_FLOAT8_E4M3B11FNUZ_INIT  { 9, 8, 1 }
#define DEVBUF_FLOAT8_E4M3FN_INIT       { 10, 8, 1 }
#define DEVBUF_FLOAT8_E4M3FNUZ_INIT     { 11, 8, 1 }
#define DEVBUF_FLOAT8_E5M2_INIT         { 12, 8, 1 }
#define DEVBUF_FLOAT8_E5M2FNUZ_INIT     { 13, 8, 1 }
#define DEVBUF_FLOAT8_E8M0FNU_INIT      { 14, 8, 1 }
#define DEVBUF_FLOAT16_INIT             { 2, 16, 1 }
#define DEVBUF_BFLOAT16_INIT            { 4, 16, 1 }
#define DEVBUF_FLOAT32_INIT             { 2, 32, 1 }
#define DEVBUF_FLOAT64_INIT             { 2, 64, 1 }
#define DEVBUF_COMPLEX32_INIT           { 5, 32, 1 }
#define DEVBUF_COMPLEX64_INIT           { 5, 64, 1 }
#define DEVBUF_COMPLEX128_INIT          { 5, 128, 1 }

#ifdef __cplusplus
#define DEVBUF_DTYPE_EXPRESSION(...) (devbuf_dtype __VA_ARGS__)
#else
#define DEVBUF_DTYPE_EXPRESSION(...) ((devbuf_dtype)__VA_ARGS__)
#endif

#define DEVBUF_BOOL                     DEVBUF_DTYPE_EXPRESSION(DEVBUF_BOOL_INIT)
#define DEVBUF_INT8                     DEVBUF_DTYPE_EXPRESSION(DEVBUF_INT8_INIT)
#define DEVBUF_INT16                    DEVBUF_DTYPE_EXPRESSION(DEVBUF_INT16_INIT)
#define DEVBUF_INT32                    DEVBUF_DTYPE_EXPRESSION(DEVBUF_INT32_INIT)
#define DEVBUF_INT64                    DEVBUF_DTYPE_EXPRESSION(DEVBUF_INT64_INIT)
#define DEVBUF_UINT8                    DEVBUF_DTYPE_EXPRESSION(DEVBUF_UINT8_INIT)
#define DEVBUF_UINT16                   DEVBUF_DTYPE_EXPRESSION(DEVBUF_UINT16_INIT)
#define DEVBUF_UINT32                   DEVBUF_DTYPE_EXPRESSION(DEVBUF_UINT32_INIT)
#define DEVBUF_UINT64                   DEVBUF_DTYPE_EXPRESSION(DEVBUF_UINT64_INIT)
#define DEVBUF_FLOAT8_E3M4              DEVBUF_DTYPE_EXPRESSION(DEVBUF_FLOAT8_E3M4_INIT)
#define DEVBUF_FLOAT8_E4M3              DEVBUF_DTYPE_EXPRESSION(DEVBUF_FLOAT8_E4M3_INIT)
#define DEVBUF_FLOAT8_E4M3B11FNUZ       DEVBUF_DTYPE_EXPRESSION(DEVBUF_FLOAT8_E4M3B11FNUZ_INIT)
#define DEVBUF_FLOAT8_E4M3FN            DEVBUF_DTYPE_EXPRESSION(DEVBUF_FLOAT8_E4M3FN_INIT)
#define DEVBUF_FLOAT8_E4M3FNUZ          DEVBUF_DTYPE_EXPRESSION(DEVBUF_FLOAT8_E4M3FNUZ_INIT)
#define DEVBUF_FLOAT8_E5M2              DEVBUF_DTYPE_EXPRESSION(DEVBUF_FLOAT8_E5M2_INIT)
#define DEVBUF_FLOAT8_E5M2FNUZ          DEVBUF_DTYPE_EXPRESSION(DEVBUF_FLOAT8_E5M2FNUZ_INIT)
#define DEVBUF_FLOAT8_E8M0FNU           DEVBUF_DTYPE_EXPRESSION(DEVBUF_FLOAT8_E8M0FNU_INIT)
#define DEVBUF_FLOAT16                  DEVBUF_DTYPE_EXPRESSION(DEVBUF_FLOAT16_INIT)
#define DEVBUF_BFLOAT16                 DEVBUF_DTYPE_EXPRESSION(DEVBUF_BFLOAT16_INIT)
#define DEVBUF_FLOAT32                  DEVBUF_DTYPE_EXPRESSION(DEVBUF_FLOAT32_INIT)
#define DEVBUF_FLOAT64                  DEVBUF_DTYPE_EXPRESSION(DEVBUF_FLOAT64_INIT)
#define DEVBUF_COMPLEX32                DEVBUF_DTYPE_EXPRESSION(DEVBUF_COMPLEX32_INIT)
#define DEVBUF_COMPLEX64                DEVBUF_DTYPE_EXPRESSION(DEVBUF_COMPLEX64_INIT)
#define DEVBUF_COMPLEX128               DEVBUF_DTYPE_EXPRESSION(DEVBUF_COMPLEX128_INIT)
/* clang-format on */

/**
 * devbuf_dtype_vector - the vector type of @lanes lanes of @dtype
 * @dtype: a type; its own lanes are replaced
 * @lanes: 1 to 65535
 */
DEVBUF_API devbuf_dtype devbuf_dtype_vector(devbuf_dtype dtype, uint16_t lanes);

/**
 * devbuf_dtype_itemsize - bytes of one element, all lanes
 * @dtype: a type
 *
 * 0 for what is no type of the list above: unknown codes, widths that a code
 * does not have, less than a byte, or no lanes.
 */
DEVBUF_API size_t devbuf_dtype_itemsize(devbuf_dtype dtype);

/**
 * devbuf_dtype_equal - whether two types are the same
 * @a: a type
 * @b: a type
 */
DEVBUF_API bool devbuf_dtype_equal(devbuf_dtype a, devbuf_dtype b);

/**
 * devbuf_dtype_name - the type's name: "float32", "int8x4"
 * @dtype: a type
 *
 * "invalid" for what is no type. Names of scalars are constants; that of a
 * vector is valid until the eighth next call for a vector in this thread.
 */
DEVBUF_API const char *devbuf_dtype_name(devbuf_dtype dtype);

/**
 * devbuf_dtype_parse - the type of that name
 * @name: as devbuf_dtype_name() writes it
 * @out: the type
 */
DEVBUF_API int devbuf_dtype_parse(const char *name, devbuf_dtype *out);

/* --- Allocators ------------------------------------------------------------------------------- */

struct devbuf;
struct devbuf_allocator;

/**
 * struct devbuf_spec - what the memory of a buffer shall be like
 * @size: bytes of this struct. A caller that was built with a newer header
 *	passes a longer struct; what the library does not know must be zero
 *	(-E2BIG).
 * @uncached: CPU mappings are write-combined or uncached. Memory of the host
 *	allocator is seen by no device, so there it makes no difference.
 * @cpu_access: the caller will map the buffer
 * @host: host memory that the device can reach, not the device's own
 * @nolru: devbuf_lru_allocator() neither keeps nor reuses the memory
 * @contiguous: one range of bus addresses; -EOPNOTSUPP where there is no such
 * @reserved: zero
 * @numa_node: the NUMA node that the memory is on, -1 for any. Only for device
 *	"SYSTEM", of which it is the number: "SYSTEM" on node 1 is SYSTEM:1.
 * @reserved2: zero
 * @external_ptr: wrap this memory of the caller's, of the buffer's nbytes, and
 *	never free it; NULL for memory of the allocator's. It must stay while the
 *	buffer is allocated. On the driver the device must be "USER"; it pins
 *	the memory at devbuf_allocate(), counts it against RLIMIT_MEMLOCK
 *	(-ENOMEM over it), and needs no alignment.
 * @alignment: bytes: zero or a power of two; what the device cannot do is
 *	-EOPNOTSUPP
 */
struct devbuf_spec {
	size_t size;
	bool uncached;
	bool cpu_access;
	bool host;
	bool nolru;
	bool contiguous;
	uint8_t reserved[3];
	int numa_node;
	uint32_t reserved2;
	void *external_ptr;
	size_t alignment;
};

/* What a NULL spec stands for: nothing asked, any node. */
#define DEVBUF_SPEC_INIT                                                                           \
	{                                                                                          \
		sizeof(struct devbuf_spec), false, false, false, false, false, { 0, 0, 0 }, -1, 0, \
			NULL, 0                                                                    \
	}

/**
 * struct devbuf_allocator_ops - how an allocator of the caller's own works
 * @size: bytes of this struct, as struct devbuf_spec has it
 * @alloc: give @nbytes bytes on @device, like @spec, and return a handle for
 *	them, which the library passes to the other hooks and never looks into.
 *	A spec with external_ptr asks to wrap that memory. -ENODEV for a device
 *	that there is not, -EOPNOTSUPP for a spec that cannot be met.
 * @free: take back what @alloc gave, with the same arguments. Called when the
 *	buffer was deallocated and no mapping of it is left.
 * @copyin: copy @nbytes bytes from @src to byte @offset of the memory
 * @copyout: copy @nbytes bytes from byte @offset of the memory to @dst
 * @addr: the address of the memory in the device's space
 * @offset: optional. A handle for @nbytes bytes at byte @offset of the memory
 *	of a base, by which the library refers to a view. Without it views
 *	cannot be allocated (-EOPNOTSUPP).
 * @detach: optional. Take back what @offset gave. Called before the base's
 *	memory is freed.
 * @transfer: optional. Copy @nbytes bytes from memory to memory of this
 *	allocator, of two devices with the same prefix. The ranges may overlap:
 *	the result is then what memmove() gives.
 * @map: optional. Give the CPU an address for @nbytes bytes at byte @offset of
 *	the memory of a base; @prot is of PROT_READ and PROT_WRITE. Without it
 *	devbuf_map() is -EOPNOTSUPP.
 * @unmap: optional. Take back what @map gave.
 * @copy_from_disk: optional. Read @nbytes bytes at byte @file_offset of file
 *	descriptor @fd straight into byte @offset of the memory. Returns the
 *	bytes that were read, fewer than asked for only at the end of the file,
 *	or a negative errno; on -EOPNOTSUPP the library reads and copies in.
 * @destroy: optional. The allocator's last reference is gone.
 *
 * @user is what was given to devbuf_allocator_create(). Hooks return 0 or a
 * negative errno, unless it says otherwise above. They are called from any
 * thread, with the lock of the buffer held: on one buffer's memory one hook
 * runs at a time, and no hook may use the buffer itself.
 */
struct devbuf_allocator_ops {
	size_t size;
	int (*alloc)(void *user, const char *device, size_t nbytes, const struct devbuf_spec *spec,
		     void **out_mem);
	void (*free)(void *user, void *mem, const char *device, size_t nbytes,
		     const struct devbuf_spec *spec);
	int (*copyin)(void *user, void *mem, size_t offset, const void *src, size_t nbytes);
	int (*copyout)(void *user, void *mem, size_t offset, void *dst, size_t nbytes);
	int (*addr)(void *user, void *mem, uint64_t *out_addr);
	int (*offset)(void *user, void *mem, size_t offset, size_t nbytes, void **out_mem);
	void (*detach)(void *user, void *mem);
	int (*transfer)(void *user, void *dst, size_t dst_offset, void *src, size_t src_offset,
			size_t nbytes);
	int (*map)(void *user, void *mem, size_t offset, size_t nbytes, int prot, void **out_addr);
	void (*unmap)(void *user, void *mem, void *addr, size_t nbytes);
	int64_t (*copy_from_disk)(void *user, void *mem, size_t offset, int fd, int64_t file_offset,
				  size_t nbytes);
	void (*destroy)(void *user);
};

/**
 * devbuf_driver_open - connect to the driver
 * @path: its device node; NULL for "/dev/devbuf"
 * @out: an allocator for all of the driver's devices
 *
 * Each connection has its own table of ids. -ENOENT when there is no driver,
 * -EACCES when it may not be opened, -EPROTO when the node is no devbuf
 * driver's or its ABI is another one; -EMFILE, -ENOMEM.
 */
DEVBUF_API int devbuf_driver_open(const char *path, struct devbuf_allocator **out);

/**
 * devbuf_host_allocator - buffers in this process's memory
 * @out: an allocator that takes any device name
 *
 * Needs no driver. Its buffers obey the same contract, so that what uses
 * buffers can be developed and tested anywhere; they cannot be exported.
 */
DEVBUF_API int devbuf_host_allocator(struct devbuf_allocator **out);

/**
 * devbuf_lru_allocator - an allocator that keeps freed memory and reuses it
 * @inner: where the memory comes from; a reference on it is taken
 * @out: the allocator
 *
 * A buffer that is allocated may get memory that an earlier one of the same
 * device, nbytes and spec had, *with its old contents*. Specs with nolru or
 * external_ptr pass by. When the inner allocator fails, everything that is
 * kept is freed, and it is asked once more.
 *
 * Over the driver the driver itself keeps the memory, bounds it, and gives it
 * back when the machine runs short. Over other allocators the library keeps
 * up to 256 MiB in up to 256 pieces, the latest used.
 */
DEVBUF_API int devbuf_lru_allocator(struct devbuf_allocator *inner, struct devbuf_allocator **out);

/**
 * devbuf_allocator_create - an allocator of the caller's own
 * @ops: its hooks; copied
 * @user: handed to each hook
 * @out: the allocator
 *
 * On failure destroy is not called.
 */
DEVBUF_API int devbuf_allocator_create(const struct devbuf_allocator_ops *ops, void *user,
				       struct devbuf_allocator **out);

/**
 * devbuf_allocator_ref - take another reference
 * @a: an allocator; returned
 */
DEVBUF_API struct devbuf_allocator *devbuf_allocator_ref(struct devbuf_allocator *a);

/**
 * devbuf_allocator_unref - release a reference
 * @a: an allocator, or NULL. With its last buffer and reference it goes.
 */
DEVBUF_API void devbuf_allocator_unref(struct devbuf_allocator *a);

/**
 * devbuf_driver_instance - which loading of the driver this is
 * @a: from devbuf_driver_open(), or an LRU allocator over it (else -EOPNOTSUPP)
 * @out: a random uuid. Ids are comparable between processes with the same.
 */
DEVBUF_API int devbuf_driver_instance(struct devbuf_allocator *a, uint8_t out[16]);

/* --- Devices ---------------------------------------------------------------------------------- */

/* Bytes of the longest device name, its NUL included. */
#define DEVBUF_DEVICE_BYTES   32

/**
 * DOC: What a device can
 *
 * DEVBUF_CAN_VIEW
 *	views of its buffers can be allocated
 * DEVBUF_CAN_TRANSFER
 *	its buffers, and those of devices with its prefix, copy to each other
 * DEVBUF_CAN_COPY
 *	copyin and copyout
 * DEVBUF_CAN_MAP
 *	devbuf_map()
 * DEVBUF_CAN_PIN
 *	mappings are of ordinary pages, which direct I/O, io_uring and RDMA
 *	accept
 * DEVBUF_CAN_EXPORT
 *	devbuf_export()
 * DEVBUF_CAN_UNCACHED, DEVBUF_CAN_HOST, DEVBUF_CAN_CONTIGUOUS
 *	what struct devbuf_spec can ask for
 * DEVBUF_CAN_EXTERNAL
 *	the memory is the caller's, which the spec must give
 * DEVBUF_CAN_REUSE
 *	devbuf_lru_allocator() has an effect
 */
#define DEVBUF_CAN_VIEW       (UINT64_C(1) << 0)
#define DEVBUF_CAN_TRANSFER   (UINT64_C(1) << 1)
#define DEVBUF_CAN_COPY       (UINT64_C(1) << 2)
#define DEVBUF_CAN_MAP        (UINT64_C(1) << 3)
#define DEVBUF_CAN_PIN        (UINT64_C(1) << 4)
#define DEVBUF_CAN_EXPORT     (UINT64_C(1) << 5)
#define DEVBUF_CAN_UNCACHED   (UINT64_C(1) << 6)
#define DEVBUF_CAN_CONTIGUOUS (UINT64_C(1) << 7)
#define DEVBUF_CAN_REUSE      (UINT64_C(1) << 8)
#define DEVBUF_CAN_EXTERNAL   (UINT64_C(1) << 9)
#define DEVBUF_CAN_HOST       (UINT64_C(1) << 10)

/**
 * struct devbuf_device_props - a device of the driver
 * @size: bytes of this struct, set by the caller
 * @name: "SYSTEM:0"
 * @caps: DEVBUF_CAN_* bits
 * @alignment: bytes; that of every allocation, and the most that can be asked
 * @total_nbytes: bytes of memory that it has; 0 if it has none of its own
 * @free_nbytes: bytes of it that are free now; an estimate
 * @numa_node: the node that its memory is on, -1 when it is on none
 * @reserved: zero
 */
struct devbuf_device_props {
	size_t size;
	char name[DEVBUF_DEVICE_BYTES];
	uint64_t caps;
	uint64_t alignment;
	uint64_t total_nbytes;
	uint64_t free_nbytes;
	int numa_node;
	uint32_t reserved;
};

#define DEVBUF_DEVICE_PROPS_INIT                                         \
	{                                                                \
		sizeof(struct devbuf_device_props), "", 0, 0, 0, 0, 0, 0 \
	}

/**
 * devbuf_device_next - walk the devices
 * @a: from devbuf_driver_open(), or an LRU allocator over it. Others take any
 *	device name and have nothing to walk (-EOPNOTSUPP).
 * @cursor: zero for the first; the function moves it on
 * @out: the device
 *
 * -ENODEV after the last. ::
 *
 *	struct devbuf_device_props d = DEVBUF_DEVICE_PROPS_INIT;
 *	uint64_t cursor = 0;
 *
 *	while (devbuf_device_next(a, &cursor, &d) == 0)
 *		puts(d.name);
 */
DEVBUF_API int devbuf_device_next(struct devbuf_allocator *a, uint64_t *cursor,
				  struct devbuf_device_props *out);

/**
 * devbuf_device_find - the device of that name
 * @a: as for devbuf_device_next()
 * @device: a name as for devbuf_create()
 * @out: the device
 *
 * -ENODEV when there is none.
 */
DEVBUF_API int devbuf_device_find(struct devbuf_allocator *a, const char *device,
				  struct devbuf_device_props *out);

/* --- Buffers ---------------------------------------------------------------------------------- */

/**
 * devbuf_create - a base buffer, without memory yet
 * @a: where the memory will come from
 * @device: letters, digits and underscores, beginning with a letter; a colon
 *	and a decimal number without leading zeros may follow. At most 31
 *	characters. The canonical form has capitals and a number: "system" is
 *	SYSTEM:0.
 * @size: elements, not zero
 * @dtype: their type
 * @spec: what the memory shall be like; NULL for nothing in particular
 * @out: the buffer
 *
 * -EOVERFLOW when size times itemsize wraps, or exceeds what offsets can count
 * (2^63 - 1); -ENODEV when the driver has no such device (other allocators see
 * the name at devbuf_allocate() first); -EOPNOTSUPP when the device cannot meet
 * the spec; -E2BIG; -ENOMEM.
 */
DEVBUF_API int devbuf_create(struct devbuf_allocator *a, const char *device, size_t size,
			     devbuf_dtype dtype, const struct devbuf_spec *spec,
			     struct devbuf **out);

/**
 * devbuf_view - a buffer that is a range of bytes of another
 * @b: a base, or a view: a view of a view is a view of the same base
 * @size: elements, not zero
 * @dtype: their type
 * @offset: bytes from the beginning of @b; not negative, less than its nbytes
 * @out: the view, which has no memory yet even if @b has
 *
 * The view may not go past the end of the base (-EINVAL), but it may go past
 * the end of @b. -EOVERFLOW when sizes and offsets wrap; -EACCES when @b was
 * imported and the view leaves the bytes that came with it; -ENOMEM.
 */
DEVBUF_API int devbuf_view(struct devbuf *b, size_t size, devbuf_dtype dtype, int64_t offset,
			   struct devbuf **out);

/**
 * devbuf_import - the buffer of a dma-buf
 * @a: from devbuf_driver_open(), or an LRU allocator over it (else -EOPNOTSUPP)
 * @fd: from devbuf_export(), of any process; stays the caller's
 * @out: the buffer, under the id that it has in the process that exported it.
 *	What this connection holds already comes back as the same struct, with
 *	another reference, and with the rights of both.
 *
 * It can be read, exported, and written if the dma-buf was exported so; the
 * owner alone allocates and deallocates it (-EACCES). A dma-buf of a view
 * gives a view, without its base (devbuf_base()). A type that the library does
 * not know is shown as uint8. -EINVAL when @fd is no dma-buf, -EBADF when it is
 * not open, -EOPNOTSUPP for a dma-buf of another driver's; -ENOMEM.
 */
DEVBUF_API int devbuf_import(struct devbuf_allocator *a, int fd, struct devbuf **out);

/**
 * devbuf_open_id - a buffer that this allocator holds already
 * @a: an allocator; LRU allocators share the ids of the one that they are over
 * @id: its id
 * @out: the buffer, with another reference
 *
 * -ENOENT otherwise: an id of another process opens nothing.
 */
DEVBUF_API int devbuf_open_id(struct devbuf_allocator *a, uint64_t id, struct devbuf **out);

/**
 * devbuf_ref - take another reference
 * @b: a buffer; returned
 */
DEVBUF_API struct devbuf *devbuf_ref(struct devbuf *b);

/**
 * devbuf_unref - release a reference
 * @b: a buffer, or NULL. The last reference unmaps and deallocates it, and
 *	releases its base. Never fails: what others still use of the memory
 *	stays until they let go.
 */
DEVBUF_API void devbuf_unref(struct devbuf *b);

/**
 * devbuf_id - the buffer's id
 * @b: a buffer
 *
 * Not zero, and never used a second time. Ids of driver buffers are the same
 * in all processes, and never have the top bit; others have it, and mean
 * something in this process only.
 */
DEVBUF_API uint64_t devbuf_id(const struct devbuf *b);

/**
 * devbuf_base_id - the id of the buffer's base; its own, if it is a base
 * @b: a buffer
 */
DEVBUF_API uint64_t devbuf_base_id(const struct devbuf *b);

/**
 * devbuf_base - the buffer's base; itself, if it is a base
 * @b: a buffer
 *
 * Borrowed. NULL for a view that was imported while its base was not here.
 */
DEVBUF_API struct devbuf *devbuf_base(struct devbuf *b);

/**
 * devbuf_allocator_of - the allocator that the buffer's base was made with
 * @b: a buffer
 *
 * Borrowed.
 */
DEVBUF_API struct devbuf_allocator *devbuf_allocator_of(struct devbuf *b);

/**
 * devbuf_device - the canonical name of the buffer's device, "SYSTEM:0"
 * @b: a buffer
 *
 * Borrowed.
 */
DEVBUF_API const char *devbuf_device(const struct devbuf *b);

/**
 * devbuf_size - elements of the buffer
 * @b: a buffer
 */
DEVBUF_API size_t devbuf_size(const struct devbuf *b);

/**
 * devbuf_dtype_of - type of its elements
 * @b: a buffer
 */
DEVBUF_API devbuf_dtype devbuf_dtype_of(const struct devbuf *b);

/**
 * devbuf_spec_of - the spec that its base was made with; never NULL
 * @b: a buffer (NULL for NULL)
 *
 * Borrowed.
 */
DEVBUF_API const struct devbuf_spec *devbuf_spec_of(const struct devbuf *b);

/**
 * devbuf_nbytes - bytes of the buffer: its size times the itemsize
 * @b: a buffer
 */
DEVBUF_API size_t devbuf_nbytes(const struct devbuf *b);

/**
 * devbuf_offset - bytes from the beginning of its base; 0 for a base
 * @b: a buffer
 */
DEVBUF_API size_t devbuf_offset(const struct devbuf *b);

/* Bytes of the longest name of a buffer, its NUL included. */
#define DEVBUF_NAME_BYTES 64

/**
 * devbuf_set_name - name the buffer, for people to see in listings
 * @b: a buffer
 * @name: printable ASCII, at most 63 characters; empty takes the name away
 *
 * -EACCES for imported buffers, which their owner names.
 */
DEVBUF_API int devbuf_set_name(struct devbuf *b, const char *name);

/**
 * devbuf_get_name - the buffer's name; empty when it has none
 * @b: a buffer
 * @out: the name
 */
DEVBUF_API int devbuf_get_name(struct devbuf *b, char out[DEVBUF_NAME_BYTES]);

/* --- Memory of a buffer ----------------------------------------------------------------------- */

/**
 * devbuf_allocate - give the buffer its memory
 * @b: a base or a view. Of a view, first the base, if it has none.
 *
 * New memory is zero, except from an LRU allocator. -EALREADY when it is
 * allocated; -EOPNOTSUPP for a view on a device that has no views, with the
 * base left as it was; -ENOMEM; -ENODEV; what the alloc hook returns.
 */
DEVBUF_API int devbuf_allocate(struct devbuf *b);

/**
 * devbuf_ensure_allocated - devbuf_allocate(), if the buffer is not allocated
 * @b: a base or a view
 */
DEVBUF_API int devbuf_ensure_allocated(struct devbuf *b);

/**
 * devbuf_is_allocated - whether the base of the buffer has memory
 * @b: a buffer
 */
DEVBUF_API bool devbuf_is_allocated(struct devbuf *b);

/**
 * devbuf_is_initialized - whether this very buffer or view was allocated
 * @b: a buffer
 */
DEVBUF_API bool devbuf_is_initialized(struct devbuf *b);

/**
 * devbuf_deallocate - take the buffer's memory away
 * @b: a base or a view; nothing happens when it has none
 *
 * A view lets go of its base's memory, which stays. A base is -EBUSY while a
 * view of it is allocated. Mappings and exports made before keep the old
 * memory until they are gone. The buffer may be allocated again, under the
 * same id.
 */
DEVBUF_API int devbuf_deallocate(struct devbuf *b);

/* What the caller may do with a buffer: DEVBUF_MAY_* bits. */
#define DEVBUF_MAY_READ   (1U << 0)
#define DEVBUF_MAY_WRITE  (1U << 1)
#define DEVBUF_MAY_EXPORT (1U << 2)
#define DEVBUF_MAY_MANAGE (1U << 3)

/**
 * struct devbuf_status - the state of a buffer at a moment
 * @size: bytes of this struct, set by the caller
 * @base_allocated: its base has memory
 * @allocated: this very buffer or view was allocated
 * @read_only: the memory can only be read, whatever the rights
 * @device_gone: the device was unplugged
 * @rights: DEVBUF_MAY_* bits
 * @largest_page_nbytes: the memory is made of pieces; bytes of the largest.
 *	Zero when it is not allocated or not known.
 */
struct devbuf_status {
	size_t size;
	bool base_allocated;
	bool allocated;
	bool read_only;
	bool device_gone;
	uint32_t rights;
	uint64_t largest_page_nbytes;
};

#define DEVBUF_STATUS_INIT                                                     \
	{                                                                      \
		sizeof(struct devbuf_status), false, false, false, false, 0, 0 \
	}

/**
 * devbuf_get_status - the state of the buffer
 * @b: a buffer
 * @out: its state
 */
DEVBUF_API int devbuf_get_status(struct devbuf *b, struct devbuf_status *out);

/**
 * devbuf_supports_offset - whether views of it can be allocated
 * @b: a buffer
 */
DEVBUF_API bool devbuf_supports_offset(const struct devbuf *b);

/**
 * devbuf_uop_refcount - the counter that a runtime keeps with the base
 * @b: a buffer
 *
 * Of no meaning to the library. A view without its base has its own.
 */
DEVBUF_API int64_t devbuf_uop_refcount(const struct devbuf *b);

/**
 * devbuf_add_ref - add to that counter; frees nothing and keeps nothing
 * @b: a buffer; returned
 * @cnt: added; may be negative
 */
DEVBUF_API struct devbuf *devbuf_add_ref(struct devbuf *b, int64_t cnt);

/* --- Copying between a buffer and the caller's memory ----------------------------------------- */

/**
 * devbuf_copyin - fill the whole buffer
 * @b: a buffer that is allocated (-ENODATA)
 * @src: the bytes
 * @nbytes: how many: the buffer's nbytes
 *
 * -EACCES without the right to write; -EFAULT.
 */
DEVBUF_API int devbuf_copyin(struct devbuf *b, const void *src, size_t nbytes);

/**
 * devbuf_copyout - read the whole buffer
 * @b: a buffer that is allocated (-ENODATA)
 * @dst: where the bytes go
 * @nbytes: how many: the buffer's nbytes
 *
 * -EACCES without the right to read; -EFAULT.
 */
DEVBUF_API int devbuf_copyout(struct devbuf *b, void *dst, size_t nbytes);

/**
 * devbuf_copyin_at - fill a part of the buffer
 * @b: a buffer that is allocated (-ENODATA)
 * @offset: bytes from its beginning
 * @src: the bytes
 * @nbytes: how many, not zero, within the buffer
 *
 * -EOVERFLOW when offset and nbytes wrap; as devbuf_copyin().
 */
DEVBUF_API int devbuf_copyin_at(struct devbuf *b, size_t offset, const void *src, size_t nbytes);

/**
 * devbuf_copyout_at - read a part of the buffer
 * @b: a buffer that is allocated (-ENODATA)
 * @offset: bytes from its beginning
 * @dst: where the bytes go
 * @nbytes: how many, not zero, within the buffer
 *
 * -EOVERFLOW when offset and nbytes wrap; as devbuf_copyout().
 */
DEVBUF_API int devbuf_copyout_at(struct devbuf *b, size_t offset, void *dst, size_t nbytes);

/**
 * devbuf_as_bytes - the contents, in fresh memory
 * @b: a buffer that is allocated (-ENODATA)
 * @out: released by free(3)
 * @nbytes: the buffer's nbytes; NULL if that is known
 */
DEVBUF_API int devbuf_as_bytes(struct devbuf *b, void **out, size_t *nbytes);

/* --- Copying between a buffer and a file ------------------------------------------------------ */

/* Flag of struct devbuf_file_io: never by direct I/O. */
#define DEVBUF_FILE_BUFFERED (UINT64_C(1) << 0)

/**
 * struct devbuf_file_io - how to read or write a file, and how far it got
 * @size: bytes of this struct, set by the caller
 * @flags: DEVBUF_FILE_BUFFERED, for a file that is likely to be in the page
 *	cache; or 0
 * @progress: optional. Called now and then, and when the last byte went, by
 *	the thread that called and with no lock held: @nbytes_done of @nbytes
 *	bytes are done, all those before it included. It may use the buffer and
 *	the file. When it returns what is not 0, the work stops, with
 *	-ECANCELED.
 * @user: handed to @progress
 * @nbytes_done: written also on failure: so many bytes from the beginning of
 *	the range were read or written, all of them. Those that follow may have
 *	been, too.
 * @nbytes_direct: written also on failure: of those, bytes that went directly
 *	between the file's device and the buffer, and not through the page cache
 *
 * A member that the library writes need not be set before.
 */
struct devbuf_file_io {
	size_t size;
	uint64_t flags;
	int (*progress)(void *user, size_t nbytes_done, size_t nbytes);
	void *user;
	size_t nbytes_done;
	size_t nbytes_direct;
};

#define DEVBUF_FILE_IO_INIT                                        \
	{                                                          \
		sizeof(struct devbuf_file_io), 0, NULL, NULL, 0, 0 \
	}

/**
 * devbuf_read_file - fill a part of the buffer from a file
 * @b: a buffer that is allocated (-ENODATA)
 * @offset: bytes from its beginning
 * @fd: a file that can be read at an offset (-EBADF, -ESPIPE). Its position and
 *	its flags stay as they are, whether O_DIRECT is among them or not.
 * @file_offset: bytes from the beginning of the file
 * @nbytes: how many, not zero, within the buffer
 * @io: how, and how far it got; NULL when nobody wants to know
 *
 * Returns 0 when all bytes were read. -EINVAL when the file ends before the
 * last of them, be it that it shrinks meanwhile; else what read(2) gives, like
 * -EIO; or as devbuf_copyin_at(). In each case @io says how many bytes came.
 *
 * The library maps the buffer for the time that it takes, which is no concern
 * of devbuf_map()'s, and reads into the mapping: directly, if the file can do
 * that, and as far as the offset in the file and the address of the memory are
 * aligned as it asks; several pieces are in flight together, by an io_uring of
 * the library's own where that can be had. Beginnings and ends that are not
 * aligned go through the page cache; so does everything when the offsets in
 * file and buffer do not agree in their alignment (that of the file's blocks,
 * at most 4096 bytes as a rule), or the file is not on a disk. A buffer that
 * cannot be mapped is filled through a bounded piece of host memory. An
 * allocator's copy_from_disk hook comes before all of this; what it reads is
 * not counted as direct.
 *
 * What is mapped is the whole of @b: to read little into a large buffer of the
 * driver's, make a view.
 *
 * Blocks until the bytes are there. As with access through a mapping, nothing
 * orders it against others' use of the same bytes at the same time; use by
 * devices is ordered as by devbuf_sync(), which this function calls.
 *
 * For direct I/O a second descriptor of the file is opened (by way of
 * /proc/self/fd) and closed. The kernel drops a process's record locks
 * (F_SETLK, not F_OFD_SETLK) on a file when *any* of its descriptors is closed:
 * who holds such locks asks for DEVBUF_FILE_BUFFERED, with a descriptor that is
 * not O_DIRECT.
 */
DEVBUF_API int devbuf_read_file(struct devbuf *b, size_t offset, int fd, int64_t file_offset,
				size_t nbytes, struct devbuf_file_io *io);

/**
 * devbuf_write_file - write a part of the buffer to a file
 * @b: a buffer that is allocated (-ENODATA)
 * @offset: bytes from its beginning
 * @fd: a file that can be written at an offset (-EBADF, -ESPIPE), and was not
 *	opened with O_APPEND (-EINVAL)
 * @file_offset: bytes from the beginning of the file, which grows as needed
 * @nbytes: how many, not zero, within the buffer
 * @io: how, and how far it got; NULL when nobody wants to know
 *
 * Returns 0 when all bytes were written; else what write(2) gives, like -ENOSPC
 * or -EIO, or as devbuf_copyout_at(). In each case @io says how many bytes
 * went. Otherwise as devbuf_read_file(), without a hook.
 *
 * To be sure that the bytes are on the disk takes fdatasync(2), also when they
 * went directly.
 */
DEVBUF_API int devbuf_write_file(struct devbuf *b, size_t offset, int fd, int64_t file_offset,
				 size_t nbytes, struct devbuf_file_io *io);

/* --- Copying from buffer to buffer ------------------------------------------------------------ */

/**
 * enum devbuf_copy_path - the way that bytes took from buffer to buffer
 * @DEVBUF_VIA_NONE: nothing was copied
 * @DEVBUF_VIA_PEER: one device read or wrote the other's memory
 * @DEVBUF_VIA_DEVICE: the device's own engine; the transfer hook
 * @DEVBUF_VIA_DMAENGINE: a DMA engine of the host
 * @DEVBUF_VIA_CPU: the CPU; each byte was copied once
 * @DEVBUF_VIA_BOUNCE: the CPU, twice, through a piece of host memory
 *
 * Best first.
 */
enum devbuf_copy_path {
	DEVBUF_VIA_NONE = 0,
	DEVBUF_VIA_PEER = 1,
	DEVBUF_VIA_DEVICE = 2,
	DEVBUF_VIA_DMAENGINE = 3,
	DEVBUF_VIA_CPU = 4,
	DEVBUF_VIA_BOUNCE = 5
};

/**
 * devbuf_copy_path_name - "peer", "device", "dmaengine", "cpu", "bounce"
 * @path: a path; "none" for what is none
 */
DEVBUF_API const char *devbuf_copy_path_name(enum devbuf_copy_path path);

/**
 * devbuf_copy - copy a buffer, the best way there is
 * @dst: where the bytes go; allocated if it is not
 * @src: a buffer of the same size and type (-EINVAL, checked first); allocated
 *	if it is not
 * @took: the path that was taken; may be NULL
 *
 * Within one allocator that is its transfer; the driver copies between any two
 * of its devices. Otherwise the bytes pass through the caller's process.
 * Buffers that overlap in one base are copied as by memmove().
 */
DEVBUF_API int devbuf_copy(struct devbuf *dst, struct devbuf *src, enum devbuf_copy_path *took);

/*
 * Flags of devbuf_copy_at(): -EOPNOTSUPP, with nothing copied, rather than
 * through a bounce buffer; or rather than by the CPU at all.
 */
#define DEVBUF_NO_BOUNCE (1U << 0)
#define DEVBUF_NO_CPU    (1U << 1)

/**
 * devbuf_copy_at - copy a part of a buffer
 * @dst: where the bytes go; allocated if it is not
 * @dst_offset: bytes from its beginning
 * @src: where they come from; allocated if it is not
 * @src_offset: bytes from its beginning
 * @nbytes: how many, not zero, within both
 * @flags: DEVBUF_NO_BOUNCE, DEVBUF_NO_CPU, or 0
 * @took: the path that was taken; may be NULL
 *
 * Bytes, whatever the types. As devbuf_copy(); -EOVERFLOW, -EOPNOTSUPP.
 */
DEVBUF_API int devbuf_copy_at(struct devbuf *dst, size_t dst_offset, struct devbuf *src,
			      size_t src_offset, size_t nbytes, unsigned int flags,
			      enum devbuf_copy_path *took);

/**
 * struct devbuf_transfer_piece - a copy of many
 * @dst: where the bytes go; allocated if it is not
 * @dst_offset: bytes from its beginning
 * @src: where they come from; allocated if it is not
 * @src_offset: bytes from its beginning
 * @nbytes: how many, not zero, within both
 */
struct devbuf_transfer_piece {
	struct devbuf *dst;
	size_t dst_offset;
	struct devbuf *src;
	size_t src_offset;
	size_t nbytes;
};

/**
 * devbuf_copy_many - copy many pieces, one after the other
 * @pieces: the pieces; all are checked before the first is copied
 * @nr: how many, not zero
 * @flags: as for devbuf_copy_at()
 * @took: the worst of the paths that were taken; may be NULL
 *
 * Each is copied as by devbuf_copy_at(); the driver gets up to 1024 of them by
 * one command. After a failure some may have been copied.
 */
DEVBUF_API int devbuf_copy_many(const struct devbuf_transfer_piece *pieces, size_t nr,
				unsigned int flags, enum devbuf_copy_path *took);

/**
 * struct devbuf_plan - how a copy would go
 * @size: bytes of this struct, set by the caller
 * @path: the path that devbuf_copy() would take; DEVBUF_VIA_NONE if none can
 * @why: why none of the better paths can be taken, in words, like "peer: both
 *	ends are host memory or one device's; device: no engine reaches both
 *	ends"; empty when there is no better path
 */
struct devbuf_plan {
	size_t size;
	enum devbuf_copy_path path;
	char why[500];
};

#define DEVBUF_PLAN_INIT                                        \
	{                                                       \
		sizeof(struct devbuf_plan), DEVBUF_VIA_NONE, "" \
	}

/**
 * devbuf_copy_plan - how devbuf_copy() would go, and why not better
 * @dst: a buffer, allocated or not
 * @src: a buffer, allocated or not
 * @out: path and reasons
 */
DEVBUF_API int devbuf_copy_plan(struct devbuf *dst, struct devbuf *src, struct devbuf_plan *out);

/**
 * devbuf_supports_transfer - whether devbuf_transfer() would copy
 * @dst: a buffer
 * @src: a buffer
 *
 * When dst's device can transfer, both devices have the same prefix (METAL:0
 * and METAL:1), and both buffers are of one allocator or of two alike: LRU
 * allocators and what they are over, two host allocators, two that were
 * created with the same transfer hook and the same @user.
 */
DEVBUF_API bool devbuf_supports_transfer(const struct devbuf *dst, const struct devbuf *src);

/**
 * devbuf_transfer - copy by the allocator's own transfer, or not at all
 * @dst: where the bytes go; allocated if it is not
 * @src: a buffer of the same size and type (-EINVAL, checked first); allocated
 *	if it is not
 * @native: whether it was done; may be NULL. When false, it is not supported
 *	and nothing was done; use devbuf_copy().
 */
DEVBUF_API int devbuf_transfer(struct devbuf *dst, struct devbuf *src, bool *native);

/**
 * devbuf_copy_between - copy through a bounded piece of host memory
 * @dst: where the bytes go; allocated if it is not
 * @src: a buffer of the same size and type (-EINVAL, checked first); allocated
 *	if it is not
 *
 * Works between any two buffers. devbuf_copy() knows better ways.
 */
DEVBUF_API int devbuf_copy_between(struct devbuf *dst, struct devbuf *src);

/* --- Addresses, mappings, dma-bufs ------------------------------------------------------------ */

/**
 * devbuf_addr - the buffer's address
 * @b: a buffer; allocated if it is not
 * @out: the address: of memory that only the device has, in the device's
 *	space; of the caller's own memory (external_ptr), that; of host memory,
 *	the address of the CPU mapping of the base, which is that of
 *	devbuf_map(), made if need be, and kept until the buffer is deallocated.
 *	Of a view: the address of its base plus its offset.
 *
 * -EPERM for bus addresses without CAP_SYS_RAWIO; -EOPNOTSUPP when the device
 * has no addresses to show; -EBUSY as devbuf_map().
 */
DEVBUF_API int devbuf_addr(struct devbuf *b, uint64_t *out);

/**
 * devbuf_map - map the buffer for the CPU
 * @b: a buffer that is allocated (-ENODATA)
 * @prot: PROT_READ, PROT_WRITE or both, of <sys/mman.h>
 * @out: the address of its first byte, whether at the beginning of a page or
 *	not. Of the caller's own memory (external_ptr), that.
 *
 * A buffer has one mapping; mapping it again gives the same, and each
 * devbuf_map() wants its devbuf_unmap(). -EBUSY when the mapping has less
 * protection than is asked for now, or shows memory that the buffer has since
 * been deallocated from: unmap it first. (That the owner of an imported buffer
 * deallocated it is not noticed.) The last devbuf_unref() unmaps. -EACCES
 * without the right; -EOPNOTSUPP where the CPU cannot reach.
 */
DEVBUF_API int devbuf_map(struct devbuf *b, int prot, void **out);

/**
 * devbuf_unmap - undo one devbuf_map()
 * @b: a buffer that is mapped (-EINVAL)
 */
DEVBUF_API int devbuf_unmap(struct devbuf *b);

/*
 * Flags of devbuf_sync(): what the CPU is about to do, one or both; with
 * DEVBUF_CPU_END, what it is through with.
 */
#define DEVBUF_CPU_READ  (1U << 0)
#define DEVBUF_CPU_WRITE (1U << 1)
#define DEVBUF_CPU_END   (1U << 2)

/**
 * devbuf_sync - begin or end access through a mapping, while devices have it
 * @b: a buffer that is allocated (-ENODATA)
 * @offset: bytes from its beginning
 * @nbytes: bytes of the access, not zero, within the buffer
 * @flags: DEVBUF_CPU_* bits
 *
 * Beginning waits for devices and shows the CPU what they wrote; ending shows
 * them what the CPU wrote. Only needed when the buffer was exported. -EBUSY
 * when two devices write to copies of the range; -EOVERFLOW.
 */
DEVBUF_API int devbuf_sync(struct devbuf *b, size_t offset, size_t nbytes, unsigned int flags);

/* Flag of devbuf_export(): who imports the dma-buf may write to it. */
#define DEVBUF_FD_WRITE (1 << 0)

/**
 * devbuf_export - a dma-buf of the buffer
 * @b: a buffer of the driver's (else -EOPNOTSUPP); allocated if it is not
 * @flags: DEVBUF_FD_WRITE, or 0 for a dma-buf that can only be read
 * @fd: a file descriptor of the caller's to close, close-on-exec
 * @offset: where in the dma-buf the buffer's bytes begin: dma-bufs are whole
 *	pages. NULL to demand that it be 0 (-EINVAL).
 *
 * The dma-buf keeps the memory, also after the buffer is gone. -EACCES without
 * the right, or for a view that was imported and is not made of whole pages;
 * -EOPNOTSUPP when the device cannot; -EMFILE; -ENOMEM.
 */
DEVBUF_API int devbuf_export(struct devbuf *b, int flags, int *fd, size_t *offset);

/* --- Copies that are over later --------------------------------------------------------------- */

/* A deadline that never comes. */
#define DEVBUF_FOREVER    UINT64_MAX

/* Most fences that one copy waits for. */
#define DEVBUF_FENCES_MAX 64U

/*
 * Flag of struct devbuf_async: nothing orders the copy, neither after what was
 * queued before it, nor what is queued later after it, but the fences given.
 */
#define DEVBUF_UNORDERED  (1U << 0)

/**
 * struct devbuf_async - what a copy that is over later comes after, and how that is told
 * @size: bytes of this struct, as struct devbuf_spec has it
 * @flags: DEVBUF_UNORDERED, or 0
 * @nr_in_fences: length of @in_fences, at most DEVBUF_FENCES_MAX
 * @in_fences: sync_files (of a driver's, say of a GPU's) that the copy begins
 *	after. When one of them signals an error the copy is not done, and has
 *	that error.
 * @out_fence: becomes a sync_file of the caller's to close, close-on-exec, that
 *	signals when the copy is over, with its error if it failed: poll(2) waits
 *	for it, and other drivers take it as a fence. NULL for none.
 * @cookie: a number below 2^63, by which devbuf_cancel() finds the copy; 0 for
 *	none
 *
 * A copy that is not over when the allocator's connection is closed, by its last
 * release or by the end of the process, is cancelled.
 */
struct devbuf_async {
	size_t size;
	unsigned int flags;
	unsigned int nr_in_fences;
	const int *in_fences;
	int *out_fence;
	uint64_t cookie;
};

#define DEVBUF_ASYNC_INIT                                        \
	{                                                        \
		sizeof(struct devbuf_async), 0, 0, NULL, NULL, 0 \
	}

/**
 * devbuf_copyin_async - begin to fill a part of the buffer
 * @b: a buffer that is allocated (-ENODATA)
 * @offset: bytes from its beginning
 * @src: the bytes; they stay the same until the copy is over
 * @nbytes: how many, not zero, within the buffer
 * @how: fences; NULL for none
 *
 * Arguments, rights and state are checked at once, as by devbuf_copyin_at().
 * What goes wrong later is the error of @how's out_fence, and of devbuf_wait().
 *
 * The copy comes after everything that was queued before it, by anybody, and
 * writes what it touches or reads what it writes: other copies, byte by byte,
 * and other drivers' work on exports of the buffer; they come after it
 * likewise. Functions that copy at once, devbuf_sync() and devbuf_wait() wait
 * for it. It holds the memory: the buffer may be released meanwhile. The pages
 * of @src are pinned, and count against RLIMIT_MEMLOCK (-ENOMEM).
 *
 * Only the driver queues copies: on other allocators it is done, and over, when
 * the function returns, and fences are -EOPNOTSUPP. -EBADF, or -EINVAL, for an
 * in_fence that is none; -EOVERFLOW; -EMFILE.
 */
DEVBUF_API int devbuf_copyin_async(struct devbuf *b, size_t offset, const void *src, size_t nbytes,
				   const struct devbuf_async *how);

/**
 * devbuf_copyout_async - begin to read a part of the buffer
 * @b: a buffer that is allocated (-ENODATA)
 * @offset: bytes from its beginning
 * @dst: where the bytes go; it stays until the copy is over
 * @nbytes: how many, not zero, within the buffer
 * @how: fences; NULL for none
 *
 * As devbuf_copyin_async().
 */
DEVBUF_API int devbuf_copyout_async(struct devbuf *b, size_t offset, void *dst, size_t nbytes,
				    const struct devbuf_async *how);

/**
 * devbuf_transfer_async - begin to copy a part of a buffer
 * @dst: where the bytes go; allocated, now, if it is not
 * @dst_offset: bytes from its beginning
 * @src: where they come from; allocated, now, if it is not
 * @src_offset: bytes from its beginning
 * @nbytes: how many, not zero, within both
 * @flags: as for devbuf_copy_at()
 * @how: fences; NULL for none
 *
 * As devbuf_copyin_async(). Between buffers that are not of one connection to
 * the driver the copy is done at once, as by devbuf_copy_at().
 */
DEVBUF_API int devbuf_transfer_async(struct devbuf *dst, size_t dst_offset, struct devbuf *src,
				     size_t src_offset, size_t nbytes, unsigned int flags,
				     const struct devbuf_async *how);

/**
 * devbuf_wait - wait for what was queued on a part of the buffer
 * @b: a buffer that is allocated (-ENODATA)
 * @offset: bytes from its beginning
 * @nbytes: how many, not zero, within the buffer
 * @flags: what the caller means to do: DEVBUF_CPU_READ waits for writes,
 *	DEVBUF_CPU_WRITE for reads as well; one or both
 * @deadline_ns: when to stop waiting, in nanoseconds of CLOCK_MONOTONIC.
 *	DEVBUF_FOREVER for never; 0, or any time that has passed, does not wait.
 * @fence_error: 0, or the negative errno of the first copy, or work of another
 *	driver's, that failed; may be NULL
 *
 * Waits for copies, and for other drivers' work on exports of the buffer, but
 * not for what is queued while it waits. -ETIMEDOUT at the deadline;
 * -EACCES without the right to read; -EOVERFLOW. Signals do not end the wait.
 * Before an access through a mapping devbuf_sync() is needed all the same.
 */
DEVBUF_API int devbuf_wait(struct devbuf *b, size_t offset, size_t nbytes, unsigned int flags,
			   uint64_t deadline_ns, int *fence_error);

/**
 * devbuf_cancel - give copies up
 * @a: the allocator of their buffers
 * @cookie: of struct devbuf_async; not zero, below 2^63
 * @count: how many were cancelled; may be NULL
 *
 * A copy that has not begun never will, and one that has begun stops as soon as
 * it can; -ECANCELED is the error of their fences. -ENOENT when there is nothing
 * to cancel: no such copy, or it is over, or about to be.
 */
DEVBUF_API int devbuf_cancel(struct devbuf_allocator *a, uint64_t cookie, size_t *count);

/* --- Queues ----------------------------------------------------------------------------------- */

/**
 * DOC: Queues
 *
 * A queue takes copies, begins them together, and tells of each when it is
 * over: ::
 *
 *	struct devbuf_completion done[2];
 *	size_t nr;
 *
 *	devbuf_queue_create(allocator, 64, &queue);
 *	devbuf_queue_copyin(queue, a, 0, bytes, nbytes, 1);
 *	devbuf_queue_transfer(queue, b, 0, a, 0, nbytes, 0, 2);
 *	devbuf_queue_wait(queue, 2, DEVBUF_FOREVER, done, 2, &nr);
 *
 * Operations of one queue, and of all queues on one driver, that touch the same
 * bytes of a buffer take effect in the order in which they were submitted, if
 * one of them writes. Others run and complete in any order. The caller's memory
 * is not looked at: what one operation writes there, another may read only when
 * the first has completed. Files are the exception to the order: see
 * devbuf_queue_read_file().
 *
 * On the driver a queue is an io_uring, and its operations run while the caller
 * does something else. Where there is none (buffers of other allocators; a
 * kernel that lacks io_uring, or forbids it to this process), the queue obeys
 * the same rules, but devbuf_queue_submit() itself does the work, in order.
 * devbuf_queue_is_async() tells.
 *
 * What is wrong with the arguments of an operation is told when it is queued.
 * What goes wrong later, the state of buffers and rights included, is the result
 * of its completion, and has no words in devbuf_last_error().
 *
 * The caller's memory must stay until the completion; on the driver its pages
 * are pinned until then, and count against RLIMIT_MEMLOCK (over it the result is
 * -ENOMEM). Buffers are referenced, and may be released at once. An operation
 * takes one of the queue's places from the moment it is queued until
 * devbuf_queue_wait() has told of it; without a free place queueing gives
 * -EAGAIN. Queueing allocates no memory of the process's, except for
 * devbuf_queue_transfer_many().
 *
 * A queue is used by one thread at a time. When the thread that submitted an
 * operation ends before that is over, it may be cancelled. The child of a fork
 * cannot use its parent's queues, not even of the host allocator (-EPERM); it
 * can destroy them.
 */
struct devbuf_queue;

/**
 * struct devbuf_completion - what became of an operation
 * @cookie: the number that it was queued with
 * @done_nbytes: bytes that were copied; on failure, as far as that is known
 * @result: 0 or a negative errno: those of devbuf_copyin_at(),
 *	devbuf_copyout_at(), devbuf_copy_at(), devbuf_read_file() and
 *	devbuf_write_file(), and -ECANCELED
 * @path: the path that was taken, the worst if there were several;
 *	DEVBUF_VIA_NONE where it is not known, and for files
 */
struct devbuf_completion {
	uint64_t cookie;
	uint64_t done_nbytes;
	int result;
	enum devbuf_copy_path path;
};

/* Most operations that a queue can hold, and most pieces of one operation. */
#define DEVBUF_QUEUE_DEPTH_MAX  4096U
#define DEVBUF_QUEUE_PIECES_MAX 1024U

/**
 * devbuf_queue_create - a queue for copies of buffers
 * @a: the allocator of those buffers; a reference on it is taken. An LRU
 *	allocator and what it is over count as one.
 * @depth: operations that it can hold, 1 to DEVBUF_QUEUE_DEPTH_MAX
 * @out: the queue; ended by devbuf_queue_destroy()
 *
 * -ENOMEM; -EMFILE.
 */
DEVBUF_API int devbuf_queue_create(struct devbuf_allocator *a, unsigned int depth,
				   struct devbuf_queue **out);

/**
 * devbuf_queue_destroy - end a queue
 * @q: a queue, or NULL
 *
 * What was not submitted is dropped; what was is cancelled, and waited for. No
 * completion is told of.
 */
DEVBUF_API void devbuf_queue_destroy(struct devbuf_queue *q);

/**
 * devbuf_queue_is_async - whether operations run on their own
 * @q: a queue
 *
 * When false, devbuf_queue_submit() does their work.
 */
DEVBUF_API bool devbuf_queue_is_async(const struct devbuf_queue *q);

/**
 * devbuf_queue_copyin - queue the filling of a part of a buffer
 * @q: a queue
 * @dst: a buffer of the queue's allocator; it must be allocated when the
 *	operation is submitted
 * @dst_offset: bytes from its beginning
 * @src: the bytes; they stay, and stay the same, until the completion
 * @nbytes: how many, not zero, within the buffer
 * @cookie: any number, for the completion
 *
 * -EAGAIN; -EOVERFLOW.
 */
DEVBUF_API int devbuf_queue_copyin(struct devbuf_queue *q, struct devbuf *dst, size_t dst_offset,
				   const void *src, size_t nbytes, uint64_t cookie);

/**
 * devbuf_queue_copyout - queue the reading of a part of a buffer
 * @q: a queue
 * @src: a buffer of the queue's allocator; it must be allocated when the
 *	operation is submitted
 * @src_offset: bytes from its beginning
 * @dst: where the bytes go; it stays until the completion
 * @nbytes: how many, not zero, within the buffer
 * @cookie: any number, for the completion
 *
 * -EAGAIN; -EOVERFLOW.
 */
DEVBUF_API int devbuf_queue_copyout(struct devbuf_queue *q, struct devbuf *src, size_t src_offset,
				    void *dst, size_t nbytes, uint64_t cookie);

/**
 * devbuf_queue_transfer - queue a copy from buffer to buffer
 * @q: a queue
 * @dst: where the bytes go, a buffer of the queue's allocator; allocated, now,
 *	if it is not
 * @dst_offset: bytes from its beginning
 * @src: where they come from, likewise
 * @src_offset: bytes from its beginning
 * @nbytes: how many, not zero, within both
 * @flags: as for devbuf_copy_at()
 * @cookie: any number, for the completion
 *
 * -EAGAIN; -EOVERFLOW; what devbuf_allocate() gives.
 */
DEVBUF_API int devbuf_queue_transfer(struct devbuf_queue *q, struct devbuf *dst, size_t dst_offset,
				     struct devbuf *src, size_t src_offset, size_t nbytes,
				     unsigned int flags, uint64_t cookie);

/**
 * devbuf_queue_transfer_many - queue many copies as one operation
 * @q: a queue
 * @pieces: the pieces, copied one after the other; the array is the caller's
 *	again when the function returns
 * @nr: how many, 1 to DEVBUF_QUEUE_PIECES_MAX
 * @flags: as for devbuf_copy_at()
 * @cookie: any number, for the one completion
 *
 * As devbuf_queue_transfer(); -ENOMEM.
 */
DEVBUF_API int devbuf_queue_transfer_many(struct devbuf_queue *q,
					  const struct devbuf_transfer_piece *pieces, size_t nr,
					  unsigned int flags, uint64_t cookie);

/**
 * devbuf_queue_read_file - queue the filling of a part of a buffer from a file
 * @q: a queue
 * @dst: a buffer of the queue's allocator; it must be allocated when the
 *	operation is submitted
 * @dst_offset: bytes from its beginning
 * @fd: a file with offsets (-EBADF, -ESPIPE); it stays open until the completion
 * @file_offset: bytes from the beginning of the file
 * @nbytes: how many, not zero, within the buffer
 * @cookie: any number, for the completion
 *
 * The completion has the errors of devbuf_read_file(), and in done_nbytes how
 * many bytes came, exactly, whatever the result.
 *
 * An asynchronous queue reads into a mapping of its own (the buffer must be one
 * that can be mapped: else the result is -EOPNOTSUPP or -EACCES), directly if
 * @fd is O_DIRECT, in which case offsets and addresses must be aligned as the
 * file asks (-EINVAL), else through the page cache. Other queues do what
 * devbuf_read_file() does.
 *
 * Unlike copies, this is not ordered with other operations on the same bytes,
 * nor with what devices do: it is access through a mapping. What needs the bytes
 * is queued when the completion has come; who has exported the buffer calls
 * devbuf_sync() before and after. Once submitted it is not cancelled.
 *
 * -EAGAIN; -EOVERFLOW.
 */
DEVBUF_API int devbuf_queue_read_file(struct devbuf_queue *q, struct devbuf *dst, size_t dst_offset,
				      int fd, int64_t file_offset, size_t nbytes, uint64_t cookie);

/**
 * devbuf_queue_write_file - queue the writing of a part of a buffer to a file
 * @q: a queue
 * @src: a buffer of the queue's allocator; it must be allocated when the
 *	operation is submitted
 * @src_offset: bytes from its beginning
 * @fd: a file with offsets (-EBADF, -ESPIPE), not O_APPEND (-EINVAL); it stays
 *	open until the completion
 * @file_offset: bytes from the beginning of the file
 * @nbytes: how many, not zero, within the buffer
 * @cookie: any number, for the completion
 *
 * As devbuf_queue_read_file(), with the errors of devbuf_write_file().
 */
DEVBUF_API int devbuf_queue_write_file(struct devbuf_queue *q, struct devbuf *src,
				       size_t src_offset, int fd, int64_t file_offset,
				       size_t nbytes, uint64_t cookie);

/**
 * devbuf_queue_submit - begin what was queued
 * @q: a queue
 *
 * Does not wait, if the queue is asynchronous. -ENOMEM: not all were begun;
 * those that were not stay queued.
 */
DEVBUF_API int devbuf_queue_submit(struct devbuf_queue *q);

/**
 * devbuf_queue_wait - begin what was queued, and wait for completions
 * @q: a queue
 * @min: how many to wait for; no more than the queue holds operations (they
 *	would never come). Zero does not wait.
 * @deadline_ns: when to stop waiting, in nanoseconds of CLOCK_MONOTONIC.
 *	DEVBUF_FOREVER for never; 0, or any time that has passed, does not wait.
 * @out: an array for the completions
 * @max: its length; not zero, not less than @min
 * @nr: how many there are in it now
 *
 * At the deadline it gives what there is, which may be fewer than @min;
 * -ETIMEDOUT when there is nothing. Signals do not end the wait: who must react
 * to them waits for devbuf_queue_fd() by poll(). -ENOMEM.
 */
DEVBUF_API int devbuf_queue_wait(struct devbuf_queue *q, size_t min, uint64_t deadline_ns,
				 struct devbuf_completion *out, size_t max, size_t *nr);

/**
 * devbuf_queue_cancel - give operations up
 * @q: a queue
 * @cookie: that of the operations
 * @count: how many were cancelled; may be NULL
 *
 * Those that were not submitted never run; those that were, stop as soon as they
 * can. All of them complete, with -ECANCELED, once submitted. -ENOENT when there
 * is nothing to cancel: no such operation, or it is over, or about to be, or it
 * is with a file and was submitted.
 */
DEVBUF_API int devbuf_queue_cancel(struct devbuf_queue *q, uint64_t cookie, size_t *count);

/**
 * devbuf_queue_fd - a file descriptor for poll(2) and its like
 * @q: a queue; negative (-EINVAL) for NULL
 *
 * Readable as long as there are completions to take by devbuf_queue_wait(). It
 * is the queue's: it is only to be polled, and goes with it. A poll of an
 * asynchronous queue may be interrupted (EINTR) when an operation completes.
 */
DEVBUF_API int devbuf_queue_fd(const struct devbuf_queue *q);

/* --- On a ring of the caller's ---------------------------------------------------------------- */

struct io_uring_sqe;

/**
 * struct devbuf_operation - what the driver reads and writes of one entry of a ring
 * @reserved: the library's
 *
 * The caller's memory, without anything to initialise or to release.
 */
struct devbuf_operation {
	uint64_t reserved[24];
};

/**
 * devbuf_prepare_copyin - fill an entry of the caller's own io_uring
 * @sqe: the entry, of 64 bytes; its user_data is left alone, everything else
 *	is written
 * @op: memory for the operation
 * @dst: a buffer of the driver's
 * @dst_offset: bytes from its beginning
 * @src: the bytes
 * @nbytes: how many, not zero, within the buffer
 * @how: what it comes after, and its cookie; an out_fence is refused: the
 *	completion tells instead. NULL for nothing.
 *
 * For programs that have a ring already: ::
 *
 *	sqe = io_uring_get_sqe(&ring);
 *	devbuf_prepare_copyin(sqe, &op, b, 0, bytes, nbytes, NULL);
 *	io_uring_sqe_set_data(sqe, &op);
 *	io_uring_submit(&ring);
 *
 * The result in the completion is that of the copy, as in struct
 * devbuf_completion. Until then @sqe's memory, @op, @src, @dst, its allocator
 * and the array of fences must stay. Order is that of devbuf_copyin_async().
 * IORING_OP_ASYNC_CANCEL does not reach these operations; devbuf_cancel() does.
 *
 * If @src lies in a registered buffer of the ring, it need not be pinned: set
 * IORING_URING_CMD_FIXED in sqe->uring_cmd_flags, and sqe->buf_index, after this
 * call. Flags like IOSQE_IO_LINK go to sqe->flags, likewise.
 *
 * -EOPNOTSUPP for other allocators, and for kernels on which the driver has no
 * commands by io_uring; nothing was prepared then. -EOVERFLOW.
 */
DEVBUF_API int devbuf_prepare_copyin(struct io_uring_sqe *sqe, struct devbuf_operation *op,
				     struct devbuf *dst, size_t dst_offset, const void *src,
				     size_t nbytes, const struct devbuf_async *how);

/**
 * devbuf_prepare_copyout - fill an entry of the caller's own io_uring
 * @sqe: the entry
 * @op: memory for the operation
 * @src: a buffer of the driver's
 * @src_offset: bytes from its beginning
 * @dst: where the bytes go
 * @nbytes: how many, not zero, within the buffer
 * @how: as for devbuf_prepare_copyin()
 *
 * As devbuf_prepare_copyin().
 */
DEVBUF_API int devbuf_prepare_copyout(struct io_uring_sqe *sqe, struct devbuf_operation *op,
				      struct devbuf *src, size_t src_offset, void *dst,
				      size_t nbytes, const struct devbuf_async *how);

/**
 * devbuf_prepare_transfer - fill an entry of the caller's own io_uring
 * @sqe: the entry
 * @op: memory for the operation
 * @dst: where the bytes go; allocated, now, if it is not
 * @dst_offset: bytes from its beginning
 * @src: where they come from, a buffer of the same connection to the driver;
 *	allocated, now, if it is not
 * @src_offset: bytes from its beginning
 * @nbytes: how many, not zero, within both
 * @flags: as for devbuf_copy_at()
 * @how: as for devbuf_prepare_copyin()
 *
 * As devbuf_prepare_copyin(); IORING_URING_CMD_FIXED does not apply.
 */
DEVBUF_API int devbuf_prepare_transfer(struct io_uring_sqe *sqe, struct devbuf_operation *op,
				       struct devbuf *dst, size_t dst_offset, struct devbuf *src,
				       size_t src_offset, size_t nbytes, unsigned int flags,
				       const struct devbuf_async *how);

/**
 * devbuf_operation_done - how far a prepared operation came, and which way
 * @op: an operation that has completed
 * @done_nbytes: bytes that were copied; may be NULL
 * @path: the path that was taken; may be NULL
 */
DEVBUF_API int devbuf_operation_done(const struct devbuf_operation *op, uint64_t *done_nbytes,
				     enum devbuf_copy_path *path);

#ifdef __cplusplus
}
#endif

#endif /* DEVBUF_H */
