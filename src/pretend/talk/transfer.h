/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A transfer from other ranks: of a part from each, or of the values that a reduction combines.
 *
 *	struct awaited *a = transfer_new(comm->talk, call, parts);	fill a->parts, a->result …
 *	await_begin(a, stream);						await.h
 */
#ifndef FRAG_NOGPU_TRANSFER_H
#define FRAG_NOGPU_TRANSFER_H

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
	bool lent;	 /* shared memory is in use until this is over (lent.h) */
	bool plays;	 /* ranks play others, whose parts may have other sizes */
	bool heard;	 /* all messages have come */
	bool late;	 /* await_begin has returned */
	bool absent;	 /* a sender made no progress for long */
	uint64_t circle; /* of ranks that waited for each other: talk_circle */
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
struct awaited *transfer_new(struct talk *t, enum talk_call call, size_t parts);
void transfer_free(struct awaited *a);
/* A message of this part is still to come. */
static inline bool transfer_waits(const struct await_part *p)
{
	return !p->here && !p->same && !p->own;
}

/* Writes the values, where they were computed, and their origins. pre: no part waits. */
void transfer_deliver(struct awaited *a);
/* Warns once where ranks call different collectives, or in another order: NCCL on a card would hang
 * or mix up data. */
void transfer_check(const struct awaited *a, const struct await_part *p);
/* Warns once that a sender has ended. */
void transfer_ended(void);

#endif
