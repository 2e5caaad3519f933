/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* The header of a .safetensors file. */
#ifndef DEVBUF_SAFETENSORS_H
#define DEVBUF_SAFETENSORS_H

#include <devbuf.h>
#include <jansson.h>

struct tensor {
	const char *name; /* as the file has it: any characters */
	devbuf_dtype dtype;
	const json_t *shape; /* an array of integers, none negative */
	size_t size; /* elements: their product */
	uint64_t begin, end; /* bytes of the data */
};

struct safetensors {
	json_t *header; /* names and shapes live in it */
	struct tensor *tensors; /* in the order of their bytes */
	size_t nr;
	uint64_t data_offset; /* where the data begins in the file */
};

/* A sentence about a file that is not as it should be. */
struct complaint {
	char words[256];
};

/*
 * Read the header of @fd, a file of @file_nbytes, and see that tensors and data agree: each byte of
 * the data belongs to one tensor, and each tensor has as many as its shape and type need. False with
 * a complaint, when there is nothing to release.
 */
bool safetensors_read(int fd, uint64_t file_nbytes, struct safetensors *out, struct complaint *why);
void safetensors_release(struct safetensors *s);

#endif /* DEVBUF_SAFETENSORS_H */
