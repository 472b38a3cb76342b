/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL. Where the other ranks run, too (talk.h), they tell each other what small tensors hold, and what was computed of
 * larger ones; of the rest they only tell that it was sent, since nobody looks at it. Of several that do the same one may run and
 * speak for all (cufrag_roles.py). Where this process plays one rank alone, every other rank is assumed to hold the same values: a gather repeats them, a reduction leaves them, others
 * send what they are sent, and nobody waits.
 *
 * Saying what this rank gives and awaiting what it gets is all there is to a collective:
 *
 *	every call	give to some peers, then await some (await.h)
 *	Recv in a group	awaited together, when the group ends
 */
#include "entries.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "await.h"
#include "lib/grow.h"
#include "reduce.h"

#define NCCL_OK 0
#define NCCL_SYSTEM_ERROR 2
#define NCCL_ID_BYTES 128u
#define NAME_BYTES (TALK_NAME_CHARS / 2)

struct comm {
	int ranks, rank;
	struct talk *talk; /* NULL: the others are pretended */
	const int *
		plays; /* for each rank, which one says what it says (cufrag_roles.py); NULL: all run */
	unsigned char name[NAME_BYTES];
	unsigned splits;
	struct nogpu_held held;
	bool ring;	    /* is connected */
	unsigned char *met; /* ways to and from each rank that are connected; NULL: none */
};

/* The id is passed by value: 128 bytes on the stack, before no argument in a register. */
struct nccl_id {
	unsigned char bytes[NCCL_ID_BYTES];
};

/* ---- communicators ------------------------------------------------------------------------ */

static int comm_make(void **out, int ranks, int rank)
{
	struct comm *c;

	FRAG_TRY(frag_nogpu_handle(out));
	c = *out;
	*c = (struct comm){ .ranks = ranks, .rank = rank };
	frag_nogpu_beside_take_group(ranks, rank, &c->held);
	return NCCL_OK;
}

/* A group connects its ring at its first collective. */
static void works(struct comm *c, void *stream, uint64_t bytes)
{
	if (!c->ring)
		frag_nogpu_beside_more(&c->held, frag_nogpu_ring_bytes(c->ranks));
	c->ring = true;
	frag_nogpu_sent(stream, bytes);
}

/* The way to a rank, or from it, is connected when it is first used. */
static void meet(struct comm *c, int peer, bool receives)
{
	const unsigned char way = receives ? 2 : 1;

	if (!c->met)
		c->met = frag_host_calloc((size_t)c->ranks, 1);
	if (!c->met || peer == c->rank || (unsigned)peer >= (unsigned)c->ranks ||
	    c->met[peer] & way)
		return;
	c->met[peer] |= way;
	frag_nogpu_beside_more(&c->held, frag_nogpu_way_bytes(c->ranks, receives));
}

/* ---- ranks that play others ---- */

struct players {
	struct players *next;
	unsigned char name[NAME_BYTES]; /* of the communicator */
	int count;
	int plays[];
};
static struct players *players;

/* Before a communicator of this name is made. They stay: groups are few. */
__attribute__((visibility("default"))) void frag_nogpu_players(const unsigned char *name,
							       const int *plays, int count);
void frag_nogpu_players(const unsigned char *name, const int *plays, int count)
{
	struct players *p = frag_host_calloc(1, sizeof(*p) + (size_t)count * sizeof(p->plays[0]));

	if (!p)
		return;
	memcpy(p->name, name, sizeof(p->name));
	memcpy(p->plays, plays, (size_t)count * sizeof(*plays));
	p->count = count;
	NOGPU_LOCKED;
	p->next = players;
	players = p;
}

/* NULL: nobody but this rank takes part in it. */
static const int *players_of(const unsigned char *name, int ranks, int rank)
{
	NOGPU_LOCKED;
	const struct players *p = players;
	bool others = false;

	while (p && (p->count != ranks || memcmp(p->name, name, sizeof(p->name))))
		p = p->next;
	for (int i = 0; p && i < ranks; i++)
		others |= p->plays[i] != rank;
	return others ? p->plays : NULL;
}

static bool runs(const struct comm *c, int peer)
{
	return c->talk && (!c->plays || c->plays[peer] == peer);
}

/* A member of the group that has this name. */
static int comm_join(void **out, int ranks, int rank, const unsigned char *name)
{
	char text[TALK_NAME_CHARS];
	struct comm *c;

	FRAG_TRY(comm_make(out, ranks, rank));
	if (ranks > 1)
		frag_nogpu_ranks_begin();
	if (!talk_possible() || ranks < 2)
		return NCCL_OK;
	c = *out;
	if (getenv("CUFRAG_NOGPU_ROLES")) {
		c->plays = players_of(name, ranks, rank);
		if (!c->plays)
			return NCCL_OK;
	}
	memcpy(c->name, name, sizeof(c->name));
	for (unsigned i = 0; i < NAME_BYTES; i++)
		snprintf(text + 2 * i, 3, "%02x", name[i]);
	c->talk = talk_join(text, ranks, rank);
	return c->talk ? NCCL_OK : NCCL_SYSTEM_ERROR;
}

NOGPU_ENTRY(int, ncclGetUniqueId, (struct nccl_id * id))
{
	memset(id, 7, sizeof(*id));
	if (talk_possible() && getrandom(id->bytes, NAME_BYTES, 0) != (ssize_t)NAME_BYTES)
		return NCCL_SYSTEM_ERROR;
	return NCCL_OK;
}
NOGPU_VALUE(int, ncclCommInitRank, (void **out, int ranks, struct nccl_id id, int rank),
	    comm_join(out, ranks, rank, id.bytes))
NOGPU_VALUE(int, ncclCommInitRankConfig,
	    (void **out, int ranks, struct nccl_id id, int rank, void *config),
	    comm_join(out, ranks, rank, id.bytes))
NOGPU_VALUE(int, ncclCommInitRankScalable,
	    (void **out, int ranks, int rank, int ids, void *id, void *config),
	    comm_join(out, ranks, rank, id))
/* One process with a communicator for each of its cards, as DataParallel has. */
NOGPU_ENTRY(int, ncclCommInitAll, (void **out, int ranks, const int *devices))
{
	int before = frag_nogpu_device(), rc = 0;

	for (int i = 0; !rc && i < ranks; i++)
		rc = frag_nogpu_device_set(devices ? devices[i] : i)
			     ?: comm_make(&out[i], ranks, i);
	frag_nogpu_device_set(before);
	return rc;
}
NOGPU_ANSWER(ncclCommCount, (const struct comm *comm, int *count), *count = comm->ranks)
NOGPU_ANSWER(ncclCommUserRank, (const struct comm *comm, int *rank), *rank = comm->rank)
/* The communicator itself stays: threads that watch it may still ask. */
NOGPU_ENTRY(int, ncclCommDestroy, (struct comm * comm))
{
	if (comm && comm->talk) {
		await_drop(comm->talk);
		talk_leave(comm->talk);
		comm->talk = NULL;
	}
	if (comm) {
		frag_nogpu_beside_give(&comm->held);
		frag_host_free(comm->met);
		comm->met = NULL;
	}
	return NCCL_OK;
}
NOGPU_VALUE(int, ncclCommAbort, (struct comm * comm), frag_nogpu_ncclCommDestroy(comm))

/* ---- giving and awaiting ------------------------------------------------------------------- */

/* Of what is sent on: what was computed, however large, and what lies in small memory. */
static uint32_t known(const void *from, uint64_t bytes)
{
	return bytes > TALK_BYTES_MAX || frag_nogpu_settle(from, bytes)
		       ? NOGPU_UNKNOWN
		       : frag_nogpu_origin(from, bytes);
}

static int give(struct comm *c, int peer, enum talk_call call, const void *from, uint64_t bytes,
		uint32_t origin)
{
	bool said =
		talk_say(c->talk, peer, call, origin > NOGPU_UNKNOWN ? from : NULL, bytes, origin);

	return said ? NCCL_OK : NCCL_SYSTEM_ERROR;
}

/* Peer p gets the bytes at from + p * step, which come from `origin`. */
static int give_all(struct comm *c, enum talk_call call, const void *from, uint64_t bytes,
		    uint64_t step, uint32_t origin)
{
	int rc = NCCL_OK;

	for (int p = 0; !rc && p < c->ranks; p++)
		if (p != c->rank && runs(c, p))
			rc = give(c, p, call, (const char *)from + (uint64_t)p * step, bytes,
				  origin);
	return rc;
}

static struct awaited *await_calls(struct comm *c, enum talk_call call, size_t parts)
{
	struct awaited *a = await_new(c->talk, call, parts);

	if (a)
		a->plays = c->plays;
	return a;
}

/* What every other rank gives, at to + p * step; to NULL: parts of a reduction. */
static struct awaited *await_all(struct comm *c, enum talk_call call, void *to, uint64_t bytes,
				 uint64_t step)
{
	struct awaited *a = await_calls(c, call, (size_t)c->ranks - 1);

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

static int begin(struct awaited *a, void *stream)
{
	if (!a)
		return NCCL_SYSTEM_ERROR;
	await_begin(a, stream);
	return NCCL_OK;
}

/* The calls have the types of NCCL's arguments; count is that of the result. */
static int await_reduction(struct comm *c, enum talk_call call, const void *own, uint32_t origin,
			   void *to, size_t count, int type, int op, void *stream)
{
	uint64_t bytes = count * reduce_type_bytes(type);
	struct awaited *a = await_all(c, call, NULL, bytes, 0);

	if (!a)
		return NCCL_SYSTEM_ERROR;
	a->result = to;
	a->own_at = (size_t)c->rank;
	a->bytes = bytes;
	a->type = type;
	a->op = op;
	a->own_origin = origin;
	a->own = a->own_origin > NOGPU_UNKNOWN ? frag_host_calloc(1, FRAG_MAX(bytes, 1u)) : NULL;
	if (a->own)
		memcpy(a->own, own, bytes);
	return begin(a, stream);
}

static int await_one(struct comm *c, int peer, enum talk_call call, void *to, uint64_t bytes,
		     void *stream)
{
	struct awaited *a = await_calls(c, call, 1);

	if (a)
		a->parts[0] = (struct await_part){ .peer = peer, .to = to, .bytes = bytes };
	return begin(a, stream);
}

/* Within this card. `to` is NULL where the result of a reduction is another rank's. */
static int move(const void *from, void *to, size_t count, int type)
{
	size_t bytes = count * reduce_type_bytes(type);

	if (from == to || !to)
		return NCCL_OK;
	frag_nogpu_cudaMemcpyAsync(to, from, bytes, 3, NULL);
	if (bytes <= NOGPU_COPY_MAX)
		frag_nogpu_arrived(to, from);
	return NCCL_OK;
}

/* Into the places of this rank and of those that it plays: from + p * step. */
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
	struct comm *comm;
	enum talk_call call;
	const void *from; /* given to the peer, or */
	void *to;	  /* awaited from it */
	uint64_t bytes;
	int peer;
	void *stream;
	bool played; /* awaited from a rank that the peer plays: what the peer gives for itself */
};
static _Thread_local struct {
	unsigned depth;
	struct part *list;
	size_t count, room;
} group;

/* What does not find room is left as it is. */
static void note(const struct part *p)
{
	if (group.depth &&
	    !FRAG_GROW(group.list, group.count, group.room, "calls of a group", NULL))
		group.list[group.count++] = *p;
}

static const struct part *given_for(const struct part *awaited)
{
	for (size_t i = 0; i < group.count; i++) {
		const struct part *p = &group.list[i];

		if (p->from && p->bytes == awaited->bytes &&
		    (p->peer == ANYBODY || p->peer == awaited->peer))
			return p;
	}
	return NULL;
}

/* Pretended ranks: a gather or an exchange made of single calls brings what one call for all would: what this rank
 * gives. */
static void exchange_own(void)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < group.count; i++)
		bytes += group.list[i].to ? group.list[i].bytes : 0;
	for (size_t i = 0; i < group.count && bytes <= NOGPU_COPY_MAX; i++) {
		bool own = group.list[i].to && !group.list[i].comm;
		const struct part *p = own ? given_for(&group.list[i]) : NULL;

		if (p)
			move(p->from, group.list[i].to, p->bytes, 0);
	}
}

/* Of the first `count` parts, what this peer gives for itself; NULL: nothing. */
static const struct await_part *given_by(const struct awaited *a, size_t count,
					 const struct part *played)
{
	for (size_t i = 0; i < count; i++)
		if (a->parts[i].peer == played->peer && a->parts[i].bytes == played->bytes)
			return &a->parts[i];
	return NULL;
}

static bool is_of(const struct part *p, const struct comm *c, enum talk_call call)
{
	return p->comm == c && p->call == call;
}

/* Parts of ranks that run, or of those that they play, from `at` on. Returns how many parts there are then. */
static size_t put_parts(struct awaited *a, const struct comm *c, bool played, size_t at)
{
	const size_t first = at;

	for (size_t i = 0; i < group.count; i++) {
		const struct part *p = &group.list[i];
		const struct await_part *same;

		if (!is_of(p, c, a->call) || p->played != played)
			continue;
		same = played ? given_by(a, first, p) : NULL;
		a->parts[at++] = (struct await_part){ .peer = p->peer,
						      .to = p->to,
						      .bytes = p->bytes,
						      .own = played && !same,
						      .same = same };
	}
	return at;
}

/* All that the group awaits by one communicator from one kind of call arrives together. */
static int await_group(struct comm *c, enum talk_call call)
{
	struct awaited *a;
	size_t count = 0;
	void *stream = NULL;

	for (size_t i = 0; i < group.count; i++)
		count += is_of(&group.list[i], c, call);
	a = await_calls(c, call, count);
	if (!a)
		return NCCL_SYSTEM_ERROR;
	put_parts(a, c, true, put_parts(a, c, false, 0));
	for (size_t i = 0; i < group.count; i++) {
		if (!is_of(&group.list[i], c, call))
			continue;
		stream = group.list[i].stream;
		group.list[i].comm = NULL;
	}
	return begin(a, stream);
}

static int end_group(void)
{
	int rc = NCCL_OK;

	exchange_own();
	for (size_t i = 0; !rc && i < group.count; i++) {
		const struct part *p = &group.list[i];

		if (p->comm && p->comm->talk)
			rc = await_group(p->comm, p->call);
	}
	FRAG_FREE(group.list);
	group.list = NULL;
	group.count = group.room = 0;
	return rc;
}

NOGPU_ANSWER(ncclGroupStart, (void), group.depth++)
NOGPU_ENTRY(int, ncclGroupEnd, (void))
{
	if (!group.depth || --group.depth)
		return NCCL_OK;
	return end_group();
}

NOGPU_ENTRY(int, ncclSend,
	    (const void *from, size_t count, int type, int peer, void *comm, void *stream))
{
	uint64_t bytes = count * reduce_type_bytes(type);
	struct comm *c = comm;

	meet(c, peer, false);
	frag_nogpu_sent(stream, bytes);
	if (runs(c, peer))
		return give(c, peer, TALK_SEND, from, bytes, known(from, bytes));
	note(&(struct part){ .from = from, .bytes = bytes, .peer = peer });
	return NCCL_OK;
}
NOGPU_ENTRY(int, ncclRecv, (void *to, size_t count, int type, int peer, void *comm, void *stream))
{
	uint64_t bytes = count * reduce_type_bytes(type);
	struct comm *c = comm;

	meet(c, peer, true);
	frag_nogpu_sent(stream, bytes);
	if (runs(c, peer) && !group.depth)
		return await_one(c, peer, TALK_SEND, to, bytes, stream);
	note(&(struct part){ .comm = runs(c, peer) ? c : NULL,
			     .call = TALK_SEND,
			     .to = to,
			     .bytes = bytes,
			     .peer = peer,
			     .stream = stream });
	return NCCL_OK;
}

/* ---- collectives ------------------------------------------------------------------------ */

NOGPU_ENTRY(int, ncclAllReduce,
	    (const void *from, void *to, size_t count, int type, int op, struct comm *c,
	     void *stream))
{
	uint64_t bytes = count * reduce_type_bytes(type);
	uint32_t origin;

	works(c, stream, 2 * bytes * (uint64_t)(c->ranks - 1) / (uint64_t)c->ranks);
	if (!c->talk)
		return move(from, to, count, type);
	origin = known(from, bytes);
	return give_all(c, TALK_ALL_REDUCE, from, bytes, 0, origin)
		       ?: await_reduction(c, TALK_ALL_REDUCE, from, origin, to, count, type, op,
					  stream);
}
NOGPU_ENTRY(int, ncclReduce,
	    (const void *from, void *to, size_t count, int type, int op, int root, struct comm *c,
	     void *stream))
{
	uint64_t bytes = count * reduce_type_bytes(type);

	works(c, stream, bytes);
	if (!c->talk)
		return move(from, to, count, type);
	if (c->rank == root)
		return await_reduction(c, TALK_REDUCE, from, known(from, bytes), to, count, type,
				       op, stream);
	return runs(c, root) ? give(c, root, TALK_REDUCE, from, bytes, known(from, bytes))
			     : NCCL_OK;
}
NOGPU_ENTRY(int, ncclBroadcast,
	    (const void *from, void *to, size_t count, int type, int root, void *comm,
	     void *stream))
{
	uint64_t bytes = count * reduce_type_bytes(type);
	struct comm *c = comm;
	bool mine = root == c->rank;

	works(c, stream, bytes);
	if (c->talk && mine && c->plays)
		note(&(struct part){ .from = from, .bytes = bytes, .peer = ANYBODY });
	if (c->talk && mine)
		return give_all(c, TALK_BROADCAST, from, bytes, 0, known(from, bytes))
			       ?: move(from, to, count, type);
	if (!mine && c->talk && c->plays && group.depth && c->plays[root] != c->rank) {
		note(&(struct part){ .comm = c,
				     .call = TALK_BROADCAST,
				     .to = to,
				     .bytes = bytes,
				     .peer = c->plays[root],
				     .stream = stream,
				     .played = c->plays[root] != root });
		return NCCL_OK;
	}
	if (!mine && runs(c, root))
		return await_one(c, root, TALK_BROADCAST, to, bytes, stream);
	if (mine)
		note(&(struct part){ .from = from, .bytes = bytes, .peer = ANYBODY });
	else if (from == to)
		note(&(struct part){ .to = to, .bytes = bytes, .peer = root });
	return move(from, to, count, type);
}
NOGPU_VALUE(int, ncclBcast,
	    (void *data, size_t count, int type, int root, void *comm, void *stream),
	    frag_nogpu_ncclBroadcast(data, data, count, type, root, comm, stream))
/* This rank's part of the input; count is that of the output. */
NOGPU_ENTRY(int, ncclReduceScatter,
	    (const void *from, void *to, size_t count, int type, int op, struct comm *c,
	     void *stream))
{
	uint64_t bytes = count * reduce_type_bytes(type);
	const void *own = (const char *)from + (uint64_t)c->rank * bytes;
	uint32_t origin;

	works(c, stream, bytes * (uint64_t)(c->ranks - 1));
	if (!c->talk)
		return move(own, to, count, type);
	origin = known(from, bytes * (uint64_t)c->ranks);
	return give_all(c, TALK_REDUCE_SCATTER, from, bytes, bytes, origin)
		       ?: await_reduction(c, TALK_REDUCE_SCATTER, own, origin, to, count, type, op,
					  stream);
}
NOGPU_ENTRY(int, ncclAllGather,
	    (const void *from, void *to, size_t count, int type, struct comm *c, void *stream))
{
	uint64_t ranks = (uint64_t)c->ranks, bytes = count * reduce_type_bytes(type);

	works(c, stream, bytes * (ranks - 1));
	if (c->talk) {
		FRAG_TRY(give_all(c, TALK_ALL_GATHER, from, bytes, 0, known(from, bytes)));
		move_own(c, from, 0, to, count, type);
		return begin(await_all(c, TALK_ALL_GATHER, to, bytes, bytes), stream);
	}
	for (uint64_t i = 0; i < ranks && bytes * ranks <= NOGPU_COPY_MAX; i++)
		move(from, (char *)to + i * bytes, count, type);
	return NCCL_OK;
}
NOGPU_ENTRY(int, ncclAlltoAll,
	    (const void *from, void *to, size_t count, int type, struct comm *c, void *stream))
{
	uint64_t bytes = count * reduce_type_bytes(type);

	for (int i = 0; i < c->ranks; i++) {
		meet(c, i, false);
		meet(c, i, true);
	}
	frag_nogpu_sent(stream, bytes * (uint64_t)(c->ranks - 1));
	if (!c->talk)
		return move(from, to, count * (size_t)c->ranks, type);
	FRAG_TRY(give_all(c, TALK_ALL_TO_ALL, from, bytes, bytes,
			  known(from, bytes * (uint64_t)c->ranks)));
	move_own(c, from, bytes, to, count, type);
	return begin(await_all(c, TALK_ALL_TO_ALL, to, bytes, bytes), stream);
}

/* ---- parts of a communicator ------------------------------------------------------------------- */

/* Others below 0 are colours: PyTorch 2.3 to 2.5 cuts hashes of 63 bits to an int. */
#define NO_COLOUR (-1)

struct choice {
	int color, key;
};

/* What every member chose; own at its place. */
static int gather_choices(struct comm *c, struct choice *all)
{
	for (int p = 0; p < c->ranks; p++)
		if (p != c->rank &&
		    !talk_say(c->talk, p, TALK_SPLIT, &all[c->rank], sizeof(*all), NOGPU_COMPUTED))
			return NCCL_SYSTEM_ERROR;
	FRAG_TRY(begin(await_all(c, TALK_SPLIT, all, sizeof(*all), sizeof(*all)), NULL));
	return frag_nogpu_settle(all, sizeof(*all) * (uint64_t)c->ranks) ? NCCL_SYSTEM_ERROR
									 : NCCL_OK;
}

/* Of the part of `name` that has this colour in its split number `splits`: the same for all its members. */
static void part_name(unsigned char *part, const struct comm *c, int color)
{
	for (unsigned half = 0; half < 2; half++) {
		uint64_t hash = 0xcbf29ce484222325ull + half; /* FNV-1a */
		const unsigned char *words[] = { c->name, (const unsigned char *)&color,
						 (const unsigned char *)&c->splits };
		const size_t bytes[] = { sizeof(c->name), sizeof(color), sizeof(c->splits) };

		for (unsigned w = 0; w < 3; w++)
			for (size_t i = 0; i < bytes[w]; i++)
				hash = (hash ^ words[w][i]) * 0x100000001b3ull;
		memcpy(part + half * sizeof(hash), &hash, sizeof(hash));
	}
}

/* Members of one colour, by their keys, then by their ranks. */
static int split(struct comm *p, const struct choice *all, void **out)
{
	unsigned char name[NAME_BYTES];
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

/* How many join one colour is known to the others only: where those are pretended, as many as there were. */
NOGPU_ENTRY(int, ncclCommSplit, (struct comm * p, int color, int key, void **out, void *config))
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
