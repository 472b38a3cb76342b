/* SPDX-License-Identifier: Apache-2.0 */
/* What is in recordings, as an answer: file, devices, a line for each of several; see info.h. */
#include "info.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include <frag/opt.h>
#include <frag/replay.h>

#include "answer/row.h"
#include "lib/grow.h"
#include "recording/estimate.h"
#include "recording/settled_shape.h"
#include "trace/log/log.h"

/* ---- rows ------------------------------------------------------------------------------- */

#define SETTINGS_ROW(F, P, S) \
	F(S, TEXT, conf, frag_answer_print(a, "%s", s->conf ? s->conf : ""), NULL, \
	  "PYTORCH_CUDA_ALLOC_CONF") \
	F(S, BYTES, max_split_bytes, s->max_split_bytes, NULL, "null = unlimited") \
	F(S, RATIO, gc_threshold_ratio, s->gc_threshold, NULL, "of the limit") \
	F(S, BOOL, expandable_segments, s->expandable, NULL, "on or off") \
	F(S, COUNTS, roundup_power2_divisions, FRAG_ROWS(roundup, FRAG_ARRAY_LEN(s->roundup)), \
	  NULL, "for each power of two")
FRAG_VALUED_ROW(settings_row, "settings", SETTINGS_ROW, "settings of the recorded allocator");

#define TRACE_ROW(F, P, S) \
	F(S, TEXT, trace, frag_answer_print(a, "%s", t->name ? t->name : ""), "trace", "its name") \
	F(S, TEXT, format, frag_answer_print(a, "%.*s", (int)named, format), "format", \
	  "of the file") \
	F(S, TEXT, not_recorded, list ? frag_answer_print(a, "%s", list) : NULL, "not in it", \
	  "information that this kind of log lacks") \
	P(S, TEXT, recorded, day_text(a, t->start_us), "recorded", "when") \
	P(S, TEXT, recorded_by, NULL, "recorded by", "by which releases of PyTorch it can be") \
	P(S, TEXT, settings_text, settings_text(a, &t->settings), "settings", \
	  "of the recorded allocator") \
	P(S, TEXT, limit_text, limit_text(a, t), "limit", \
	  "most memory that the process could have") \
	P(S, TEXT, checked, checked_text(a, t), "checked", "result of its replay") \
	P(S, TEXT, estimate_text, estimate ? frag_estimate_text(a, estimate) : NULL, "estimate", \
	  "how it was made without a GPU") \
	P(S, TEXT, stacks, \
	  t->stacks.count > 1 ? frag_answer_print(a, "%zu of %zu frames", t->stacks.count - 1, \
						  t->stacks.frames_count) \
			      : NULL, \
	  "stacks", "call stacks") \
	F(S, US, start_us, t->start_us ?: UINT64_MAX, NULL, "Unix time of the first event") \
	F(S, TEXTS, torch, frag_release_rows(a, t->settings.torch_first, t->settings.torch_last), \
	  NULL, "first and last release of PyTorch that it can be") \
	F(S, OBJECT, estimate, estimate, NULL, "how it was made without a GPU", \
	  .of = &frag_estimate_shape) \
	F(S, OBJECT, settings, settings_of(a, &t->settings), NULL, "null = not recorded", \
	  .of = &settings_row_shape) \
	F(S, BYTES, limit_bytes, t->settings.limit_known ? t->settings.limit_bytes : UINT64_MAX, \
	  NULL, "limit in the file; null = none") \
	F(S, COUNT, stacks_count, t->stacks.count ? t->stacks.count - 1 : 0, NULL, \
	  "different call stacks") \
	F(S, LIST, devices, { 0 }, NULL, "its devices", .of = &frag_info_device_shape)
FRAG_VALUED_ROW_AS(static, trace_shape, frag_info_trace, "trace", TRACE_ROW, "one recording");

/* One recording: its own members. Several: only the list. */
#define INFOS_ROW(F, P, S) \
	TRACE_ROW(F, P, S) \
	F(S, LIST, traces, { 0 }, NULL, "of several recordings", .of = &trace_shape)
FRAG_VALUED_ROW_AS(, frag_infos_shape, infos, "info", INFOS_ROW, "what is in a recording");

#define LINE_ROW(F, P, S) \
	F(S, TEXT, trace, \
	  t->devices.count > 1 \
		  ? frag_answer_print(all->a, "%s, device %" PRIu64, t->trace, d->device) \
		  : t->trace, \
	  "trace", "its name, with the device where it has several") \
	F(S, COUNT, events_count, d->events_count, "events", "all events", .grouped = true) \
	F(S, COUNT, streams_count, d->streams_count, "streams", "CUDA streams", .spare = 1) \
	F(S, COUNT, steps_count, d->steps_count, "steps", "steps") \
	F(S, US, duration_us, d->duration_us, "duration", "from the first event to the last", \
	  .spare = 2) \
	F(S, COUNT, peak_blocks_count, peak ? peak->blocks_count : UINT64_MAX, "blocks", \
	  "live at the peak", .spare = 3) \
	F(S, BYTES, peak_live_bytes, peak ? peak->live_bytes : UINT64_MAX, "peak live", \
	  "most live memory") \
	F(S, BYTES, peak_reserved_bytes, d->peak_reserved_bytes, "peak reserved", \
	  "most that was reserved when it was recorded", .if_any = true)
FRAG_VALUED_ROW(line_row, "line", LINE_ROW, "one device of a recording");

/* ---- one recording ---------------------------------------------------------------------- */

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
	struct settings_row row = FRAG_ROW_VALUES(settings_row, SETTINGS_ROW);

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
	for (uint32_t d = 0; d < t->devs_count; d++)
		if (t->devs[d].settled.limits_count)
			return "changed while it ran, see marks";
	if (t->settings.limit_known && t->settings.limit_bytes == UINT64_MAX)
		return "none was set";
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

		if (!dev->has_evidence || frag_is_state(t, dev))
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
	const char *format = t->format ? t->format : "unknown", *list = frag_log_lacks(t);
	size_t named = list ? (size_t)(list - format) - strlen(FRAG_LOG_LACKS) : strlen(format);

	*row = FRAG_ROW_VALUES(frag_info_trace, TRACE_ROW);
	row->recorded_by = recorded_by(a, &row->torch);
	a->estimated |= estimate != NULL;
}

int frag_infos_add(struct frag_infos *all, const struct frag_recording *r,
		   const struct frag_info *infos, struct frag_err *err)
{
	struct frag_info_trace *row;

	FRAG_TRY(FRAG_GROW(all->list, all->count, all->cap, "statistics of the trace", err));
	row = &all->list[all->count++];
	for (uint32_t d = 0; d < r->trace->devs_count; d++) {
		const struct frag_unit *u = &r->units[d];

		FRAG_TRY(frag_ending_set(&infos[d].ending, r->trace, d, err));
		frag_ending_warn(all->a, frag_ending_row(all->a, u->label, &u->dev->ending));
	}
	fill_trace(all->a, row, r->trace);
	row->devices = frag_info_devices(all->a, r, infos);
	return all->a->failed ? frag_fail_nomem(err, "statistics of the trace") : 0;
}

void frag_infos_release(struct frag_infos *all)
{
	frag_host_free(all->list);
	*all = (struct frag_infos){ 0 };
}

/* ---- the answer ------------------------------------------------------------------------- */

static struct frag_rows lines_of(struct frag_infos *all)
{
	struct line_row *rows;
	size_t count = 0, n = 0;

	for (size_t i = 0; i < all->count; i++)
		count += all->list[i].devices.count;
	rows = frag_answer_new(all->a, count, sizeof(*rows));
	for (size_t i = 0; rows && i < all->count; i++) {
		const struct frag_info_trace *t = &all->list[i];
		const struct frag_info_device_row *d = t->devices.rows;

		for (size_t k = 0; k < t->devices.count; k++, d++) {
			const struct frag_info_peak *peak = d->peak;

			rows[n++] = FRAG_ROW_VALUES(line_row, LINE_ROW);
		}
	}
	return (struct frag_rows){ rows, n };
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
		const struct frag_info_device_row *d = all->list[0].devices.rows;

		memcpy(data, &all->list[0], sizeof(all->list[0]));
		a->title = frag_answer_print(a, "What is in %s", data->trace);
		frag_answer_facts(a, &trace_shape, &all->list[0]);
		for (size_t i = 0; i < all->list[0].devices.count; i++)
			frag_info_device_parts(a, &d[i]);
	} else {
		data->traces = (struct frag_rows){ all->list, all->count };
		a->title = frag_answer_print(a, "What is in %zu recordings", all->count);
		frag_answer_table(a, &line_row_shape, lines.rows, lines.count);
	}
	frag_answer_data(a, &frag_infos_shape, data);
	return a->failed ? frag_fail_nomem(err, "statistics of the trace") : 0;
}
