/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA's mathematical libraries, as far as they return something: handles, versions,
 * modes. Arithmetic does nothing (calls.c); cuDNN's plans are in cudnn.c, NCCL in nccl.c.
 */
#include "nogpu.h"

#include <stdlib.h>
#include <string.h>

#define HANDLE_BYTES 4096u /* nobody looks inside, but some libraries copy descriptors */

int frag_nogpu_handle(void **out)
{
	*out = calloc(1, HANDLE_BYTES);
	return *out ? 0 : 2; /* all of these libraries call 1, 2 or 3 "no resources" */
}

/* Functions that give a handle through their first argument. */
#define HANDLE(name) \
	NOGPU_ENTRY(int, name, (void **out)) \
	{ \
		return frag_nogpu_handle(out); \
	}
HANDLE(cublasLtCreate)
HANDLE(cublasLtMatmulDescCreate)
HANDLE(cublasLtMatmulPreferenceCreate)
HANDLE(cublasLtMatrixLayoutCreate)
HANDLE(cudnnCreate)
HANDLE(cudnnCreateActivationDescriptor)
HANDLE(cudnnCreateConvolutionDescriptor)
HANDLE(cudnnCreatePoolingDescriptor)
HANDLE(cusolverDnCreate)
HANDLE(cusolverDnCreateParams)
HANDLE(cusparseCreate)
HANDLE(curandCreateGenerator)
HANDLE(cusolverDnCreateGesvdjInfo)
HANDLE(cusolverDnCreateSyevjInfo)
HANDLE(nvrtcCreateProgram)

/* The library keeps 64 MiB for each (an H200, CUDA 13.0): what comes after it lies elsewhere. */
NOGPU_ENTRY(int, cublasCreate_v2, (void **out))
{
	frag_nogpu_hold(64 * FRAG_MIB);
	return frag_nogpu_handle(out);
}
NOGPU_ENTRY(int, cublasGetVersion_v2, (void *h, int *version))
{
	(void)h;
	*version = 130000;
	return 0;
}
NOGPU_ENTRY(size_t, cublasLtGetVersion, (void))
{
	return 130000;
}
/* What is wrong with an argument goes to the host: nothing is. */
#define QR_BATCHED(name) \
	NOGPU_ENTRY(int, name, \
		    (void *h, int m, int n, void *a, int lda, void *tau, int *info, int batch)) \
	{ \
		(void)h, (void)m, (void)n, (void)a, (void)lda, (void)tau, (void)batch; \
		*info = 0; \
		return 0; \
	}
QR_BATCHED(cublasSgeqrfBatched)
QR_BATCHED(cublasDgeqrfBatched)
QR_BATCHED(cublasCgeqrfBatched)
QR_BATCHED(cublasZgeqrfBatched)

#define LEAST_SQUARES_BATCHED(name) \
	NOGPU_ENTRY(int, name, \
		    (void *h, int trans, int m, int n, int right, void *a, int lda, void *c, \
		     int ldc, int *info, int *on_card, int batch)) \
	{ \
		(void)h, (void)trans, (void)m, (void)n, (void)right, (void)a, (void)lda; \
		(void)c, (void)ldc, (void)on_card, (void)batch; \
		*info = 0; \
		return 0; \
	}
LEAST_SQUARES_BATCHED(cublasSgelsBatched)
LEAST_SQUARES_BATCHED(cublasDgelsBatched)
LEAST_SQUARES_BATCHED(cublasCgelsBatched)
LEAST_SQUARES_BATCHED(cublasZgelsBatched)

NOGPU_ENTRY(int, cublasGetMathMode, (void *h, int *mode))
{
	(void)h;
	*mode = 0;
	return 0;
}
NOGPU_ENTRY(int, cublasGetPointerMode_v2, (void *h, int *mode))
{
	(void)h;
	*mode = 0;
	return 0;
}
NOGPU_ENTRY(int, cusolverDnGetStream, (void *h, void **stream))
{
	(void)h;
	*stream = NULL;
	return 0;
}
NOGPU_ENTRY(const char *, cublasGetStatusString, (int code))
{
	return code ? "not supported by the pretended card of cufrag" : "success";
}
NOGPU_ENTRY(const char *, cusparseGetErrorString, (int code))
{
	return frag_nogpu_cublasGetStatusString(code);
}

/* One algorithm, which needs no workspace: PyTorch brings its own, by its own rule, before. */
#define LT_RESULT_BYTES 96u

NOGPU_ENTRY(int, cublasLtMatmulAlgoGetHeuristic,
	    (void *lt, void *op, void *a, void *b, void *c, void *d, void *preference, int wanted,
	     void *results, int *found))
{
	(void)lt, (void)op, (void)a, (void)b, (void)c, (void)d, (void)preference;
	*found = wanted > 0 ? 1 : 0;
	if (wanted > 0)
		memset(results, 0, LT_RESULT_BYTES);
	return 0;
}

NOGPU_ENTRY(int, nvrtcVersion, (int *major, int *minor))
{
	*major = 13;
	*minor = 0;
	return 0;
}
/* That of CUDA 13.0. */
static const int architectures[] = { 75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121 };

NOGPU_ENTRY(int, nvrtcGetNumSupportedArchs, (int *count))
{
	*count = (int)FRAG_ARRAY_LEN(architectures);
	return 0;
}
NOGPU_ENTRY(int, nvrtcGetSupportedArchs, (int *out))
{
	memcpy(out, architectures, sizeof(architectures));
	return 0;
}
/* Kernels that are compiled while the program runs: an empty one each, which nobody looks into. */
static int one_byte(size_t *bytes)
{
	*bytes = 1;
	return 0;
}
static int empty(char *text)
{
	*text = '\0';
	return 0;
}
NOGPU_ENTRY(int, nvrtcGetProgramLogSize, (void *program, size_t *bytes))
{
	(void)program;
	return one_byte(bytes);
}
NOGPU_ENTRY(int, nvrtcGetPTXSize, (void *program, size_t *bytes))
{
	(void)program;
	return one_byte(bytes);
}
/* One byte would say that there is only PTX. */
#define CUBIN_BYTES 64u

NOGPU_ENTRY(int, nvrtcGetCUBINSize, (void *program, size_t *bytes))
{
	(void)program;
	*bytes = CUBIN_BYTES;
	return 0;
}
NOGPU_ENTRY(int, nvrtcGetProgramLog, (void *program, char *text))
{
	(void)program;
	return empty(text);
}
NOGPU_ENTRY(int, nvrtcGetPTX, (void *program, char *text))
{
	(void)program;
	return empty(text);
}
NOGPU_ENTRY(int, nvrtcGetCUBIN, (void *program, char *image))
{
	(void)program;
	memset(image, 0, CUBIN_BYTES);
	return 0;
}
NOGPU_ENTRY(int, nvrtcGetLoweredName, (void *program, const char *name, const char **out))
{
	(void)program;
	*out = name;
	return 0;
}
NOGPU_ENTRY(const char *, nvrtcGetErrorString, (int code))
{
	return frag_nogpu_cublasGetStatusString(code);
}
