/* SPDX-License-Identifier: Apache-2.0 */
/* Error messages of the runtime and the driver, and the driver's entry points. */
#include "cuda_internal.h"

#include <string.h>

static int fail(struct frag_err *err, int code, const char *call, const char *name,
		const char *text)
{
	frag_fail(err, FRAG_EDEVICE, "%s: %s (%s)", call, name ? name : "unknown error",
		  text ? text : "no text");
	if (err)
		err->cuda_code = code;
	return FRAG_EDEVICE;
}

int frag_cuda_rt_check(cudaError_t rc, const char *call, struct frag_err *err)
{
	if (FRAG_LIKELY(rc == cudaSuccess))
		return 0;
	(void)cudaGetLastError(); /* reported here, so clear it for the next call */
	return fail(err, (int)rc, call, cudaGetErrorName(rc), cudaGetErrorString(rc));
}

int frag_cuda_cu_check(const struct cuda *c, CUresult rc, const char *call, struct frag_err *err)
{
	const char *name = NULL, *text = NULL;

	if (FRAG_LIKELY(rc == CUDA_SUCCESS))
		return 0;
	c->cu.cuGetErrorName(rc, &name);
	c->cu.cuGetErrorString(rc, &text);
	return fail(err, (int)rc, call, name, text);
}

/* cudaGetDriverEntryPointByVersion exists since 12.5; the form without a version is deprecated. */
static cudaError_t find_entry(const char *name, void **out,
			      enum cudaDriverEntryPointQueryResult *found)
{
#if CUDART_VERSION >= 12050
	return cudaGetDriverEntryPointByVersion(name, out, 11000, cudaEnableDefault, found);
#elif CUDART_VERSION >= 12000
	return cudaGetDriverEntryPoint(name, out, cudaEnableDefault, found);
#else
	*found = cudaDriverEntryPointSuccess;
	return cudaGetDriverEntryPoint(name, out, cudaEnableDefault);
#endif
}

int frag_cuda_entries(struct cuda_entries *out, struct frag_err *err)
{
	static const struct {
		const char *name;
		size_t offset;
	} entries[] = {
#define FRAG_X_(name) { #name, offsetof(struct cuda_entries, name) },
		CUDA_ENTRY_LIST(FRAG_X_)
#undef FRAG_X_
	};

	for (size_t i = 0; i < FRAG_ARRAY_LEN(entries); i++) {
		enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSuccess;
		void *entry = NULL;

		FRAG_TRY(frag_cuda_rt_check(find_entry(entries[i].name, &entry, &found),
					    "cudaGetDriverEntryPoint", err));
		if (found != cudaDriverEntryPointSuccess || !entry)
			return frag_fail(err, FRAG_EDEVICE,
					 "the driver has no %s: it is too old, CUDA 11 is needed",
					 entries[i].name);
		memcpy((char *)out + entries[i].offset, &entry, sizeof(entry));
	}
	return 0;
}
