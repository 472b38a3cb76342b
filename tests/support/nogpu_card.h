/* SPDX-License-Identifier: Apache-2.0 */
/* The pretended card, as tests of src/pretend/card ask it. */
#ifndef NOGPU_CARD_H
#define NOGPU_CARD_H

#include "test.h"

#include "pretend/card/entries.h"

/* Launches and exported handles, which no line of calls (test_calls.c) can say. */
struct dim3 {
	unsigned x, y, z;
};
int frag_nogpu_cudaLaunchKernel(const void *function, struct dim3 grid, struct dim3 block,
				void **parameters, size_t shared_bytes, void *stream);
/* CUmemAllocationProp */
struct kind {
	int type, handle_types, location_type, location_id;
	char more[16];
};
int frag_nogpu_cuMemCreate(uint64_t *out, size_t bytes, const struct kind *kind, uint64_t flags);
int frag_nogpu_cuMemExportToShareableHandle(int *out, uint64_t handle, int type, uint64_t flags);
int frag_nogpu_cuMemImportFromShareableHandle(uint64_t *out, void *file, int type);
#define FILES 1 /* kinds of exported handles */
#define FABRIC 8

/* The pretended card gives addresses that AddressSanitizer keeps for itself: first in a test, before anything takes them. */
#ifdef __SANITIZE_ADDRESS__
#define NEEDS_ADDRESSES() skip()
#else
#define NEEDS_ADDRESSES() (void)0
#endif

#define OK(call) assert_int_equal(frag_nogpu_##call, 0)

/* Sets up a test: the second of three visible cards of 4 GiB and capability 8.9. */
__attribute__((unused)) static int small_card(void **state)
{
	(void)state;
	setenv("CUFRAG_NOGPU",
	       "name=Small card;total=4294967296;context=536870912;"
	       "libraries=0;count=3;cc=8.9;sms=58",
	       1);
	return setenv("CUDA_VISIBLE_DEVICES", "1,0,5", 1);
}

#endif
