/* SPDX-License-Identifier: Apache-2.0 */
/* .cft files in memory, for tests. */
#include "cft_image.h"

#include <stdio.h>
#include <stdlib.h>

#include "trace/cft/cft_write.h"
#include "trace/input/input.h"

extern const struct frag_reader_ops frag_reader_cft;

struct cft_image cft_image_of(const struct frag_trace *t)
{
	struct cft_image im = { 0 };
	struct frag_err err = { 0 };
	FILE *to = open_memstream(&im.bytes, &im.len);

	if (!to || frag_cft_write_stream(t, to, &err)) {
		fprintf(stderr, "cannot write the image: %s\n", err.msg);
		abort();
	}
	fclose(to);
	return im;
}

int cft_image_read(const void *bytes, size_t len, const char *options, struct frag_trace **out,
		   struct frag_err *err)
{
	FRAG_AUTO(frag_input_close_at) struct frag_input *in = NULL;
	int rc = frag_input_open_memory("image", bytes, len, &in, err);

	*out = NULL;
	if (rc)
		return rc;
	rc = frag_reader_cft.read(in, options, out, err);
	return rc;
}
