/* SPDX-License-Identifier: Apache-2.0 */
/* See transfer.h. */
#include "reduce.h"
#include "transfer.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pretend/card/nogpu.h"

struct awaited *transfer_new(struct talk *t, enum talk_call call, size_t parts)
{
	struct awaited *a = frag_host_calloc(1, sizeof(*a) + parts * sizeof(a->parts[0]));

	if (a) {
		a->talk = t;
		a->call = call;
		a->parts_count = parts;
	}
	return a;
}

void transfer_free(struct awaited *a)
{
	for (size_t i = 0; i < a->parts_count; i++)
		frag_host_free(a->parts[i].got.data);
	frag_host_free(a->own);
	frag_host_free(a);
}

static const struct talk_message *got_by(const struct await_part *p)
{
	return p->same ? &p->same->got : &p->got;
}

/* An empty part has no destination: its address may be that of other parts, or the end of the
 * storage. */
static bool has_place(const struct await_part *p)
{
	return p->to && p->bytes && !p->own;
}

/* A storage gets the least known origin of its parts. */
static void place(const struct awaited *a)
{
	for (size_t i = 0; i < a->parts_count; i++)
		if (has_place(&a->parts[i]))
			frag_nogpu_origin_set(a->parts[i].to, a->parts[i].bytes, NOGPU_COMPUTED,
					      false);
	for (size_t i = 0; i < a->parts_count; i++) {
		const struct await_part *p = &a->parts[i];
		const struct talk_message *got = got_by(p);

		if (!has_place(p))
			continue;
		if (got->carried)
			memcpy(p->to, got->data, FRAG_MIN(p->bytes, got->bytes));
		frag_nogpu_origin_set(p->to, p->bytes, got->carried ? got->origin : NOGPU_UNKNOWN,
				      true);
	}
}

/* Part i in rank order: all ranks add in this order, so their sums are equal. */
static const void *in_order(const struct awaited *a, size_t i)
{
	const struct await_part *p = i == a->own_at ? NULL : &a->parts[i < a->own_at ? i : i - 1];

	return !p || p->own ? a->own : got_by(p)->data;
}

/* Unless all ranks computed their values, this rank's result stays as it is. */
static void reduce(struct awaited *a)
{
	uint32_t origin = a->own_origin;
	bool all = a->own && reduce_known(a->type, a->op);

	for (size_t i = 0; i < a->parts_count; i++) {
		const struct talk_message *got = got_by(&a->parts[i]);

		if (a->parts[i].own)
			continue;
		all &= got->carried && got->bytes == a->bytes;
		origin = FRAG_MIN(origin, got->origin);
	}
	frag_nogpu_origin_set(a->result, a->bytes, all ? origin : NOGPU_UNKNOWN, false);
	if (!all)
		return;
	memcpy(a->result, in_order(a, 0), a->bytes);
	for (size_t i = 1; i <= a->parts_count; i++)
		reduce_with(a->result, in_order(a, i), a->bytes, a->type, a->op);
	reduce_end(a->result, a->bytes, a->type, a->op, (int)a->parts_count + 1, a->factor);
}

void transfer_deliver(struct awaited *a)
{
	if (a->result)
		reduce(a);
	else if (!a->own)
		place(a);
}

void transfer_ended(void)
{
	static atomic_bool said;

	if (!atomic_exchange(&said, true))
		dprintf(STDERR_FILENO,
			"cufrag: process %d waited for a rank that has ended; values "
			"that it should have sent are invented\n",
			(int)getpid());
}

void transfer_check(const struct awaited *a, const struct await_part *p)
{
	static const char *const names[] = {
		[TALK_SEND] = "a send",
		[TALK_SPLIT] = "a split",
		[TALK_ALL_REDUCE] = "an all-reduce",
		[TALK_REDUCE] = "a reduce",
		[TALK_BROADCAST] = "a broadcast",
		[TALK_REDUCE_SCATTER] = "a reduce-scatter",
		[TALK_ALL_GATHER] = "an all-gather",
		[TALK_ALL_TO_ALL] = "an all-to-all",
		[TALK_BARRIER] = "a barrier",
	};
	static atomic_bool said;
	const char *rank = getenv("RANK");

	if (a->plays || (p->got.call == a->call && p->got.bytes == p->bytes) ||
	    atomic_exchange(&said, true))
		return;
	dprintf(STDERR_FILENO,
		"cufrag: rank %s awaits %s of %" PRIu64 " bytes, but member %d of the group "
		"made %s of %" PRIu64 " bytes: on a card, this job would hang or mix them up\n",
		rank ? rank : "?", names[a->call], p->bytes, p->peer, names[p->got.call],
		p->got.bytes);
}
