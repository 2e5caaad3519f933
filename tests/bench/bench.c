// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the main operations cost, beside what the kernel has besides: one table.
 *
 * `make bench` runs it in two VMs. The clock of the one counts instructions: a figure is then the
 * same from run to run and from machine to machine, and says how much is done, not how long it
 * takes. The other has an ordinary clock.
 *
 * `bench TEXT` prints only the rows whose name contains TEXT; "live" is the name of the second table.
 */
#include "common.h"

enum { DEVBUF, DMA_HEAP, UDMABUF, MEMFD, NR_COLUMNS };

static const struct column {
	const char *name;
	/* Leaves a negative number in subject->device where the kernel has no such thing. */
	void (*open)(struct subject *subject);
} columns[NR_COLUMNS] = {
	[DEVBUF] = { "devbuf", open_devbuf },
	[DMA_HEAP] = { "dma-heap", open_heap },
	[UDMABUF] = { "udmabuf", open_udmabuf },
	[MEMFD] = { "memfd", open_memfd },
};

/* Rows of sizes end with a zero. */
static const size_t any_size[] = { 4 * KIB, 0 };
static const size_t small_size[] = { 64, 0 };
static const size_t page_size[] = { 4 * KIB, 0 };
static const size_t each_size[] = { 4 * KIB, MIB, 16 * MIB, 0 };
static const size_t copy_size[] = { 64, 4 * KIB, MIB, 0 };
static const size_t load_size[] = { 4 * KIB, MIB, 0 };

/* What a row cannot do without. */
enum need { NOTHING, IMPORTER, DISK, QUEUE, NR_NEEDS };

static const char *have[NR_NEEDS] = { [NOTHING] = "" };

/* A row without sizes is a heading. */
static const struct row {
	const char *name;
	const size_t *sizes;
	/* It clears or copies all of the bytes. */
	bool bulk;
	/* So many operations are done at a time, and the figure is for one of them; 0 is 1. */
	unsigned int each_of;
	enum need need;
	const struct operation *by[NR_COLUMNS];
} rows[] = {
	{ .name = "Calls" },
	{ .name = "system call (getppid)", .sizes = any_size, .by = { &on_devbuf.system_call } },
	{ .name = "ioctl, unknown command",
	  .sizes = any_size,
	  .by = { &on_devbuf.unknown_command, &on_heap.unknown_command,
		  &on_udmabuf.unknown_command } },
	{ .name = "INFO", .sizes = any_size, .by = { &on_devbuf.info } },
	{ .name = "QUERY", .sizes = any_size, .by = { &on_devbuf.query } },
	{ .name = "Buffers" },
	{ .name = "create, allocate, destroy",
	  .sizes = each_size,
	  .bulk = true,
	  .by = { &on_devbuf.create_cold, &on_heap.create, &on_udmabuf.create, &on_memfd.create } },
	{ .name = "the same, with a dma-buf",
	  .sizes = page_size,
	  .bulk = true,
	  .by = { &on_devbuf.create_exported, &on_heap.create, &on_udmabuf.create } },
	{ .name = "the same, memory reused", .sizes = each_size, .by = { &on_devbuf.create_warm } },
	{ .name = "view: create, destroy", .sizes = any_size, .by = { &on_devbuf.create_view } },
	{ .name = "view: create, allocate, destroy",
	  .sizes = any_size,
	  .by = { &on_devbuf.create_allocated_view } },
	{ .name = "Sharing" },
	{ .name = "export again, close", .sizes = any_size, .by = { &on_devbuf.export_again } },
	{ .name = "attach, map, unmap, detach",
	  .sizes = each_size,
	  .need = IMPORTER,
	  .by = { &on_devbuf.attach, &on_heap.attach, &on_udmabuf.attach } },
	{ .name = "map, touch pages, unmap",
	  .sizes = each_size,
	  .by = { &on_devbuf.map, &on_heap.map, &on_udmabuf.map, &on_memfd.map } },
	{ .name = "sync begin, end",
	  .sizes = any_size,
	  .by = { &on_devbuf.sync, &on_heap.sync, &on_udmabuf.sync } },
	{ .name = "Copies" },
	{ .name = "copy in",
	  .sizes = copy_size,
	  .bulk = true,
	  .by = { [DEVBUF] = &on_devbuf.copyin, [MEMFD] = &on_memfd.write } },
	{ .name = "copy out",
	  .sizes = copy_size,
	  .bulk = true,
	  .by = { [DEVBUF] = &on_devbuf.copyout, [MEMFD] = &on_memfd.read } },
	{ .name = "transfer",
	  .sizes = copy_size,
	  .bulk = true,
	  .by = { [DEVBUF] = &on_devbuf.transfer, [MEMFD] = &on_memfd.transfer } },
	{ .name = "the same queued, then WAIT",
	  .sizes = copy_size,
	  .bulk = true,
	  .need = QUEUE,
	  .by = { &on_devbuf.queue_transfer } },
	{ .name = "the same by copy out, copy in",
	  .sizes = copy_size,
	  .bulk = true,
	  .by = { [DEVBUF] = &on_devbuf.bounce, [MEMFD] = &on_memfd.bounce } },
	{ .name = "Small transfers; the figure is for one of 64" },
	{ .name = "64 transfers: an ioctl each",
	  .sizes = small_size,
	  .each_of = BATCH,
	  .by = { &batch_on_devbuf.ioctls } },
	{ .name = "64 transfers: one ioctl",
	  .sizes = small_size,
	  .each_of = BATCH,
	  .by = { &batch_on_devbuf.ranges } },
	{ .name = "64 between views: an ioctl each",
	  .sizes = small_size,
	  .each_of = BATCH,
	  .by = { &batch_on_devbuf.ioctls_views } },
	{ .name = "64 between views: one ioctl",
	  .sizes = small_size,
	  .each_of = BATCH,
	  .by = { &batch_on_devbuf.ranges_views } },
	{ .name = "64 transfers: queued each, WAIT",
	  .sizes = small_size,
	  .each_of = BATCH,
	  .need = QUEUE,
	  .by = { &batch_on_devbuf.queued } },
	{ .name = "64 times nothing on a ring",
	  .sizes = any_size,
	  .each_of = BATCH,
	  .need = QUEUE,
	  .by = { &batch_on_devbuf.ring_nothing } },
	{ .name = "64 transfers: on a ring each",
	  .sizes = small_size,
	  .each_of = BATCH,
	  .need = QUEUE,
	  .by = { &batch_on_devbuf.ring } },
	{ .name = "64 transfers: one on a ring",
	  .sizes = small_size,
	  .each_of = BATCH,
	  .need = QUEUE,
	  .by = { &batch_on_devbuf.ring_ranges } },
	{ .name = "From a disk" },
	{ .name = "direct read into the mapping",
	  .sizes = load_size,
	  .need = DISK,
	  .by = { &on_devbuf.load_direct, &on_heap.load_direct, &on_udmabuf.load_direct,
		  &on_memfd.load_direct } },
	{ .name = "read() into the mapping",
	  .sizes = load_size,
	  .bulk = true,
	  .need = DISK,
	  .by = { &on_devbuf.load_into_mapping, &on_heap.load_into_mapping,
		  &on_udmabuf.load_into_mapping, &on_memfd.load_into_mapping } },
	{ .name = "direct read, then copy in",
	  .sizes = load_size,
	  .bulk = true,
	  .need = DISK,
	  .by = { [DEVBUF] = &on_devbuf.load_direct_copyin, [MEMFD] = &on_memfd.load_direct_write } },
	{ .name = "read(), then copy in",
	  .sizes = load_size,
	  .bulk = true,
	  .need = DISK,
	  .by = { [DEVBUF] = &on_devbuf.load_copyin, [MEMFD] = &on_memfd.load_write } },
};

static void run_operation(const struct row *row, const struct operation *operation,
			  struct subject *subject)
{
	double cost = 0;

	subject->refused = 0;
	if (operation->begin)
		operation->begin(subject);
	if (!subject->refused)
		cost = measure(operation->run, subject) / (row->each_of ?: 1);
	if (operation->end)
		operation->end(subject);
	if (subject->refused)
		printf(" %11s", strerrorname_np(subject->refused));
	else
		printf(" %11.0f", cost);
}

static void print_row(const struct row *row, size_t nbytes, struct subject subjects[])
{
	printf("%-32s", row->name);
	if (row->sizes != any_size)
		printf("%9zu%c", nbytes, row->bulk ? '*' : ' ');
	else
		printf("%10s", "");
	for (int i = 0; i < NR_COLUMNS; i++) {
		if (!row->by[i] || subjects[i].device < 0 || !have[row->need]) {
			printf(" %11s", "-");
			continue;
		}
		subjects[i].nbytes = nbytes;
		run_operation(row, row->by[i], &subjects[i]);
		fflush(stdout);
	}
	printf("\n");
	fflush(stdout);
}

static void print_rows(const struct row *row, const char *wanted, struct subject subjects[])
{
	if (!row->sizes && !*wanted)
		printf("\n%s\n", row->name);
	if (!row->sizes || !strstr(row->name, wanted))
		return;
	for (const size_t *size = row->sizes; *size; size++)
		print_row(row, *size, subjects);
}

static void print_head(void)
{
	if (clock_counts_instructions())
		printf("INSTRUCTIONS, of the caller and the kernel together, for each operation.\n\n");
	else
		printf("NANOSECONDS for each operation%s.\n\n",
		       processor_is_emulated() ? ", of an emulated processor" : "");
	printf("%-32s%9s ", "operation", "bytes");
	for (int i = 0; i < NR_COLUMNS; i++)
		printf(" %11s", columns[i].name);
	printf("\n");
}

static void print_foot(const struct subject subjects[])
{
	for (int i = 0; i < NR_COLUMNS; i++)
		if (subjects[i].device < 0)
			printf("\nThis kernel has no %s.", columns[i].name);
	if (!have[QUEUE])
		printf("\nThis driver queues nothing.");
	printf("\n*: clears or copies all bytes.");
	if (clock_counts_instructions())
		printf(" One way to do so counts an instruction for each byte, another one\n"
		       "for many: by these rows only the same way can be compared.");
	printf("\nAttached by: %s. Loaded from: %s.\n", have[IMPORTER] ?: "nothing here",
	       have[DISK] ?: "nothing here");
}

/*
 * Large buffers begin where the address is even. If this memory did too, what keeps translated
 * addresses by their low bits (QEMU's translator) would never have those of both ends.
 */
static unsigned char *new_bytes(void)
{
	unsigned char *bytes = (unsigned char *)new_memory(18 * MIB) + 37 * PAGE;

	memset(bytes, 1, 16 * MIB);
	return bytes;
}

int main(int argc, char **argv)
{
	const char *wanted = argc > 1 ? argv[1] : "";
	struct subject subjects[NR_COLUMNS] = { 0 };

	for (int i = 0; i < NR_COLUMNS; i++) {
		columns[i].open(&subjects[i]);
		subjects[i].bytes = new_bytes();
	}
	have[IMPORTER] = open_importer();
	have[DISK] = open_disk();
	have[QUEUE] = can_queue(&subjects[DEVBUF]) ? "" : NULL;
	await_idle_kernel();
	print_head();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		print_rows(&rows[i], wanted, subjects);
	print_foot(subjects);
	if (strstr("live", wanted) && subjects[DEVBUF].device >= 0)
		print_live_objects();
	return 0;
}
