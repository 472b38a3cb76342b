/* SPDX-License-Identifier: Apache-2.0 */
/* What libraries hold of a card of compute capability 9, as it was measured on an H100 (results/layout/beside.csv). */
#include "test.h"

#include "nogpu_card.h"

int frag_nogpu_cudaLaunchKernel(void);
int frag_nogpu_cuLaunchKernel(void);
int frag_nogpu_ncclCommInitAll(void **out, int ranks, const int *devices);
int frag_nogpu_ncclCommDestroy(void *comm);
uint64_t frag_nogpu_group_bytes(int ranks, int rank);

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
	void *groups[2];
	size_t before;

	NEEDS_ADDRESSES();
	before = used();
	frag_nogpu_ncclCommInitAll(&groups[0], 1, NULL);
	assert_int_equal(used(), before + 494);
	frag_nogpu_ncclCommInitAll(&groups[1], 1, NULL);
	assert_int_equal(used(), before + 494 + 388);
	frag_nogpu_ncclCommDestroy(groups[0]);
	frag_nogpu_ncclCommDestroy(groups[1]);
	assert_int_equal(used(), before + 106);
}

TEST(groups_of_several_ranks_hold_what_nccl_allocates)
{
	static const int cards[] = { 1, 0 };
	void *pair[2];
	size_t before;

	NEEDS_ADDRESSES();
	frag_nogpu_cudaSetDevice(1);
	before = used();
	frag_nogpu_cudaSetDevice(0);
	frag_nogpu_ncclCommInitAll(pair, 2, cards);
	frag_nogpu_cudaSetDevice(1);
	assert_int_equal(used(), before + 106 + 484); /* 32 tables, 24 channels */
	frag_nogpu_ncclCommDestroy(pair[1]);
	assert_int_equal(used(), before + 106 + 484);
	frag_nogpu_ncclCommDestroy(pair[0]);
	assert_int_equal(used(), before + 106);
	frag_nogpu_cudaSetDevice(0);
	/* as vLLM runs it: the network's buffers, ring, tree, multicast from three ranks on */
	setenv("NCCL_CUMEM_ENABLE", "0", 1);
	assert_int_equal(frag_nogpu_group_bytes(2, 1) / FRAG_MIB, 256 + 288);
	assert_int_equal(frag_nogpu_group_bytes(4, 0) / FRAG_MIB, 256 + 288 + 24 * 10 + 128);
	assert_int_equal(frag_nogpu_group_bytes(4, 1) / FRAG_MIB, 256 + 288 + 24 * 12 + 128);
	assert_int_equal(frag_nogpu_group_bytes(8, 7) / FRAG_MIB, 256 + 288 + 24 * 2 + 256);
	assert_int_equal(frag_nogpu_group_bytes(1, 0) / FRAG_MIB, 512);
	unsetenv("NCCL_CUMEM_ENABLE");
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
		      "name=NVIDIA H100 80GB "
		      "HBM3;total=4294967296;context=524288000;count=2;cc=9.0;sms=132",
		      1);
}
TEST_GROUP(choose_card, NULL)
