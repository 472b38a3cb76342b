/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA's mathematical libraries and NCCL, as far as they return something: handles,
 * versions, modes. Arithmetic does nothing (calls.c); cuDNN's plans are in cudnn.c.
 *
 * NCCL: this process plays one rank, and every other rank is taken to hold what this
 * one holds. So a gather repeats it, a reduction leaves it, and nobody waits.
 */
#include "nogpu.h"

#include <stdlib.h>
#include <string.h>

#define HANDLE_BYTES 4096u /* nobody looks inside, but some libraries copy descriptors */

static int handle(void **out)
{
	*out = calloc(1, HANDLE_BYTES);
	return *out ? 0 : 2; /* all of these libraries call 1, 2 or 3 "no resources" */
}

/* Functions that give a handle through their first argument. */
#define HANDLE(name) \
	NOGPU_ENTRY(int, name, (void **out)) \
	{ \
		return handle(out); \
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
	return handle(out);
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
NOGPU_ENTRY(int, nvrtcGetCUBINSize, (void *program, size_t *bytes))
{
	(void)program;
	return one_byte(bytes);
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
NOGPU_ENTRY(int, nvrtcGetCUBIN, (void *program, char *text))
{
	(void)program;
	return empty(text);
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

/* ---- NCCL ----------------------------------------------------------------------------- */

#define NCCL_VERSION 22809
#define NCCL_ID_BYTES 128u

struct comm {
	int ranks, rank;
};

static int comm_make(void **out, int ranks, int rank)
{
	int rc = handle(out);

	if (!rc)
		*(struct comm *)*out = (struct comm){ ranks, rank };
	return rc;
}

/* The id is passed by value: 128 bytes on the stack, before no argument in a register. */
struct nccl_id {
	char bytes[NCCL_ID_BYTES];
};

NOGPU_ENTRY(int, ncclGetVersion, (int *version))
{
	*version = NCCL_VERSION;
	return 0;
}
NOGPU_ENTRY(int, ncclGetUniqueId, (struct nccl_id * id))
{
	memset(id, 7, sizeof(*id));
	return 0;
}
NOGPU_ENTRY(int, ncclCommInitRank, (void **out, int ranks, struct nccl_id id, int rank))
{
	(void)id;
	return comm_make(out, ranks, rank);
}
NOGPU_ENTRY(int, ncclCommInitRankConfig,
	    (void **out, int ranks, struct nccl_id id, int rank, void *config))
{
	(void)id, (void)config;
	return comm_make(out, ranks, rank);
}
NOGPU_ENTRY(int, ncclCommInitRankScalable,
	    (void **out, int ranks, int rank, int ids, void *id, void *config))
{
	(void)ids, (void)id, (void)config;
	return comm_make(out, ranks, rank);
}
/* How many join one colour is known to the others only: as many as there were. */
NOGPU_ENTRY(int, ncclCommSplit, (void *parent, int color, int key, void **out, void *config))
{
	const struct comm *p = parent;

	(void)config;
	if (color < 0) {
		*out = NULL;
		return 0;
	}
	return comm_make(out, p->ranks, FRAG_MIN(key, p->ranks - 1));
}
NOGPU_ENTRY(int, ncclCommCount, (void *comm, int *count))
{
	*count = ((struct comm *)comm)->ranks;
	return 0;
}
NOGPU_ENTRY(int, ncclCommUserRank, (void *comm, int *rank))
{
	*rank = ((struct comm *)comm)->rank;
	return 0;
}
NOGPU_ENTRY(int, ncclCommCuDevice, (void *comm, int *device))
{
	(void)comm;
	*device = frag_nogpu_device();
	return 0;
}
NOGPU_ENTRY(int, ncclCommGetAsyncError, (void *comm, int *error))
{
	(void)comm;
	*error = 0;
	return 0;
}
NOGPU_ENTRY(int, ncclCommRegister, (void *comm, void *buffer, size_t bytes, void **out))
{
	(void)comm, (void)buffer, (void)bytes;
	return handle(out);
}
NOGPU_ENTRY(int, ncclRedOpCreatePreMulSum,
	    (int *op, void *scalar, int type, int residence, void *comm))
{
	(void)scalar, (void)type, (void)residence, (void)comm;
	*op = 5;
	return 0;
}
NOGPU_ENTRY(const char *, ncclGetErrorString, (int code))
{
	return frag_nogpu_cublasGetStatusString(code);
}
NOGPU_ENTRY(const char *, ncclGetLastError, (void *comm))
{
	(void)comm;
	return "";
}

int frag_nogpu_cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream);

/* ncclDataType_t: int8, uint8, int32, uint32, int64, uint64, half, float, double, bfloat16, fp8 … */
static size_t type_bytes(int type)
{
	static const size_t bytes[] = { 1, 1, 4, 4, 8, 8, 2, 4, 8, 2 };

	return type >= 0 && (size_t)type < FRAG_ARRAY_LEN(bytes) ? bytes[type] : 1;
}

static int move(const void *from, void *to, size_t count, int type)
{
	if (from != to)
		frag_nogpu_cudaMemcpyAsync(to, from, count * type_bytes(type), 3, NULL);
	return 0;
}

NOGPU_ENTRY(int, ncclAllReduce,
	    (const void *from, void *to, size_t count, int type, int op, void *comm, void *stream))
{
	(void)op, (void)comm, (void)stream;
	return move(from, to, count, type);
}
NOGPU_ENTRY(int, ncclReduce,
	    (const void *from, void *to, size_t count, int type, int op, int root, void *comm,
	     void *stream))
{
	(void)op, (void)root, (void)comm, (void)stream;
	return move(from, to, count, type);
}
NOGPU_ENTRY(int, ncclBroadcast,
	    (const void *from, void *to, size_t count, int type, int root, void *comm,
	     void *stream))
{
	(void)root, (void)comm, (void)stream;
	return move(from, to, count, type);
}
/* This rank's part of the input; count is that of the output. */
NOGPU_ENTRY(int, ncclReduceScatter,
	    (const void *from, void *to, size_t count, int type, int op, void *comm, void *stream))
{
	const struct comm *c = comm;
	size_t part = (size_t)c->rank * count * type_bytes(type);

	(void)op, (void)stream;
	return move((const char *)from + part, to, count, type);
}
NOGPU_ENTRY(int, ncclAllGather,
	    (const void *from, void *to, size_t count, int type, void *comm, void *stream))
{
	size_t ranks = (size_t)((struct comm *)comm)->ranks, bytes = count * type_bytes(type);

	(void)stream;
	if (bytes * ranks > NOGPU_COPY_MAX)
		return 0;
	for (size_t i = 0; i < ranks; i++)
		move(from, (char *)to + i * bytes, count, type);
	return 0;
}
NOGPU_ENTRY(int, ncclAlltoAll,
	    (const void *from, void *to, size_t count, int type, void *comm, void *stream))
{
	(void)stream;
	return move(from, to, count * (size_t)((struct comm *)comm)->ranks, type);
}
