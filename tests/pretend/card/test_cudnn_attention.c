/* SPDX-License-Identifier: Apache-2.0 */
/* Workspaces of attention, as an H200 with cuDNN 9.19 took them. */
#include "test.h"

#include "pretend/libraries/cudnn.h"

#define ATTENTION 41 /* cudnnBackendDescriptorType_t */
#define HALF 2
#define GEN_INDEX 501

static struct nogpu_cudnn tensor(int64_t images, int64_t heads, int64_t rows, int64_t columns)
{
	return (struct nogpu_cudnn){ .type = HALF,
				     .dims_count = 4,
				     .dims = { images, heads, rows, columns } };
}

struct shape {
	int64_t images, heads, shared, channels, queries, keys;
};

/* As one operation: without a mask. */
static int64_t plain(struct shape s, bool training)
{
	struct nogpu_cudnn q = tensor(s.images, s.heads * s.shared, s.queries, s.channels),
			   k = tensor(s.images, s.heads, s.keys, s.channels), stats = q,
			   op = { .kind = ATTENTION, .query = &q, .key = &k, .value = &k },
			   graph = { .kind = NOGPU_CUDNN_GRAPH, .ops_count = 1, .ops = { &op } };

	op.stats = training ? &stats : NULL;
	return frag_nogpu_attention_bytes(&graph);
}

/* As two matrix products around a softmax: with a mask. */
static int64_t masked(struct shape s, bool causal)
{
	struct nogpu_cudnn q = tensor(s.images, s.heads * s.shared, s.queries, s.channels),
			   k = tensor(s.images, s.heads, s.channels, s.keys),
			   v = tensor(s.images, s.heads, s.keys, s.channels),
			   scores = tensor(s.images, s.heads * s.shared, s.queries, s.keys),
			   index = { .mode = GEN_INDEX }, points = { .settings = &index },
			   first = { .kind = NOGPU_CUDNN_PRODUCT, .query = &q, .key = &k },
			   second = { .kind = NOGPU_CUDNN_PRODUCT, .query = &scores, .key = &v },
			   graph = { .kind = NOGPU_CUDNN_GRAPH,
				     .ops_count = 3,
				     .ops = { &first, causal ? &points : NULL, &second } };

	return frag_nogpu_attention_bytes(&graph);
}

TEST(keys_of_one_query_are_split)
{
	setenv("CUFRAG_NOGPU", "total=1000;name=c;cc=9.0;sms=132", 1);
	assert_int_equal(plain((struct shape){ 1, 12, 1, 64, 1, 1856 }, false), 25472);
	assert_int_equal(plain((struct shape){ 2, 20, 4, 96, 1, 8192 }, false), 251008);
	assert_int_equal(masked((struct shape){ 4, 2, 1, 64, 1, 1024 }, false), 17024);
	assert_int_equal(masked((struct shape){ 2, 4, 4, 80, 1, 6627 }, false), 336000);
	assert_int_equal(masked((struct shape){ 4, 12, 1, 80, 1, 1124 }, false), 63104);
	/* 144 numbers of 4 bytes are not a multiple of 128 bytes */
	assert_int_equal(plain((struct shape){ 3, 12, 1, 64, 1, 520 }, false), 38272);
}

TEST(one_query_with_few_keys_or_much_other_work_takes_nothing)
{
	setenv("CUFRAG_NOGPU", "total=1000;name=c;cc=9.0;sms=132", 1);
	assert_int_equal(plain((struct shape){ 8, 1, 7, 128, 1, 118 }, false), 0);
	assert_int_equal(masked((struct shape){ 4, 2, 7, 128, 1, 275 }, false), 0);
	assert_int_equal(plain((struct shape){ 1, 8, 1, 64, 1, 450 }, false), 0);
	assert_int_equal(plain((struct shape){ 3, 32, 4, 32, 1, 3386 }, false), 0);
	assert_int_equal(masked((struct shape){ 8, 20, 1, 64, 1, 2910 }, false), 0);
	assert_int_equal(masked((struct shape){ 1, 8, 1, 128, 1, 1847 }, true), 0);
	assert_int_equal(plain((struct shape){ 1, 8, 7, 96, 1, 512 }, true), 0);
}

TEST(several_queries_take_256_bytes)
{
	setenv("CUFRAG_NOGPU", "total=1000;name=c;cc=9.0;sms=132", 1);
	assert_int_equal(plain((struct shape){ 2, 8, 1, 96, 5, 3472 }, false), 256);
	assert_int_equal(masked((struct shape){ 3, 1, 2, 128, 2, 484 }, false), 256);
	assert_int_equal(frag_nogpu_attention_bytes(NULL), 256);
}
