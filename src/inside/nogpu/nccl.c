/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL: this process plays one rank, and every other rank is assumed to hold the same values. So a gather repeats
 * them, a reduction leaves them, others send what they are sent, and nobody waits.
 */
#include "entries.h"

#include <string.h>

#include "lib/grow.h"

#define NCCL_ID_BYTES 128u

struct comm {
	int ranks, rank;
};

static int comm_make(void **out, int ranks, int rank)
{
	int rc = frag_nogpu_handle(out);

	if (!rc)
		*(struct comm *)*out = (struct comm){ ranks, rank };
	return rc;
}

/* The id is passed by value: 128 bytes on the stack, before no argument in a register. */
struct nccl_id {
	char bytes[NCCL_ID_BYTES];
};

NOGPU_ANSWER(ncclGetUniqueId, (struct nccl_id * id), memset(id, 7, sizeof(*id)))
NOGPU_VALUE(int, ncclCommInitRank, (void **out, int ranks, struct nccl_id id, int rank),
	    comm_make(out, ranks, rank))
NOGPU_VALUE(int, ncclCommInitRankConfig,
	    (void **out, int ranks, struct nccl_id id, int rank, void *config),
	    comm_make(out, ranks, rank))
NOGPU_VALUE(int, ncclCommInitRankScalable,
	    (void **out, int ranks, int rank, int ids, void *id, void *config),
	    comm_make(out, ranks, rank))
/* One process with a communicator for each of its cards, as DataParallel has. */
NOGPU_ENTRY(int, ncclCommInitAll, (void **out, int ranks, const int *devices))
{
	int rc = 0;

	for (int i = 0; !rc && i < ranks; i++)
		rc = comm_make(&out[i], ranks, i);
	return rc;
}
/* How many join one colour is known to the others only: as many as there were. */
NOGPU_ENTRY(int, ncclCommSplit, (void *parent, int color, int key, void **out, void *config))
{
	const struct comm *p = parent;

	if (color < 0) {
		*out = NULL;
		return 0;
	}
	return comm_make(out, p->ranks, FRAG_MIN(key, p->ranks - 1));
}
NOGPU_ANSWER(ncclCommCount, (const struct comm *comm, int *count), *count = comm->ranks)
NOGPU_ANSWER(ncclCommUserRank, (const struct comm *comm, int *rank), *rank = comm->rank)

/* ncclDataType_t: int8, uint8, int32, uint32, int64, uint64, half, float, double, bfloat16, fp8 … */
static size_t type_bytes(int type)
{
	static const size_t bytes[] = { 1, 1, 4, 4, 8, 8, 2, 4, 8, 2 };

	return type >= 0 && (size_t)type < FRAG_ARRAY_LEN(bytes) ? bytes[type] : 1;
}

/* `to` is NULL where the result of a reduction is another rank's. */
static int move(const void *from, void *to, size_t count, int type)
{
	size_t bytes = count * type_bytes(type);

	if (from == to || !to)
		return 0;
	frag_nogpu_cudaMemcpyAsync(to, from, bytes, 3, NULL);
	if (bytes <= NOGPU_COPY_MAX)
		frag_nogpu_arrived(to, from);
	return 0;
}

/* ---- what one group of calls exchanges ------------------------------------------------ */

#define ANYBODY (-1)

struct part {
	const void *from; /* given to the peer, or */
	void *to;	  /* awaited from it */
	size_t bytes;
	int peer;
};
static _Thread_local struct {
	unsigned depth;
	struct part *list;
	size_t count, room;
} group;

/* What does not find room is left as it is. */
static void note(const void *from, void *to, size_t count, int type, int peer)
{
	if (group.depth &&
	    !FRAG_GROW(group.list, group.count, group.room, "calls of a group", NULL))
		group.list[group.count++] =
			(struct part){ from, to, count * type_bytes(type), peer };
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

/* A gather or an exchange made of single calls brings what one call for all would: what this rank gives. */
static void exchange(void)
{
	size_t bytes = 0;

	for (size_t i = 0; i < group.count; i++)
		bytes += group.list[i].to ? group.list[i].bytes : 0;
	for (size_t i = 0; i < group.count && bytes <= NOGPU_COPY_MAX; i++) {
		const struct part *p = group.list[i].to ? given_for(&group.list[i]) : NULL;

		if (p)
			move(p->from, group.list[i].to, p->bytes, 0);
	}
}

NOGPU_ANSWER(ncclGroupStart, (void), group.depth++)
NOGPU_ENTRY(int, ncclGroupEnd, (void))
{
	if (!group.depth || --group.depth)
		return 0;
	exchange();
	FRAG_FREE(group.list);
	group.list = NULL;
	group.count = group.room = 0;
	return 0;
}

/* ---- collectives ------------------------------------------------------------------------ */

NOGPU_VALUE(int, ncclAllReduce,
	    (const void *from, void *to, size_t count, int type, int op, void *comm, void *stream),
	    move(from, to, count, type))
NOGPU_VALUE(int, ncclReduce,
	    (const void *from, void *to, size_t count, int type, int op, int root, void *comm,
	     void *stream),
	    move(from, to, count, type))
NOGPU_ENTRY(int, ncclBroadcast,
	    (const void *from, void *to, size_t count, int type, int root, void *comm,
	     void *stream))
{
	bool mine = root == ((struct comm *)comm)->rank;

	if (mine)
		note(from, NULL, count, type, ANYBODY);
	else if (from == to)
		note(NULL, to, count, type, root);
	return move(from, to, count, type);
}
NOGPU_VALUE(int, ncclBcast,
	    (void *data, size_t count, int type, int root, void *comm, void *stream),
	    frag_nogpu_ncclBroadcast(data, data, count, type, root, comm, stream))
NOGPU_ANSWER(ncclSend,
	     (const void *from, size_t count, int type, int peer, void *comm, void *stream),
	     note(from, NULL, count, type, peer))
NOGPU_ANSWER(ncclRecv, (void *to, size_t count, int type, int peer, void *comm, void *stream),
	     note(NULL, to, count, type, peer))
/* This rank's part of the input; count is that of the output. */
NOGPU_ENTRY(int, ncclReduceScatter,
	    (const void *from, void *to, size_t count, int type, int op, void *comm, void *stream))
{
	const struct comm *c = comm;
	size_t part = (size_t)c->rank * count * type_bytes(type);

	return move((const char *)from + part, to, count, type);
}
NOGPU_ENTRY(int, ncclAllGather,
	    (const void *from, void *to, size_t count, int type, void *comm, void *stream))
{
	size_t ranks = (size_t)((struct comm *)comm)->ranks, bytes = count * type_bytes(type);

	if (bytes * ranks > NOGPU_COPY_MAX)
		return 0;
	for (size_t i = 0; i < ranks; i++)
		move(from, (char *)to + i * bytes, count, type);
	return 0;
}
NOGPU_VALUE(int, ncclAlltoAll,
	    (const void *from, void *to, size_t count, int type, void *comm, void *stream),
	    move(from, to, count *(size_t)((struct comm *)comm)->ranks, type))
