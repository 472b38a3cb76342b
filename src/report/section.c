/* SPDX-License-Identifier: Apache-2.0 */
/* Sections: order of the results, and sentences about them. */
#include "report/charts/layout.h"
#include "recording/recording.h"
#include "report.h"

#include <inttypes.h>
#include <string.h>

/* Up to this many, every event gets the same room on an axis. */
#define FEW_EVENTS 100u

int frag_section_init(struct frag_section *s, const struct frag_trace *trace, uint32_t dev,
		      struct frag_err *err)
{
	const struct frag_trace_dev *d = &trace->devs[dev];

	*s = (struct frag_section){
		.trace = frag_host_strdup(trace->name ? trace->name : "trace"),
		.format = frag_host_strdup(trace->format ? trace->format : ""),
		.conf = trace->settings.present ? frag_host_strdup(trace->settings.conf ?: "")
						: NULL,
		.ordinal = d->ordinal,
		.devs_count = trace->devs_count,
		.streams_count = d->streams_count,
		.pools_count = d->pools_count,
		.events_count = d->events_count,
		.start_us = trace->start_us,
		.duration_us =
			d->events && d->events_count ? d->events[d->events_count - 1].time_us : 0,
		.initial_blocks = d->initial.blocks_count,
		.truncated = d->truncated,
		.estimated = trace->estimate != NULL,
		.chip = frag_recorded_chip(trace, d),
		.settled = d->settled,
		.ending = d->ending,
		.limit_bytes = UINT64_MAX,
		.events = d,
	};
	if (!s->trace || !s->format || (trace->settings.present && !s->conf)) {
		frag_section_release(s);
		return frag_fail_nomem(err, "names of a trace");
	}
	return 0;
}

void frag_section_release(struct frag_section *s)
{
	for (size_t i = 0; i < s->count; i++)
		frag_result_release(&s->results[i]);
	FRAG_FREE(s->results, s->trace, s->format, s->conf, s->folder, s->missing);
	for (size_t i = 0; i < s->layouts_count; i++)
		frag_layout_release(&s->layouts[i]);
	frag_host_free(s->layouts);
	memset(s, 0, sizeof(*s));
}

bool frag_report_is_host(const struct frag_metric_info *info)
{
	return !strncmp(info->name, "host_", 5) || !strcmp(info->name, "events_per_s");
}

bool frag_result_stopped(const struct frag_result *r)
{
	return r->oom.happened && r->m.events_count <= r->oom.event + 1;
}

bool frag_result_better(const struct frag_result *a, const struct frag_result *b)
{
	if (a->completed != b->completed)
		return a->completed;
	if (!a->completed && a->m.events_count != b->m.events_count)
		return a->m.events_count > b->m.events_count;
	if (a->m.ooms_count != b->m.ooms_count)
		return a->m.ooms_count < b->m.ooms_count;
	return a->m.peak_reserved_bytes < b->m.peak_reserved_bytes;
}

/* Insertion: stable, and there are a few dozen at most. */
void frag_section_order(const struct frag_section *s, size_t *out)
{
	for (size_t i = 0; i < s->count; i++) {
		size_t at = i;

		while (at > 0 && frag_result_better(&s->results[i], &s->results[out[at - 1]])) {
			out[at] = out[at - 1];
			at--;
		}
		out[at] = i;
	}
}

uint64_t frag_section_bound(const struct frag_section *s)
{
	uint64_t bound = 0;
	bool whole = false;

	if (s->optimum.hidden)
		return 0;
	for (size_t i = 0; i < s->count; i++) {
		bound = FRAG_MAX(bound, s->results[i].m.lower_bound_bytes);
		whole = whole || s->results[i].completed;
	}
	/* where every replay ended early, the trace itself was looked at */
	return whole ? bound : FRAG_MAX(bound, s->optimum.bound_bytes);
}

bool frag_result_reserved_nothing(const struct frag_result *r)
{
	return !r->m.peak_reserved_bytes && r->m.peak_requested_bytes;
}

size_t frag_section_best(const struct frag_section *s)
{
	size_t best = SIZE_MAX;

	for (size_t i = 0; i < s->count; i++) {
		if (s->results[i].completed && !frag_result_reserved_nothing(&s->results[i]) &&
		    (best == SIZE_MAX || frag_result_better(&s->results[i], &s->results[best])))
			best = i;
	}
	return best;
}

void frag_section_title(const struct frag_section *s, struct frag_text *out)
{
	frag_text_add(out, s->trace);
	if (s->devs_count > 1)
		frag_text_addf(out, ", device %" PRIu32, s->ordinal);
}

const char *frag_section_recorded(const struct frag_section *s, struct frag_answer *a)
{
	return frag_answer_print(a, "recorded %s%s%s", s->conf ? "with " : "settings unknown",
				 !s->conf   ? ""
				 : *s->conf ? s->conf
					    : "default settings",
				 s->estimated ? " without a GPU (an estimate)" : "");
}

const char *frag_section_settled(const struct frag_report *r, const struct frag_section *s,
				 struct frag_answer *a)
{
	const struct frag_settled *t = &s->settled;
	const char *simulated = "";
	char text[600];

	if (!t->checked || (t->identical && t->limit_source == FRAG_LIMIT_NONE))
		return NULL;
	if (s->baseline_simulated)
		simulated = frag_answer_print(
			a, "; '%s' is simulated, not what was recorded (peak %s)",
			s->results[s->baseline].policy, FRAG_BYTES(t->peak_bytes));
	return frag_answer_print(a, "recording: %s%s%s", frag_settled_text(t, text, sizeof(text)),
				 s->limit_bytes != r->limit_bytes ? "; it holds for every row" : "",
				 simulated);
}

bool frag_report_timed(uint64_t events, uint64_t quarter_us, uint64_t three_quarters_us,
		       uint64_t end_us)
{
	return events >= FEW_EVENTS && end_us && 10 * (three_quarters_us - quarter_us) >= end_us;
}

const char *frag_section_x_unit(const struct frag_section *s)
{
	const struct frag_event *e = s->events ? s->events->events : NULL;
	uint64_t n = s->events_count, end = s->duration_us;

	return frag_report_timed(n, e && n ? e[n / 4].time_us : 0,
				 e && n ? e[3 * n / 4].time_us : end, end)
		       ? "s"
		       : "events";
}

const char *frag_report_settings(const struct frag_report *r, const struct frag_section *s,
				 struct frag_answer *a)
{
	uint64_t limit = s ? s->limit_bytes : r->limit_bytes;

	return frag_answer_print(a, "%s (%s), limit %s%s, seed %" PRIu64 "%s%s%s%s", r->card.name,
				 r->device, limit == UINT64_MAX ? "none" : FRAG_BYTES(limit),
				 limit != r->limit_bytes ? " (the recording's)" : "", r->seed,
				 r->cost_borrowed ? ", driver calls as measured on " : "",
				 r->cost_borrowed ? r->cost_profile : "",
				 r->free_at_request ? ", freed at request" : "",
				 r->skip_oom ? ", what cannot be served is skipped" : "");
}

const struct frag_catalog *frag_section_catalog(const struct frag_section *s,
						struct frag_catalog *known)
{
	if (s->catalog)
		return s->catalog;
	frag_catalog_init(known, NULL, NULL, NULL);
	return known;
}

const struct frag_gpu *frag_section_card(const struct frag_section *s, uint64_t reserved, bool bare)
{
	struct frag_headroom h = s->headroom;
	struct frag_catalog known;

	/* what others hold is no choice of ours */
	if (bare)
		h = (struct frag_headroom){ .outside_bytes = h.outside_bytes };
	return frag_catalog_pick(frag_section_catalog(s, &known), reserved, &h);
}

void frag_section_card_kind(const struct frag_section *s, struct frag_text *out)
{
	struct frag_catalog known;
	const struct frag_catalog *c = frag_section_catalog(s, &known);
	bool priced = true;

	for (size_t i = 0; i < c->count; i++)
		priced &= c->cards[i]->price_per_hour > 0;
	frag_text_addf(out, "the %s %s", priced ? "cheapest" : "smallest",
		       c->path ? "card of the list" : "known card");
}

double frag_section_job_price(const struct frag_section *s, const struct frag_gpu *gpu)
{
	return gpu ? gpu->price_per_hour * (double)s->duration_us / 3.6e9 : 0;
}
