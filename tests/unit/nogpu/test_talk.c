/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that talk: messages between processes, what collectives make of them, and who waits for whom. */
#include "test.h"

#include <sys/wait.h>
#include <unistd.h>

#include "inside/nogpu/await.h"
#include "inside/nogpu/entries.h"
#include "inside/nogpu/reduce.h"

int frag_nogpu_ncclAllReduce(const void *from, void *to, size_t count, int type, int op, void *comm,
			     void *stream);
int frag_nogpu_ncclAllGather(const void *from, void *to, size_t count, int type, void *comm,
			     void *stream);
int frag_nogpu_ncclCommSplit(void *parent, int color, int key, void **out, void *config);
int frag_nogpu_ncclCommCount(const void *comm, int *count);
int frag_nogpu_ncclCommUserRank(const void *comm, int *rank);
int frag_nogpu_ncclCommDestroy(void *comm);

#define INT64 4

/* Of no card that is counted for groups (beside.c), so that none is opened. */
static int begin(void **state)
{
	(void)state;
	setenv("CUFRAG_NOGPU", "total=1073741824;name=c;cc=8.0;sms=10;libraries=0", 1);
	return setenv("CUFRAG_NOGPU_TALK", test_folder("talk"), 1);
}

/* Runs rank 1 in a process of its own; its status must be 0. */
static void with_rank_1(void (*rank)(void *comm, int rank))
{
	unsigned char id[128] = { 42 };
	pid_t pid = fork();
	int status, me = pid ? 0 : 1;
	void *comm;

	assert_int_equal(frag_nogpu_ncclCommInitRankScalable(&comm, 2, me, 1, id, NULL), 0);
	rank(comm, me);
	frag_nogpu_ncclCommDestroy(comm);
	free(comm);
	if (!pid)
		_exit(0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

#define EXPECT(got, want) \
	do { \
		if ((got) != (want)) { \
			fprintf(stderr, "rank %d: %s is %lld\n", me, #got, (long long)(got)); \
			abort(); \
		} \
	} while (0)

static void collect(void *comm, int me)
{
	int64_t own[2] = { me + 1, 10 }, sum[2], all[4] = { 0 };

	frag_nogpu_ncclAllReduce(own, sum, 2, INT64, REDUCE_SUM, comm, NULL);
	frag_nogpu_ncclAllGather(own, all, 2, INT64, comm, NULL);
	EXPECT(frag_nogpu_settle(sum, sizeof(sum)), 0);
	EXPECT(sum[0], 3);
	EXPECT(sum[1], 20);
	EXPECT(frag_nogpu_cudaDeviceSynchronize(), 0);
	EXPECT(all[0] * 100 + all[2], 102);
	EXPECT(*frag_nogpu_awaited(), 0);
}

TEST_WITH(collectives_bring_what_the_others_computed, begin, NULL)
{
	with_rank_1(collect);
}

/* Both receive first, as a real card allows: nobody waits before somebody looks. */
static void cross(void *comm, int me)
{
	int64_t got = -1, given = 7 + me, again = 70 + me, got_again = -1;

	frag_nogpu_ncclRecv(&got, 1, INT64, 1 - me, comm, NULL);
	frag_nogpu_ncclRecv(&got_again, 1, INT64, 1 - me, comm, NULL);
	frag_nogpu_ncclSend(&given, 1, INT64, 1 - me, comm, NULL);
	frag_nogpu_ncclSend(&again, 1, INT64, 1 - me, comm, NULL);
	EXPECT(frag_nogpu_settle(&got_again, sizeof(got_again)),
	       0); /* and with it what came before */
	EXPECT(got, 8 - me);
	EXPECT(got_again, 71 - me);
}

TEST_WITH(neither_order_of_sends_and_receives_blocks, begin, NULL)
{
	with_rank_1(cross);
}

/* NCCL connects sends apart from collectives: one that nobody has received yet does not take a collective's place. */
static void send_before(void *comm, int me)
{
	int64_t given = 7 + me, got = -1, own = me + 1, sum = -1;

	if (!me)
		frag_nogpu_ncclSend(&given, 1, INT64, 1, comm, NULL);
	frag_nogpu_ncclAllReduce(&own, &sum, 1, INT64, REDUCE_SUM, comm, NULL);
	if (me)
		frag_nogpu_ncclRecv(&got, 1, INT64, 0, comm, NULL);
	EXPECT(frag_nogpu_cudaDeviceSynchronize(), 0);
	EXPECT(sum, 3);
	EXPECT(got, me ? 7 : -1);
}

TEST_WITH(sends_are_apart_from_collectives, begin, NULL)
{
	with_rank_1(send_before);
}

static void end_early(void *comm, int me)
{
	int64_t got = 5;

	if (me)
		return;
	frag_nogpu_ncclRecv(&got, 1, INT64, 1, comm, NULL);
	EXPECT(frag_nogpu_settle(&got, sizeof(got)), 0);
	EXPECT(got, 5);
}

TEST_WITH(a_rank_that_ended_is_not_waited_for, begin, NULL)
{
	with_rank_1(end_early);
}

/* Rank 1 sends when rank 0 has other uses for the place. */
static void use_anew(void *comm, int me)
{
	int64_t got = 5, go = 1, given = 6;

	if (me) {
		frag_nogpu_ncclRecv(&got, 1, INT64, 0, comm, NULL);
		EXPECT(frag_nogpu_settle(&got, sizeof(got)), 0);
		frag_nogpu_ncclSend(&given, 1, INT64, 0, comm, NULL);
		return;
	}
	frag_nogpu_ncclRecv(&got, 1, INT64, 1, comm, NULL);
	frag_nogpu_abandon(&got, sizeof(got));
	frag_nogpu_ncclSend(&go, 1, INT64, 1, comm, NULL);
	EXPECT(frag_nogpu_cudaDeviceSynchronize(), 0);
	EXPECT(got, 5);
}

TEST_WITH(memory_that_is_used_anew_is_not_written, begin, NULL)
{
	with_rank_1(use_anew);
}

static void divide(void *comm, int me)
{
	void *part, *none;
	int count = 0, rank = -1;

	for (int turned = 0; turned < 2; turned++) {
		EXPECT(frag_nogpu_ncclCommSplit(comm, turned ? -2 : 3, turned ? 1 - me : me, &part,
						NULL),
		       0);
		frag_nogpu_ncclCommCount(part, &count);
		frag_nogpu_ncclCommUserRank(part, &rank);
		EXPECT(count, 2);
		EXPECT(rank, turned ? 1 - me : me);
		if (!turned)
			collect(part, me);
		frag_nogpu_ncclCommDestroy(part);
		free(part);
	}
	EXPECT(frag_nogpu_ncclCommSplit(comm, me ? -1 : 0, 0, &none, NULL), 0);
	EXPECT(none == NULL, me);
	free(none);
}

TEST_WITH(a_communicator_is_split_by_colour, begin, NULL)
{
	with_rank_1(divide);
}

/* Many messages that are heard late, one larger than a pipe; what was heard takes no room. */
static void much(void *comm, int me)
{
	enum { COUNT = 3 << 17, TIMES = 4 };
	FRAG_AUTO(free_at) int64_t *mine = calloc(COUNT, 8), *theirs = calloc(COUNT, 8);

	for (int i = 0; i < COUNT; i++)
		mine[i] = i * (me + 2);
	for (int t = 0; t < TIMES; t++)
		frag_nogpu_ncclSend(mine, COUNT / 2, INT64, 1 - me, comm, NULL);
	for (int t = 0; t < TIMES; t++)
		frag_nogpu_ncclRecv(theirs, COUNT / 2, INT64, 1 - me, comm, NULL);
	EXPECT(frag_nogpu_settle(theirs, 8), 0);
	EXPECT(theirs[COUNT / 2 - 1], (COUNT / 2 - 1) * (3 - me));
}

TEST_WITH(large_messages_arrive_whole, begin, NULL)
{
	with_rank_1(much);
}

TEST(halves_are_rounded_to_the_nearest)
{
	/* 1, 2^-24 (the smallest), 65504 (the largest), 2049 = 2048 in halves */
	uint16_t a[] = { 0x3c00, 0x0001, 0x7bff, 0x6800 }, b[] = { 0x3c00, 0x0001, 0x7bff, 0x3c00 };
	uint16_t c[] = { 0x3f80, 0x4049 }, d[] = { 0x3f80, 0x0000 }; /* bfloat16: 1, 3.140625 */

	assert_true(reduce_known(6, REDUCE_SUM) && !reduce_known(10, REDUCE_SUM) &&
		    !reduce_known(6, 5));
	reduce_with(a, b, sizeof(a), 6, REDUCE_SUM);
	assert_int_equal(a[0], 0x4000);
	assert_int_equal(a[1], 0x0002);
	assert_int_equal(a[2], 0x7c00); /* infinite */
	assert_int_equal(a[3], 0x6800);
	reduce_with(c, d, sizeof(c), 9, REDUCE_SUM);
	assert_int_equal(c[0], 0x4000);
	assert_int_equal(c[1], 0x4049);
	reduce_with(b, a, sizeof(uint16_t), 6, REDUCE_PROD);
	reduce_end(b, sizeof(uint16_t), 6, REDUCE_AVG, 4);
	assert_int_equal(b[0], 0x3800); /* 2 / 4 */
}

TEST(integers_wrap_and_compare_with_their_signs)
{
	int8_t a[] = { 127, -3, 5 }, b[] = { 1, 2, -5 };
	int64_t c[] = { INT64_MAX }, d[] = { 1 };
	uint64_t e[] = { 1ull << 63 }, f[] = { 1 };

	reduce_with(a, b, sizeof(a), 0, REDUCE_SUM);
	assert_true(a[0] == -128 && a[1] == -1 && a[2] == 0);
	reduce_with(c, d, sizeof(c), 4, REDUCE_SUM);
	assert_true(c[0] == INT64_MIN);
	reduce_with(c, d, sizeof(c), 4, REDUCE_MAX);
	assert_true(c[0] == 1);
	reduce_with(e, f, sizeof(e), 5, REDUCE_MAX);
	assert_true(e[0] == 1ull << 63);
}
