/* SPDX-License-Identifier: Apache-2.0 */
/* A communicator of NCCL's (nccl_group.c), and what its calls (nccl.c) have in common with what makes it. */
#ifndef FRAG_NOGPU_NCCL_H
#define FRAG_NOGPU_NCCL_H

#include "await.h"
#include "pretend/card/nogpu.h"

#define NCCL_OK 0
#define NCCL_SYSTEM_ERROR 2
#define NCCL_NAME_BYTES (TALK_NAME_CHARS / 2)

struct comm {
	int ranks, rank;
	struct talk *talk; /* NULL: the others are pretended */
	const int *
		plays; /* for each rank, which one says what it says (cufrag_roles.py); NULL: all run */
	unsigned char name[NCCL_NAME_BYTES];
	unsigned splits;
	struct nogpu_held held;
	/* of the call that is being made: when it began, and how long it takes */
	struct talk_when when;
	uint64_t ns;
	bool kernels;	    /* not NCCL, but kernels of PyTorch's do it (symmetric.c) */
	bool ring;	    /* is connected */
	unsigned char *met; /* ways to and from each rank that are connected; NULL: none */
};

/* A name made of parts, the same for all who make it of the same; then half holds it. */
#define NCCL_NAME_BEGIN \
	{ \
		0xcbf29ce484222325ull, 0xcbf29ce484222326ull \
	}
void nccl_name_add(uint64_t half[2], const void *part, size_t bytes);

/* The rank is another process, to which this one talks. */
bool nccl_runs(const struct comm *c, int peer);
/* A group connects its ring at its first collective, and the way to a rank, or from it, when it is first used. kernel: what
 * its first needs of local memory. */
void nccl_connect_ring(struct comm *c, enum nogpu_local kernel);
void nccl_meet(struct comm *c, int peer, bool receives);

/* What every other rank gives, at to + p * step; to NULL: parts of a reduction. NULL: no memory, which begin takes as an error. */
struct awaited *nccl_await_all(struct comm *c, enum talk_call call, void *to, uint64_t bytes,
			       uint64_t step);
int nccl_begin(struct awaited *a, void *stream);
struct awaited *nccl_await_one(struct comm *c, int peer, enum talk_call call, void *to,
			       uint64_t bytes);
/* A call begins on the stream. What it gives to one rank, or to each. */
void nccl_sends(struct comm *c, void *stream, uint64_t bytes);
int nccl_give(struct comm *c, int peer, enum talk_call call, const void *from, uint64_t bytes,
	      uint32_t origin);
int nccl_give_all(struct comm *c, enum talk_call call, const void *from, uint64_t bytes,
		  uint64_t step, uint32_t origin);
NOGPU_DECLARE(int, ncclAllReduce,
	      (const void *from, void *to, size_t count, int type, int op, struct comm *c,
	       void *stream));
/* Of kernels: a group that takes nothing of the card. NULL: no memory, or nobody to talk to. */
struct comm *nccl_group_of_kernels(const unsigned char *name, int ranks, int rank);

#endif
