/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded addresses as hints; see hints.h. */
#include "hints.h"

#include "trace/source.h"

/* Makes `seen` the next piece of the evidence. */
static bool next_piece(struct frag_hints *h)
{
	int rc = h->rc;

	h->cursor = 0;
	if (!h->path) {
		h->seen = h->trace->seen;
		h->count = h->begun ? 0 : h->trace->seen_count;
		rc = !h->begun;
		h->begun = true;
		return rc;
	}
	if (!rc && !h->source)
		rc = frag_source_open(h->path, &h->source, &h->err);
	if (!rc)
		rc = frag_source_seen(h->source, h->dev, &h->seen, &h->count, &h->err);
	h->rc = FRAG_MIN(rc, 0);
	return rc == 1;
}

int frag_hints_fault(const struct frag_hints *h, struct frag_err *err)
{
	if (h->rc && err)
		*err = h->err;
	return h->rc;
}

void frag_hints_release(struct frag_hints *h)
{
	frag_source_close(h->source);
	h->source = NULL;
	h->lost = true; /* frees at the end of a run request no new segments */
}

/* The next initial segment that is one call. */
static bool next_initial(struct frag_hints *h, frag_addr_t *addr)
{
	const struct frag_initial_state *state = &h->trace->initial;

	while (h->restored < state->segments_count && state->segments[h->restored].expandable)
		h->restored++;
	if (h->restored == state->segments_count)
		return false;
	*addr = state->segments[h->restored++].addr;
	return true;
}

/* A frag_place_fn. */
static int place(void *ctx, enum frag_call kind, uint64_t bytes, frag_addr_t *addr)
{
	struct frag_hints *h = ctx;

	if (kind != FRAG_CALL_MALLOC || h->lost || !h->trace->has_evidence)
		return -1;
	if (h->restore && next_initial(h, addr))
		return 0;
	for (;; h->cursor++) {
		while (h->cursor == h->count) {
			if (!next_piece(h)) {
				h->lost = true;
				return -1;
			}
		}
		if (h->seen[h->cursor].kind == FRAG_SEEN_SEGMENT_ALLOC)
			break;
	}
	if (h->seen[h->cursor].bytes != bytes) {
		h->lost = true;
		return -1;
	}
	*addr = h->seen[h->cursor++].addr;
	return FRAG_PLACE_WISH;
}

int frag_hints_open(struct frag_hints *h, const struct frag_sim_config *card,
		    struct frag_device **out, struct frag_err *err)
{
	struct frag_sim_config cfg = *card;

	if (!cfg.place) {
		cfg.place = place;
		cfg.place_ctx = h;
	}
	return frag_sim_open(&cfg, out, err);
}

/* ---- the whole recording ---- */

bool frag_retrace_possible(const struct frag_trace_dev *t)
{
	return t->has_evidence && t->initial.segments_count && t->events && t->addrs;
}

/* The segment event that the recording shows next for the current event, NULL if none. */
static const struct frag_evidence *expected(struct frag_retrace *r)
{
	const struct frag_trace_dev *t = r->trace;

	while (r->cursor < t->seen_count && (!frag_seen_is_segment(&t->seen[r->cursor]) ||
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
	return e && frag_seen_is_release(e) && e->addr == addr;
}
