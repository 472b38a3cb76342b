/* SPDX-License-Identifier: Apache-2.0 */
/*
 * XLA's and TensorFlow's log of their allocator (TF_CPP_VMODULE=bfc_allocator=4, docs/record.md),
 * among other lines:
 *
 *	… bfc_allocator.cc:296] [mem-debug] AllocateRaw,GPU_0_bfc,1024,0x7f3a40000000,…
 *	… bfc_allocator.cc:608] [mem-debug] DeallocateRaw,GPU_0_bfc,1024,0x7f3a40000000,…
 */
#include <string.h>

#include "trace/log/log.h"

#define TAG "[mem-debug] "

static int read_bfc(struct frag_input *in, const char *options, struct frag_trace **out,
		    struct frag_err *err)
{
	static const struct frag_log_csv how = {
		.format = "bfc", .tag = TAG, .columns = "action,device,size,address", .whole = true
	};

	return frag_log_csv_read(in, &how, options, out, err);
}

static int probe(const unsigned char *bytes, size_t len)
{
	return memmem(bytes, len, TAG "AllocateRaw,", strlen(TAG "AllocateRaw,")) ? 85 : 0;
}

const struct frag_reader_ops frag_reader_bfc = {
	.name = "bfc",
	.summary = "the log of JAX's and TensorFlow's allocator (bfc_allocator=4): no streams, no "
		   "times",
	.probe = probe,
	.read = read_bfc,
};
