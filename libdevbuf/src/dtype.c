// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Element types: DLPack's triple, and its names. */
#include <stdio.h>

#include "internal.h"

/* All scalar types; a vector is one of these with more lanes. */
static const struct {
	uint8_t code;
	uint8_t bits;
	const char *name;
} scalars[] = {
	{ DEVBUF_CODE_BOOL, 8, "bool" },
	{ DEVBUF_CODE_INT, 8, "int8" },
	{ DEVBUF_CODE_INT, 16, "int16" },
	{ DEVBUF_CODE_INT, 32, "int32" },
	{ DEVBUF_CODE_INT, 64, "int64" },
	{ DEVBUF_CODE_UINT, 8, "uint8" },
	{ DEVBUF_CODE_UINT, 16, "uint16" },
	{ DEVBUF_CODE_UINT, 32, "uint32" },
	{ DEVBUF_CODE_UINT, 64, "uint64" },
	{ DEVBUF_CODE_FLOAT8_E3M4, 8, "float8_e3m4" },
	{ DEVBUF_CODE_FLOAT8_E4M3, 8, "float8_e4m3" },
	{ DEVBUF_CODE_FLOAT8_E4M3B11FNUZ, 8, "float8_e4m3b11fnuz" },
	{ DEVBUF_CODE_FLOAT8_E4M3FN, 8, "float8_e4m3fn" },
	{ DEVBUF_CODE_FLOAT8_E4M3FNUZ, 8, "float8_e4m3fnuz" },
	{ DEVBUF_CODE_FLOAT8_E5M2, 8, "float8_e5m2" },
	{ DEVBUF_CODE_FLOAT8_E5M2FNUZ, 8, "float8_e5m2fnuz" },
	{ DEVBUF_CODE_FLOAT8_E8M0FNU, 8, "float8_e8m0fnu" },
	{ DEVBUF_CODE_FLOAT, 16, "float16" },
	{ DEVBUF_CODE_BFLOAT, 16, "bfloat16" },
	{ DEVBUF_CODE_FLOAT, 32, "float32" },
	{ DEVBUF_CODE_FLOAT, 64, "float64" },
	{ DEVBUF_CODE_COMPLEX, 32, "complex32" },
	{ DEVBUF_CODE_COMPLEX, 64, "complex64" },
	{ DEVBUF_CODE_COMPLEX, 128, "complex128" },
};

#define NR_SCALARS (sizeof(scalars) / sizeof(scalars[0]))

static const char *scalar_name(devbuf_dtype dtype)
{
	for (size_t i = 0; i < NR_SCALARS; i++)
		if (scalars[i].code == dtype.code && scalars[i].bits == dtype.bits)
			return scalars[i].name;
	return NULL;
}

devbuf_dtype devbuf_dtype_vector(devbuf_dtype dtype, uint16_t lanes)
{
	dtype.lanes = lanes;
	return dtype;
}

size_t devbuf_dtype_itemsize(devbuf_dtype dtype)
{
	return scalar_name(dtype) ? (size_t)dtype.bits / 8 * dtype.lanes : 0;
}

bool devbuf_dtype_equal(devbuf_dtype a, devbuf_dtype b)
{
	return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}

const char *devbuf_dtype_name(devbuf_dtype dtype)
{
	static _Thread_local char ring[8][32];
	static _Thread_local unsigned int next;
	const char *name = scalar_name(dtype);
	char *vector;

	if (!name || !dtype.lanes)
		return "invalid";
	if (dtype.lanes == 1)
		return name;
	vector = ring[next++ % 8];
	snprintf(vector, sizeof(ring[0]), "%sx%u", name, dtype.lanes);
	return vector;
}

/* What follows the scalar's name: nothing, or "x" and 2 to 65535. */
static bool parse_lanes(const char *text, uint16_t *lanes)
{
	unsigned long n = 0;

	*lanes = 1;
	if (!*text)
		return true;
	if (*text++ != 'x' || *text < '1' || *text > '9')
		return false;
	while (*text >= '0' && *text <= '9' && n <= UINT16_MAX)
		n = n * 10 + (unsigned long)(*text++ - '0');
	*lanes = (uint16_t)n;
	return !*text && n >= 2 && n <= UINT16_MAX;
}

int devbuf_dtype_parse(const char *name, devbuf_dtype *out)
{
	uint16_t lanes;

	if (!name || !out)
		return dbuf_fail(-EINVAL, "no name, or no place for its type");
	for (size_t i = 0; i < NR_SCALARS; i++) {
		size_t length = strlen(scalars[i].name);

		if (!strncmp(name, scalars[i].name, length) && parse_lanes(name + length, &lanes)) {
			*out = (devbuf_dtype){ scalars[i].code, scalars[i].bits, lanes };
			return 0;
		}
	}
	return dbuf_fail(-EINVAL, "no type has the name \"%.64s\"", name);
}
