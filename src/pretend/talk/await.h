/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transfers from other ranks: of a part from each, or of the values that a reduction combines. And
 * the scalar clock of a job: a message carries the time at which its sender began; a transfer ends
 * a while after the last sender has begun.
 *
 *	struct awaited *a = await_new(comm->talk, call, parts);		fill a->parts, a->result …
 *	await_begin(a, stream);
 *
 * The ranks run in lockstep: await_begin blocks until all senders have begun, then delivers the
 * data and advances the stream's clock. So all times are known, and do not depend on the speed of
 * processes. Only where a sender waits for this process (NCCL's calls do not block, so a program
 * may receive first and send later) or makes no progress is the transfer late: it ends on the clock
 * as if the senders had begun with this rank, and the host waits when it needs the data.
 *
 * Invariant: transfers from one rank in one communicator complete in the order in which they began.
 */
#ifndef FRAG_PRETEND_AWAIT_H
#define FRAG_PRETEND_AWAIT_H

#include <frag/base.h>

#include "talk.h"

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
	bool lent;   /* shared memory is in use until this is over (lent.c) */
	bool late;   /* await_begin has returned without it */
	bool absent; /* a sender made no progress for long */
	uint64_t number;
	void *stream;
	uint64_t ns;	/* duration, once all have begun */
	uint64_t begun; /* start of the last sender so far */
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
/* Takes ownership of the transfer. */
void await_begin(struct awaited *a, void *stream);
/* The communicator ends, and its transfers with it. */
void await_drop(struct talk *t);

/* Waits for the data of [p, p + bytes). PRETEND_TIMEOUT: deadlock. */
__attribute__((visibility("default"))) int frag_pretend_settle(const void *p, uint64_t bytes);
/* Late transfers no longer write to [p, p + bytes), which is used anew. */
__attribute__((visibility("default"))) void frag_pretend_abandon(const void *p, uint64_t bytes);
/* Number of pending transfers: while it is 0, callers can skip the other calls. */
__attribute__((visibility("default"))) const _Atomic unsigned *frag_pretend_awaited(void);

#endif
