/* SPDX-License-Identifier: Apache-2.0 */
/* What libraries hold of a card of compute capability 9, as it was measured on an H100 (results/layout/beside.csv). */
#include "test.h"

#include "nogpu_card.h"

int frag_nogpu_cudaLaunchKernel(void);
int frag_nogpu_cuLaunchKernel(void);
int frag_nogpu_ncclCommInitAll(void **out, int ranks, const int *devices);
int frag_nogpu_ncclCommDestroy(void *comm);

TEST(libraries_hold_what_they_hold_on_the_card)
{
	void *first, *second, *graph, *cudnn, *solver;
	uint64_t memory[3];
	int plan;

	NEEDS_ADDRESSES();
	assert_int_equal(used(), 500);
	frag_nogpu_cuLaunchKernel(); /* of a module of its own */
	assert_int_equal(used(), 500);
	for (int again = 0; again < 2; again++)
		frag_nogpu_cudaLaunchKernel();
	assert_int_equal(used(), 592);
	frag_nogpu_cublasCreate_v2(&first);
	assert_int_equal(used(), 658);
	frag_nogpu_cublasCreate_v2(&second);
	assert_int_equal(used(), 722);
	frag_nogpu_cublasDestroy_v2(second);
	frag_nogpu_cublasDestroy_v2(second);
	frag_nogpu_cublasDestroy_v2(NULL);
	assert_int_equal(used(), 658);
	frag_nogpu_cudnnCreate(&cudnn);
	assert_int_equal(used(), 668);
	frag_nogpu_cudnnCreate(&cudnn); /* of another thread */
	assert_int_equal(used(), 676);
	for (int again = 0; again < 2; again++)
		frag_nogpu_cudaGraphInstantiate(&graph, NULL, 0);
	assert_int_equal(used(), 676);
	for (int again = 0; again < 2; again++)
		frag_nogpu_cusolverDnCreate(&solver);
	assert_int_equal(used(), 772);
	frag_nogpu_cufftCreate(&plan);
	assert_int_equal(used(), 780);
	/* NVML says the same; the other card holds nothing */
	frag_nogpu_nvmlDeviceGetMemoryInfo((void *)1, memory);
	assert_true(memory[2] == 780 * FRAG_MIB);
	frag_nogpu_cudaSetDevice(1);
	assert_int_equal(used(), 500);
	frag_nogpu_cudaLaunchKernel();
	assert_int_equal(used(), 592);
	/* a handle is given back to its own card */
	frag_nogpu_cublasDestroy_v2(first);
	assert_int_equal(used(), 592);
	frag_nogpu_cudaSetDevice(0);
	assert_int_equal(used(), 716);
}

TEST(streams_hold_what_they_hold_on_the_card)
{
	static const size_t more[][2] = { { 1, 0 },  { 2, 2 },	 { 4, 2 },   { 8, 4 },
					  { 16, 8 }, { 32, 16 }, { 64, 34 }, { 128, 70 } };
	size_t before, made = 0;
	void *stream;

	NEEDS_ADDRESSES();
	before = used();
	for (size_t i = 0; i < FRAG_ARRAY_LEN(more); i++) {
		for (; made < more[i][0]; made++)
			frag_nogpu_cudaStreamCreateWithPriority(&stream, 1, 0);
		assert_int_equal(used(), before + more[i][1]);
	}
}

TEST(groups_of_one_rank_hold_what_they_hold_on_the_card)
{
	void *groups[2], *pair[2];
	size_t before;

	NEEDS_ADDRESSES();
	before = used();
	frag_nogpu_ncclCommInitAll(pair, 2, NULL); /* several were not measured */
	assert_int_equal(used(), before);
	frag_nogpu_ncclCommInitAll(&groups[0], 1, NULL);
	assert_int_equal(used(), before + 494);
	frag_nogpu_ncclCommInitAll(&groups[1], 1, NULL);
	assert_int_equal(used(), before + 494 + 388);
	frag_nogpu_ncclCommDestroy(groups[0]);
	frag_nogpu_ncclCommDestroy(groups[1]);
	frag_nogpu_ncclCommDestroy(pair[0]);
	assert_int_equal(used(), before + 106);
}

TEST(a_full_card_gives_what_it_has_left)
{
	void *p, *q, *handle;
	size_t left, total;

	NEEDS_ADDRESSES();
	frag_nogpu_cudaMemGetInfo(&left, &total);
	assert_int_equal(frag_nogpu_cudaMalloc(&p, left - 10 * FRAG_MIB), 0);
	frag_nogpu_cublasCreate_v2(&handle);
	assert_int_equal(used(), total / FRAG_MIB);
	assert_int_equal(frag_nogpu_cudaMalloc(&q, FRAG_MIB), 2);
	frag_nogpu_cublasDestroy_v2(handle);
	assert_int_equal(used(), total / FRAG_MIB - 10);
	frag_nogpu_cudaFree(p);
}

static int choose_card(void **state)
{
	(void)state;
	unsetenv("CUDA_VISIBLE_DEVICES");
	return setenv("CUFRAG_NOGPU",
		      "name=Large card;total=4294967296;context=524288000;count=2;cc=9.0;sms=132",
		      1);
}
TEST_GROUP(choose_card, NULL)
