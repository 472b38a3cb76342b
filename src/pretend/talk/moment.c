/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See moment.h. Nodes are numbered in order of creation and depend on earlier ones only, so one
 * pass over the open nodes evaluates all.
 */
#include "moment.h"

#include <stdatomic.h>
#include <time.h>

#include <frag/clock.h>

#include "base/locked.h"
#include "lib/grow.h"

#define NAP_FIRST_NS 20000u
#define NAP_LAST_NS 500000u
#define TELL_NS 5000000u /* a waiter publishes its peer (deadlock detection) */
#define CIRCLE_NS 20000000u
#define ABSENT_NS 10000000000u
#define PROMISED_NS 2000000000u

/* A moment's state: at `ns`; not before `ns`; or later than any query. */
struct known {
	uint64_t ns;
	enum { OPEN, KNOWN, LATE } state;
};

struct node_part {
	int peer;	  /* its message is awaited; -1: it has arrived */
	bool late;	  /* assumed to be later than any query */
	uint64_t host_ns; /* host clock of that rank, read before its messages */
	uint64_t start;	  /* published start: talk_start */
	const _Atomic uint64_t *later;
};

struct moment_node {
	struct moment_node *next;
	uint64_t number;
	struct moment not_before;
	_Atomic uint64_t *tells; /* where other ranks read the result */
	struct talk *talk;
	uint64_t ns; /* duration after the last part */
	size_t parts_count;
	struct node_part parts[];
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct moment_node *open_nodes, **open_end = &open_nodes;
static struct known *nodes; /* of all nodes ever made, by number */
static size_t nodes_count, nodes_room;
static _Atomic unsigned promises; /* open nodes whose results were promised to other ranks */

/* ---- what is known ------------------------------------------------------------------------- */

static void later_of(struct known *k, uint64_t ns, int state)
{
	k->ns = FRAG_MAX(k->ns, ns);
	if (state == LATE || k->state == KNOWN)
		k->state = state;
}

/* Updates a moment with results of its nodes. */
static struct known know(struct moment *m)
{
	struct known k = { m->ns, KNOWN };
	unsigned left = 0;

	for (unsigned i = 0; i < m->hangs_count; i++) {
		const struct known *n = &nodes[m->hangs[i].number];

		later_of(&k, n->ns + m->hangs[i].after_ns, n->state);
		if (n->state == KNOWN)
			m->ns = FRAG_MAX(m->ns, n->ns + m->hangs[i].after_ns);
		else
			m->hangs[left++] = m->hangs[i];
	}
	m->hangs_count = left;
	return k;
}

static void know_part(struct known *k, struct node_part *p, uint64_t more_ns)
{
	if (p->later)
		p->start = atomic_load(p->later);
	if (p->start & 1)
		p->later = NULL;
	if (p->peer >= 0)
		later_of(k, p->host_ns + more_ns, p->late ? LATE : OPEN);
	else
		later_of(k, (p->start >> 1) + more_ns, p->start & 1 ? KNOWN : OPEN);
}

static struct known know_node(struct moment_node *n)
{
	struct known k = know(&n->not_before);

	for (size_t i = 0; i < n->parts_count; i++)
		know_part(&k, &n->parts[i], n->ns);
	nodes[n->number] = k;
	if (n->tells)
		atomic_store(n->tells, talk_start(k.ns, k.state == KNOWN));
	return k;
}

/* pre: locked. */
static void know_all(void)
{
	struct moment_node **at = &open_nodes;

	while (*at) {
		struct moment_node *n = *at;

		if (know_node(n).state != KNOWN) {
			at = &n->next;
			continue;
		}
		promises -= n->tells != NULL;
		*at = n->next;
		frag_host_free(n);
	}
	open_end = at;
}

/* A rank whose messages are read after its clock begins nothing unread before that clock. */
static void read_clocks(void)
{
	FRAG_LOCKED(&mutex);

	for (struct moment_node *n = open_nodes; n; n = n->next) {
		for (size_t i = 0; i < n->parts_count; i++) {
			struct node_part *p = &n->parts[i];
			const struct talk_peer *peer =
				p->peer < 0 ? NULL : talk_peer(n->talk, p->peer);

			if (!peer)
				continue;
			p->host_ns = atomic_load(&peer->clock->host_ns);
			p->late = p->host_ns + 1 == atomic_load(&peer->absent);
		}
	}
}

static void hear_nothing(void)
{
}
static void (*_Atomic hear)(void) = hear_nothing;

void moment_listen(void (*by)(void))
{
	hear = by;
}

void moment_tell(void)
{
	if (!promises)
		return;
	hear();
	FRAG_LOCKED(&mutex);
	know_all();
}

/* ---- nodes --------------------------------------------------------------------------------- */

/* A node that only depends on `from`. NULL: no memory. pre: locked. */
static struct moment_node *node_new(const struct moment *from, size_t parts)
{
	struct moment_node *n = frag_host_calloc(1, sizeof(*n) + parts * sizeof(n->parts[0]));

	if (!n || FRAG_GROW(nodes, nodes_count, nodes_room, "moments", NULL)) {
		frag_host_free(n);
		return NULL;
	}
	n->number = nodes_count++;
	n->not_before = *from;
	n->parts_count = parts;
	for (size_t i = 0; i < parts; i++)
		n->parts[i] = (struct node_part){ .peer = -1, .start = talk_start(0, true) };
	*open_end = n;
	open_end = &n->next;
	return n;
}

static struct moment moment_of(const struct moment_node *n)
{
	return (struct moment){ .hangs_count = 1, .hangs = { { n->number, 0 } } };
}

static void hang(struct moment *m, const struct moment_hang *h)
{
	struct moment_node *n;

	for (unsigned i = 0; i < m->hangs_count; i++) {
		if (m->hangs[i].number == h->number) {
			m->hangs[i].after_ns = FRAG_MAX(m->hangs[i].after_ns, h->after_ns);
			return;
		}
	}
	if (m->hangs_count == MOMENT_HANGS) {
		n = node_new(m, 0); /* merges all of them into one node */
		if (!n)
			return;
		know_node(n);
		*m = moment_of(n);
	}
	m->hangs[m->hangs_count++] = *h;
}

void moment_add(struct moment *m, uint64_t ns)
{
	FRAG_LOCKED(&mutex);

	m->ns += ns;
	for (unsigned i = 0; i < m->hangs_count; i++)
		m->hangs[i].after_ns += ns;
}

void moment_max(struct moment *m, const struct moment *other)
{
	FRAG_LOCKED(&mutex);

	know(m);
	m->ns = FRAG_MAX(m->ns, other->ns);
	for (unsigned i = 0; i < other->hangs_count; i++)
		hang(m, &other->hangs[i]);
}

struct moment_node *moment_await(struct moment *m, struct talk *talk, const int *peers,
				 size_t count, uint64_t ns)
{
	FRAG_LOCKED(&mutex);
	struct moment_node *n = node_new(m, count);

	if (!n)
		return NULL;
	n->talk = talk;
	n->ns = ns;
	for (size_t i = 0; i < count; i++)
		if (peers[i] >= 0)
			n->parts[i] = (struct node_part){ .peer = peers[i] };
	know_node(n);
	*m = moment_of(n);
	return n;
}

void moment_heard(struct moment_node *n, size_t i, const struct talk_message *message)
{
	FRAG_LOCKED(&mutex);
	struct node_part *p;

	if (!n)
		return;
	p = &n->parts[i];
	*p = (struct node_part){ .peer = -1, .start = talk_start(0, true) };
	if (!message)
		return;
	p->start = message->when.start;
	if (message->by)
		p->later = &message->by->clock->starts[message->when.later % TALK_STARTS];
}

struct talk_when moment_when(const struct moment *m)
{
	static uint64_t promised;
	FRAG_LOCKED(&mutex);
	struct moment own = *m;
	struct known k = know(&own);
	struct moment_node *n = k.state == KNOWN ? NULL : node_new(&own, 0);

	if (!n)
		return (struct talk_when){ talk_start(k.ns, true), 0 };
	promised++;
	promises++;
	n->tells = &talk_clock_own()->starts[promised % TALK_STARTS];
	know_node(n);
	return (struct talk_when){ talk_start(k.ns, false), promised };
}

/* ---- waiting -------------------------------------------------------------------------------- */

/* The part that leaves it open whether a moment is over at a given time. */
struct holder {
	struct moment_node *node; /* NULL: nothing */
	size_t part;
	uint64_t ns, since;
};

/* Finds the first such part. pre: locked. */
static void find_holder(struct holder *h, uint64_t ns)
{
	for (struct moment_node *n = open_nodes; n; n = n->next) {
		for (size_t i = 0; i < n->parts_count; i++) {
			const struct node_part *p = &n->parts[i];
			uint64_t now = p->peer < 0 ? p->start >> 1 : p->host_ns;

			if (p->late || (p->peer < 0 && p->start & 1) || now + n->ns > ns)
				continue;
			if (h->node != n || h->part != i || h->ns != now)
				*h = (struct holder){ n, i, now, frag_clock_ns() };
			return;
		}
	}
	h->node = NULL;
}

/* Gives up on a part: a started one counts as begun at its lower bound, any other as late. pre:
 * locked, h->node set. */
static void wait_no_longer(const struct holder *h)
{
	struct node_part *p = &h->node->parts[h->part];
	struct talk_peer *peer = p->peer < 0 ? NULL : talk_peer(h->node->talk, p->peer);

	p->late = p->peer >= 0;
	p->later = NULL;
	p->start |= 1;
	if (peer)
		atomic_store(&peer->absent, h->ns + 1);
}

struct told {
	struct talk *talk;
	int peer;
};

/* Publishes the rank that this process waits for (deadlock detection). pre: locked. */
static void wait_aloud(const struct holder *h, struct told *told)
{
	const struct node_part *p;
	struct talk *t;
	uint64_t waited;

	if (!h->node)
		return;
	p = &h->node->parts[h->part];
	t = h->node->talk;
	waited = frag_clock_ns() - h->since;
	if (p->peer >= 0 && waited > TELL_NS && (told->talk != t || told->peer != p->peer)) {
		*told = (struct told){ t, p->peer };
		talk_waits(t, p->peer);
	}
	if (p->peer < 0 ? waited > PROMISED_NS
			: waited > ABSENT_NS || (waited > CIRCLE_NS && talk_circle(t, p->peer)))
		wait_no_longer(h);
}

/* Waits until the moment is known, or certainly after `ns`. */
static struct known decide(struct moment *m, uint64_t ns)
{
	struct timespec nap = { 0, NAP_FIRST_NS };
	struct holder h = { .node = NULL };
	struct told told = { .talk = NULL };
	struct known k;

	for (;;) {
		read_clocks();
		hear();
		pthread_mutex_lock(&mutex);
		know_all();
		k = know(m);
		if (k.state != OPEN || k.ns > ns)
			break;
		find_holder(&h, ns);
		wait_aloud(&h, &told);
		pthread_mutex_unlock(&mutex);
		nanosleep(&nap, NULL);
		nap.tv_nsec = FRAG_MIN(2 * nap.tv_nsec, (long)NAP_LAST_NS);
	}
	if (told.talk)
		talk_waits(told.talk, -1);
	pthread_mutex_unlock(&mutex);
	return k;
}

bool moment_over(struct moment *m, uint64_t ns)
{
	struct known k;

	pthread_mutex_lock(&mutex);
	k = know(m);
	pthread_mutex_unlock(&mutex);
	if (k.state == OPEN && k.ns <= ns)
		k = decide(m, ns);
	return k.state == KNOWN && k.ns <= ns;
}

bool moment_passed(struct moment *m, uint64_t ns)
{
	struct known k;

	pthread_mutex_lock(&mutex);
	k = know(m);
	pthread_mutex_unlock(&mutex);
	return k.state == KNOWN && k.ns <= ns;
}

uint64_t moment_wait(struct moment *m)
{
	return decide(m, UINT64_MAX - 1).ns;
}
