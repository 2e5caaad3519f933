// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the main operations cost, beside what the kernel has besides: one table.
 *
 * `make bench` runs it in two VMs. The clock of the one counts instructions: a figure is then the
 * same from run to run and from machine to machine, and says how much is done, not how long it
 * takes. The other has an ordinary clock.
 *
 * `bench TEXT` prints only the rows whose name contains TEXT.
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
static const size_t page_size[] = { 4 * KIB, 0 };
static const size_t each_size[] = { 4 * KIB, MIB, 16 * MIB, 0 };
static const size_t copy_size[] = { 64, 4 * KIB, MIB, 0 };

static const struct row {
	const char *name;
	const size_t *sizes;
	/* It clears or copies all of the bytes. */
	bool bulk;
	const struct operation *by[NR_COLUMNS];
} rows[] = {
	{ .name = "system call (getppid)", .sizes = any_size, .by = { &on_devbuf.system_call } },
	{ .name = "ioctl, unknown command",
	  .sizes = any_size,
	  .by = { &on_devbuf.unknown_command, &on_heap.unknown_command,
		  &on_udmabuf.unknown_command } },
	{ .name = "INFO", .sizes = any_size, .by = { &on_devbuf.info } },
	{ .name = "QUERY", .sizes = any_size, .by = { &on_devbuf.query } },
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
	{ .name = "export again, close", .sizes = any_size, .by = { &on_devbuf.export_again } },
	{ .name = "map, touch pages, unmap",
	  .sizes = each_size,
	  .by = { &on_devbuf.map, &on_heap.map, &on_udmabuf.map, &on_memfd.map } },
	{ .name = "sync begin, end",
	  .sizes = any_size,
	  .by = { &on_devbuf.sync, &on_heap.sync, &on_udmabuf.sync } },
	{ .name = "copy in",
	  .sizes = copy_size,
	  .bulk = true,
	  .by = { [DEVBUF] = &on_devbuf.copyin, [MEMFD] = &on_memfd.write } },
	{ .name = "copy out",
	  .sizes = copy_size,
	  .bulk = true,
	  .by = { [DEVBUF] = &on_devbuf.copyout, [MEMFD] = &on_memfd.read } },
};

static void run_operation(const struct operation *operation, struct subject *subject)
{
	double cost;

	if (operation->begin)
		operation->begin(subject);
	cost = measure(operation->run, subject);
	if (operation->end)
		operation->end(subject);
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
		if (!row->by[i] || subjects[i].device < 0) {
			printf(" %11s", "-");
			continue;
		}
		subjects[i].nbytes = nbytes;
		run_operation(row->by[i], &subjects[i]);
	}
	printf("\n");
	fflush(stdout);
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
			printf("This kernel has no %s.\n", columns[i].name);
	printf("\n*: clears or copies all bytes.");
	if (clock_counts_instructions())
		printf(" One way to do so counts an instruction for each byte, another one\n"
		       "for many: by these rows only the same way can be compared.");
	printf("\n");
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
	await_idle_kernel();
	print_head();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (const size_t *size = rows[i].sizes; *size; size++)
			if (strstr(rows[i].name, wanted))
				print_row(&rows[i], *size, subjects);
	print_foot(subjects);
	return 0;
}
