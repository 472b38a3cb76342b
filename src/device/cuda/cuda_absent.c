/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces cuda.c in a build without nvcc, so that callers need no #ifdef. */
#include <frag/device.h>

bool frag_cuda_built(void)
{
	return false;
}

int frag_cuda_count(void)
{
	return 0;
}

int frag_cuda_open(int ordinal, struct frag_device **out, struct frag_err *err)
{
	struct frag_cuda_config cfg = { .ordinal = ordinal };

	return frag_cuda_open_config(&cfg, out, err);
}

int frag_cuda_open_config(const struct frag_cuda_config *cfg, struct frag_device **out,
			  struct frag_err *err)
{
	(void)out;
	return frag_fail(err, FRAG_EDEVICE,
			 "cannot open cuda:%d: this build has no CUDA device (built without nvcc); "
			 "use --device sim",
			 cfg->ordinal);
}
