/* SPDX-License-Identifier: Apache-2.0 */
/* What is in recordings, as an answer: facts of the file, facts and tables of each device; see info.h. */
#include "info.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <frag/opt.h>
#include <frag/replay.h>
#include <frag/torch.h>

#include "answer/row.h"
#include "lib/grow.h"
#include "recording/estimate.h"
#include "recording/settled_shape.h"
#include "trace/log/log.h"
#include "trace/source.h"

#define MARKS_SHOWN 6u

/* ---- rows ------------------------------------------------------------------------------------------ */

#define CLASS_ROW(F, P, S) \
	F(S, BYTES, up_to_bytes, NULL, "largest request of the class; null = the largest of all") \
	P(S, TEXT, class, "requests up to", "largest request of the class", .right = true) \
	F(S, COUNT, count, "count", "requests", .grouped = true) \
	P(S, RATIO, count_ratio, "of all", "of all requests", .unit = "%", .precision = 1) \
	F(S, BYTES, requested_bytes, "bytes", "sum of these requests") \
	P(S, RATIO, bytes_ratio, "of all", "of all requested bytes", .unit = "%", .precision = 1)
FRAG_ROW(class_row, "size_class", CLASS_ROW, "requests of one class of sizes");

#define LIFE_ROW(F, P, S) \
	P(S, TEXT, what, "lifetime", "from a request until the program lets go") \
	F(S, COUNT, p50, NULL, "half of them are shorter") \
	P(S, TEXT, p50_text, "p50", "half of them are shorter", .right = true) \
	F(S, COUNT, p90, NULL, "90 % are shorter") \
	P(S, TEXT, p90_text, "p90", "90 % are shorter", .right = true) \
	F(S, COUNT, p99, NULL, "99 % are shorter") \
	P(S, TEXT, p99_text, "p99", "99 % are shorter", .right = true) \
	F(S, COUNT, max, NULL, "the longest") \
	P(S, TEXT, max_text, "max", "the longest", .right = true)
FRAG_ROW(life_row, "lifetime", LIFE_ROW, "percentiles of lifetimes, at most 3.2 % too high");

#define PEAK_ROW(F, P, S) \
	F(S, BYTES, live_bytes, NULL, "largest sum of live requests, each rounded up to 512 B") \
	F(S, BYTES, requested_bytes, NULL, "as requested") \
	F(S, COUNT, blocks_count, NULL, "live then") \
	F(S, COUNT, event, NULL, "that reached it") \
	F(S, US, time_us, NULL, "of that event") \
	F(S, COUNT, steps_done_count, NULL, "before it")
FRAG_ROW(peak_row, "peak", PEAK_ROW, "the moment with most live memory");

#define CARD_ROW(F, P, S) \
	F(S, TEXT, name, NULL, "of the card") \
	F(S, BYTES, total_bytes, NULL, "its memory") \
	F(S, BYTES, context_bytes, NULL, "taken by the CUDA context") \
	F(S, BYTES, beside_bytes, NULL, "held by the process beside its allocator") \
	F(S, REAL, limit_fraction, NULL, "of the card that the process might have")
FRAG_ROW(card_row, "recorded_card", CARD_ROW, "the card of the recording");

/* The facts that people read come first, then those of JSON. */
#define DEVICE_ROW(F, P, S) \
	P(S, TEXT, card_text, "card", "that it was recorded on") \
	P(S, TEXT, events_text, "events", "by kind") \
	P(S, TEXT, streams_text, "streams", "CUDA streams") \
	P(S, TEXT, private_pools, "private pools", "of CUDA graphs and MemPools") \
	P(S, TEXT, steps_text, "steps", "marked in the recording") \
	P(S, TEXT, marks_text, "marks", "the most frequent ones") \
	P(S, TEXT, history, "history", "does it begin with the program") \
	P(S, TEXT, evidence, "evidence", "what verify can compare with") \
	P(S, TEXT, peak_text, "peak live", "most live memory") \
	P(S, TEXT, never_freed, "never freed", "requests that live to the end") \
	F(S, COUNT, allocs_count, NULL, "allocations") \
	F(S, COUNT, frees_count, NULL, "frees that take effect at once") \
	F(S, COUNT, frees_requested_count, NULL, "frees that wait for a stream") \
	F(S, COUNT, frees_completed_count, NULL, "of these, completed") \
	F(S, COUNT, trims_count, NULL, "empty_cache") \
	F(S, COUNT, refused_count, NULL, "requests that were refused") \
	F(S, COUNT, marks_count, NULL, "marks of steps and phases") \
	F(S, COUNT, device, NULL, "its number in the recording") \
	F(S, OBJECT, card, NULL, "the card of the recording", .of = &card_row_shape) \
	F(S, COUNT, events_count, NULL, "all events") \
	F(S, COUNT, recorded_count, NULL, "entries of the file that they come from") \
	F(S, COUNT, streams_count, NULL, "CUDA streams") \
	F(S, COUNT, pools_count, NULL, "memory pools, the common one included") \
	F(S, COUNT, slots_count, NULL, "most blocks live at once") \
	F(S, COUNT, steps_count, NULL, "steps") \
	F(S, US, duration_us, NULL, "from the first event to the last") \
	F(S, BOOL, began_late, NULL, "blocks were live before the first event") \
	F(S, COUNT, initial_blocks_count, NULL, "these blocks") \
	F(S, BYTES, initial_bytes, NULL, "their bytes") \
	F(S, BOOL, truncated, NULL, "the recorder lost its oldest entries") \
	F(S, COUNT, uncertain_count, NULL, \
	  "initial blocks whose size the file does not determine") \
	F(S, COUNT, unsure_trims_count, NULL, \
	  "empty_caches that may have been the retry of a malloc") \
	F(S, BOOL, has_evidence, NULL, "verify has something to compare with") \
	F(S, COUNT, evidence_count, NULL, "segment events and refusals of the recorded allocator") \
	F(S, COUNT, final_segments_count, NULL, "segments at the end") \
	F(S, COUNT, final_blocks_count, NULL, "blocks in them") \
	F(S, OBJECT, peak, NULL, "the moment with most live memory", .of = &peak_row_shape) \
	F(S, COUNT, never_freed_count, NULL, "requests that live to the end") \
	F(S, LIST, requests, NULL, "requests by size", .of = &class_row_shape) \
	F(S, OBJECT, lifetime_events, NULL, "lifetimes in events", .of = &life_row_shape) \
	F(S, OBJECT, lifetime_us, NULL, \
	  "lifetimes in microseconds; null = times are not recorded", .of = &life_row_shape) \
	F(S, OBJECT, recording, NULL, "what a replay of it shows", .of = &frag_settled_shape)
FRAG_ROW(device_row, "device", DEVICE_ROW, "one device of a recording");

#define SETTINGS_ROW(F, P, S) \
	F(S, TEXT, conf, NULL, "PYTORCH_CUDA_ALLOC_CONF") \
	F(S, BYTES, max_split_bytes, NULL, "null = unlimited") \
	F(S, RATIO, gc_threshold_ratio, NULL, "of the limit") \
	F(S, BOOL, expandable_segments, NULL, "on or off") \
	F(S, COUNTS, roundup_power2_divisions, NULL, "for each power of two")
FRAG_ROW(settings_row, "settings", SETTINGS_ROW, "settings of the recorded allocator");

#define TRACE_ROW(F, P, S) \
	F(S, TEXT, trace, "trace", "its name") \
	F(S, TEXT, format, "format", "of the file") \
	F(S, TEXT, not_recorded, "not in it", "what a log of this kind does not have") \
	P(S, TEXT, recorded, "recorded", "when") \
	P(S, TEXT, recorded_by, "recorded by", "by which releases of PyTorch it can be") \
	P(S, TEXT, settings_text, "settings", "of the recorded allocator") \
	P(S, TEXT, limit_text, "limit", "most memory that the process could have") \
	P(S, TEXT, checked, "checked", "what a replay of it shows") \
	P(S, TEXT, estimate_text, "estimate", "how it was made without a GPU") \
	P(S, TEXT, stacks, "stacks", "call stacks") \
	F(S, US, start_us, NULL, "Unix time of the first event") \
	F(S, TEXTS, torch, NULL, "first and last release of PyTorch that it can be") \
	F(S, OBJECT, estimate, NULL, "how it was made without a GPU", .of = &frag_estimate_shape) \
	F(S, OBJECT, settings, NULL, "null = not recorded", .of = &settings_row_shape) \
	F(S, BYTES, limit_bytes, NULL, "that the file says; null = none") \
	F(S, COUNT, stacks_count, NULL, "different call stacks") \
	F(S, LIST, devices, NULL, "its devices", .of = &device_row_shape)
FRAG_ROW_AS(static, trace_shape, frag_info_trace, "trace", TRACE_ROW, "one recording");

/* One recording: its own members. Several: only the list. */
#define INFOS_ROW(F, P, S) \
	TRACE_ROW(F, P, S) F(S, LIST, traces, NULL, "of several recordings", .of = &trace_shape)
FRAG_ROW_AS(, frag_infos_shape, infos, "info", INFOS_ROW, "what is in a recording");

#define LINE_ROW(F, P, S) \
	F(S, TEXT, trace, "trace", "its name, with the device where it has several") \
	F(S, COUNT, events_count, "events", "all events", .grouped = true) \
	F(S, COUNT, streams_count, "streams", "CUDA streams", .spare = 1) \
	F(S, COUNT, steps_count, "steps", "steps") \
	F(S, US, duration_us, "duration", "from the first event to the last", .spare = 2) \
	F(S, COUNT, peak_blocks_count, "blocks", "live at the peak", .spare = 3) \
	F(S, BYTES, peak_live_bytes, "peak live", "most live memory")
FRAG_ROW(line_row, "line", LINE_ROW, "one device of a recording");

/* ---- words ------------------------------------------------------------------------------------------ */

static const char *grouped(struct frag_answer *a, uint64_t n)
{
	return frag_answer_print(a, "%s", FRAG_GROUPED(n));
}

static const char *duration(struct frag_answer *a, uint64_t us)
{
	return frag_answer_print(a, "%s", FRAG_NS(us * 1000));
}

/* "kineto without streams, beginning": what the log does not have stands behind its format. */
static const char *lacks_of(const struct frag_trace *t)
{
	const char *lacks = t->format ? strstr(t->format, FRAG_LOG_LACKS) : NULL;

	return lacks ? lacks + strlen(FRAG_LOG_LACKS) : NULL;
}

static bool lacks(const struct frag_trace *t, const char *word)
{
	return lacks_of(t) && strstr(lacks_of(t), word);
}

static const char *events_text(struct frag_answer *a, const struct frag_info *info)
{
	static const struct {
		uint8_t kind;
		const char *one, *many;
	} words[] = {
		{ FRAG_EV_ALLOC, "alloc", "allocs" },
		{ FRAG_EV_FREE, "free", "frees" },
		{ FRAG_EV_FREE_REQUESTED, "free that waits for a stream",
		  "frees that wait for a stream" },
		{ FRAG_EV_TRIM, "empty_cache", "empty_caches" },
		{ FRAG_EV_REFUSED, "out of memory", "out of memory" },
		{ FRAG_EV_MARK, "mark", "marks" },
	};
	FRAG_AUTO(frag_text_release) struct frag_text t = { 0 };
	const char *between = ": ";

	frag_text_add(&t, FRAG_GROUPED(info->events));
	for (size_t i = 0; i < FRAG_ARRAY_LEN(words); i++) {
		uint64_t n = info->kinds[words[i].kind];

		if (!n)
			continue;
		frag_text_addf(&t, "%s%s %s", between, FRAG_GROUPED(n),
			       n == 1 ? words[i].one : words[i].many);
		between = ", ";
	}
	if (info->unsure_count)
		frag_text_addf(
			&t, "\n%" PRIu64 " of the empty_caches may have been the retry of a malloc",
			info->unsure_count);
	return frag_answer_take(a, &t);
}

static const char *marks_text(struct frag_answer *a, const struct frag_info *info,
			      const struct frag_trace *trace)
{
	uint32_t names[MARKS_SHOWN], counts[MARKS_SHOWN];
	size_t n = frag_info_marks(info, MARKS_SHOWN, names, counts);
	FRAG_AUTO(frag_text_release) struct frag_text t = { 0 };

	for (size_t i = 0; i < n; i++)
		frag_text_addf(&t, "%s%u x %.100s", i ? "\n" : "", counts[i],
			       frag_trace_string(trace, names[i]));
	return frag_answer_take(a, &t);
}

static const char *history_text(struct frag_answer *a, const struct frag_info *info,
				const struct frag_trace *trace)
{
	const struct frag_trace_dev *dev = info->dev;
	bool late = lacks(trace, "beginning");
	const char *blocks = grouped(a, info->initial_blocks_count);
	FRAG_AUTO(frag_text_release) struct frag_text t = { 0 };

	if (late && !info->initial_blocks_count && !dev->uncertain_blocks)
		frag_text_add(&t, "the log does not say what was live before it");
	else if (late)
		frag_text_addf(&t,
			       "the log frees %s in %s blocks that were live before it; others are "
			       "unknown",
			       FRAG_BYTES(info->initial_bytes), blocks);
	else if (info->initial_blocks_count)
		frag_text_addf(&t, "began late%s: %s in %s blocks were live before",
			       dev->truncated ? ", the oldest entries were lost" : "",
			       FRAG_BYTES(info->initial_bytes), blocks);
	else
		frag_text_add(&t, dev->truncated ? "the oldest entries were lost"
						 : "from the beginning");
	if (!lacks(trace, "times"))
		frag_text_addf(&t, ", over %s", duration(a, info->duration_us));
	if (dev->uncertain_blocks)
		frag_text_addf(
			&t,
			late ? "\n%s frees of blocks whose size the log never gives are left out"
			     : "\nthe file does not determine the size of %s of these blocks",
			grouped(a, dev->uncertain_blocks));
	return frag_answer_take(a, &t);
}

static const char *peak_text(struct frag_answer *a, const struct frag_info *info,
			     const struct frag_trace *trace)
{
	const struct frag_info_peak *p = &info->peak;

	if (!p->blocks_count)
		return "nothing was ever allocated";
	return frag_answer_print(
		a, "%s in %s blocks, at event %" PRIu64 " (%s, %" PRIu64 " steps done)",
		FRAG_BYTES(p->bytes), grouped(a, p->blocks_count), p->event,
		lacks(trace, "times") ? "time not recorded" : duration(a, p->time_us), p->step);
}

static const char *card_text(struct frag_answer *a, const struct frag_recorded_card *c)
{
	FRAG_AUTO(frag_text_release) struct frag_text t = { 0 };

	if (!c->total_bytes)
		return NULL;
	frag_text_addf(&t, "%s, %s", *c->name ? c->name : "unnamed", FRAG_BYTES(c->total_bytes));
	if (c->limit_fraction < 1)
		frag_text_addf(&t, ", of which the process could have %g", c->limit_fraction);
	if (c->beside_bytes)
		frag_text_addf(&t, "; beside its allocator it held %s",
			       FRAG_BYTES(c->beside_bytes));
	return frag_answer_take(a, &t);
}

/* ---- one device ----------------------------------------------------------------------------------- */

static struct frag_rows classes_of(struct frag_answer *a, const struct frag_info *info)
{
	struct class_row *rows = frag_answer_new(a, FRAG_INFO_CLASSES, sizeof(*rows));

	for (unsigned c = 0; rows && c < FRAG_INFO_CLASSES; c++) {
		bool last = c + 1 == FRAG_INFO_CLASSES;

		rows[c] = (struct class_row){
			.up_to_bytes = frag_info_class_bytes[c],
			.class = frag_answer_print(
				a, "%s%s", last ? ">" : "",
				FRAG_BYTES(frag_info_class_bytes[last ? c - 1 : c])),
			.count = info->class_count[c],
			.count_ratio = (double)info->class_count[c] /
				       (double)FRAG_MAX(info->kinds[FRAG_EV_ALLOC], 1u),
			.requested_bytes = info->class_bytes[c],
			.bytes_ratio = (double)info->class_bytes[c] /
				       (double)FRAG_MAX(info->requests_bytes, 1u),
		};
	}
	return (struct frag_rows){ rows, rows ? FRAG_INFO_CLASSES : 0 };
}

static struct life_row life_of(struct frag_answer *a, const char *what, const struct frag_hist *h,
			       const char *(*text)(struct frag_answer *, uint64_t))
{
	uint64_t p50 = frag_hist_quantile(h, 0.5), p90 = frag_hist_quantile(h, 0.9),
		 p99 = frag_hist_quantile(h, 0.99), max = frag_hist_quantile(h, 1);

	if (!h->count)
		return (struct life_row){ what,	      UINT64_MAX, NULL,	      UINT64_MAX, NULL,
					  UINT64_MAX, NULL,	  UINT64_MAX, NULL };
	return (struct life_row){ what, p50,	      text(a, p50), p90,	 text(a, p90),
				  p99,	text(a, p99), max,	    text(a, max) };
}

static const struct card_row *card_of(struct frag_answer *a, const struct frag_recorded_card *c)
{
	struct card_row row = { frag_answer_print(a, "%s", c->name), c->total_bytes,
				c->context_bytes, c->beside_bytes, c->limit_fraction };

	return c->total_bytes ? FRAG_ANSWER_KEEP(a, row) : NULL;
}

static void fill_words(struct frag_answer *a, struct device_row *row, const struct frag_info *info,
		       const struct frag_trace *t, const struct frag_source_counts *counts)
{
	const struct frag_trace_dev *dev = info->dev;

	row->card_text = card_text(a, &dev->card);
	row->events_text = events_text(a, info);
	row->streams_text = lacks(t, "streams") ? "not recorded"
						: frag_answer_print(a, "%u", dev->streams_count);
	row->private_pools =
		dev->pools_count > 1 ? frag_answer_print(a, "%u", dev->pools_count - 1) : NULL;
	row->steps_text = frag_answer_print(a, "%" PRIu64, info->steps_count);
	row->marks_text = marks_text(a, info, t);
	row->history = history_text(a, info, t);
	row->evidence = dev->has_evidence
				? frag_answer_print(a,
						    "addresses, %" PRIu64
						    " segment events and refusals, %" PRIu64
						    " final segments of %" PRIu64 " blocks",
						    counts->seen, counts->final_segments,
						    counts->final_blocks)
				: "none: verify has nothing to compare with";
	row->peak_text = peak_text(a, info, t);
	row->never_freed =
		info->peak.blocks_count
			? frag_answer_print(a, "%s request%s", grouped(a, info->kept_count),
					    info->kept_count == 1 ? "" : "s")
			: NULL;
}

static void fill_device(struct frag_answer *a, struct device_row *row, const struct frag_info *info,
			const struct frag_trace *t, const struct frag_source_counts *counts)
{
	const struct frag_trace_dev *dev = info->dev;
	const uint64_t *kinds = info->kinds;
	struct life_row *lives = frag_answer_new(a, 2, sizeof(*lives));

	if (!lives)
		return;
	lives[0] = life_of(a, "in events", &info->life_events, grouped);
	lives[1] = life_of(a, "in time", &info->life_us, duration);
	*row = (struct device_row){
		.allocs_count = kinds[FRAG_EV_ALLOC],
		.frees_count = kinds[FRAG_EV_FREE],
		.frees_requested_count = kinds[FRAG_EV_FREE_REQUESTED],
		.frees_completed_count = kinds[FRAG_EV_FREE_COMPLETED],
		.trims_count = kinds[FRAG_EV_TRIM],
		.refused_count = kinds[FRAG_EV_REFUSED],
		.marks_count = kinds[FRAG_EV_MARK],
		.device = dev->ordinal,
		.card = card_of(a, &dev->card),
		.events_count = info->events,
		.recorded_count = dev->recorded_count,
		.streams_count = dev->streams_count,
		.pools_count = dev->pools_count,
		.slots_count = dev->slots_count,
		.steps_count = info->steps_count,
		.duration_us = info->duration_us,
		.began_late = info->initial_blocks_count,
		.initial_blocks_count = info->initial_blocks_count,
		.initial_bytes = info->initial_bytes,
		.truncated = dev->truncated,
		.uncertain_count = dev->uncertain_blocks,
		.unsure_trims_count = info->unsure_count,
		.has_evidence = dev->has_evidence,
		.evidence_count = counts->seen,
		.final_segments_count = counts->final_segments,
		.final_blocks_count = counts->final_blocks,
		.peak = FRAG_ANSWER_KEEP(
			a, (struct peak_row){ info->peak.bytes, info->peak.requested_bytes,
					      info->peak.blocks_count, info->peak.event,
					      info->peak.time_us, info->peak.step }),
		.never_freed_count = info->kept_count,
		.requests = classes_of(a, info),
		.lifetime_events = &lives[0],
		.lifetime_us = lacks(t, "times") ? NULL : &lives[1],
		.recording = frag_settled_row(a, &dev->settled),
	};
	fill_words(a, row, info, t, counts);
}

/* ---- one recording --------------------------------------------------------------------------------- */

static const char *settings_text(struct frag_answer *a, const struct frag_trace_settings *s)
{
	if (!s->present)
		return "not recorded";
	return frag_answer_print(
		a, "%s\nexpandable segments %s, max split %s, gc threshold %g",
		s->conf && *s->conf ? s->conf : "default", s->expandable ? "on" : "off",
		s->max_split_bytes == UINT64_MAX ? "unlimited" : FRAG_BYTES(s->max_split_bytes),
		s->gc_threshold);
}

static const struct settings_row *settings_of(struct frag_answer *a,
					      const struct frag_trace_settings *s)
{
	uint64_t *roundup = frag_answer_new(a, FRAG_ARRAY_LEN(s->roundup), sizeof(*roundup));
	struct settings_row row = { frag_answer_print(a, "%s", s->conf ? s->conf : ""),
				    s->max_split_bytes,
				    s->gc_threshold,
				    s->expandable,
				    { roundup, FRAG_ARRAY_LEN(s->roundup) } };

	for (size_t i = 0; roundup && i < FRAG_ARRAY_LEN(s->roundup); i++)
		roundup[i] = s->roundup[i];
	return s->present && roundup ? FRAG_ANSWER_KEEP(a, row) : NULL;
}

static const char *recorded_by(struct frag_answer *a, const struct frag_rows *releases)
{
	const char *const *r = releases->rows;

	if (!releases->count)
		return NULL;
	return strcmp(r[0], r[1]) ? frag_answer_print(a, "PyTorch %s to %s", r[0], r[1])
				  : frag_answer_print(a, "PyTorch %s", r[0]);
}

static const char *limit_text(struct frag_answer *a, const struct frag_trace *t)
{
	if (t->settings.limit_known)
		return frag_answer_print(a, "%s", FRAG_BYTES(t->settings.limit_bytes));
	for (uint32_t d = 0; d < t->devs_count; d++)
		if (t->devs[d].settled.identical &&
		    t->devs[d].settled.limit_source == FRAG_LIMIT_INFERRED)
			return "not in the file, but found";
	return "not recorded";
}

static const char *checked_text(struct frag_answer *a, const struct frag_trace *t)
{
	FRAG_AUTO(frag_text_release) struct frag_text out = { 0 };
	char text[600];

	for (uint32_t d = 0; d < t->devs_count; d++) {
		const struct frag_trace_dev *dev = &t->devs[d];

		if (!dev->has_evidence)
			continue;
		frag_text_add(&out, out.len ? "\n" : "");
		if (t->devs_count > 1)
			frag_text_addf(&out, "device %u: ", dev->ordinal);
		frag_text_add(&out, dev->settled.checked
					    ? frag_settled_text(&dev->settled, text, sizeof(text))
					    : "not here; use cufrag verify");
	}
	return frag_answer_take(a, &out);
}

static const char *day_text(struct frag_answer *a, uint64_t start_us)
{
	time_t start = (time_t)(start_us / 1000000);
	struct tm tm;
	char buf[64];

	if (!start_us || !gmtime_r(&start, &tm) || !strftime(buf, sizeof(buf), "%F %T UTC", &tm))
		return NULL;
	return frag_answer_print(a, "%s", buf);
}

static void fill_trace(struct frag_answer *a, struct frag_info_trace *row,
		       const struct frag_trace *t)
{
	const struct frag_estimate *estimate = frag_estimate_read(a, t);
	const char *format = t->format ? t->format : "unknown", *list = lacks_of(t);
	size_t named = list ? (size_t)(list - format) - strlen(FRAG_LOG_LACKS) : strlen(format);

	*row = (struct frag_info_trace){
		.trace = frag_answer_print(a, "%s", t->name ? t->name : ""),
		.format = frag_answer_print(a, "%.*s", (int)named, format),
		.not_recorded = list ? frag_answer_print(a, "%s", list) : NULL,
		.recorded = day_text(a, t->start_us),
		.settings_text = settings_text(a, &t->settings),
		.limit_text = limit_text(a, t),
		.checked = checked_text(a, t),
		.estimate_text = estimate ? frag_estimate_text(a, estimate) : NULL,
		.stacks = t->stacks.count > 1
				  ? frag_answer_print(a, "%zu of %zu frames", t->stacks.count - 1,
						      t->stacks.frames_count)
				  : NULL,
		.start_us = t->start_us ?: UINT64_MAX,
		.torch = frag_release_rows(a, t->settings.torch_first, t->settings.torch_last),
		.estimate = estimate,
		.settings = settings_of(a, &t->settings),
		.limit_bytes = t->settings.limit_known ? t->settings.limit_bytes : UINT64_MAX,
		.stacks_count = t->stacks.count ? t->stacks.count - 1 : 0,
	};
	row->recorded_by = recorded_by(a, &row->torch);
	a->estimated |= estimate != NULL;
}

int frag_infos_add(struct frag_infos *all, const struct frag_recording *r,
		   const struct frag_info *infos, struct frag_err *err)
{
	struct device_row *devices =
		frag_answer_new(all->a, r->trace->devs_count, sizeof(*devices));
	struct frag_info_trace *row;

	FRAG_CHECK_ALLOC(devices, "statistics of the trace", err);
	FRAG_TRY(FRAG_GROW(all->list, all->count, all->cap, "statistics of the trace", err));
	row = &all->list[all->count++];
	fill_trace(all->a, row, r->trace);
	for (uint32_t d = 0; d < r->trace->devs_count; d++) {
		struct frag_source_counts counts;

		frag_source_counts(r->source, d, &counts);
		fill_device(all->a, &devices[d], &infos[d], r->trace, &counts);
	}
	row->devices = (struct frag_rows){ devices, r->trace->devs_count };
	return all->a->failed ? frag_fail_nomem(err, "statistics of the trace") : 0;
}

void frag_infos_release(struct frag_infos *all)
{
	frag_host_free(all->list);
	*all = (struct frag_infos){ 0 };
}

/* ---- the answer ------------------------------------------------------------------------------------- */

static void show_device(struct frag_answer *a, const struct device_row *row)
{
	struct class_row *used = frag_answer_new(a, row->requests.count, sizeof(*used));
	const struct class_row *classes = row->requests.rows;
	struct life_row *lives = frag_answer_new(a, 2, sizeof(*lives));
	size_t n = 0, k = 0;

	frag_answer_heading(a, "device %" PRIu64, row->device);
	frag_answer_facts(a, &device_row_shape, row)->indent = 2;
	if (!row->allocs_count || !used || !lives)
		return;
	for (size_t c = 0; c < row->requests.count; c++)
		if (classes[c].count)
			used[n++] = classes[c];
	lives[k++] = *(const struct life_row *)row->lifetime_events;
	if (row->lifetime_us)
		lives[k++] = *(const struct life_row *)row->lifetime_us;
	frag_answer_gap(a);
	frag_answer_table(a, &class_row_shape, used, n)->indent = 2;
	frag_answer_gap(a);
	frag_answer_table(a, &life_row_shape, lives, k)->indent = 2;
}

static struct frag_rows lines_of(struct frag_infos *all)
{
	struct line_row *rows;
	size_t count = 0, n = 0;

	for (size_t i = 0; i < all->count; i++)
		count += all->list[i].devices.count;
	rows = frag_answer_new(all->a, count, sizeof(*rows));
	for (size_t i = 0; rows && i < all->count; i++) {
		const struct frag_info_trace *t = &all->list[i];
		const struct device_row *d = t->devices.rows;

		for (size_t k = 0; k < t->devices.count; k++, d++) {
			const struct peak_row *peak = d->peak;

			rows[n++] = (struct line_row){
				t->devices.count > 1
					? frag_answer_print(all->a, "%s, device %" PRIu64, t->trace,
							    d->device)
					: t->trace,
				d->events_count,
				d->streams_count,
				d->steps_count,
				d->duration_us,
				peak->blocks_count,
				peak->live_bytes
			};
		}
	}
	return (struct frag_rows){ rows, n };
}

static int by_peak(const void *x, const void *y)
{
	const struct line_row *a = x, *b = y;

	return FRAG_ORDER(a->peak_live_bytes, b->peak_live_bytes);
}

static void show_lines(struct frag_answer *a, const struct frag_rows *lines)
{
	struct line_row *sorted = frag_answer_new(a, lines->count, sizeof(*sorted));
	const struct line_row *least, *median, *most;

	frag_answer_table(a, &line_row_shape, lines->rows, lines->count);
	if (!sorted || lines->count < 2)
		return;
	memcpy(sorted, lines->rows, lines->count * sizeof(*sorted));
	qsort(sorted, lines->count, sizeof(*sorted), by_peak);
	least = &sorted[0];
	median = &sorted[(lines->count - 1) / 2];
	most = &sorted[lines->count - 1];
	frag_answer_gap(a);
	frag_answer_say(a, "peak live: %s at most (%s), median %s, %s at least%s",
			FRAG_BYTES(most->peak_live_bytes), most->trace,
			FRAG_BYTES(median->peak_live_bytes), FRAG_BYTES(least->peak_live_bytes),
			least->peak_live_bytes
				? frag_answer_print(a, ", spread %.2f x",
						    (double)most->peak_live_bytes /
							    (double)least->peak_live_bytes)
				: "");
}

int frag_infos_answer(struct frag_infos *all, struct frag_err *err)
{
	struct frag_answer *a = all->a;
	struct infos *data = frag_answer_new(a, 1, sizeof(*data));
	struct frag_rows lines = lines_of(all);

	FRAG_CHECK_ALLOC(data, "statistics of the trace", err);
	*data = (struct infos){ .start_us = UINT64_MAX,
				.limit_bytes = UINT64_MAX,
				.stacks_count = UINT64_MAX };
	a->question = "What is in the recording?";
	frag_answer_csv(a, &line_row_shape, lines.rows, lines.count);
	if (all->count == 1) {
		const struct device_row *d = all->list[0].devices.rows;

		memcpy(data, &all->list[0], sizeof(all->list[0]));
		a->title = frag_answer_print(a, "What is in %s", data->trace);
		frag_answer_facts(a, &trace_shape, &all->list[0]);
		for (size_t i = 0; i < all->list[0].devices.count; i++)
			show_device(a, &d[i]);
	} else {
		data->traces = (struct frag_rows){ all->list, all->count };
		a->title = frag_answer_print(a, "What is in %zu recordings", all->count);
		show_lines(a, &lines);
	}
	frag_answer_data(a, &frag_infos_shape, data);
	return a->failed ? frag_fail_nomem(err, "statistics of the trace") : 0;
}
