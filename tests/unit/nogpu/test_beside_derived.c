/* SPDX-License-Identifier: Apache-2.0 */
/* What libraries hold of a card that was not measured: an A10, compute capability 8.6 with 72 multiprocessors of 1,536 threads. */
#include "test.h"

#include "nogpu_card.h"

int frag_nogpu_cudaLaunchKernel(void);
int frag_nogpu_ncclCommInitAll(void **out, int ranks, const int *devices);
uint64_t frag_nogpu_group_bytes(int ranks, int rank);

TEST(kernels_hold_by_threads_and_cublas_by_its_workspace)
{
	void *first, *second;

	NEEDS_ADDRESSES();
	assert_int_equal(used(), 500);
	for (int again = 0; again < 2; again++)
		frag_nogpu_cudaLaunchKernel();
	assert_int_equal(used(), 500 + 38);
	frag_nogpu_cublasCreate_v2(&first);
	assert_int_equal(used(), 538 + 10);
	frag_nogpu_cublasCreate_v2(&second);
	assert_int_equal(used(), 548 + 8);
	frag_nogpu_cublasDestroy_v2(first);
	assert_int_equal(used(), 548);
}

TEST(what_is_not_derived_holds_nothing)
{
	void *cudnn, *solver, *stream;
	size_t before;
	int plan;

	NEEDS_ADDRESSES();
	before = used();
	frag_nogpu_cudnnCreate(&cudnn);
	frag_nogpu_cusolverDnCreate(&solver);
	frag_nogpu_cufftCreate(&plan);
	for (int i = 0; i < 128; i++)
		frag_nogpu_cudaStreamCreateWithPriority(&stream, 1, 0);
	assert_int_equal(used(), before);
}

/* without NVLink: two channels */
TEST(nccl_holds_by_its_channels)
{
	size_t before;
	void *group;

	NEEDS_ADDRESSES();
	before = used();
	frag_nogpu_ncclCommInitAll(&group, 1, NULL);
	assert_int_equal(used(), before + 494);
	assert_int_equal(frag_nogpu_group_bytes(2, 0) / FRAG_MIB, 2 * 6 + 4 + 2 * 12);
	setenv("NCCL_CUMEM_ENABLE", "0", 1);
	assert_int_equal(frag_nogpu_group_bytes(2, 0) / FRAG_MIB, 4 + 2 * 12);
	assert_int_equal(frag_nogpu_group_bytes(4, 1) / FRAG_MIB, 4 + 2 * 12 + 2 * 12);
	unsetenv("NCCL_CUMEM_ENABLE");
}

static int choose_card(void **state)
{
	(void)state;
	unsetenv("CUDA_VISIBLE_DEVICES");
	return setenv("CUFRAG_NOGPU", "name=A10;total=23696375808;context=524288000;cc=8.6;sms=72",
		      1);
}
TEST_GROUP(choose_card, NULL)
