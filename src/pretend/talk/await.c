/* SPDX-License-Identifier: Apache-2.0 */
/* See await.h. One list for all communicators, in the order in which transfers began. */
#include "await.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <frag/clock.h>

#include "pretend/card/card.h"
#include "reduce.h"

#define NAP_FIRST_NS 20000u
#define NAP_LAST_NS 1000000u
#define TELL_NS 5000000u	 /* then a waiting process publishes its peer */
#define DEADLOCK_NS 20000000000u /* after so long, ranks that wait for each other will not go on */
#define ABSENT_NS 30000000000u

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct awaited *list, **list_end = &list;
static _Atomic unsigned awaited_count;

const _Atomic unsigned *frag_pretend_awaited(void)
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

static void free_transfer(struct awaited *a)
{
	for (size_t i = 0; i < a->parts_count; i++)
		frag_host_free(a->parts[i].got.data);
	frag_host_free(a->own);
	frag_host_free(a);
}

/* ---- values -------------------------------------------------------------------------------- */

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
			frag_pretend_origin_set(a->parts[i].to, a->parts[i].bytes, PRETEND_COMPUTED,
						false);
	for (size_t i = 0; i < a->parts_count; i++) {
		const struct await_part *p = &a->parts[i];
		const struct talk_message *got = got_by(p);

		if (!has_place(p))
			continue;
		if (got->carried)
			memcpy(p->to, got->data, FRAG_MIN(p->bytes, got->bytes));
		frag_pretend_origin_set(p->to, p->bytes,
					got->carried ? got->origin : PRETEND_UNKNOWN, true);
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
	frag_pretend_origin_set(a->result, a->bytes, all ? origin : PRETEND_UNKNOWN, false);
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

static void note_ended(void)
{
	static atomic_bool said;

	if (!atomic_exchange(&said, true))
		dprintf(STDERR_FILENO,
			"cufrag: process %d waited for a rank that has ended; values "
			"that it should have sent are invented\n",
			(int)getpid());
}

/* ---- messages ------------------------------------------------------------------------------ */

/* A message of this part is still to come. */
static bool is_missing(const struct await_part *p)
{
	return !p->here && !p->same && !p->own;
}

/* Are any of the first `count` parts still awaited from this rank? */
static bool is_open(const struct awaited *a, size_t count, int peer)
{
	for (size_t i = 0; i < count; i++)
		if (a->parts[i].peer == peer && is_missing(&a->parts[i]))
			return true;
	return false;
}

/* The transfer whose message comes next from this part's rank, in the same file: an earlier one, or
 * `a`. */
static const struct awaited *next_from(const struct awaited *a, int peer)
{
	const struct awaited *b = list;

	while (b != a && !(b->talk == a->talk && (b->call == TALK_SEND) == (a->call == TALK_SEND) &&
			   is_open(b, b->parts_count, peer)))
		b = b->next;
	return b;
}

static void hear_part(struct awaited *a, struct await_part *p)
{
	enum talk_answer answer = talk_hear(a->talk, p->peer, a->call, &p->got);

	p->here = answer != TALK_NOT_YET;
	if (answer == TALK_ENDED)
		note_ended();
	if (answer != TALK_HERE)
		return;
	a->begun = FRAG_MAX(a->begun, p->got.start);
	a->absent = false;
}

/* True: all parts have arrived. */
static bool hear(struct awaited *a)
{
	bool all = true;

	for (size_t i = 0; i < a->parts_count; i++) {
		struct await_part *p = &a->parts[i];

		if (!is_missing(p))
			continue;
		if (!is_open(a, i, p->peer) && next_from(a, p->peer) == a)
			hear_part(a, p);
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
		if (a->talk != dropped) {
			deliver(a);
			if (!a->late)
				frag_pretend_stream_awaits(a->stream, a->begun + a->ns);
		}
		free_transfer(a);
		atomic_fetch_sub(&awaited_count, 1);
	}
	list_end = at;
}

void await_drop(struct talk *t)
{
	FRAG_LOCKED(&mutex);

	clear(NULL);
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
	bool found = (a->lent && frag_pretend_shared(p, bytes)) ||
		     (a->result && overlap(a->result, a->bytes, p, bytes));

	for (size_t i = 0; !found && i < a->parts_count; i++)
		found = a->parts[i].to && overlap(a->parts[i].to, a->parts[i].bytes, p, bytes);
	return found;
}

/* What to wait for: a transfer that begins, by its number, unless its senders wait for this
 * process; else to the end for those that touch the bytes, or (p NULL) for all. */
struct goal {
	uint64_t number;
	const void *p;
	uint64_t bytes;
};

static struct awaited *first_of(const struct goal *g)
{
	struct awaited *a = list;

	while (a && (g->number ? a->number != g->number : g->p && !touches(a, g->p, g->bytes)))
		a = a->next;
	return a;
}

struct wait {
	uint64_t begun, circle_since, never_since;
	const struct talk *talk;
	int peer; /* published; -1: none */
};

/* Shall it wait on for the first missing message of `a`? 0, or why not. pre: locked. */
static int look_at(struct wait *w, struct awaited *a, const struct goal *g)
{
	const uint64_t now = frag_clock_ns();
	int peer = -1;

	for (size_t i = a->parts_count; i-- > 0;)
		peer = is_missing(&a->parts[i]) ? a->parts[i].peer : peer;
	if (g->number && next_from(a, peer)->absent)
		return PRETEND_NOT_READY;
	if (now - w->begun > TELL_NS && (w->peer != peer || w->talk != a->talk)) {
		talk_waits(a->talk, peer, a->call);
		w->talk = a->talk;
		w->peer = peer;
	}
	if (w->peer < 0 || !talk_circle(a->talk, peer))
		w->circle_since = now;
	else if (g->number)
		return PRETEND_NOT_READY;
	if (now - w->circle_since > DEADLOCK_NS)
		return PRETEND_TIMEOUT;
	if (w->peer < 0 || !talk_never(a->talk, peer))
		w->never_since = now;
	if (now - w->never_since > DEADLOCK_NS)
		talk_abandon(a->talk);
	if (!g->number || now - w->begun < ABSENT_NS)
		return PRETEND_OK;
	a->absent = true;
	return PRETEND_NOT_READY;
}

static void note_deadlock(int peer)
{
	dprintf(STDERR_FILENO,
		"cufrag: ranks wait for each other: process %d for rank %d of a "
		"group; on cards, too, this job would not go on\n",
		(int)getpid(), peer);
}

/* 0, PRETEND_NOT_READY or PRETEND_TIMEOUT. pre: locked. */
static int wait_for(const struct goal *g)
{
	struct timespec nap = { 0, NAP_FIRST_NS };
	const uint64_t now = frag_clock_ns();
	struct wait w = { .begun = now, .circle_since = now, .never_since = now, .peer = -1 };
	struct awaited *a;
	int rc = PRETEND_OK;

	for (clear(NULL); (a = first_of(g)) && !(rc = look_at(&w, a, g)); clear(NULL)) {
		pthread_mutex_unlock(&mutex);
		nanosleep(&nap, NULL);
		nap.tv_nsec = FRAG_MIN(2 * nap.tv_nsec, (long)NAP_LAST_NS);
		pthread_mutex_lock(&mutex);
	}
	if (w.peer >= 0)
		talk_waits_end();
	if (rc == PRETEND_TIMEOUT)
		note_deadlock(w.peer);
	return rc;
}

void await_begin(struct awaited *a, void *stream)
{
	static uint64_t numbers;
	FRAG_LOCKED(&mutex);
	const struct goal g = { .number = ++numbers };

	a->number = g.number;
	a->stream = stream;
	*list_end = a;
	list_end = &a->next;
	atomic_fetch_add(&awaited_count, 1);
	frag_pretend_ranks.waiting++;
	if (wait_for(&g)) /* so it is still in the list */
		a->late = true;
	frag_pretend_ranks.waiting--;
}

int frag_pretend_settle(const void *p, uint64_t bytes)
{
	const struct goal g = { .p = p, .bytes = bytes };

	if (!atomic_load(&awaited_count) || !p || !bytes)
		return PRETEND_OK;
	FRAG_LOCKED(&mutex);
	return wait_for(&g);
}

static int settle_all(void)
{
	FRAG_LOCKED(&mutex);

	return wait_for(&(struct goal){ 0 });
}

void frag_pretend_abandon(const void *p, uint64_t bytes)
{
	if (!atomic_load(&awaited_count))
		return;
	if (frag_pretend_shared(p, bytes))
		(void)frag_pretend_settle(p, bytes);
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
	frag_pretend_ranks.settle = frag_pretend_settle;
	frag_pretend_ranks.settle_all = settle_all;
}
