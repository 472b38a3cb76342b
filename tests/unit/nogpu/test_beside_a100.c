/* SPDX-License-Identifier: Apache-2.0 */
/* What a group of NCCL's holds of an A100 with NVLink: as measured by others with NCCL of 2023 (NVIDIA/nccl issue 964). */
#include "test.h"

#include "nogpu_card.h"

uint64_t frag_nogpu_group_bytes(int ranks, int rank);

TEST(groups_of_two_and_of_more_hold_what_was_measured)
{
	assert_int_equal(frag_nogpu_group_bytes(2, 0) / FRAG_MIB, 544);
	assert_int_equal(frag_nogpu_group_bytes(3, 0) / FRAG_MIB, 688);
	assert_int_equal(frag_nogpu_group_bytes(4, 0) / FRAG_MIB, 688);
}

static int choose_card(void **state)
{
	(void)state;
	unsetenv("CUDA_VISIBLE_DEVICES");
	setenv("NCCL_CUMEM_ENABLE", "0", 1);
	return setenv(
		"CUFRAG_NOGPU",
		"name=NVIDIA A100-SXM4-80GB;total=42949672960;context=524288000;cc=8.0;sms=108", 1);
}
TEST_GROUP(choose_card, NULL)
