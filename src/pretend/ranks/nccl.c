/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL. If the other ranks run, too (talk.h), messages carry the contents of small tensors and of
 * larger ones whose values were computed; others only tell that they were sent. One of several
 * identical ranks may run and play all (cufrag_roles.py). If this is the only process, every other
 * rank is assumed to hold the same values: a gather repeats them, a reduction keeps them, a receive
 * returns what this rank sent, and no call waits.
 *
 * A collective consists of giving and awaiting:
 *
 *	every call	give to some peers, then await some (await.h)
 *	Recv in a group	awaited together, when the group ends
 */
#include "nccl.h"

#include <string.h>

#include "lib/grow.h"
#include "pretend/talk/reduce.h"

/* Host time of a call or group of calls of NCCL by Python: schedules of pipelines, hooks of FSDP
 * [results/pretend/durations.md]. */
#define HOST_CALL_NS 300000u
/* Larger messages are sent without their contents, marked as not computed. */
#define TOLD_MAX (64 * FRAG_MIB)

/* ---- giving and awaiting ------------------------------------------------------------------- */

static _Thread_local unsigned depth; /* nesting of group calls */

static void host_takes(const struct comm *c)
{
	if (!depth && !(c && c->kernels))
		frag_pretend_host_takes(HOST_CALL_NS);
}

void nccl_sends(struct comm *c, void *stream, uint64_t bytes)
{
	host_takes(c);
	c->ns = frag_pretend_sent(stream, bytes, c->talk ? &c->start : NULL);
}

static void works(struct comm *c, void *stream, uint64_t bytes)
{
	nccl_connect_ring(c, PRETEND_LOCAL_COLLECTIVE);
	nccl_sends(c, stream, bytes);
}

/* Origin of a tensor to send; unknown beyond TOLD_MAX, so that only its size is sent. */
static uint32_t known(const void *from, uint64_t bytes)
{
	return !frag_pretend_copies(bytes, TOLD_MAX) || frag_pretend_settle(from, bytes)
		       ? PRETEND_UNKNOWN
		       : frag_pretend_origin(from, bytes);
}

int nccl_give(struct comm *c, int peer, enum talk_call call, const void *from, uint64_t bytes,
	      uint32_t origin)
{
	bool said = talk_say(c->talk, peer, call, origin > PRETEND_UNKNOWN ? from : NULL, bytes,
			     origin, c->start);

	return said ? NCCL_OK : NCCL_SYSTEM_ERROR;
}

/* Sends peer p the bytes at from + p * step, whose values come from `origin`. */
int nccl_give_all(struct comm *c, const void *from, uint64_t bytes, uint64_t step, uint32_t origin)
{
	int rc = NCCL_OK;

	for (int p = 0; !rc && p < c->ranks; p++)
		if (p != c->rank && nccl_runs(c, p))
			rc = nccl_give(c, p, TALK_COLLECTIVE,
				       (const char *)from + (uint64_t)p * step, bytes, origin);
	return rc;
}

static struct awaited *await_calls(struct comm *c, enum talk_call call, size_t parts)
{
	struct awaited *a = await_new(c->talk, call, parts);

	if (a)
		a->ns = c->ns;
	return a;
}

struct awaited *nccl_await_all(struct comm *c, void *to, uint64_t bytes, uint64_t step)
{
	struct awaited *a = await_calls(c, TALK_COLLECTIVE, (size_t)c->ranks - 1);

	for (int p = 0, i = 0; a && p < c->ranks; p++) {
		int player = c->plays ? c->plays[p] : p;

		if (p == c->rank)
			continue;
		a->parts[i++] = (struct await_part){
			.peer = player,
			.to = to ? (char *)to + (uint64_t)p * step : NULL,
			.bytes = bytes,
			.own = player == c->rank,
			.same = player == c->rank || player == p
					? NULL
					: &a->parts[player - (player > c->rank)],
		};
	}
	return a;
}

int nccl_begin(struct awaited *a, void *stream)
{
	if (!a)
		return NCCL_SYSTEM_ERROR;
	await_begin(a, stream);
	return NCCL_OK;
}

/* Types as in NCCL's arguments; count is the result's. */
static int await_reduction(struct comm *c, const void *own, uint32_t origin, void *to, size_t count,
			   int type, int op, void *stream)
{
	uint64_t bytes = count * reduce_type_bytes(type);
	struct awaited *a = nccl_await_all(c, NULL, bytes, 0);

	if (!a)
		return NCCL_SYSTEM_ERROR;
	a->result = to;
	a->own_at = (size_t)c->rank;
	a->bytes = bytes;
	a->type = type;
	a->op = op;
	a->factor = reduce_factor(op);
	a->own_origin = origin;
	a->own = a->own_origin > PRETEND_UNKNOWN ? frag_host_calloc(1, FRAG_MAX(bytes, 1u)) : NULL;
	if (a->own)
		memcpy(a->own, own, bytes);
	return nccl_begin(a, stream);
}

struct awaited *nccl_await_one(struct comm *c, int peer, enum talk_call call, void *to,
			       uint64_t bytes)
{
	struct awaited *a = await_calls(c, call, 1);

	if (a)
		a->parts[0] = (struct await_part){ .peer = peer, .to = to, .bytes = bytes };
	return a;
}

/* Copies within this card. `to` is NULL if a reduction's result is on another rank. */
static int move(const void *from, void *to, size_t count, int type)
{
	size_t bytes = count * reduce_type_bytes(type);

	if (from == to || !to)
		return NCCL_OK;
	frag_pretend_cudaMemcpyAsync(to, from, bytes, 3, NULL);
	if (frag_pretend_copies(bytes, PRETEND_COPY_MAX))
		frag_pretend_arrived(to, from, bytes);
	return NCCL_OK;
}

/* Copies to the places of this rank and of those that it plays: from + p * step. */
static void move_own(const struct comm *c, const void *from, uint64_t step, void *to, size_t count,
		     int type)
{
	uint64_t bytes = count * reduce_type_bytes(type);

	for (uint64_t p = 0; p < (uint64_t)c->ranks; p++)
		if ((c->plays ? c->plays[p] : (int)p) == c->rank)
			move((const char *)from + p * step, (char *)to + p * bytes, count, type);
}

/* ---- what one group of calls exchanges ------------------------------------------------ */

#define ANYBODY (-1)

struct part {
	const void *from; /* sent to the peer, or */
	void *to;	  /* received from it */
	uint64_t bytes;
	int peer;
	struct awaited *awaited; /* its message; NULL: none comes */
	void *stream;
};
static _Thread_local struct {
	struct part *list;
	size_t count, room;
} group;

/* Adds a part to the group; short of memory, leaves it out. */
static bool note(const struct part *p)
{
	if (!depth || FRAG_GROW(group.list, group.count, group.room, "calls of a group", NULL))
		return false;
	group.list[group.count++] = *p;
	return true;
}

/* Awaits what a rank sends: at once, or (later) when the group ends. */
static int receive(struct comm *c, enum talk_call call, void *to, uint64_t bytes, int peer,
		   void *stream, bool later)
{
	struct awaited *a = nccl_await_one(c, peer, call, to, bytes);

	if (later && a && note(&(struct part){ NULL, to, bytes, peer, a, stream }))
		return NCCL_OK;
	return nccl_begin(a, stream);
}

/* The data for a part without a message: this rank gives it to the peer, or the peer, which plays
 * that rank, sends it in another part. NULL: none. */
static const void *given_for(const struct part *wanted)
{
	for (size_t i = 0; i < group.count; i++) {
		const struct part *p = &group.list[i];

		if (p->bytes == wanted->bytes && (p->from || p->awaited) &&
		    (p->peer == ANYBODY || p->peer == wanted->peer))
			return p->from ? p->from : p->to;
	}
	return NULL;
}

/* Receives of a group end together. Without messages, a gather or exchange made of single calls
 * returns what the collective would: this rank's data. */
static int end_group(void)
{
	uint64_t ns = 0, bytes = 0;
	int rc = NCCL_OK;

	for (size_t i = 0; i < group.count; i++) {
		bytes += group.list[i].to ? group.list[i].bytes : 0;
		ns += group.list[i].awaited ? group.list[i].awaited->ns : 0;
	}
	for (size_t i = 0; i < group.count; i++) {
		struct part *p = &group.list[i];

		if (!p->awaited)
			continue;
		p->awaited->ns = ns;
		if (nccl_begin(p->awaited, p->stream))
			rc = NCCL_SYSTEM_ERROR;
	}
	for (size_t i = 0; i < group.count && frag_pretend_copies(bytes, PRETEND_COPY_MAX); i++) {
		const struct part *p = &group.list[i];
		const void *from = p->to && !p->awaited ? given_for(p) : NULL;

		if (from)
			move(from, p->to, p->bytes, 0);
	}
	FRAG_FREE(group.list);
	group.list = NULL;
	group.count = group.room = 0;
	return rc;
}

PRETEND_ENTRY(int, ncclGroupStart, (void))
{
	host_takes(NULL);
	depth++;
	return NCCL_OK;
}
PRETEND_ENTRY(int, ncclGroupEnd, (void))
{
	if (!depth || --depth)
		return NCCL_OK;
	return end_group();
}

PRETEND_ENTRY(int, ncclSend,
	      (const void *from, size_t count, int type, int peer, void *comm, void *stream))
{
	uint64_t bytes = count * reduce_type_bytes(type);
	struct comm *c = comm;

	nccl_meet(c, peer, false);
	nccl_sends(c, stream, bytes);
	if (nccl_runs(c, peer))
		return nccl_give(c, peer, TALK_SEND, from, bytes, known(from, bytes));
	note(&(struct part){ .from = from, .bytes = bytes, .peer = peer });
	return NCCL_OK;
}
PRETEND_ENTRY(int, ncclRecv, (void *to, size_t count, int type, int peer, void *comm, void *stream))
{
	uint64_t bytes = count * reduce_type_bytes(type);
	struct comm *c = comm;

	nccl_meet(c, peer, true);
	host_takes(c);
	c->ns = frag_pretend_sent(stream, bytes, NULL);
	if (nccl_runs(c, peer))
		return receive(c, TALK_SEND, to, bytes, peer, stream, depth > 0);
	note(&(struct part){ .to = to, .bytes = bytes, .peer = peer });
	return NCCL_OK;
}

/* ---- collectives ------------------------------------------------------------------------ */

/* A part for each rank, `step` bytes apart, or (0) the same for all: gives all, and reduces this
 * rank's. */
static int reduce_for_all(struct comm *c, const void *from, uint64_t step, void *to, size_t count,
			  int type, int op, void *stream)
{
	uint64_t bytes = count * reduce_type_bytes(type);
	const void *own = (const char *)from + (uint64_t)c->rank * step;
	uint32_t origin;

	if (!c->talk)
		return move(own, to, count, type);
	origin = known(from, step ? bytes * (uint64_t)c->ranks : bytes);
	return nccl_give_all(c, from, bytes, step, origin)
		       ?: await_reduction(c, own, origin, to, count, type, op, stream);
}

/* The same, and gathers the parts of all. */
static int gather_for_all(struct comm *c, const void *from, uint64_t step, void *to, size_t count,
			  int type, void *stream)
{
	uint64_t bytes = count * reduce_type_bytes(type);

	FRAG_TRY(nccl_give_all(c, from, bytes, step,
			       known(from, step ? bytes * (uint64_t)c->ranks : bytes)));
	move_own(c, from, step, to, count, type);
	return nccl_begin(nccl_await_all(c, to, bytes, bytes), stream);
}

PRETEND_ENTRY(int, ncclAllReduce,
	      (const void *from, void *to, size_t count, int type, int op, struct comm *c,
	       void *stream))
{
	uint64_t bytes = count * reduce_type_bytes(type);

	works(c, stream, 2 * bytes * (uint64_t)(c->ranks - 1) / (uint64_t)c->ranks);
	return reduce_for_all(c, from, 0, to, count, type, op, stream);
}
PRETEND_ENTRY(int, ncclReduce,
	      (const void *from, void *to, size_t count, int type, int op, int root, struct comm *c,
	       void *stream))
{
	uint64_t bytes = count * reduce_type_bytes(type);

	works(c, stream, bytes);
	if (!c->talk)
		return move(from, to, count, type);
	if (c->rank == root)
		return await_reduction(c, from, known(from, bytes), to, count, type, op, stream);
	return nccl_runs(c, root)
		       ? nccl_give(c, root, TALK_COLLECTIVE, from, bytes, known(from, bytes))
		       : NCCL_OK;
}
PRETEND_ENTRY(int, ncclBroadcast,
	      (const void *from, void *to, size_t count, int type, int root, void *comm,
	       void *stream))
{
	uint64_t bytes = count * reduce_type_bytes(type);
	struct comm *c = comm;
	bool mine = root == c->rank;

	nccl_connect_ring(c, PRETEND_LOCAL_BROADCAST);
	nccl_sends(c, stream, bytes);
	if (mine)
		note(&(struct part){ .from = from, .bytes = bytes, .peer = ANYBODY });
	if (mine && c->talk)
		return nccl_give_all(c, from, bytes, 0, known(from, bytes))
			       ?: move(from, to, count, type);
	if (!mine && nccl_runs(c, root))
		return receive(c, TALK_COLLECTIVE, to, bytes, root, stream, depth && c->plays);
	if (!mine && from == to)
		note(&(struct part){
			.to = to, .bytes = bytes, .peer = c->plays ? c->plays[root] : root });
	return move(from, to, count, type);
}
PRETEND_VALUE(int, ncclBcast,
	      (void *data, size_t count, int type, int root, void *comm, void *stream),
	      frag_pretend_ncclBroadcast(data, data, count, type, root, comm, stream))
PRETEND_ANSWER(ncclRedOpCreatePreMulSum,
	       (int *op, void *factor, int type, int residence, void *comm),
	       *op = reduce_make(factor, type))
/* The input starts at this rank's part; count is the output's. */
PRETEND_ENTRY(int, ncclReduceScatter,
	      (const void *from, void *to, size_t count, int type, int op, struct comm *c,
	       void *stream))
{
	uint64_t bytes = count * reduce_type_bytes(type);

	works(c, stream, bytes * (uint64_t)(c->ranks - 1));
	return reduce_for_all(c, from, bytes, to, count, type, op, stream);
}
PRETEND_ENTRY(int, ncclAllGather,
	      (const void *from, void *to, size_t count, int type, struct comm *c, void *stream))
{
	uint64_t ranks = (uint64_t)c->ranks, bytes = count * reduce_type_bytes(type);

	works(c, stream, bytes * (ranks - 1));
	if (c->talk)
		return gather_for_all(c, from, 0, to, count, type, stream);
	for (uint64_t i = 0; i < ranks && frag_pretend_copies(bytes * ranks, PRETEND_COPY_MAX); i++)
		move(from, (char *)to + i * bytes, count, type);
	return NCCL_OK;
}
PRETEND_ENTRY(int, ncclAlltoAll,
	      (const void *from, void *to, size_t count, int type, struct comm *c, void *stream))
{
	uint64_t bytes = count * reduce_type_bytes(type);

	for (int i = 0; i < c->ranks; i++) {
		nccl_meet(c, i, false);
		nccl_meet(c, i, true);
	}
	nccl_sends(c, stream, bytes * (uint64_t)(c->ranks - 1));
	if (!c->talk)
		return move(from, to, count * (size_t)c->ranks, type);
	return gather_for_all(c, from, bytes, to, count, type, stream);
}
