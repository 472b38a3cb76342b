/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings that ended out of memory; see ending.h. */
#include "ending.h"

#include <stdio.h>

#include <frag/opt.h>

#include "answer/row.h"
#include "estimate.h"
#include "sites.h"

/* ---- the events ------------------------------------------------------------------ */

void frag_ending_add(struct frag_ending_scan *s, const struct frag_event *events, size_t count)
{
	for (size_t i = 0; i < count; i++, s->events_count++) {
		const struct frag_event *ev = &events[i];
		uint64_t bytes = frag_round_up(ev->bytes, 512);

		if (ev->kind == FRAG_EV_ALLOC) {
			s->live_bytes += bytes;
			s->peak_bytes = FRAG_MAX(s->peak_bytes, s->live_bytes);
			s->granted_bytes += bytes;
		} else if (ev->kind == FRAG_EV_FREE || ev->kind == FRAG_EV_FREE_COMPLETED) {
			s->live_bytes -= bytes;
		} else if (ev->kind == FRAG_EV_REFUSED) {
			s->refused = *ev;
			s->refused_at = s->events_count;
			s->refused_live_bytes = s->live_bytes;
			s->granted_bytes = 0;
		}
	}
}

int frag_ending_set(const struct frag_ending_scan *s, struct frag_trace *trace, uint32_t dev,
		    struct frag_err *err)
{
	struct frag_ending *e = &trace->devs[dev].ending;
	uint64_t bytes = frag_round_up(s->refused.bytes, 512);
	FRAG_AUTO(frag_sites_release) struct frag_sites sites = { 0 };
	FRAG_AUTO_FREE char *line = NULL;

	/* a program that got something more, and came to its end, did not end so */
	*e = (struct frag_ending){ .event = s->refused_at,
				   .bytes = s->refused.bytes,
				   .out_of_memory =
					   s->granted_bytes < bytes &&
					   !(s->granted_bytes && frag_estimate_to_end(trace)),
				   .need_bytes =
					   FRAG_MAX(s->peak_bytes, s->refused_live_bytes + bytes) };
	if (!e->out_of_memory || !s->refused.stack)
		return 0;
	FRAG_TRY(frag_sites_init(&sites, trace, FRAG_BY_LINE, NULL, err));
	line = frag_sites_line(&sites, s->refused.stack);
	snprintf(e->line, sizeof(e->line), "%s", line ? line : "");
	return 0;
}

/* ---- in answers ------------------------------------------------------------------ */

#define ENDED(F, P, S) \
	F(S, TEXT, trace, NULL, "its name, with the device if it has several") \
	F(S, COUNT, event, NULL, "the request that was refused") \
	F(S, BYTES, refused_bytes, NULL, "its size") \
	F(S, BYTES, need_bytes, NULL, \
	  "most live at one moment, that request among it: less is not enough; the need is " \
	  "unknown") \
	F(S, TEXT, line, NULL, "the line of the program that asked; null: not recorded")
FRAG_ROW_AS(, frag_ending_shape, ended, "ended_out_of_memory", ENDED,
	    "how a recording ended; null: not out of memory");

const void *frag_ending_row(struct frag_answer *a, const char *label, const struct frag_ending *e)
{
	struct ended row = { label, e->event, e->bytes, e->need_bytes, NULL };

	if (!e->out_of_memory)
		return NULL;
	row.trace = frag_answer_print(a, "%s", label);
	row.line = *e->line ? frag_answer_print(a, "%s", e->line) : NULL;
	return FRAG_ANSWER_KEEP(a, row);
}

void frag_ending_warn(struct frag_answer *a, const void *row)
{
	const struct ended *e = row;

	if (!e)
		return;
	a->need_unknown = true;
	frag_answer_warn(a,
			 "the need is unknown above %s: %s ended out of memory at event %llu%s%s%s",
			 FRAG_BYTES(e->need_bytes), e->trace, (unsigned long long)e->event,
			 e->line ? " (" : "", e->line ? e->line : "", e->line ? ")" : "");
}
