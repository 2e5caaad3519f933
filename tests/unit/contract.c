// SPDX-License-Identifier: GPL-2.0-only
/*
 * The buffer contract, function by function, and each of its errors alone: one
 * program for every kind of allocator that the library brings.
 *
 * contract               on the host allocator, and an LRU allocator over it
 * contract host|lru      on one of the two
 * contract driver        on the driver, and an LRU allocator over it
 * contract driver-plain|driver-lru
 * contract -h            shows the test harness's own options, like -r contract.lru.names
 */
#include "unit.h"

#include <signal.h>
#include <sys/resource.h>

#define KIB ((size_t)1024)
#define MIB (1024 * KIB)

FIXTURE(contract)
{
	struct devbuf_allocator *a;
	size_t page;
};

FIXTURE_VARIANT(contract)
{
	bool driver;
	bool lru;
};

/* clang-format off */
FIXTURE_VARIANT_ADD(contract, host) { .driver = false, .lru = false };
FIXTURE_VARIANT_ADD(contract, lru) { .driver = false, .lru = true };
FIXTURE_VARIANT_ADD(contract, driver) { .driver = true, .lru = false };
FIXTURE_VARIANT_ADD(contract, driver_lru) { .driver = true, .lru = true };
/* clang-format on */

static int open_allocator(bool driver, bool lru, struct devbuf_allocator **out)
{
	struct devbuf_allocator *inner;
	int rc;

	rc = driver ? devbuf_driver_open(NULL, &inner) : devbuf_host_allocator(&inner);
	if (rc)
		return rc;
	if (!lru) {
		*out = inner;
		return 0;
	}
	rc = devbuf_lru_allocator(inner, out);
	devbuf_allocator_unref(inner);
	return rc;
}

FIXTURE_SETUP(contract)
{
	remember_memory();
	self->page = (size_t)sysconf(_SC_PAGESIZE);
	ASSERT_OK(open_allocator(variant->driver, variant->lru, &self->a));
}

FIXTURE_TEARDOWN(contract)
{
	devbuf_allocator_unref(self->a);
	EXPECT_EQ(0, leaks_found());
}

/* What a test needs before it begins. */

static struct devbuf *new_bytes(struct devbuf_allocator *a, size_t nbytes)
{
	struct devbuf *b = NULL;

	if (devbuf_create(a, "SYSTEM:0", nbytes, DEVBUF_UINT8, NULL, &b))
		fprintf(stderr, "# devbuf_create: %s\n", devbuf_last_error());
	return b;
}

static struct devbuf *new_filled(struct devbuf_allocator *a, size_t nbytes, unsigned int seed)
{
	struct devbuf *b = new_bytes(a, nbytes);
	void *bytes = malloc(nbytes);

	fill_pattern(bytes, nbytes, seed);
	if (devbuf_allocate(b) || devbuf_copyin(b, bytes, nbytes))
		fprintf(stderr, "# filling: %s\n", devbuf_last_error());
	free(bytes);
	return b;
}

static struct devbuf *new_view(struct devbuf *b, size_t offset, size_t nbytes)
{
	struct devbuf *v = NULL;

	if (devbuf_view(b, nbytes, DEVBUF_UINT8, (int64_t)offset, &v))
		fprintf(stderr, "# devbuf_view: %s\n", devbuf_last_error());
	return v;
}

static bool holds_pattern(struct devbuf *b, unsigned int seed)
{
	void *bytes;
	bool same;

	if (devbuf_as_bytes(b, &bytes, NULL))
		return false;
	same = is_pattern(bytes, devbuf_nbytes(b), seed);
	free(bytes);
	return same;
}

static bool holds_zeros(struct devbuf *b)
{
	void *bytes;
	bool zero;

	if (devbuf_as_bytes(b, &bytes, NULL))
		return false;
	zero = is_zero(bytes, devbuf_nbytes(b));
	free(bytes);
	return zero;
}

#include "contract_create.h"
#include "contract_view.h"
#include "contract_memory.h"
#include "contract_copy.h"
#include "contract_between.h"
#include "contract_later.h"
#include "contract_queue.h"
#include "contract_queue_file.h"
#include "contract_map.h"
#include "contract_threads.h"
#include "contract_host.h"
#include "contract_driver.h"
#include "contract_fork.h"

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		const char *variants[2];
	} kinds[] = {
		{ "", { "host", "lru" } },
		{ "host", { "host" } },
		{ "lru", { "lru" } },
		{ "driver", { "driver", "driver_lru" } },
		{ "driver-plain", { "driver" } },
		{ "driver-lru", { "driver_lru" } },
	};
	bool named = argc > 1 && argv[1][0] != '-';
	char *args[64] = { argv[0] };
	int n = 1, i = named ? 2 : 1;

	if (argc > 50)
		return KSFT_FAIL;
	if (argc > 1 && !named)
		return test_harness_run(argc, argv);
	for (; i < argc; i++)
		args[n++] = argv[i];
	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
		if (strcmp(kinds[k].name, named ? argv[1] : ""))
			continue;
		for (int v = 0; v < 2 && kinds[k].variants[v]; v++) {
			args[n++] = "-v";
			args[n++] = (char *)kinds[k].variants[v];
		}
		return test_harness_run(n, args);
	}
	fprintf(stderr, "usage: %s [host|lru|driver|driver-plain|driver-lru] [OPTIONS]\n", argv[0]);
	return KSFT_FAIL;
}
