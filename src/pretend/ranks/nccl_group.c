/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL's communicators: members, ranks that play others, memory of connections, splits.
 */
#include "nccl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define NCCL_ID_BYTES 128u

/* Passed by value: 128 bytes on the stack. */
struct nccl_id {
	unsigned char bytes[NCCL_ID_BYTES];
};

/* ---- communicators ------------------------------------------------------------------------ */

static int comm_make(void **out, int ranks, int rank)
{
	struct comm *c;

	FRAG_TRY(frag_pretend_handle(out));
	c = *out;
	*c = (struct comm){ .ranks = ranks, .rank = rank };
	nccl_hold_group(&c->held, ranks, rank);
	return NCCL_OK;
}

void nccl_connect_ring(struct comm *c, enum pretend_local kernel)
{
	if (c->kernels)
		return;
	if (!c->ring)
		nccl_hold_ring(&c->held, c->ranks);
	c->ring = true;
	if (c->ranks > 1)
		frag_pretend_local(kernel);
}

void nccl_meet(struct comm *c, int peer, bool receives)
{
	const unsigned char way = receives ? 2 : 1;

	if (!c->met)
		c->met = frag_host_calloc((size_t)c->ranks, 1);
	if (!c->met || peer == c->rank || (unsigned)peer >= (unsigned)c->ranks ||
	    c->met[peer] & way)
		return;
	c->met[peer] |= way;
	nccl_hold_way(&c->held, c->ranks, receives);
	frag_pretend_local(PRETEND_LOCAL_SENDS);
}

/* ---- ranks that play others ---- */

struct players {
	struct players *next;
	unsigned char name[NCCL_NAME_BYTES]; /* of the communicator */
	int count;
	int plays[];
};
static struct players *players;

/* Call before making a communicator of this name. Entries stay: groups are few. */
__attribute__((visibility("default"))) void frag_pretend_players(const unsigned char *name,
								 const int *plays, int count);
void frag_pretend_players(const unsigned char *name, const int *plays, int count)
{
	struct players *p = frag_host_calloc(1, sizeof(*p) + (size_t)count * sizeof(p->plays[0]));

	if (!p)
		return;
	memcpy(p->name, name, sizeof(p->name));
	memcpy(p->plays, plays, (size_t)count * sizeof(*plays));
	p->count = count;
	PRETEND_LOCKED;
	p->next = players;
	players = p;
}

/* NULL: no other process takes part. */
static const int *players_of(const unsigned char *name, int ranks, int rank)
{
	PRETEND_LOCKED;
	const struct players *p = players;
	bool others = false;

	while (p && (p->count != ranks || memcmp(p->name, name, sizeof(p->name))))
		p = p->next;
	for (int i = 0; p && i < ranks; i++)
		others |= p->plays[i] != rank;
	return others ? p->plays : NULL;
}

bool nccl_runs(const struct comm *c, int peer)
{
	return c->talk && (!c->plays || c->plays[peer] == peer);
}

static int begin_talk(struct comm *c, const unsigned char *name)
{
	char text[TALK_NAME_CHARS];

	memcpy(c->name, name, sizeof(c->name));
	for (unsigned i = 0; i < NCCL_NAME_BYTES; i++)
		snprintf(text + 2 * i, 3, "%02x", name[i]);
	c->talk = talk_join(text, c->ranks, c->rank);
	return c->talk ? NCCL_OK : NCCL_SYSTEM_ERROR;
}

struct comm *nccl_group_of_kernels(const unsigned char *name, int ranks, int rank)
{
	struct comm *c = talk_possible() ? frag_host_calloc(1, sizeof(*c)) : NULL;

	if (!c)
		return NULL;
	*c = (struct comm){ .ranks = ranks, .rank = rank, .kernels = true };
	if (!begin_talk(c, name))
		return c;
	frag_host_free(c);
	return NULL;
}

/* Joins the group of this name. */
static int comm_join(void **out, int ranks, int rank, const unsigned char *name)
{
	struct comm *c;

	FRAG_TRY(comm_make(out, ranks, rank));
	if (ranks > 1)
		frag_pretend_streams_begin();
	if (!talk_possible() || ranks < 2)
		return NCCL_OK;
	c = *out;
	if (getenv(CUFRAG_PRETEND_ROLES)) {
		c->plays = players_of(name, ranks, rank);
		if (!c->plays)
			return NCCL_OK;
	}
	return begin_talk(c, name);
}

PRETEND_ENTRY(int, ncclGetUniqueId, (struct nccl_id * id))
{
	memset(id, 7, sizeof(*id));
	if (talk_possible() && getrandom(id->bytes, NCCL_NAME_BYTES, 0) != (ssize_t)NCCL_NAME_BYTES)
		return NCCL_SYSTEM_ERROR;
	return NCCL_OK;
}
PRETEND_VALUE(int, ncclCommInitRank, (void **out, int ranks, struct nccl_id id, int rank),
	      comm_join(out, ranks, rank, id.bytes))
PRETEND_VALUE(int, ncclCommInitRankConfig,
	      (void **out, int ranks, struct nccl_id id, int rank, void *config),
	      comm_join(out, ranks, rank, id.bytes))
PRETEND_VALUE(int, ncclCommInitRankScalable,
	      (void **out, int ranks, int rank, int ids, void *id, void *config),
	      comm_join(out, ranks, rank, id))
/* One process with a communicator for each of its cards (DataParallel). */
PRETEND_ENTRY(int, ncclCommInitAll, (void **out, int ranks, const int *devices))
{
	int before = frag_pretend_device(), rc = 0;

	for (int i = 0; !rc && i < ranks; i++)
		rc = frag_pretend_device_set(devices ? devices[i] : i)
			     ?: comm_make(&out[i], ranks, i);
	frag_pretend_device_set(before);
	return rc;
}
PRETEND_ANSWER(ncclCommCount, (const struct comm *comm, int *count), *count = comm->ranks)
PRETEND_ANSWER(ncclCommUserRank, (const struct comm *comm, int *rank), *rank = comm->rank)
/* Keeps the struct: watchdog threads may still query it. */
PRETEND_ENTRY(int, ncclCommDestroy, (struct comm * comm))
{
	if (comm && comm->talk) {
		await_drop(comm->talk);
		talk_leave(comm->talk);
		comm->talk = NULL;
	}
	if (comm) {
		frag_pretend_beside_give(&comm->held);
		frag_host_free(comm->met);
		comm->met = NULL;
	}
	return NCCL_OK;
}
PRETEND_VALUE(int, ncclCommAbort, (struct comm * comm), frag_pretend_ncclCommDestroy(comm))
/* ---- splits of a communicator ---------------------------------------------------------------- */

/* Other negative colours count: PyTorch 2.3 to 2.5 truncates hashes of 63 bits to an int. */
#define NO_COLOUR (-1)

struct choice {
	int color, key;
};

/* Gathers the choices of all members; this rank's is at its place. */
static int gather_choices(struct comm *c, struct choice *all)
{
	c->ns = 0;
	for (int p = 0; p < c->ranks; p++)
		if (p != c->rank && !talk_say(c->talk, p, TALK_COLLECTIVE, &all[c->rank],
					      sizeof(*all), PRETEND_COMPUTED, 0))
			return NCCL_SYSTEM_ERROR;
	FRAG_TRY(nccl_begin(nccl_await_all(c, all, sizeof(*all), sizeof(*all)), NULL));
	return frag_pretend_settle(all, sizeof(*all) * (uint64_t)c->ranks) ? NCCL_SYSTEM_ERROR
									   : NCCL_OK;
}

void nccl_name_add(uint64_t half[2], const void *part, size_t bytes)
{
	const unsigned char *at = part;

	for (size_t i = 0; i < bytes; i++) /* FNV-1a */
		for (unsigned h = 0; h < 2; h++)
			half[h] = (half[h] ^ at[i]) * 0x100000001b3ull;
}

/* Name of the group with this colour in split number `splits` of c: the same for all its
 * members. */
static void part_name(unsigned char *part, const struct comm *c, int color)
{
	uint64_t half[2] = NCCL_NAME_BEGIN;

	nccl_name_add(half, c->name, sizeof(c->name));
	nccl_name_add(half, &color, sizeof(color));
	nccl_name_add(half, &c->splits, sizeof(c->splits));
	memcpy(part, half, sizeof(half));
}

/* Makes the group of one colour, ordered by key, then rank. */
static int split(struct comm *p, const struct choice *all, void **out)
{
	unsigned char name[NCCL_NAME_BYTES];
	const struct choice own = all[p->rank];
	int ranks = 0, rank = 0;

	for (int i = 0; i < p->ranks; i++) {
		if (all[i].color != own.color)
			continue;
		ranks++;
		rank += all[i].key < own.key || (all[i].key == own.key && i < p->rank);
	}
	part_name(name, p, own.color);
	return comm_join(out, ranks, rank, name);
}

/* Without other processes, the size of a colour is unknown: all ranks are assumed to join it. */
PRETEND_ENTRY(int, ncclCommSplit, (struct comm * p, int color, int key, void **out, void *config))
{
	struct choice *all FRAG_AUTO_FREE = NULL;

	*out = NULL;
	if (!p->talk || p->plays)
		return color == NO_COLOUR ? NCCL_OK
					  : comm_make(out, p->ranks, FRAG_MIN(key, p->ranks - 1));
	all = frag_host_calloc((size_t)p->ranks, sizeof(*all));
	if (!all)
		return NCCL_SYSTEM_ERROR;
	all[p->rank] = (struct choice){ color, key };
	p->splits++;
	FRAG_TRY(gather_choices(p, all));
	return color == NO_COLOUR ? NCCL_OK : split(p, all, out);
}
