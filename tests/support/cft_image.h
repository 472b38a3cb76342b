/* SPDX-License-Identifier: Apache-2.0 */
/* .cft files in memory; the caller releases them. */
#ifndef TESTS_SUPPORT_CFT_IMAGE_H
#define TESTS_SUPPORT_CFT_IMAGE_H

#include <stdlib.h>

#include <frag/trace.h>

struct cft_image {
	char *bytes;
	size_t len;
};
static inline void cft_image_release(struct cft_image *im)
{
	free(im->bytes);
}

/* Aborts if the trace cannot be written. */
struct cft_image cft_image_of(const struct frag_trace *t);
/* What the reader says; *out is NULL if it says no. */
int cft_image_read(const void *bytes, size_t len, const char *options, struct frag_trace **out,
		   struct frag_err *err);

#endif
