// SPDX-License-Identifier: GPL-2.0-only
/* Element types: DLPack's numbers, names and back, and what is no type. */
#include "unit.h"

/* As static initialisers, which expressions could not be everywhere. */
static const struct {
	devbuf_dtype dtype;
	const char *name;
	size_t itemsize;
} types[] = {
	{ DEVBUF_BOOL_INIT, "bool", 1 },
	{ DEVBUF_INT8_INIT, "int8", 1 },
	{ DEVBUF_INT16_INIT, "int16", 2 },
	{ DEVBUF_INT32_INIT, "int32", 4 },
	{ DEVBUF_INT64_INIT, "int64", 8 },
	{ DEVBUF_UINT8_INIT, "uint8", 1 },
	{ DEVBUF_UINT16_INIT, "uint16", 2 },
	{ DEVBUF_UINT32_INIT, "uint32", 4 },
	{ DEVBUF_UINT64_INIT, "uint64", 8 },
	{ DEVBUF_FLOAT8_E3M4_INIT, "float8_e3m4", 1 },
	{ DEVBUF_FLOAT8_E4M3_INIT, "float8_e4m3", 1 },
	{ DEVBUF_FLOAT8_E4M3B11FNUZ_INIT, "float8_e4m3b11fnuz", 1 },
	{ DEVBUF_FLOAT8_E4M3FN_INIT, "float8_e4m3fn", 1 },
	{ DEVBUF_FLOAT8_E4M3FNUZ_INIT, "float8_e4m3fnuz", 1 },
	{ DEVBUF_FLOAT8_E5M2_INIT, "float8_e5m2", 1 },
	{ DEVBUF_FLOAT8_E5M2FNUZ_INIT, "float8_e5m2fnuz", 1 },
	{ DEVBUF_FLOAT8_E8M0FNU_INIT, "float8_e8m0fnu", 1 },
	{ DEVBUF_FLOAT16_INIT, "float16", 2 },
	{ DEVBUF_BFLOAT16_INIT, "bfloat16", 2 },
	{ DEVBUF_FLOAT32_INIT, "float32", 4 },
	{ DEVBUF_FLOAT64_INIT, "float64", 8 },
	{ DEVBUF_COMPLEX32_INIT, "complex32", 4 },
	{ DEVBUF_COMPLEX64_INIT, "complex64", 8 },
	{ DEVBUF_COMPLEX128_INIT, "complex128", 16 },
};

TEST(four_bytes_as_in_dlpack)
{
	static const unsigned char bfloat16x4[] = { 4, 16, 4, 0 }; /* little-endian lanes */
	devbuf_dtype dtype = devbuf_dtype_vector(DEVBUF_BFLOAT16, 4);

	EXPECT_EQ(4, sizeof(devbuf_dtype));
	EXPECT_EQ(0, memcmp(bfloat16x4, &dtype, 4));
	EXPECT_EQ(0, DEVBUF_INT8.code); /* kDLInt and so on */
	EXPECT_EQ(1, DEVBUF_UINT8.code);
	EXPECT_EQ(2, DEVBUF_FLOAT32.code);
	EXPECT_EQ(4, DEVBUF_BFLOAT16.code);
	EXPECT_EQ(5, DEVBUF_COMPLEX64.code);
	EXPECT_EQ(6, DEVBUF_BOOL.code);
	EXPECT_EQ(8, DEVBUF_BOOL.bits);
	EXPECT_EQ(10, DEVBUF_FLOAT8_E4M3FN.code); /* kDLFloat8_e4m3fn of DLPack 1.1 */
	EXPECT_EQ(12, DEVBUF_FLOAT8_E5M2.code);
}

TEST(names_and_sizes)
{
	devbuf_dtype parsed;

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		EXPECT_EQ(types[i].itemsize, devbuf_dtype_itemsize(types[i].dtype));
		EXPECT_STREQ(types[i].name, devbuf_dtype_name(types[i].dtype));
		ASSERT_OK(devbuf_dtype_parse(types[i].name, &parsed));
		EXPECT_TRUE(devbuf_dtype_equal(types[i].dtype, parsed));
	}
}

TEST(constants_are_the_types_of_their_names)
{
	EXPECT_STREQ("bool", devbuf_dtype_name(DEVBUF_BOOL));
	EXPECT_STREQ("int64", devbuf_dtype_name(DEVBUF_INT64));
	EXPECT_STREQ("uint16", devbuf_dtype_name(DEVBUF_UINT16));
	EXPECT_STREQ("float8_e4m3fn", devbuf_dtype_name(DEVBUF_FLOAT8_E4M3FN));
	EXPECT_STREQ("float8_e5m2", devbuf_dtype_name(DEVBUF_FLOAT8_E5M2));
	EXPECT_STREQ("float16", devbuf_dtype_name(DEVBUF_FLOAT16));
	EXPECT_STREQ("bfloat16", devbuf_dtype_name(DEVBUF_BFLOAT16));
	EXPECT_STREQ("float64", devbuf_dtype_name(DEVBUF_FLOAT64));
	EXPECT_STREQ("complex128", devbuf_dtype_name(DEVBUF_COMPLEX128));
}

TEST(vectors)
{
	static const uint16_t lanes[] = { 2, 3, 4, 16, 1000, 65535 };

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		for (size_t l = 0; l < ARRAY_SIZE(lanes); l++) {
			devbuf_dtype vector = devbuf_dtype_vector(types[i].dtype, lanes[l]), parsed;
			char name[64];

			snprintf(name, sizeof(name), "%sx%u", types[i].name, lanes[l]);
			EXPECT_STREQ(name, devbuf_dtype_name(vector));
			EXPECT_EQ(types[i].itemsize * lanes[l], devbuf_dtype_itemsize(vector));
			ASSERT_OK(devbuf_dtype_parse(name, &parsed));
			EXPECT_TRUE(devbuf_dtype_equal(vector, parsed));
			EXPECT_FALSE(devbuf_dtype_equal(types[i].dtype, vector));
		}
	}
	EXPECT_STREQ("int8", devbuf_dtype_name(devbuf_dtype_vector(DEVBUF_INT8, 1)));
}

TEST(names_of_vectors_last_for_a_few_calls)
{
	const char *one = devbuf_dtype_name(devbuf_dtype_vector(DEVBUF_INT8, 4));
	const char *two = devbuf_dtype_name(devbuf_dtype_vector(DEVBUF_FLOAT16, 8));

	EXPECT_STREQ("int8x4", one);
	EXPECT_STREQ("float16x8", two);
}

TEST(what_is_no_type)
{
	static const devbuf_dtype none[] = {
		{ 0, 4, 1 },  { 0, 4, 2 }, { 1, 1, 8 },   { 2, 8, 1 },  { 2, 128, 1 }, { 3, 64, 1 },
		{ 4, 32, 1 }, { 6, 1, 1 }, { 10, 16, 1 }, { 15, 6, 1 }, { 17, 4, 1 },  { 18, 8, 1 },
		{ 0, 0, 1 },  { 0, 8, 0 }, { 0, 12, 1 },  { 5, 16, 1 }, { 255, 8, 1 }, { 0, 128, 1 }
	};

	for (size_t i = 0; i < ARRAY_SIZE(none); i++) {
		EXPECT_EQ(0, devbuf_dtype_itemsize(none[i]));
		EXPECT_STREQ("invalid", devbuf_dtype_name(none[i]));
	}
}

TEST(names_of_no_type)
{
	static const char *const names[] = {
		"",
		"int",
		"int4",
		"Int8",
		" int8",
		"int8 ",
		"int8x",
		"int8x0",
		"int8x1",
		"int8x01",
		"int8x65536",
		"int8x-2",
		"int8x2x2",
		"int8x2 ",
		"float8",
		"float",
		"float128",
		"double",
		"uint",
		"bool8",
		"x4",
		"invalid",
		"int8x99999999999999999999",
	};
	devbuf_dtype dtype = DEVBUF_FLOAT64;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		EXPECT_EQ(-EINVAL, devbuf_dtype_parse(names[i], &dtype))
		{
			TH_LOG("%s", names[i]);
		}
	}
	EXPECT_EQ(-EINVAL, devbuf_dtype_parse("float4_e2m1fn", &dtype));
	EXPECT_SAID("float4_e2m1fn");
	EXPECT_EQ(-EINVAL, devbuf_dtype_parse(NULL, &dtype));
	EXPECT_EQ(-EINVAL, devbuf_dtype_parse("int8", NULL));
	EXPECT_TRUE(devbuf_dtype_equal(DEVBUF_FLOAT64, dtype));
}

TEST(version)
{
	char version[32];

	snprintf(version, sizeof(version), "%d.%d.%d", DEVBUF_VERSION_MAJOR, DEVBUF_VERSION_MINOR,
		 DEVBUF_VERSION_PATCH);
	EXPECT_STREQ(version, devbuf_version());
}

TEST_HARNESS_MAIN
