// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The header of a .safetensors file.
 *
 * The file: eight bytes, the length of the header, little-endian; the header, a
 * JSON object, padded with blanks; the data. The object has for each tensor its
 * dtype, its shape, and data_offsets: where it begins and ends in the data.
 * https://github.com/huggingface/safetensors#format
 *
 * The file may come from anywhere: nothing in it is believed.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "safetensors.h"

#define LENGTH_NBYTES     8
#define HEADER_NBYTES_MAX UINT64_C(100000000) /* the format's */

__attribute__((format(printf, 2, 3))) static bool complain(struct complaint *why,
							   const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why->words, sizeof(why->words), format, args);
	va_end(args);
	return false;
}

static bool complain_of(struct complaint *why, const struct tensor *t, const char *what)
{
	return complain(why, "tensor '%.80s' %s", t->name, what);
}

/* --- the header's text ------------------------------------------------------------------------ */

static bool read_bytes(int fd, void *to, size_t nbytes, uint64_t at, struct complaint *why)
{
	size_t done = 0;

	while (done < nbytes) {
		ssize_t n = pread(fd, (char *)to + done, nbytes - done, (off_t)(at + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return complain(why, "cannot read the header: %s", strerror(errno));
		if (n == 0)
			return complain(why, "the file ends in its header");
		done += (size_t)n;
	}
	return true;
}

static bool read_length(int fd, uint64_t file_nbytes, uint64_t *length, struct complaint *why)
{
	unsigned char bytes[LENGTH_NBYTES];

	if (file_nbytes < LENGTH_NBYTES)
		return complain(why,
				"the file has %" PRIu64
				" bytes, and the length of the header alone "
				"takes %d",
				file_nbytes, LENGTH_NBYTES);
	if (!read_bytes(fd, bytes, sizeof(bytes), 0, why))
		return false;
	*length = 0;
	for (int i = LENGTH_NBYTES - 1; i >= 0; i--)
		*length = *length << 8 | bytes[i];
	if (*length > HEADER_NBYTES_MAX)
		return complain(why,
				"the header is said to have %" PRIu64 " bytes, and at most %" PRIu64
				" are allowed",
				*length, HEADER_NBYTES_MAX);
	if (*length > file_nbytes - LENGTH_NBYTES)
		return complain(why,
				"the header of %" PRIu64 " bytes goes past the end of the file, of "
				"%" PRIu64,
				*length, file_nbytes);
	return true;
}

static json_t *parse(const char *text, size_t nbytes, struct complaint *why)
{
	json_error_t error;
	json_t *header;

	if (!nbytes || text[0] != '{') {
		complain(why, "the header does not begin with '{'");
		return NULL;
	}
	header = json_loadb(text, nbytes, JSON_REJECT_DUPLICATES, &error);
	if (!header && json_error_code(&error) == json_error_duplicate_key)
		complain(why, "the header has a name twice: %s", error.text);
	else if (!header)
		complain(why, "the header is not JSON: %s, at byte %d of it", error.text,
			 error.position);
	return header;
}

static json_t *read_header(int fd, uint64_t file_nbytes, uint64_t *length, struct complaint *why)
{
	json_t *header = NULL;
	char *text;

	if (!read_length(fd, file_nbytes, length, why))
		return NULL;
	text = malloc(*length ? *length : 1);
	if (!text)
		complain(why, "no memory for a header of %" PRIu64 " bytes", *length);
	else if (read_bytes(fd, text, *length, LENGTH_NBYTES, why))
		header = parse(text, *length, why);
	free(text);
	return header;
}

/* --- one tensor ------------------------------------------------------------------------------- */

static bool find_dtype(const char *name, devbuf_dtype *out)
{
	static const struct {
		const char *name;
		devbuf_dtype dtype;
	} dtypes[] = {
		{ "BOOL", DEVBUF_BOOL_INIT },
		{ "U8", DEVBUF_UINT8_INIT },
		{ "I8", DEVBUF_INT8_INIT },
		{ "F8_E5M2", DEVBUF_FLOAT8_E5M2_INIT },
		{ "F8_E4M3", DEVBUF_FLOAT8_E4M3FN_INIT },
		{ "F8_E8M0", DEVBUF_FLOAT8_E8M0FNU_INIT },
		{ "I16", DEVBUF_INT16_INIT },
		{ "U16", DEVBUF_UINT16_INIT },
		{ "F16", DEVBUF_FLOAT16_INIT },
		{ "BF16", DEVBUF_BFLOAT16_INIT },
		{ "I32", DEVBUF_INT32_INIT },
		{ "U32", DEVBUF_UINT32_INIT },
		{ "F32", DEVBUF_FLOAT32_INIT },
		{ "I64", DEVBUF_INT64_INIT },
		{ "U64", DEVBUF_UINT64_INIT },
		{ "F64", DEVBUF_FLOAT64_INIT },
		{ "C64", DEVBUF_COMPLEX64_INIT },
	};

	for (size_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++) {
		if (!strcmp(dtypes[i].name, name)) {
			*out = dtypes[i].dtype;
			return true;
		}
	}
	return false;
}

static bool is_count(const json_t *value)
{
	return json_is_integer(value) && json_integer_value(value) >= 0;
}

/* No shape at all is one element; a zero in it is none. */
static bool read_shape(struct tensor *t, struct complaint *why)
{
	size_t i;
	json_t *n;

	if (!json_is_array(t->shape))
		return complain_of(why, t, "has no shape");
	t->size = 1;
	json_array_foreach(t->shape, i, n)
	{
		if (!is_count(n))
			return complain_of(why, t, "has a shape that is not made of counts");
		if (__builtin_mul_overflow(t->size, (uint64_t)json_integer_value(n), &t->size))
			return complain_of(why, t, "has more elements than can be counted");
	}
	return true;
}

static bool read_offsets(struct tensor *t, const json_t *offsets, uint64_t data_nbytes,
			 struct complaint *why)
{
	uint64_t nbytes;

	if (json_array_size(offsets) != 2 || !is_count(json_array_get(offsets, 0)) ||
	    !is_count(json_array_get(offsets, 1)))
		return complain_of(why, t, "has no data_offsets of two counts");
	t->begin = (uint64_t)json_integer_value(json_array_get(offsets, 0));
	t->end = (uint64_t)json_integer_value(json_array_get(offsets, 1));
	if (t->begin > t->end)
		return complain_of(why, t, "ends before it begins");
	if (t->end > data_nbytes)
		return complain(why,
				"tensor '%.80s' ends at byte %" PRIu64 " of the data, and the file "
				"has %" PRIu64,
				t->name, t->end, data_nbytes);
	if (__builtin_mul_overflow(t->size, devbuf_dtype_itemsize(t->dtype), &nbytes))
		return complain_of(why, t, "has more bytes than can be counted");
	if (nbytes != t->end - t->begin)
		return complain(why,
				"tensor '%.80s' needs %" PRIu64
				" bytes by its shape and dtype, and "
				"has %" PRIu64,
				t->name, nbytes, t->end - t->begin);
	return true;
}

static bool read_tensor(struct tensor *t, const char *name, const json_t *value,
			uint64_t data_nbytes, struct complaint *why)
{
	const char *dtype = json_string_value(json_object_get(value, "dtype"));

	t->name = name;
	t->shape = json_object_get(value, "shape");
	if (!json_is_object(value))
		return complain_of(why, t, "is not described by an object");
	if (!dtype)
		return complain_of(why, t, "has no dtype");
	if (!find_dtype(dtype, &t->dtype))
		return complain(why, "tensor '%.80s' has the dtype '%.20s', which is not known",
				name, dtype);
	return read_shape(t, why) &&
	       read_offsets(t, json_object_get(value, "data_offsets"), data_nbytes, why);
}

/* --- all of them ------------------------------------------------------------------------------ */

static bool check_metadata(const json_t *metadata, struct complaint *why)
{
	const char *key;
	json_t *value;

	if (!json_is_object(metadata))
		return complain(why, "__metadata__ is not an object");
	json_object_foreach((json_t *)metadata, key, value) if (!json_is_string(value)) return complain(
		why, "__metadata__ has '%.80s', which is not a string", key);
	return true;
}

static bool read_tensors(struct safetensors *s, uint64_t data_nbytes, struct complaint *why)
{
	const char *name;
	json_t *value;

	s->tensors = calloc(json_object_size(s->header) + 1, sizeof(*s->tensors));
	if (!s->tensors)
		return complain(why, "no memory for a list of %zu tensors",
				json_object_size(s->header));
	json_object_foreach(s->header, name, value)
	{
		if (!strcmp(name, "__metadata__")) {
			if (!check_metadata(value, why))
				return false;
			continue;
		}
		if (!read_tensor(&s->tensors[s->nr], name, value, data_nbytes, why))
			return false;
		s->nr++;
	}
	return true;
}

/* Empty tensors come before the one that begins where they are. */
static int by_bytes(const void *a, const void *b)
{
	const struct tensor *s = a, *t = b;

	if (s->begin != t->begin)
		return s->begin < t->begin ? -1 : 1;
	return (s->end > t->end) - (s->end < t->end);
}

static bool check_cover(const struct safetensors *s, uint64_t data_nbytes, struct complaint *why)
{
	uint64_t at = 0;

	for (size_t i = 0; i < s->nr; i++) {
		const struct tensor *t = &s->tensors[i];

		if (t->begin < at)
			return complain(why, "tensors '%.80s' and '%.80s' overlap",
					s->tensors[i - 1].name, t->name);
		if (t->begin > at)
			return complain(why,
					"%" PRIu64 " bytes of the data, before tensor '%.80s', "
					"belong to none",
					t->begin - at, t->name);
		at = t->end;
	}
	if (at < data_nbytes)
		return complain(why, "the last %" PRIu64 " bytes of the data belong to no tensor",
				data_nbytes - at);
	return true;
}

bool safetensors_read(int fd, uint64_t file_nbytes, struct safetensors *out, struct complaint *why)
{
	struct safetensors s = { 0 };
	uint64_t length = 0, data_nbytes;

	s.header = read_header(fd, file_nbytes, &length, why);
	if (!s.header)
		return false;
	s.data_offset = LENGTH_NBYTES + length;
	data_nbytes = file_nbytes - s.data_offset;
	if (!read_tensors(&s, data_nbytes, why))
		goto bad;
	qsort(s.tensors, s.nr, sizeof(*s.tensors), by_bytes);
	if (!check_cover(&s, data_nbytes, why))
		goto bad;
	*out = s;
	return true;
bad:
	safetensors_release(&s);
	return false;
}

void safetensors_release(struct safetensors *s)
{
	free(s->tensors);
	json_decref(s->header);
}
