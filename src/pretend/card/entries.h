/* SPDX-License-Identifier: Apache-2.0 */
/* Entries that other files call: those of the runtime, to which the driver's names map. */
#ifndef FRAG_NOGPU_ENTRIES_H
#define FRAG_NOGPU_ENTRIES_H

#include "nogpu.h"

/* memory.c, vmm.c */
NOGPU_DECLARE(int, cudaHostAlloc, (void **out, size_t bytes, unsigned flags));
NOGPU_DECLARE(int, cuMemAddressReserve,
	      (void **out, size_t bytes, size_t align, uint64_t hint, uint64_t flags));
NOGPU_DECLARE(int, cuMemAddressFree, (void *p, size_t bytes));
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
NOGPU_DECLARE(int, cudaEventCreateWithFlags, (void **out, unsigned flags));
/* graph.c */
NOGPU_DECLARE(int, cudaGraphInstantiate, (void **out, void *graph, uint64_t flags));
/* A number for a new capture; its graph (NULL: no host memory); releases the objects of the graph
 * (pre: not locked). */
uint64_t frag_nogpu_graph_number(void);
void *frag_nogpu_graph(uint64_t number);
void frag_nogpu_graph_drop(uint64_t number);
/* card.c */
NOGPU_DECLARE(const char *, cudaGetErrorName, (int code));
NOGPU_DECLARE(const char *, cudaGetErrorString, (int code));

#endif
