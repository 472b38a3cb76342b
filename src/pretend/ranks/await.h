/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pending transfers from other ranks. NCCL's calls return at once and streams wait for the data;
 * here the host waits when the data is needed: when such memory is read, or a stream is
 * synchronized.
 *
 *	struct awaited *a = await_new(comm->talk, call, parts);	fill a->parts, a->result …
 *	await_begin(a, stream);
 *	…
 *	frag_nogpu_settle(p, bytes);			the contents of [p, p + bytes) are complete
 *
 * Invariant: transfers from one rank in one communicator complete in the order in which they began.
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
	bool own; /* no message: this process plays that rank, too */
	const struct await_part
		*same; /* part whose message also counts for this one; NULL: its own message */
	struct talk_message got;
};

struct awaited {
	struct awaited *next;
	struct talk *talk;
	enum talk_call call;
	bool lent;  /* shared memory is in use until this is over (lent.h) */
	bool plays; /* ranks play others, whose parts may have other sizes */
	uint64_t number;
	uint64_t ns; /* duration, once all have begun */
	struct moment_node *over;
	/* of a reduction: destination (NULL: no reduction, or abandoned); own values (NULL: not
	 * computed), which come before part own_at */
	void *result, *own;
	size_t own_at;
	uint64_t bytes;
	uint32_t own_origin;
	int type, op;
	double factor; /* of REDUCE_MADE */
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
/* Number of pending transfers: while it is 0, callers can skip the other calls. */
__attribute__((visibility("default"))) const _Atomic unsigned *frag_nogpu_awaited(void);

/* Kernels of PyTorch's symmetric memory are seen to from here on; runs by itself where the whole library is loaded. */
void frag_nogpu_symmetric_begin(void);

#endif
