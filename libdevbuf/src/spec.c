// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* What buffers are created from: structs that can grow, specs, and names of devices. */
#include <stdio.h>

#include "internal.h"

/* No struct of ours gets near this: a size beyond it is not a size. */
#define STRUCT_NBYTES_MAX 4096

static size_t struct_size(const void *s)
{
	size_t size;

	memcpy(&size, s, sizeof(size));
	return size;
}

int dbuf_struct_read(void *to, size_t known, size_t least, const void *from, const char *what)
{
	size_t size = struct_size(from);
	const unsigned char *bytes = from;

	if (size < least)
		return dbuf_fail(-EINVAL, "%s says that it has %zu bytes; the first one had %zu",
				 what, size, least);
	if (size > STRUCT_NBYTES_MAX)
		return dbuf_fail(-E2BIG, "%s says that it has %zu bytes; this library knows %zu",
				 what, size, known);
	for (size_t i = known; i < size; i++)
		if (bytes[i])
			return dbuf_fail(-E2BIG, "%s uses byte %zu; this library knows %zu bytes",
					 what, i, known);
	memset(to, 0, known);
	memcpy(to, from, size < known ? size : known);
	memcpy(to, &known, sizeof(known));
	return 0;
}

int dbuf_struct_check(const void *to, size_t least, const char *what)
{
	size_t size = struct_size(to);

	if (size < least || size > STRUCT_NBYTES_MAX)
		return dbuf_fail(-EINVAL, "%s says that it has %zu bytes; %zu to %d will do", what,
				 size, least, STRUCT_NBYTES_MAX);
	return 0;
}

void dbuf_struct_write(void *to, const void *from, size_t known)
{
	size_t size = struct_size(to);
	size_t nbytes = size < known ? size : known;

	memcpy((char *)to + sizeof(size), (const char *)from + sizeof(size), nbytes - sizeof(size));
	memset((char *)to + nbytes, 0, size - nbytes);
}

int dbuf_spec_read(struct devbuf_spec *to, const struct devbuf_spec *from)
{
	static const struct devbuf_spec defaults = DEVBUF_SPEC_INIT;
	int rc;

	if (!from)
		from = &defaults;
	rc = dbuf_struct_read(to, sizeof(*to), sizeof(*to), from, "the spec");
	if (rc)
		return rc;
	if (to->reserved[0] || to->reserved[1] || to->reserved[2] || to->reserved2)
		return dbuf_fail(-EINVAL, "a reserved member of the spec is not zero");
	if (to->alignment & (to->alignment - 1))
		return dbuf_fail(-EINVAL, "alignment of %zu bytes is not a power of two",
				 to->alignment);
	if (to->numa_node < -1)
		return dbuf_fail(-EINVAL, "there is no NUMA node %d", to->numa_node);
	return 0;
}

/* --- names of devices ------------------------------------------------------------------------- */

/* Without a locale. */
static bool is_letter(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static size_t prefix_length(const char *name)
{
	size_t n = 0;

	if (is_letter(name[0]))
		while (is_letter(name[n]) || is_digit(name[n]) || name[n] == '_')
			n++;
	return n;
}

/* Digits of a decimal number without leading zeros; 0 when it is none. */
static size_t number_length(const char *text)
{
	size_t n = 0;

	while (is_digit(text[n]))
		n++;
	return n > 1 && text[0] == '0' ? 0 : n;
}

/* Whether it can be on that node; the number that follows the prefix when it has none. */
static int choose_node(const char *from, size_t length, int numa_node, char number[16])
{
	snprintf(number, 16, "%d", numa_node < 0 ? 0 : numa_node);
	if (numa_node < 0)
		return 0;
	if (length != 6 || strncmp(from, "SYSTEM", 6))
		return dbuf_fail(-EINVAL, "NUMA node %d asked for, of a device that is not SYSTEM",
				 numa_node);
	return 0;
}

int dbuf_device_name(char to[DEVBUF_DEVICE_BYTES], const char *from, int numa_node)
{
	char name[DEVBUF_DEVICE_BYTES] = "";
	size_t length = prefix_length(from), digits;
	char number[16];
	int rc;

	if (!length || (from[length] && from[length] != ':'))
		return dbuf_fail(-EINVAL, "\"%.40s\" is not the name of a device", from);
	digits = from[length] ? number_length(from + length + 1) : 0;
	if (from[length] && (!digits || from[length + 1 + digits]))
		return dbuf_fail(-EINVAL, "device \"%.40s\" has no number after the colon", from);
	if (length >= sizeof(name))
		return dbuf_fail(-EINVAL, "device \"%.40s...\" has more than %d characters", from,
				 DEVBUF_DEVICE_BYTES - 1);
	for (size_t i = 0; i < length; i++)
		name[i] = (char)(from[i] >= 'a' && from[i] <= 'z' ? from[i] - 'a' + 'A' : from[i]);

	rc = choose_node(name, length, numa_node, number);
	if (rc)
		return rc;
	if (digits && numa_node >= 0 && strcmp(from + length + 1, number))
		return dbuf_fail(-EINVAL, "device \"%.40s\" is not on NUMA node %d", from,
				 numa_node);
	if (length + 1 + (digits ? digits : strlen(number)) >= sizeof(name))
		return dbuf_fail(-EINVAL, "device \"%.40s\" has more than %d characters", from,
				 DEVBUF_DEVICE_BYTES - 1);
	name[length] = ':';
	strcpy(name + length + 1, digits ? from + length + 1 : number);
	memcpy(to, name, sizeof(name));
	return 0;
}

/* Of canonical names. */
bool dbuf_same_prefix(const char *device, const char *other)
{
	size_t length = strcspn(device, ":");

	return length == strcspn(other, ":") && !strncmp(device, other, length);
}
