/* SPDX-License-Identifier: Apache-2.0 */
/* Entries that other files call: those of the runtime, to which the driver's names map, and those
 * for tests. */
#ifndef FRAG_NOGPU_ENTRIES_H
#define FRAG_NOGPU_ENTRIES_H

#include "nogpu.h"

struct event; /* card_stream.c */

/* Declarations for the rows of entries.def. */
#define NOTHING(name) NOGPU_DECLARE(int, name, (void));
#define HANDLE(name, args) NOGPU_DECLARE(int, name, args);
#define ANSWER(name, args, ...) NOGPU_DECLARE(int, name, args);
#define VALUE(type, name, args, ...) NOGPU_DECLARE(type, name, args);
#define SAME(name, entry)
#include "entries.def"
#undef NOTHING
#undef HANDLE
#undef ANSWER
#undef VALUE
#undef SAME

/* memory.c, vmm.c */
NOGPU_DECLARE(int, cudaMalloc, (void **out, size_t bytes));
NOGPU_DECLARE(int, cudaFree, (void *p));
NOGPU_DECLARE(int, cudaMemGetInfo, (size_t * free_bytes, size_t *total_bytes));
NOGPU_DECLARE(int, cudaHostAlloc, (void **out, size_t bytes, unsigned flags));
NOGPU_DECLARE(int, cudaFreeHost, (void *p));
NOGPU_DECLARE(int, cuMemAddressReserve,
	      (void **out, size_t bytes, size_t align, uint64_t hint, uint64_t flags));
NOGPU_DECLARE(int, cuMemAddressFree, (void *p, size_t bytes));
NOGPU_DECLARE(int, cuMemMap,
	      (void *p, size_t bytes, size_t offset, uint64_t handle, uint64_t flags));
NOGPU_DECLARE(int, cuMemUnmap, (void *p, size_t bytes));
NOGPU_DECLARE(int, cuMemRelease, (uint64_t handle));
/* copy.c */
NOGPU_DECLARE(int, cudaMemcpyAsync,
	      (void *to, const void *from, size_t bytes, int kind, void *stream));
NOGPU_DECLARE(int, cudaMemcpy2DAsync,
	      (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
	       size_t height, int kind, void *stream));
NOGPU_DECLARE(int, cudaMemsetAsync, (void *to, int value, size_t bytes, void *stream));
__attribute__((visibility("default"))) void frag_nogpu_answer(bool on, uint64_t count);
__attribute__((visibility("default"))) void
frag_nogpu_answer_in_turn(const uint64_t *counts, uint64_t count, uint64_t every);
/* card_stream.c */
NOGPU_DECLARE(int, cudaStreamCreateWithPriority, (void **out, unsigned flags, int priority));
NOGPU_DECLARE(int, cudaStreamBeginCapture, (void *stream, int mode));
NOGPU_DECLARE(int, cudaStreamEndCapture, (void *stream, void **out));
NOGPU_DECLARE(int, cudaStreamIsCapturing, (void *stream, int *status));
NOGPU_DECLARE(int, cudaStreamGetCaptureInfo_v2,
	      (void *stream, int *status, uint64_t *id, void **graph, void ***nodes,
	       size_t *count));
NOGPU_DECLARE(int, cudaStreamWaitEvent, (void *stream, void *event, unsigned flags));
NOGPU_DECLARE(int, cudaEventCreateWithFlags, (void **out, unsigned flags));
NOGPU_DECLARE(int, cudaEventRecord, (void *event, void *stream));
NOGPU_DECLARE(int, cudaEventQuery, (struct event * event));
NOGPU_DECLARE(int, cudaStreamSynchronize, (void *stream));
NOGPU_DECLARE(int, cudaEventSynchronize, (struct event * event));
NOGPU_DECLARE(int, cudaDeviceSynchronize, (void));
/* graph.c */
NOGPU_DECLARE(int, cudaGraphInstantiate, (void **out, void *graph, uint64_t flags));
NOGPU_DECLARE(int, cudaGraphDestroy, (void *graph));
NOGPU_DECLARE(int, cudaUserObjectCreate,
	      (void **out, void *data, void (*destroy)(void *), unsigned count, unsigned flags));
NOGPU_DECLARE(int, cudaUserObjectRelease, (void *object, unsigned count));
NOGPU_DECLARE(int, cudaGraphRetainUserObject,
	      (void *graph, void *object, unsigned count, unsigned flags));
/* A number for a new capture; its graph (NULL: no host memory); releases the objects of the graph
 * (pre: not locked). */
uint64_t frag_nogpu_graph_number(void);
void *frag_nogpu_graph(uint64_t number);
void frag_nogpu_graph_drop(uint64_t number);
/* card.c */
NOGPU_DECLARE(const char *, cudaGetErrorName, (int code));
NOGPU_DECLARE(const char *, cudaGetErrorString, (int code));
/* fft.c, nccl.c, solver.c */
NOGPU_DECLARE(int, cufftMakePlan1d, (int plan, int n, int type, int batch, size_t *work_bytes));
NOGPU_DECLARE(int, ncclCommInitRankScalable,
	      (void **out, int ranks, int rank, int ids, void *id, void *config));
NOGPU_DECLARE(int, ncclBroadcast,
	      (const void *from, void *to, size_t count, int type, int root, void *comm,
	       void *stream));
NOGPU_DECLARE(int, ncclSend,
	      (const void *from, size_t count, int type, int peer, void *comm, void *stream));
NOGPU_DECLARE(int, ncclRecv,
	      (void *to, size_t count, int type, int peer, void *comm, void *stream));
NOGPU_DECLARE(int, ncclGroupStart, (void));
NOGPU_DECLARE(int, ncclGroupEnd, (void));
NOGPU_DECLARE(int, cusolverDnSgetrf_bufferSize,
	      (void *h, int m, int n, void *a, int lda, int *out));

#endif
