/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL communicators (nccl_group.c), and what their calls (nccl.c) share. */
#ifndef FRAG_PRETEND_NCCL_H
#define FRAG_PRETEND_NCCL_H

#include "pretend/talk/await.h"
#include "pretend/card/card.h"

#define NCCL_OK 0
#define NCCL_SYSTEM_ERROR 2
#define NCCL_NAME_BYTES (TALK_NAME_CHARS / 2)

struct comm {
	int ranks, rank;
	struct talk *talk; /* NULL: the others are pretended */
	const int *
		plays; /* maps each rank to the one that plays it (cufrag_roles.py); NULL: all run */
	unsigned char name[NCCL_NAME_BYTES];
	unsigned splits;
	struct pretend_held held;
	/* the current call: when it began, and its duration */
	uint64_t start, ns;
	bool kernels;	    /* PyTorch's kernels communicate instead of NCCL (symmetric.c) */
	bool ring;	    /* is the ring connected? */
	unsigned char *met; /* bit set of connections to and from each rank; NULL: none */
};

/* Memory besides NCCL's code, and addresses, of a group with this process as `rank`: when it is
 * made, when its ring is connected, and for the connection to one of its ranks (beside_nccl.c). */
void nccl_hold_group(struct pretend_held *held, int ranks, int rank);
void nccl_hold_ring(struct pretend_held *held, int ranks);
void nccl_hold_way(struct pretend_held *held, int ranks, bool receives);
uint64_t frag_pretend_group_bytes(int ranks, int rank);

/* Derives a name from parts, the same in all processes with the same parts. */
#define NCCL_NAME_BEGIN \
	{ \
		0xcbf29ce484222325ull, 0xcbf29ce484222326ull \
	}
void nccl_name_add(uint64_t half[2], const void *part, size_t bytes);

/* The rank is another process, which sends messages. */
bool nccl_runs(const struct comm *c, int peer);
/* A group connects its ring at its first collective, and each rank's send or receive side at first
 * use. kernel: the local memory that its first kernel needs. */
void nccl_connect_ring(struct comm *c, enum pretend_local kernel);
void nccl_meet(struct comm *c, int peer, bool receives);

/* Awaits each rank's data, at to + p * step; to NULL: parts of a reduction. NULL: no memory; begin
 * reports that. */
struct awaited *nccl_await_all(struct comm *c, void *to, uint64_t bytes, uint64_t step);
int nccl_begin(struct awaited *a, void *stream);
struct awaited *nccl_await_one(struct comm *c, int peer, enum talk_call call, void *to,
			       uint64_t bytes);
/* A call begins on the stream; bytes that it sends to one rank, or to each. */
void nccl_sends(struct comm *c, void *stream, uint64_t bytes);
int nccl_give(struct comm *c, int peer, enum talk_call call, const void *from, uint64_t bytes,
	      uint32_t origin);
int nccl_give_all(struct comm *c, const void *from, uint64_t bytes, uint64_t step, uint32_t origin);
PRETEND_DECLARE(int, ncclAllReduce,
		(const void *from, void *to, size_t count, int type, int op, struct comm *c,
		 void *stream));
/* For kernels: a group that takes no memory of the card. NULL: no memory, or no other processes. */
struct comm *nccl_group_of_kernels(const unsigned char *name, int ranks, int rank);

#endif
