/* SPDX-License-Identifier: Apache-2.0 */
/* Communicating ranks: messages between processes, results of collectives, deadlocks. */
#include "test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>

#include <frag/clock.h>

#include "pretend/ranks/nccl.h"
#include "pretend/card/entries.h"
#include "pretend/card/lent.h"
#include "pretend/talk/reduce.h"
#include "nogpu_card.h"

int frag_nogpu_ncclAllGather(const void *from, void *to, size_t count, int type, void *comm,
			     void *stream);
int frag_nogpu_ncclGroupStart(void);
int frag_nogpu_ncclGroupEnd(void);
int frag_nogpu_ncclCommSplit(void *parent, int color, int key, void **out, void *config);
int frag_nogpu_ncclCommCount(const void *comm, int *count);
int frag_nogpu_ncclCommUserRank(const void *comm, int *rank);
int frag_nogpu_ncclCommDestroy(void *comm);
void **frag_nogpu___cudaRegisterFatBinary(void *fatbin);
void frag_nogpu___cudaRegisterFunction(void **handle, const void *function, const char *mangled,
				       const char *name);

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

#define TEST_RANKS(name, rank) \
	TEST_WITH(name, begin, NULL) \
	{ \
		with_rank_1(rank); \
	}

#define EXPECT(got, want) \
	do { \
		if ((got) != (want)) { \
			fprintf(stderr, "rank %d: %s is %lld\n", me, #got, (long long)(got)); \
			abort(); \
		} \
	} while (0)

/* ---- modelled clocks ---- */

static void hand_out(int kernels)
{
	while (kernels-- > 0)
		frag_nogpu_work(NULL, 1000, 0, false);
}

static int launch(const void *function, void **parameters)
{
	const struct dim3 one = { 1, 1, 1 };

	return frag_nogpu_cudaLaunchKernel(function, one, one, parameters, 0, NULL);
}

/* Of the default stream. */
static void *event_now(void)
{
	void *event;

	frag_nogpu_cudaEventCreateWithFlags(&event, 0);
	frag_nogpu_cudaEventRecord(event, NULL);
	return event;
}

static int query(void *event)
{
	return frag_nogpu_cudaEventQuery(event);
}

static void rest(long ms)
{
	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
}

/* What is awaited may come when the function that asked for it has returned. */
static int64_t x, y;

/* Rank 1 sends after 100 kernels, by its own clock; which of the processes is ahead does not matter. */
static void send_late(void *comm, int me, bool ahead)
{
	void *event;

	if (me) {
		hand_out(50);
		rest(ahead ? 0 : 200);
		hand_out(50);
		frag_nogpu_ncclSend(&x, 1, INT64, 0, comm, NULL);
		EXPECT(query(event = event_now()), NOGPU_NOT_READY);
		hand_out(1); /* it need not be received to be over */
		EXPECT(query(event), 0);
	} else {
		rest(ahead ? 200 : 0);
		frag_nogpu_ncclRecv(&x, 1, INT64, 1, comm, NULL);
		event = event_now();
		EXPECT(query(event), NOGPU_NOT_READY);
		hand_out(90);
		EXPECT(query(event), NOGPU_NOT_READY);
		hand_out(20);
		EXPECT(query(event), 0);
	}
	free(event);
}

static void both_ways(void *comm, int me)
{
	x = me;
	send_late(comm, me, true);
	frag_nogpu_ncclAllReduce(&x, &x, 1, INT64, REDUCE_SUM, comm, NULL);
	EXPECT(frag_nogpu_cudaDeviceSynchronize(), 0); /* the clocks agree again */
	send_late(comm, me, false);
}

TEST_RANKS(a_receive_is_over_when_the_sender_has_begun, both_ways)

static void collect_late(void *comm, int me)
{
	void *event;

	x = me;
	hand_out(me ? 100 : 1);
	frag_nogpu_ncclAllReduce(&x, &x, 1, INT64, REDUCE_SUM, comm, NULL);
	event = event_now();
	if (!me) {
		hand_out(80);
		EXPECT(query(event), NOGPU_NOT_READY);
		hand_out(30);
	} else {
		hand_out(1);
	}
	EXPECT(query(event), 0);
	free(event);
}

TEST_RANKS(a_collective_is_over_when_the_last_has_begun, collect_late)

struct watch {
	void *event;
	bool for_long;
	int answer;
};

static int look(void *of)
{
	struct watch *w = of;

	prctl(PR_SET_NAME, "pt_nccl_watchdg");
	w->answer = query(w->event);
	if (w->for_long) {
		rest(1100);
		w->answer = query(w->event);
	}
	return 0;
}

static int watchdog(void *event, bool for_long)
{
	struct watch w = { event, for_long, -1 };
	thrd_t thread;

	thrd_create(&thread, look, &w);
	thrd_join(thread, NULL);
	return w.answer;
}

static void watch(void *comm, int me)
{
	void *event;

	x = me;
	frag_nogpu_ncclAllReduce(&x, &x, 1, INT64, REDUCE_SUM, comm, NULL);
	event = event_now();
	EXPECT(frag_nogpu_cudaEventSynchronize(event), 0);
	EXPECT(query(event), 0);
	EXPECT(watchdog(event, false), NOGPU_NOT_READY);
	frag_nogpu_host_takes(60000000);
	EXPECT(watchdog(event, false), 0);
	frag_nogpu_cudaEventRecord(event, NULL);
	EXPECT(watchdog(event, true), 0);
	free(event);
}

/* It has been over for a while on the model's clock, or the program has been still for a second. */
TEST_RANKS(what_was_sent_is_over_later_for_nccls_watchdog, watch)

/* Rank 1 sends on what it has not received yet: when, it says later. */
static void send_on(void *comm, int me)
{
	void *stream, *event;

	x = 1;
	y = 0;
	if (me) {
		frag_nogpu_ncclRecv(&y, 1, INT64, 0, comm, NULL);
		frag_nogpu_ncclSend(&x, 1, INT64, 0, comm, NULL);
		EXPECT(frag_nogpu_cudaDeviceSynchronize(), 0);
		return;
	}
	frag_nogpu_cudaStreamCreateWithPriority(&stream, 0, 0);
	frag_nogpu_ncclRecv(&y, 1, INT64, 1, comm, NULL);
	event = event_now();
	rest(100);
	hand_out(100);
	frag_nogpu_ncclSend(&x, 1, INT64, 1, comm, stream);
	EXPECT(query(event), NOGPU_NOT_READY);
	hand_out(2);
	EXPECT(query(event), 0);
	free(event);
}

TEST_RANKS(what_is_sent_behind_a_receive_begins_after_it, send_on)

static const uint32_t a_list[16 + 64] = { 0xba55ed50, 0, 64, 0, 2, 64, 0, 0, 0, 0, 0, 80 };
static struct frag_nogpu_fatbin a_file = { .list = (const void *)a_list };

/* The driver loads the code of each source file while nothing runs, and so waits for what others send. */
static void load(void *comm, int me)
{
	static char functions[2];
	void *event;

	x = 1;
	if (me) {
		hand_out(100);
		frag_nogpu_ncclSend(&x, 1, INT64, 0, comm, NULL);
		return;
	}
	for (int i = 0; i < 2; i++)
		frag_nogpu___cudaRegisterFunction(frag_nogpu___cudaRegisterFatBinary(&a_file),
						  functions + i, "", "_Z1k");
	launch(functions, NULL);
	frag_nogpu_ncclRecv(&x, 1, INT64, 1, comm, NULL);
	event = event_now();
	launch(functions, NULL);
	EXPECT(query(event), NOGPU_NOT_READY);
	launch(functions + 1, NULL);
	EXPECT(query(event), 0);
	free(event);
}

TEST_RANKS(the_first_kernel_of_a_file_waits_until_nothing_runs, load)

/* Rank 0 does not go on before rank 1 has sent, which asks for what rank 0 sends then. */
static void ask_waiting_rank(void *comm, int me)
{
	uint64_t begun = frag_clock_ns();
	void *event;

	x = 1;
	y = 0;
	if (me) {
		frag_nogpu_ncclRecv(&y, 1, INT64, 0, comm, NULL);
		event = event_now();
		hand_out(100);
		EXPECT(query(event), NOGPU_NOT_READY);
		free(event);
		frag_nogpu_ncclSend(&x, 1, INT64, 0, comm, NULL);
	} else {
		frag_nogpu_ncclRecv(&y, 1, INT64, 1, comm, NULL);
		EXPECT(frag_nogpu_settle(&y, sizeof(y)), 0);
		frag_nogpu_ncclSend(&x, 1, INT64, 1, comm, NULL);
	}
	EXPECT(frag_clock_ns() - begun < 1500000000u, true);
}

TEST_RANKS(a_rank_that_waits_for_this_one_is_not_waited_for, ask_waiting_rank)

/* Rank 1 waits for rank 0: a deadlock if that waits, too, but not once a message is on its way. */
TEST_WITH(a_message_on_its_way_is_no_deadlock, begin, NULL)
{
	pid_t pid = fork();
	struct talk *t = talk_join("deadlock", 2, pid ? 0 : 1);
	uint64_t circle = 0;

	if (!pid) {
		talk_waits(t, 0, TALK_BARRIER);
		for (;;)
			pause();
	}
	for (int i = 0; !circle && i < 1000; i++, rest(10))
		circle = talk_circle(t, 1);
	assert_true(circle && circle == talk_circle(t, 1));
	assert_true(talk_say(t, 1, TALK_SEND, NULL, 0, 0, 0)); /* not that one */
	assert_true(circle == talk_circle(t, 1));
	assert_true(talk_say(t, 1, TALK_BARRIER, NULL, 0, 0, 0));
	assert_int_equal(talk_circle(t, 1), 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	talk_leave(t);
}

/* ---- values ---- */

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

TEST_RANKS(collectives_bring_what_the_others_computed, collect)

/* Both receive first, as a real card allows: waits are lazy. */
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

TEST_RANKS(neither_order_of_sends_and_receives_blocks, cross)

/* A message may come while the parts of a group are looked at one after another. */
static void in_groups(void *comm, int me)
{
	for (int64_t round = 0; round < 400; round++) {
		int64_t given[3], got[3];

		frag_nogpu_ncclGroupStart();
		for (int64_t i = 0; i < 3; i++) {
			given[i] = 3 * round + i;
			frag_nogpu_ncclSend(&given[i], 1, INT64, 1 - me, comm, NULL);
			frag_nogpu_ncclRecv(&got[i], 1, INT64, 1 - me, comm, NULL);
		}
		frag_nogpu_ncclGroupEnd();
		EXPECT(frag_nogpu_cudaDeviceSynchronize(), 0);
		for (int i = 0; i < 3; i++)
			EXPECT(got[i], given[i]);
	}
}

TEST_RANKS(messages_of_a_group_arrive_in_their_order, in_groups)

/* NCCL connects sends apart from collectives: a pending one does not take a collective's place. */
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

TEST_RANKS(sends_are_apart_from_collectives, send_before)

static void end_early(void *comm, int me)
{
	int64_t got = 5;

	if (me)
		return;
	frag_nogpu_ncclRecv(&got, 1, INT64, 1, comm, NULL);
	EXPECT(frag_nogpu_settle(&got, sizeof(got)), 0);
	EXPECT(got, 5);
}

TEST_RANKS(a_rank_that_ended_is_not_waited_for, end_early)

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

TEST_RANKS(memory_that_is_used_anew_is_not_written, use_anew)

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

TEST_RANKS(a_communicator_is_split_by_colour, divide)

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

TEST_RANKS(large_messages_arrive_whole, much)

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
	reduce_end(b, sizeof(uint16_t), 6, REDUCE_AVG, 4, 1);
	assert_int_equal(b[0], 0x3800); /* 2 / 4 */
}

TEST(sums_are_multiplied_by_what_the_program_made)
{
	uint16_t half = 0x3800, bf16[] = { 0x4080 }; /* 0.5; 4 */
	int64_t whole[] = { 6 };
	float third = 3;
	int halves = reduce_make(&half, 6), thirds = reduce_make(&third, 7);

	assert_true(reduce_known(9, halves) && reduce_known(4, thirds) &&
		    !reduce_known(9, thirds + 1));
	assert_true(reduce_factor(halves) == 0.5 && reduce_factor(thirds) == 3 &&
		    reduce_factor(REDUCE_SUM) == 1);
	reduce_end(bf16, sizeof(bf16), 9, halves, 2, reduce_factor(halves));
	assert_int_equal(bf16[0], 0x4000);
	reduce_end(whole, sizeof(whole), 4, thirds, 2, reduce_factor(thirds));
	assert_int_equal(whole[0], 18);
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

/* ---- symmetric memory ---- */

#define BUFFER_BYTES (2u << 20)
#define FILES 1
static int
	told[2]
	    [2]; /* to rank 0, to rank 1: the descriptor of the other's memory, from its process */

static void *map(uint64_t handle)
{
	void *at;

	if (frag_nogpu_cuMemAddressReserve(&at, BUFFER_BYTES, 0, 0, 0) ||
	    frag_nogpu_cuMemMap(at, BUFFER_BYTES, 0, handle, 0))
		abort();
	return at;
}

/* Own memory and the other rank's, by rank, on the card. */
static void **meet(int me)
{
	const struct kind kind = { 1, FILES, 1, 0, { 0 } };
	struct {
		int process, fd;
	} own = { getpid(), -1 }, other;
	uint64_t handle, others;
	char path[64];
	void **all;

	if (frag_nogpu_cuMemCreate(&handle, BUFFER_BYTES, &kind, 0))
		abort();
	all = (void **)((char *)map(handle) + BUFFER_BYTES / 2);
	all[me] = (char *)all - BUFFER_BYTES / 2;
	EXPECT(frag_nogpu_cuMemExportToShareableHandle(&own.fd, handle, FILES, 0), 0);
	EXPECT(write(told[1 - me][1], &own, sizeof(own)), (ssize_t)sizeof(own));
	EXPECT(read(told[me][0], &other, sizeof(other)), (ssize_t)sizeof(other));
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", other.process, other.fd);
	own.fd = open(path, O_RDWR | O_CLOEXEC);
	EXPECT(frag_nogpu_cuMemImportFromShareableHandle(&others, (void *)(intptr_t)own.fd, FILES),
	       0);
	all[1 - me] = map(others);
	return all;
}

static void use_symmetric_memory(void *comm, int me)
{
	static const char *const names[] = {
		"_ZN4c10d16symmetric_memory14barrier_kernelEPPjiiim",
		"_ZN4c10d16symmetric_memory17put_signal_kernelEPPjiiiim",
		"_ZN4c10d16symmetric_memory18wait_signal_kernelEPPjiiiim",
		"_ZN1_26one_shot_all_reduce_kernelIfLi16ELi2EEEvPPT_S2_S2_mmPPjmm",
		"_ZN1_34two_shot_all_reduce_kernel_inplaceIfLi16ELi2EEEvPPT_mmPPjmm",
	};
	static char functions[FRAG_ARRAY_LEN(names)];
	int channel = 0, rank = me, peer = 1 - me, ranks = 2;
	size_t offset = 2, count = 3, place = (size_t)me, places = 2;
	void **all = meet(me), *none = NULL;
	float *own = all[me], *others = all[peer], *sum = own + 100;
	void *of_barrier[] = { &all, &channel, &rank, &ranks };
	void *of_signal[] = { &all, &peer, &channel, &rank, &ranks };
	void *of_sum[] = { &all, &sum, &none, &offset, &count, &all, &place, &places };
	void *of_sum_here[] = { &all, &offset, &count, &all, &place, &places };
	uint32_t origin = 0;

	(void)comm;
	frag_nogpu_symmetric_begin(); /* so that the linker takes that file in */
	for (size_t i = 0; i < FRAG_ARRAY_LEN(names); i++)
		frag_nogpu___cudaRegisterFunction(frag_nogpu___cudaRegisterFatBinary(&a_file),
						  &functions[i], "", names[i]);
	rest(me ? 100 : 0);
	own[0] = (float)(10 + me);
	launch(&functions[0], of_barrier);
	EXPECT(frag_nogpu_settle(others, 4), 0);
	EXPECT(others[0], 10 + peer);
	rest(me ? 0 : 100);
	others[1] = (float)(20 + me);
	launch(&functions[1], of_signal);
	launch(&functions[2], of_signal);
	EXPECT(frag_nogpu_settle(own, 8), 0);
	EXPECT(own[1], 20 + peer);
	for (int i = 0; i < 3; i++)
		own[2 + i] = (float)(i + me);
	frag_nogpu_lent_origin_set(own, 32, NOGPU_COMPUTED, false);
	launch(&functions[3], of_sum);
	EXPECT(frag_nogpu_settle(sum, 12), 0);
	EXPECT(sum[2], 5);
	EXPECT(frag_nogpu_lent_origin(sum, 12, &origin) && origin == NOGPU_COMPUTED, true);
	launch(&functions[4], of_sum_here);
	EXPECT(frag_nogpu_settle(own, 32), 0);
	EXPECT(own[4], 5);
	EXPECT(own[5], 0);
	launch(&functions[0], of_barrier);
	EXPECT(frag_nogpu_settle(own, 4), 0);
}

TEST_WITH(kernels_of_symmetric_memory_reach_the_other_rank, begin, NULL)
{
	NEEDS_ADDRESSES();
	assert_int_equal(pipe(told[0]) + pipe(told[1]), 0);
	with_rank_1(use_symmetric_memory);
}
