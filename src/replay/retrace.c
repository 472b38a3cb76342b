/* SPDX-License-Identifier: Apache-2.0 */
/* The recording, followed during a replay; see retrace.h. */
#include "retrace.h"

bool frag_retrace_possible(const struct frag_trace_dev *t)
{
	return t->has_evidence && t->initial.segments_count && t->events && t->addrs;
}

static bool is_release(const struct frag_evidence *e)
{
	return e->kind == FRAG_SEEN_SEGMENT_FREE || e->kind == FRAG_SEEN_SEGMENT_UNMAP;
}

/* The segment event that the recording shows next for the current event, NULL if none. */
static const struct frag_evidence *expected(struct frag_retrace *r)
{
	const struct frag_trace_dev *t = r->trace;

	while (r->cursor < t->seen_count && (t->seen[r->cursor].kind > FRAG_SEEN_SEGMENT_UNMAP ||
					     t->seen[r->cursor].before < *r->event))
		r->cursor++;
	if (r->cursor == t->seen_count || t->seen[r->cursor].before != *r->event)
		return NULL;
	return &t->seen[r->cursor];
}

void frag_retrace_journal(void *ctx, enum frag_segment_event kind, frag_addr_t addr, uint64_t bytes,
			  uint32_t stream)
{
	struct frag_retrace *r = ctx;
	const struct frag_evidence *e;

	if (r->heard)
		r->heard(r->heard_ctx, kind, addr, bytes, stream);
	if (r->lost || !*r->begun)
		return;
	e = expected(r);
	if (e && e->kind == kind && e->addr == addr && e->bytes == bytes && e->stream == stream)
		r->cursor++;
	else
		r->lost = true;
}

bool frag_retrace_next(void *ctx, bool release, frag_addr_t addr)
{
	struct frag_retrace *r = ctx;
	const struct frag_trace_dev *t = r->trace;
	const struct frag_evidence *e;

	if (r->lost || !*r->begun || *r->event >= t->events_count)
		return false;
	if (!release)
		return t->events[*r->event].kind == FRAG_EV_ALLOC && t->addrs[*r->event] == addr;
	e = expected(r);
	return e && is_release(e) && e->addr == addr;
}
