/* SPDX-License-Identifier: Apache-2.0 */
/* See await.h. One list for all communicators, in the order in which transfers began. */
#include "await.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include <frag/clock.h>

#include "lib/grow.h"
#include "pretend/card/nogpu.h"

#define NAP_FIRST_NS 20000u
#define NAP_LAST_NS 1000000u
#define TELL_NS 5000000u	 /* then a waiting process publishes its peer */
#define CIRCLE_NS 200000000u	 /* of ranks that wait for each other's times */
#define DEADLOCK_NS 20000000000u /* after so long, ranks that wait for each other will not go on */
#define ABSENT_NS 30000000000u

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct awaited *list, **list_end = &list;
static uint64_t numbers;
static _Atomic unsigned awaited_count;

const _Atomic unsigned *frag_nogpu_awaited(void)
{
	return &awaited_count;
}

/* Are any of the first `count` parts still awaited from this rank? */
static bool is_open(const struct awaited *a, size_t count, int peer)
{
	for (size_t i = 0; i < count; i++)
		if (a->parts[i].peer == peer && transfer_waits(&a->parts[i]))
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

/* Ends of transfers that were late. */
static struct late {
	uint64_t number, ns;
} * lates;
static size_t lates_count, lates_room;

/* Its time is known. pre: locked. */
static void end(struct awaited *a)
{
	const uint64_t ns = a->begun + a->ns;

	a->heard = true;
	if (!a->late)
		frag_nogpu_stream_awaits(a->stream, ns, 0);
	else if (!FRAG_GROW(lates, lates_count, lates_room, "late transfers", NULL))
		lates[lates_count++] = (struct late){ a->number, ns };
}

static void hear_part(struct awaited *a, struct await_part *p)
{
	enum talk_answer answer = talk_hear(a->talk, p->peer, a->call, &p->got);

	p->here = answer != TALK_NOT_YET;
	if (answer == TALK_ENDED)
		transfer_ended();
	if (answer != TALK_HERE)
		return;
	transfer_check(a, p);
	a->begun = FRAG_MAX(a->begun, p->got.start);
	a->absent = false;
}

/* True: all parts have arrived. pre: locked. */
static bool hear(struct awaited *a)
{
	bool all = true;

	for (size_t i = 0; i < a->parts_count && !a->heard; i++) {
		struct await_part *p = &a->parts[i];

		if (!transfer_waits(p))
			continue;
		if (!is_open(a, i, p->peer) && next_from(a, p->peer) == a)
			hear_part(a, p);
		all &= p->here;
	}
	if (all && !a->heard)
		end(a);
	return a->heard;
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
			transfer_deliver(a);
		transfer_free(a);
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
	bool found = (a->lent && frag_nogpu_shared(p, bytes)) ||
		     (a->result && overlap(a->result, a->bytes, p, bytes));

	for (size_t i = 0; !found && i < a->parts_count; i++)
		found = a->parts[i].to && overlap(a->parts[i].to, a->parts[i].bytes, p, bytes);
	return found;
}

/* What to wait for: transfers that touch the bytes, or (p NULL) those with these numbers. */
struct goal {
	const void *p;
	uint64_t bytes, first, last;
	enum nogpu_patience how;
	bool data; /* delivered, too: callers may hold locks that delivery needs */
};

static struct awaited *first_of(const struct goal *g)
{
	for (struct awaited *a = list; a; a = a->next)
		if (g->p ? touches(a, g->p, g->bytes)
			 : a->number >= g->first && a->number <= g->last && (g->data || !hear(a)))
			return a;
	return NULL;
}

/* The same, after all messages that are there. pre: locked. */
static struct awaited *next_of(const struct goal *g)
{
	if (g->data)
		clear(NULL);
	for (struct awaited *a = g->data ? NULL : list; a; a = a->next)
		(void)hear(a);
	return first_of(g);
}

struct wait {
	uint64_t begun, circle, circle_since, never_since;
	const struct talk *talk;
	int peer; /* published; -1: none */
};

/* Do ranks wait for each other, and have for too long? Where one begins a transfer, it gives up at
 * once: a late transfer costs nothing. A time that is needed is waited for, as another may give up. */
static bool in_circle(struct wait *w, struct awaited *a, int peer, const struct goal *g)
{
	const uint64_t now = frag_clock_ns(), before = w->circle;
	const uint64_t most = g->how == NOGPU_WAIT ? DEADLOCK_NS : g->data ? 0 : CIRCLE_NS;

	w->circle = w->peer >= 0 || a->circle ? talk_circle(a->talk, peer) : 0;
	if (w->circle != before)
		w->circle_since = now;
	if (!w->circle)
		return false;
	if (g->how == NOGPU_TRY && !g->data && w->circle == a->circle)
		return true;
	if (w->circle != before || now - w->circle_since <= most)
		return false;
	a->circle = g->data ? 0 : w->circle;
	return true;
}

/* Has the process of this peer not come, and the others know that it will not? */
static bool never_comes(struct wait *w, struct awaited *a, int peer)
{
	const uint64_t now = frag_clock_ns();

	if (w->peer < 0 || !talk_never(a->talk, peer))
		w->never_since = now;
	return now - w->never_since > DEADLOCK_NS;
}

/* Shall it wait on for the first missing message of `a`? 0, or why not. pre: locked. */
static int look_at(struct wait *w, struct awaited *a, const struct goal *g)
{
	const uint64_t waited = frag_clock_ns() - w->begun;
	int peer = -1;

	for (size_t i = a->parts_count; i-- > 0;)
		peer = transfer_waits(&a->parts[i]) ? a->parts[i].peer : peer;
	if (g->how == NOGPU_LOOK || (g->how == NOGPU_TRY && next_from(a, peer)->absent))
		return NOGPU_NOT_READY;
	if (waited > TELL_NS && (w->peer != peer || w->talk != a->talk)) {
		talk_waits(a->talk, peer, a->call);
		w->talk = a->talk;
		w->peer = peer;
	}
	if (in_circle(w, a, peer, g))
		return g->how == NOGPU_WAIT ? NOGPU_TIMEOUT : NOGPU_NOT_READY;
	if (never_comes(w, a, peer))
		talk_abandon(a->talk);
	if (g->how == NOGPU_WAIT || waited < ABSENT_NS)
		return NOGPU_OK;
	a->absent = true;
	return NOGPU_NOT_READY;
}

static void note_deadlock(int peer)
{
	dprintf(STDERR_FILENO,
		"cufrag: ranks wait for each other: process %d for rank %d of a "
		"group; on cards, too, this job would not go on\n",
		(int)getpid(), peer);
}

/* 0, NOGPU_NOT_READY or NOGPU_TIMEOUT. pre: locked. */
static int wait_for(const struct goal *g)
{
	struct timespec nap = { 0, NAP_FIRST_NS };
	struct wait w = { .begun = frag_clock_ns(), .peer = -1 };
	struct awaited *a;
	int rc = NOGPU_OK;

	while ((a = next_of(g)) != NULL && !(rc = look_at(&w, a, g))) {
		pthread_mutex_unlock(&mutex);
		nanosleep(&nap, NULL);
		nap.tv_nsec = FRAG_MIN(2 * nap.tv_nsec, (long)NAP_LAST_NS);
		pthread_mutex_lock(&mutex);
	}
	if (w.peer >= 0)
		talk_waits_end();
	if (rc == NOGPU_TIMEOUT)
		note_deadlock(w.peer);
	return rc;
}

void await_begin(struct awaited *a, void *stream)
{
	FRAG_LOCKED(&mutex);
	const uint64_t number = ++numbers;
	struct goal g = { .first = number, .last = number, .how = NOGPU_TRY, .data = true };

	a->number = number;
	a->stream = stream;
	*list_end = a;
	list_end = &a->next;
	atomic_fetch_add(&awaited_count, 1);
	frag_nogpu_ranks.waiting++;
	if (wait_for(&g)) { /* so it is still in the list */
		a->late = true;
		frag_nogpu_stream_awaits(stream, 0, a->number);
	}
	frag_nogpu_ranks.waiting--;
}

int frag_nogpu_settle(const void *p, uint64_t bytes)
{
	const struct goal g = { .p = p, .bytes = bytes, .how = NOGPU_WAIT, .data = true };

	if (!atomic_load(&awaited_count) || !p || !bytes)
		return NOGPU_OK;
	FRAG_LOCKED(&mutex);
	return wait_for(&g);
}

static int settle_until(uint64_t number, enum nogpu_patience how, uint64_t *ns)
{
	const struct goal g = { .last = number, .how = how, .data = how == NOGPU_WAIT };
	int rc;
	FRAG_LOCKED(&mutex);

	rc = wait_for(&g);
	for (size_t i = 0; !rc && i < lates_count; i++)
		if (lates[i].number <= number)
			*ns = FRAG_MAX(*ns, lates[i].ns);
	return rc;
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
