/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this rank awaits from others. NCCL's calls return at once, and a stream waits for what they bring; here
 * the host waits where it matters: when somebody reads such memory, or waits for a stream that waits.
 *
 *	struct awaited *a = await_new(comm->talk, call, parts);	fill a->parts, a->result …
 *	await_begin(a, stream);
 *	…
 *	frag_nogpu_settle(p, bytes);			what lies there is complete now
 *
 * Invariant: of two that are awaited from one rank by one communicator, the one that began first takes first.
 */
#ifndef FRAG_NOGPU_AWAIT_H
#define FRAG_NOGPU_AWAIT_H

#include <frag/base.h>

#include "pretend/talk/talk.h"

struct await_part {
	int peer;
	void *to; /* NULL: a part of the result, or abandoned */
	uint64_t bytes;
	bool here;
	bool own; /* nothing comes: this rank plays that one, too */
	const struct await_part
		*same; /* what the peer gave there stands for this one; NULL: its own message */
	struct talk_message got;
};

struct awaited {
	struct awaited *next;
	struct talk *talk;
	enum talk_call call;
	bool lent;  /* memory that several processes have is used after this only (lent.h) */
	bool plays; /* one rank stands for others, whose parts may have other sizes */
	uint64_t number;
	uint64_t ns; /* that it takes, once all have begun */
	struct moment_node *over;
	/* of a reduction: where it goes, NULL: no reduction, or abandoned; own values, NULL: not computed; before part own_at */
	void *result, *own;
	size_t own_at;
	uint64_t bytes;
	uint32_t own_origin;
	int type, op;
	double factor; /* of such a sum */
	size_t parts_count;
	struct await_part parts[];
};

/* NULL: no memory. */
struct awaited *await_new(struct talk *t, enum talk_call call, size_t parts);
void await_begin(struct awaited *a, void *stream);
/* The communicator ends: nothing of it is awaited any longer. */
void await_drop(struct talk *t);

/* Waits until nothing is awaited at [p, p + bytes). 0, or NOGPU_TIMEOUT: ranks wait for
 * each other. */
__attribute__((visibility("default"))) int frag_nogpu_settle(const void *p, uint64_t bytes);
/* Memory at [p, p + bytes) is used anew: what is still awaited there is not written. */
__attribute__((visibility("default"))) void frag_nogpu_abandon(const void *p, uint64_t bytes);
/* How much is awaited: while it is 0, nobody needs to ask. */
__attribute__((visibility("default"))) const _Atomic unsigned *frag_nogpu_awaited(void);

/* Kernels of PyTorch's symmetric memory are seen to from here on; runs by itself where the whole library is loaded. */
void frag_nogpu_symmetric_begin(void);

#endif
