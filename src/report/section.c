/* SPDX-License-Identifier: Apache-2.0 */
/* Sections: order of the results, and what is said about them in words. */
#include "report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Below so many, every event deserves the same room on an axis. */
#define FEW_EVENTS 100u

static char *settings_text(const struct frag_trace_settings *set)
{
	if (!set->present)
		return NULL;
	return frag_host_strdup(set->conf ? set->conf : "");
}

int frag_section_init(struct frag_section *s, const struct frag_trace *trace, uint32_t dev,
		      struct frag_err *err)
{
	const struct frag_trace_dev *d = &trace->devs[dev];

	*s = (struct frag_section){
		.trace = frag_host_strdup(trace->name ? trace->name : "trace"),
		.format = frag_host_strdup(trace->format ? trace->format : ""),
		.conf = settings_text(&trace->settings),
		.ordinal = d->ordinal,
		.devs_count = trace->devs_count,
		.streams_count = d->streams_count,
		.pools_count = d->pools_count,
		.events_count = d->events_count,
		.start_us = trace->start_us,
		.duration_us = d->events_count ? d->events[d->events_count - 1].time_us : 0,
		.seed_blocks = d->seed.blocks_count,
		.truncated = d->truncated,
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
	frag_host_free(s->results);
	frag_host_free(s->trace);
	frag_host_free(s->format);
	frag_host_free(s->conf);
	frag_host_free(s->folder);
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

/* Does a come before b? Policies that failed reserved less only because they stopped. */
static bool better(const struct frag_result *a, const struct frag_result *b)
{
	if (a->completed != b->completed)
		return a->completed;
	if (!a->completed && a->m.events_count != b->m.events_count)
		return a->m.events_count > b->m.events_count;
	return a->m.peak_reserved_bytes < b->m.peak_reserved_bytes;
}

/* Insertion: stable, and there are a few dozen at most. */
void frag_section_order(const struct frag_section *s, size_t *out)
{
	for (size_t i = 0; i < s->count; i++) {
		size_t at = i;

		while (at > 0 && better(&s->results[i], &s->results[out[at - 1]])) {
			out[at] = out[at - 1];
			at--;
		}
		out[at] = i;
	}
}

uint64_t frag_section_bound(const struct frag_section *s)
{
	uint64_t bound = 0;

	for (size_t i = 0; i < s->count; i++)
		bound = FRAG_MAX(bound, s->results[i].m.lower_bound_bytes);
	return bound;
}

/* The null policy and the null device: no candidates. */
static bool reserved_nothing(const struct frag_result *r)
{
	return !r->m.peak_reserved_bytes && r->m.peak_requested_bytes;
}

size_t frag_section_best(const struct frag_section *s)
{
	size_t best = SIZE_MAX;

	for (size_t i = 0; i < s->count; i++) {
		if (s->results[i].completed && !reserved_nothing(&s->results[i]) &&
		    (best == SIZE_MAX || better(&s->results[i], &s->results[best])))
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

void frag_section_recorded(const struct frag_section *s, struct frag_text *out)
{
	if (!s->conf)
		frag_text_add(out, "recorded settings unknown");
	else if (!*s->conf)
		frag_text_add(out, "recorded with default settings");
	else
		frag_text_addf(out, "recorded with %s", s->conf);
}

const char *frag_section_x_unit(const struct frag_section *s)
{
	return s->duration_us && s->events_count >= FEW_EVENTS ? "s" : "events";
}

void frag_report_settings(const struct frag_report *r, struct frag_text *out)
{
	frag_text_addf(out, "%s (%s", r->card.name, r->device);
	frag_text_add(out, "), limit ");
	if (r->limit_bytes == UINT64_MAX)
		frag_text_add(out, "none");
	else
		frag_text_add_bytes(out, r->limit_bytes);
	frag_text_addf(out, ", seed %" PRIu64, r->seed);
	if (r->sync_every)
		frag_text_addf(out, ", sync every %" PRIu64 " operations", r->sync_every);
	if (r->free_at_request)
		frag_text_add(out, ", freed at request");
	if (r->skip_oom)
		frag_text_add(out, ", what cannot be served is skipped");
}

const struct frag_gpu *frag_report_smallest_card(uint64_t reserved)
{
	size_t count;
	const struct frag_gpu *gpus = frag_gpu_list(&count), *best = NULL;

	for (size_t i = 0; i < count; i++) {
		if (gpus[i].total_bytes < gpus[i].context_bytes ||
		    gpus[i].total_bytes - gpus[i].context_bytes < reserved)
			continue;
		if (!best || gpus[i].total_bytes < best->total_bytes)
			best = &gpus[i];
	}
	return best;
}

static void say_saving(const struct frag_section *s, const struct frag_result *best, bool of_these,
		       struct frag_text *out)
{
	const struct frag_result *base = &s->results[s->baseline];
	uint64_t a = best->m.peak_reserved_bytes, b = base->m.peak_reserved_bytes;
	const char *as = s->baseline_recorded ? "the recorded " : "";

	if (s->count == 1)
		return;
	if (!base->completed) {
		frag_text_addf(out, ", where %s'%s' runs out of memory at event %" PRIu64, as,
			       base->policy, base->oom.event);
	} else if (best == base) {
		frag_text_addf(out, "; %sno other %s needs less",
			       s->baseline_recorded ? "these are the recorded settings, and " : "",
			       of_these ? "of these" : "policy here");
	} else if (a == b) {
		frag_text_addf(out, ", as much as %s'%s'", as, base->policy);
	} else {
		frag_text_add(out, ", ");
		frag_text_add_bytes(out, b - a);
		frag_text_addf(out, " (%.1f %%) less than %s'%s' with ",
			       100.0 * (double)(b - a) / (double)b, as, base->policy);
		frag_text_add_bytes(out, b);
	}
}

/* Driver time that nobody will notice: below this part of the recorded time. */
#define CHEAP_RATIO 0.01

static double driver_share(const struct frag_section *s, const struct frag_result *r)
{
	return s->duration_us ? (double)r->m.modelled_ns / 1e3 / (double)s->duration_us : 0;
}

/* The best of those whose driver time nobody will notice; SIZE_MAX if there is none. */
static size_t best_cheap(const struct frag_section *s)
{
	size_t best = SIZE_MAX;

	for (size_t i = 0; i < s->count; i++) {
		const struct frag_result *r = &s->results[i];

		if (r->completed && !reserved_nothing(r) && driver_share(s, r) < CHEAP_RATIO &&
		    (best == SIZE_MAX || better(r, &s->results[best])))
			best = i;
	}
	return best;
}

static void say_driver(const struct frag_section *s, const struct frag_result *r,
		       struct frag_text *out)
{
	frag_text_add_ns(out, r->m.modelled_ns);
	frag_text_addf(out, " in the driver, %.*f %% of the recorded time",
		       driver_share(s, r) < 0.1 ? 1 : 0, 100 * driver_share(s, r));
}

static void say_card(const struct frag_result *r, struct frag_text *out)
{
	const struct frag_gpu *card = frag_report_smallest_card(r->m.peak_reserved_bytes);

	if (card)
		frag_text_addf(out, "; the smallest known card with room for it is %s",
			       card->label);
	else
		frag_text_add(out, "; no known card has room for it");
}

/* Nothing completed, or nothing was reserved. */
static void say_nothing(const struct frag_section *s, struct frag_text *out)
{
	for (size_t k = 0; k < s->count; k++) {
		if (s->results[k].completed) {
			frag_text_add(out, "nothing was reserved, so there is nothing to compare");
			return;
		}
	}
	frag_text_addf(out, "no policy completes '%s' here: %s", s->trace,
		       s->count == 1 ? "it runs out of memory"
				     : "every one of them runs out of memory");
}

void frag_section_answer(const struct frag_report *r, const struct frag_section *s,
			 struct frag_text *out)
{
	size_t least = frag_section_best(s), i = best_cheap(s);
	const struct frag_result *best, *costly;

	(void)r;
	if (least == SIZE_MAX) {
		say_nothing(s, out);
		return;
	}
	costly = &s->results[least];
	if (i == SIZE_MAX || driver_share(s, costly) < CHEAP_RATIO)
		i = least;
	best = &s->results[i];
	/* what needs even less at a price comes second: few will want to pay it */
	if (i != least)
		frag_text_add(out,
			      "of the policies that spend less than 1 % of the recorded time in "
			      "the driver, ");
	frag_text_addf(out, "'%s' needs least: ", best->policy);
	frag_text_add_bytes(out, best->m.peak_reserved_bytes);
	frag_text_add(out, " reserved at peak");
	say_saving(s, best, i != least, out);
	say_card(best, out);
	if (i != least) {
		frag_text_addf(out, ". '%s' would do with ", costly->policy);
		frag_text_add_bytes(out, costly->m.peak_reserved_bytes);
		frag_text_add(out, ", but spends ");
		say_driver(s, costly, out);
	} else if (s->count > 1 && driver_share(s, best) >= CHEAP_RATIO) {
		frag_text_add(out, "; it spends ");
		say_driver(s, best, out);
	}
}
