// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* The connection to the driver: open, the ioctls, the devices that there are. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "driver.h"

/* --- commands --------------------------------------------------------------------------------- */

static int command_once(const struct connection *c, unsigned long command, void *argument)
{
	return ioctl(c->fd, command, argument) < 0 ? -errno : 0;
}

int dbuf_command(const struct connection *c, unsigned long command, void *argument)
{
	int rc;

	do
		rc = command_once(c, command, argument);
	while (rc == -EINTR);
	return rc;
}

int dbuf_command_copy(const struct connection *c, unsigned long command,
		      struct devbuf_copy_range range)
{
	for (;;) {
		struct devbuf_copy copy = {
			.size = sizeof(copy),
			.ranges = (uintptr_t)&range,
			.nr_ranges = 1,
		};
		int rc = command_once(c, command, &copy);

		if (rc != -EINTR)
			return rc;
		if (copy.out_done_nbytes >= range.nbytes)
			return 0;
		range.offset += copy.out_done_nbytes;
		range.user_addr += copy.out_done_nbytes;
		range.nbytes -= copy.out_done_nbytes;
	}
}

/* --- open ------------------------------------------------------------------------------------- */

static int open_node(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd >= 0)
		return fd;
	switch (errno) {
	case ENOENT:
	case ENOTDIR:
	case ENXIO: /* a node whose driver is gone */
	case ENODEV:
		return dbuf_fail(-ENOENT, "there is no driver at %s", path);
	case EACCES:
	case EPERM:
		return dbuf_fail(-EACCES, "no permission to open %s", path);
	default:
		return dbuf_fail(-errno, "cannot open %s: %s", path, dbuf_reason(-errno));
	}
}

static int get_info(struct connection *c, const char *path)
{
	struct devbuf_info info = { .size = sizeof(info) };
	int rc = dbuf_command(c, DEVBUF_INFO, &info);

	if (rc)
		return dbuf_fail(-EPROTO, "%s is not a devbuf driver's: %s", path, dbuf_reason(rc));
	if (info.out_abi_version != DEVBUF_ABI_VERSION)
		return dbuf_fail(-EPROTO, "the driver at %s has ABI %u; this library has %u", path,
				 info.out_abi_version, DEVBUF_ABI_VERSION);
	if (!info.out_page_size || info.out_page_size & (info.out_page_size - 1))
		return dbuf_fail(-EPROTO, "the driver at %s has pages of %u bytes", path,
				 info.out_page_size);
	c->page_size = info.out_page_size;
	c->features = info.out_features;
	memcpy(c->instance, info.out_instance, sizeof(c->instance));
	return 0;
}

int dbuf_connection_open(const char *path, struct connection **out)
{
	struct connection *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return dbuf_fail(-ENOMEM, "no memory for a connection");
	c->fd = open_node(path);
	if (c->fd < 0) {
		rc = c->fd;
		free(c);
		return rc;
	}
	pthread_mutex_init(&c->lock, NULL);
	dbuf_process_mark(&c->process);
	rc = get_info(c, path);
	if (rc) {
		dbuf_connection_close(c);
		return rc;
	}
	*out = c;
	return 0;
}

bool dbuf_connection_forked(const struct connection *c)
{
	return dbuf_process_forked(&c->process);
}

/* In the child of a fork this closes the child's descriptor, and nothing of the parent's. */
void dbuf_connection_close(struct connection *c)
{
	if (!dbuf_connection_forked(c))
		pthread_mutex_destroy(&c->lock);
	dbuf_process_unmark(&c->process);
	close(c->fd);
	free(c->devices);
	free(c);
}

/* --- devices ---------------------------------------------------------------------------------- */

/* Under the lock. */
static int add_device(struct connection *c, const struct devbuf_device_info *info)
{
	size_t nbytes = (c->nr_devices + 1) * sizeof(struct known_device);
	struct known_device *devices = realloc(c->devices, nbytes);

	if (!devices)
		return dbuf_fail(-ENOMEM, "no memory for a list of devices");
	c->devices = devices;
	memcpy(devices[c->nr_devices].name, info->out_name, DEVBUF_DEVICE_BYTES);
	devices[c->nr_devices].name[DEVBUF_DEVICE_BYTES - 1] = '\0';
	devices[c->nr_devices].caps = info->out_caps;
	c->nr_devices++;
	return 0;
}

/* Under the lock: ask the driver anew, for devices come and go. */
static int walk_devices(struct connection *c)
{
	struct devbuf_device_info info = { .size = sizeof(info) };
	int rc;

	c->nr_devices = 0;
	for (;;) {
		rc = dbuf_command(c, DEVBUF_DEVICE_INFO, &info);
		if (rc == -ENODEV)
			return 0;
		if (rc)
			return dbuf_fail(rc, "cannot list the devices: %s", dbuf_reason(rc));
		rc = add_device(c, &info);
		if (rc)
			return rc;
		info.cursor = info.out_cursor;
	}
}

static bool find_device(const struct connection *c, const char *name, uint64_t *caps)
{
	for (size_t i = 0; i < c->nr_devices; i++) {
		if (!strcmp(c->devices[i].name, name)) {
			*caps = c->devices[i].caps;
			return true;
		}
	}
	return false;
}

static int no_device(const struct connection *c, const char *name)
{
	char names[160] = "";
	size_t n = 0;

	for (size_t i = 0; i < c->nr_devices && n < sizeof(names); i++)
		n += (size_t)snprintf(names + n, sizeof(names) - n, " %s", c->devices[i].name);
	return dbuf_fail(-ENODEV, "the driver has no device %s; it has%s", name,
			 *names ? names : " none");
}

int dbuf_connection_device(struct connection *c, const char *name, uint64_t *caps)
{
	int rc = 0;

	pthread_mutex_lock(&c->lock);
	if (!find_device(c, name, caps)) {
		rc = walk_devices(c);
		if (!rc && !find_device(c, name, caps))
			rc = no_device(c, name);
	}
	pthread_mutex_unlock(&c->lock);
	return rc;
}
