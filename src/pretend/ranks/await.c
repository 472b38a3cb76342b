/* SPDX-License-Identifier: Apache-2.0 */
/* See await.h. One list for all communicators, in the order in which they began. */
#include "await.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <frag/clock.h>

#include "pretend/card/entries.h"
#include "pretend/talk/moment.h"
#include "pretend/talk/reduce.h"

#define NAP_FIRST_NS 50000u
#define NAP_LAST_NS 2000000u
#define CIRCLE_NS 20000000000u /* longer waits in a circle are a deadlock */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct awaited *list, **list_end = &list;
static uint64_t numbers;
static _Atomic unsigned awaited_count;

const _Atomic unsigned *frag_nogpu_awaited(void)
{
	return &awaited_count;
}

struct awaited *await_new(struct talk *t, enum talk_call call, size_t parts)
{
	struct awaited *a = frag_host_calloc(1, sizeof(*a) + parts * sizeof(a->parts[0]));

	if (a) {
		a->talk = t;
		a->call = call;
		a->parts_count = parts;
	}
	return a;
}

static bool waits(const struct await_part *p)
{
	return !p->here && !p->same && !p->own;
}

static void release(struct awaited *a)
{
	for (size_t i = 0; i < a->parts_count; i++) {
		if (waits(&a->parts[i]))
			moment_heard(a->over, i, NULL);
		frag_host_free(a->parts[i].got.data);
	}
	frag_host_free(a->own);
	frag_host_free(a);
}

/* ---- delivery ------------------------------------------------------------------------------ */

static const struct talk_message *got_by(const struct await_part *p)
{
	return p->same ? &p->same->got : &p->got;
}

/* An empty part has no destination: its address may be that of other parts, or the end of the
 * storage. */
static bool has_place(const struct await_part *p)
{
	return p->to && p->bytes && !p->own;
}

/* A storage gets the least known origin of its parts. */
static void place(const struct awaited *a)
{
	for (size_t i = 0; i < a->parts_count; i++)
		if (has_place(&a->parts[i]))
			frag_nogpu_origin_set(a->parts[i].to, a->parts[i].bytes, NOGPU_COMPUTED,
					      false);
	for (size_t i = 0; i < a->parts_count; i++) {
		const struct await_part *p = &a->parts[i];
		const struct talk_message *got = got_by(p);

		if (!has_place(p))
			continue;
		if (got->carried)
			memcpy(p->to, got->data, FRAG_MIN(p->bytes, got->bytes));
		frag_nogpu_origin_set(p->to, p->bytes, got->carried ? got->origin : NOGPU_UNKNOWN,
				      true);
	}
}

/* Part i in rank order: all ranks add in this order, so their sums are equal. */
static const void *in_order(const struct awaited *a, size_t i)
{
	const struct await_part *p = i == a->own_at ? NULL : &a->parts[i < a->own_at ? i : i - 1];

	return !p || p->own ? a->own : got_by(p)->data;
}

/* Unless all ranks computed their values, this rank's result stays as it is. */
static void reduce(struct awaited *a)
{
	uint32_t origin = a->own_origin;
	bool all = a->own && reduce_known(a->type, a->op);

	for (size_t i = 0; i < a->parts_count; i++) {
		const struct talk_message *got = got_by(&a->parts[i]);

		if (a->parts[i].own)
			continue;
		all &= got->carried && got->bytes == a->bytes;
		origin = FRAG_MIN(origin, got->origin);
	}
	frag_nogpu_origin_set(a->result, a->bytes, all ? origin : NOGPU_UNKNOWN, false);
	if (!all)
		return;
	memcpy(a->result, in_order(a, 0), a->bytes);
	for (size_t i = 1; i <= a->parts_count; i++)
		reduce_with(a->result, in_order(a, i), a->bytes, a->type, a->op);
	reduce_end(a->result, a->bytes, a->type, a->op, (int)a->parts_count + 1, a->factor);
}

static void deliver(struct awaited *a)
{
	if (a->result)
		reduce(a);
	else if (!a->own)
		place(a);
}

/* ---- messages ------------------------------------------------------------------------------- */

static void note_ended(void)
{
	static atomic_bool said;

	if (!atomic_exchange(&said, true))
		dprintf(STDERR_FILENO,
			"cufrag: process %d waited for a rank that has ended; values "
			"that it should have sent are invented\n",
			(int)getpid());
}

/* Ranks call different collectives, or in another order: NCCL on a card would hang or mix up
 * data. */
static void note_differs(const struct awaited *a, const struct await_part *p)
{
	static const char *const names[] = {
		[TALK_SEND] = "a send",
		[TALK_SPLIT] = "a split",
		[TALK_ALL_REDUCE] = "an all-reduce",
		[TALK_REDUCE] = "a reduce",
		[TALK_BROADCAST] = "a broadcast",
		[TALK_REDUCE_SCATTER] = "a reduce-scatter",
		[TALK_ALL_GATHER] = "an all-gather",
		[TALK_ALL_TO_ALL] = "an all-to-all",
		[TALK_BARRIER] = "a barrier",
	};
	static atomic_bool said;
	const char *rank = getenv("RANK");

	if (a->plays || (p->got.call == a->call && p->got.bytes == p->bytes) ||
	    atomic_exchange(&said, true))
		return;
	dprintf(STDERR_FILENO,
		"cufrag: rank %s awaits %s of %" PRIu64 " bytes, but member %d of the group "
		"made %s of %" PRIu64 " bytes: on a card, this job would hang or mix them up\n",
		rank ? rank : "?", names[a->call], p->bytes, p->peer, names[p->got.call],
		p->got.bytes);
}

/* Are any of the first `count` parts still awaited from this rank? */
static bool is_open(const struct awaited *a, size_t count, int peer)
{
	for (size_t i = 0; i < count; i++)
		if (a->parts[i].peer == peer && waits(&a->parts[i]))
			return true;
	return false;
}

/* Is an earlier message of this part's rank still awaited, of an earlier call or the same group? */
static bool behind(const struct awaited *a, size_t part)
{
	int peer = a->parts[part].peer;

	for (const struct awaited *b = list; b != a; b = b->next)
		if (b->talk == a->talk && (b->call == TALK_SEND) == (a->call == TALK_SEND) &&
		    is_open(b, b->parts_count, peer))
			return true;
	return is_open(a, part, peer);
}

/* True: all parts have arrived. pre: locked. */
static bool hear(struct awaited *a)
{
	bool all = true;

	for (size_t i = 0; i < a->parts_count; i++) {
		struct await_part *p = &a->parts[i];
		enum talk_answer answer;

		if (!waits(p))
			continue;
		if (behind(a, i)) {
			all = false;
			continue;
		}
		answer = talk_hear(a->talk, p->peer, a->call, &p->got);
		if (answer == TALK_ENDED)
			note_ended();
		else if (answer == TALK_HERE)
			note_differs(a, p);
		p->here = answer != TALK_NOT_YET;
		if (p->here)
			moment_heard(a->over, i, answer == TALK_HERE ? &p->got : NULL);
		all &= p->here;
	}
	return all;
}

/* Delivers and removes what has arrived; removes everything of `dropped`. pre: locked. */
static void clear(const struct talk *dropped)
{
	struct awaited **at = &list;

	while (*at) {
		struct awaited *a = *at;

		if (a->talk != dropped && !hear(a)) {
			at = &a->next;
			continue;
		}
		*at = a->next;
		if (a->talk != dropped)
			deliver(a);
		release(a);
		atomic_fetch_sub(&awaited_count, 1);
	}
	list_end = at;
}

static void hear_all(void)
{
	clear(NULL);
}

/* Delivers nothing, because callers may hold locks that delivery needs. */
static void only_hear(void)
{
	FRAG_LOCKED(&mutex);

	for (struct awaited *a = list; a; a = a->next)
		(void)hear(a);
}

/* When it is over, if that is not before this moment. */
static struct moment_node *over_after(struct moment *m, const struct awaited *a)
{
	int *peers FRAG_AUTO_FREE = frag_host_calloc(FRAG_MAX(a->parts_count, 1u), sizeof(*peers));

	if (!peers)
		return NULL;
	for (size_t i = 0; i < a->parts_count; i++)
		peers[i] = waits(&a->parts[i]) ? a->parts[i].peer : -1;
	moment_listen(only_hear);
	return moment_await(m, a->talk, peers, a->parts_count, a->ns);
}

void await_begin(struct awaited *a, void *stream)
{
	FRAG_LOCKED(&mutex);
	struct moment *busy;

	a->number = ++numbers;
	*list_end = a;
	list_end = &a->next;
	atomic_fetch_add(&awaited_count, 1);
	busy = frag_nogpu_stream_awaits(stream, a->number);
	if (a->ns)
		a->over = over_after(busy, a);
	hear_all();
}

void await_drop(struct talk *t)
{
	FRAG_LOCKED(&mutex);

	hear_all();
	clear(t);
}

/* ---- waiting ---------------------------------------------------------------------------------- */

static bool overlap(const void *a, uint64_t a_bytes, const void *b, uint64_t b_bytes)
{
	uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;

	return x < y + b_bytes && y < x + a_bytes;
}

static bool touches(const struct awaited *a, const void *p, uint64_t bytes)
{
	bool found = (a->lent && frag_nogpu_shared(p, bytes)) ||
		     (a->result && overlap(a->result, a->bytes, p, bytes));

	for (size_t i = 0; !found && i < a->parts_count; i++)
		found = a->parts[i].to && overlap(a->parts[i].to, a->parts[i].bytes, p, bytes);
	return found;
}

/* What to wait for: transfers that touch the bytes, or (p NULL) those up to a number. */
struct goal {
	const void *p;
	uint64_t bytes, number;
};

static struct awaited *first_of(const struct goal *g)
{
	for (struct awaited *a = list; a; a = a->next)
		if (g->p ? touches(a, g->p, g->bytes) : a->number <= g->number)
			return a;
	return NULL;
}

/* A missing peer of `a`, the first. pre: one is missing. */
static int missing_of(const struct awaited *a)
{
	for (size_t i = 0; i < a->parts_count; i++)
		if (waits(&a->parts[i]))
			return a->parts[i].peer;
	return -1;
}

/* True only after CIRCLE_NS: a message may be on its way. */
static bool lasts(bool so, uint64_t *since)
{
	uint64_t now = frag_clock_ns();

	if (!so) {
		*since = 0;
		return false;
	}
	*since = *since ? *since : now;
	return now - *since > CIRCLE_NS;
}

static int wait_for(const struct goal *g)
{
	struct timespec nap = { 0, NAP_FIRST_NS };
	uint64_t circle = 0, never = 0;
	struct awaited *a;
	int rc = NOGPU_OK, told = -1;
	struct talk *talk = NULL;

	pthread_mutex_lock(&mutex);
	for (hear_all(); !rc && (a = first_of(g)) != NULL; hear_all()) {
		int peer = missing_of(a);

		if (nap.tv_nsec == NAP_LAST_NS && (told != peer || talk != a->talk)) {
			told = peer;
			talk = a->talk;
			talk_waits(talk, peer);
		}
		if (told >= 0 && lasts(talk_circle(talk, peer), &circle))
			rc = NOGPU_TIMEOUT;
		if (told >= 0 && lasts(talk_never(talk, peer), &never))
			talk_abandon(talk);
		pthread_mutex_unlock(&mutex);
		moment_tell(); /* other ranks may wait for these results */
		nanosleep(&nap, NULL);
		nap.tv_nsec = FRAG_MIN(2 * nap.tv_nsec, (long)NAP_LAST_NS);
		pthread_mutex_lock(&mutex);
	}
	if (told >= 0)
		talk_waits(talk, -1);
	pthread_mutex_unlock(&mutex);
	if (rc)
		dprintf(STDERR_FILENO,
			"cufrag: ranks wait for each other: process %d for rank %d of a "
			"group; on cards, too, this job would not go on\n",
			(int)getpid(), told);
	return rc;
}

int frag_nogpu_settle(const void *p, uint64_t bytes)
{
	const struct goal g = { .p = p, .bytes = bytes };

	return atomic_load(&awaited_count) && p && bytes ? wait_for(&g) : NOGPU_OK;
}

static int settle_until(uint64_t number)
{
	const struct goal g = { .number = number };

	return number && atomic_load(&awaited_count) ? wait_for(&g) : NOGPU_OK;
}

void frag_nogpu_abandon(const void *p, uint64_t bytes)
{
	if (!atomic_load(&awaited_count))
		return;
	if (frag_nogpu_shared(p, bytes))
		(void)frag_nogpu_settle(p, bytes);
	FRAG_LOCKED(&mutex);
	for (struct awaited *a = list; a; a = a->next) {
		if (a->result && overlap(a->result, a->bytes, p, bytes))
			a->result = NULL;
		for (size_t i = 0; i < a->parts_count; i++)
			if (a->parts[i].to && overlap(a->parts[i].to, a->parts[i].bytes, p, bytes))
				a->parts[i].to = NULL;
	}
}

static void __attribute__((constructor)) put_in(void)
{
	frag_nogpu_ranks.settle = frag_nogpu_settle;
	frag_nogpu_ranks.settle_until = settle_until;
}
