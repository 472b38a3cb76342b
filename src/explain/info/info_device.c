/* SPDX-License-Identifier: Apache-2.0 */
/* One device of a recording, event by event and as part of an answer; see info.h. */
#include "info.h"

#include <inttypes.h>
#include <string.h>

#include "lib/grow.h"
#include "recording/settled_shape.h"
#include "trace/log/log.h"
#include "trace/source.h"

#define MARKS_SHOWN 6u

/* ---- scan ------------------------------------------------------------------------------- */

/* 512 B: the unit of PyTorch; 1, 10 and 20 MiB: where it changes its ways */
static const uint64_t class_bytes[FRAG_INFO_CLASSES] = {
	512,	       4 * FRAG_KIB,  32 * FRAG_KIB,  256 * FRAG_KIB, FRAG_MIB,
	10 * FRAG_MIB, 20 * FRAG_MIB, 200 * FRAG_MIB, FRAG_GIB,	      UINT64_MAX,
};

void frag_info_init(struct frag_info *info, const struct frag_trace_dev *dev)
{
	memset(info, 0, sizeof(*info));
	info->dev = dev;
	frag_hist_clear(&info->life_events);
	frag_hist_clear(&info->life_us);
}

void frag_info_release(struct frag_info *info)
{
	FRAG_FREE(info->slots, info->marks);
	info->slots = NULL;
	info->marks = NULL;
}

/* Makes (*array)[index] exist; new elements are zero. */
static int reach(void *array_ptr, size_t *cap, size_t index, size_t unit, struct frag_err *err)
{
	unsigned char **array = array_ptr;
	size_t had = *cap;

	if (FRAG_LIKELY(index < had))
		return 0;
	FRAG_TRY(frag_grow_to(array, index + 1, cap, unit, "statistics of the trace", err));
	memset(*array + had * unit, 0, (*cap - had) * unit);
	return 0;
}

static unsigned class_of(uint64_t bytes)
{
	unsigned c = 0;

	while (bytes > class_bytes[c])
		c++;
	return c;
}

static int add_alloc(struct frag_info *info, const struct frag_event *ev, struct frag_err *err)
{
	unsigned c = class_of(ev->bytes);
	struct frag_info_peak *live = &info->live;

	if (ev->flags & FRAG_EVF_INITIAL) {
		info->initial_blocks_count++;
		info->initial_bytes += ev->bytes;
	}
	info->class_count[c]++;
	info->class_bytes[c] += ev->bytes;
	info->requests_bytes += ev->bytes;
	info->kept_count++;
	FRAG_TRY(reach(&info->slots, &info->slots_cap, ev->slot, sizeof(*info->slots), err));
	info->slots[ev->slot] = (struct frag_info_slot){ info->events, ev->time_us, false };
	live->live_bytes += frag_round_up(ev->bytes, 512);
	live->requested_bytes += ev->bytes;
	live->blocks_count++;
	if (live->live_bytes > info->peak.live_bytes) {
		info->peak = *live;
		info->peak.event = info->events;
		info->peak.time_us = ev->time_us;
		info->peak.steps_done_count = info->steps_count;
	}
	return 0;
}

/* Counts each lifetime once: a free from before the history may complete at once. */
static void add_let_go(struct frag_info *info, struct frag_info_slot *s, uint64_t time_us)
{
	if (s->let_go)
		return;
	frag_hist_add(&info->life_events, info->events - s->event);
	frag_hist_add(&info->life_us, time_us > s->time_us ? time_us - s->time_us : 0);
	info->kept_count--;
	s->let_go = true;
}

/* A block counts as live until its last stream is done, its lifetime only until it is let go. */
static void add_free(struct frag_info *info, const struct frag_event *ev)
{
	add_let_go(info, &info->slots[ev->slot], ev->time_us);
	if (ev->kind == FRAG_EV_FREE_REQUESTED)
		return;
	info->live.live_bytes -= frag_round_up(ev->bytes, 512);
	info->live.requested_bytes -= ev->bytes;
	info->live.blocks_count--;
}

static int add_mark(struct frag_info *info, const struct frag_event *ev, struct frag_err *err)
{
	if (ev->flags & FRAG_EVF_END) {
		info->steps_count += (ev->flags & FRAG_EVF_STEP) != 0;
		return 0;
	}
	FRAG_TRY(reach(&info->marks, &info->marks_cap, ev->slot, sizeof(*info->marks), err));
	info->marks[ev->slot]++;
	return 0;
}

static void add_trim(struct frag_info *info, const struct frag_event *ev)
{
	info->unsure_count += (ev->flags & FRAG_EVF_UNSURE) != 0;
	if (!info->emptied_count)
		info->emptied_first_us = ev->time_us;
	info->emptied_count += !info->emptied_count || info->emptied_us != ev->time_us ||
			       info->emptied_pool == ev->pool ||
			       info->emptied_event + 1 != info->events;
	info->emptied_us = ev->time_us;
	info->emptied_event = info->events;
	info->emptied_pool = ev->pool;
}

int frag_info_add(struct frag_info *info, const struct frag_event *events, size_t count,
		  struct frag_err *err)
{
	bool first = !info->events;

	frag_ending_add(&info->ending, events, count);
	for (size_t i = 0; i < count; i++, info->events++) {
		const struct frag_event *ev = &events[i];

		info->kinds[ev->kind]++;
		switch (ev->kind) {
		case FRAG_EV_ALLOC:
			FRAG_TRY(add_alloc(info, ev, err));
			break;
		case FRAG_EV_FREE:
		case FRAG_EV_FREE_REQUESTED:
		case FRAG_EV_FREE_COMPLETED:
			add_free(info, ev);
			break;
		case FRAG_EV_TRIM:
			add_trim(info, ev);
			break;
		case FRAG_EV_MARK:
			FRAG_TRY(add_mark(info, ev, err));
			break;
		default:
			break;
		}
	}
	if (!count)
		return 0;
	if (first)
		info->first_us = events[0].time_us;
	if (events[count - 1].time_us > info->first_us)
		info->duration_us = events[count - 1].time_us - info->first_us;
	return 0;
}

/* ---- shapes ----------------------------------------------------------------------------- */

#define CLASS_ROW(F, P, S) \
	F(S, BYTES, up_to_bytes, class_bytes[c], NULL, \
	  "largest request of the class; null = the largest of all") \
	P(S, TEXT, class, \
	  frag_answer_print(a, "%s%s", last ? ">" : "", \
			    FRAG_BYTES(class_bytes[last ? c - 1 : c])), \
	  "requests up to", "largest request of the class", .right = true) \
	F(S, COUNT, count, info->class_count[c], "count", "requests", .grouped = true) \
	P(S, RATIO, count_ratio, \
	  (double)info->class_count[c] / (double)FRAG_MAX(info->kinds[FRAG_EV_ALLOC], 1u), \
	  "of all", "of all requests", .unit = "%", .precision = 1) \
	F(S, BYTES, requested_bytes, info->class_bytes[c], "bytes", "sum of these requests") \
	P(S, RATIO, bytes_ratio, \
	  (double)info->class_bytes[c] / (double)FRAG_MAX(info->requests_bytes, 1u), "of all", \
	  "of all requested bytes", .unit = "%", .precision = 1)
FRAG_VALUED_ROW(class_row, "size_class", CLASS_ROW, "requests of one class of sizes");

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

#define CARD_ROW(F, P, S) \
	F(S, TEXT, name, NULL, "of the card") \
	F(S, BYTES, total_bytes, NULL, "its memory") \
	F(S, BYTES, context_bytes, NULL, "taken by the CUDA context") \
	F(S, BYTES, beside_bytes, NULL, "held by the process beside its allocator") \
	F(S, REAL, limit_fraction, NULL, "of the card that the process might have")
FRAG_ROW(card_row, "recorded_card", CARD_ROW, "the card of the recording");

FRAG_ROW_SHAPE(static, peak_shape, frag_info_peak, "peak", FRAG_INFO_PEAK,
	       "the moment with most live memory");
FRAG_VALUED_SHAPE(, frag_info_device_shape, frag_info_device_row, "device", FRAG_INFO_DEVICE_ROW,
		  "one device of a recording");

/* ---- words ------------------------------------------------------------------------------ */

static const char *grouped(struct frag_answer *a, uint64_t n)
{
	return frag_answer_print(a, "%s", FRAG_GROUPED(n));
}

static const char *duration(struct frag_answer *a, uint64_t us)
{
	return frag_answer_print(a, "%s", FRAG_NS(us * 1000));
}

static bool lacks(const struct frag_trace *t, const char *word)
{
	const char *list = frag_log_lacks(t);

	return list && strstr(list, word);
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

/* The most frequent ones; of equal ones the first comes first. */
static const char *marks_text(struct frag_answer *a, const struct frag_info *info,
			      const struct frag_trace *trace)
{
	FRAG_AUTO(frag_text_release) struct frag_text t = { 0 };
	size_t at = SIZE_MAX; /* the one before */

	for (unsigned n = 0; n < MARKS_SHOWN; n++) {
		size_t best = SIZE_MAX;

		for (size_t i = 0; i < info->marks_cap; i++) {
			uint32_t last = n ? info->marks[at] : UINT32_MAX, c = info->marks[i];

			if (c && (c < last || (c == last && n && i > at)) &&
			    (best == SIZE_MAX || c > info->marks[best]))
				best = i;
		}
		if (best == SIZE_MAX)
			break;
		frag_text_addf(&t, "%s%u x %.100s", n ? "\n" : "", info->marks[best],
			       frag_trace_string(trace, (uint32_t)best));
		at = best;
	}
	return frag_answer_take(a, &t);
}

static const char *history_text(struct frag_answer *a, const struct frag_info *info,
				const struct frag_trace *trace)
{
	const struct frag_trace_dev *dev = info->dev;
	bool late = lacks(trace, "beginning");
	const char *blocks = grouped(a, info->initial_blocks_count);
	FRAG_AUTO(frag_text_release) struct frag_text t = { 0 };

	if (frag_is_state(trace, dev))
		return frag_answer_print(
			a, "none, a state: %s in %s blocks is live%s%s",
			FRAG_BYTES(info->peak.live_bytes), grouped(a, info->peak.blocks_count),
			frag_recorded_peak(dev) ? ", reserved is " : "",
			frag_recorded_peak(dev) ? FRAG_BYTES(frag_recorded_peak(dev)) : "");
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
		a, "%s in %s, at event %" PRIu64 " (%s, %s done)", FRAG_BYTES(p->live_bytes),
		frag_answer_count(a, p->blocks_count, "block", "blocks"), p->event,
		lacks(trace, "times") ? "time not recorded" : duration(a, p->time_us),
		frag_answer_count(a, p->steps_done_count, "step", "steps"));
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

static const char *evidence_text(struct frag_answer *a, const struct frag_trace_dev *dev,
				 const struct frag_trace_dev *counts)
{
	return dev->has_evidence ? frag_answer_print(a,
						     "addresses, %" PRIu64
						     " segment events and refusals, %" PRIu64
						     " final segments of %" PRIu64 " blocks",
						     (uint64_t)counts->seen_count,
						     (uint64_t)counts->final_segments_count,
						     (uint64_t)counts->final_blocks_count)
				 : "none: verify has nothing to compare with";
}

/* ---- the row ---------------------------------------------------------------------------- */

static struct frag_rows classes_of(struct frag_answer *a, const struct frag_info *info)
{
	struct class_row *rows = frag_answer_new(a, FRAG_INFO_CLASSES, sizeof(*rows));

	for (unsigned c = 0; rows && c < FRAG_INFO_CLASSES; c++) {
		bool last = c + 1 == FRAG_INFO_CLASSES;

		rows[c] = FRAG_ROW_VALUES(class_row, CLASS_ROW);
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

static void fill_device(struct frag_answer *a, struct frag_info_device_row *row,
			const struct frag_info *info, const struct frag_unit *u,
			const struct frag_trace_dev *counts)
{
	const struct frag_trace_dev *dev = info->dev;
	const struct frag_trace *t = u->trace;
	const uint64_t *kinds = info->kinds;
	const bool state = frag_is_state(t, dev);
	struct life_row *lives = frag_answer_new(a, 2, sizeof(*lives));

	if (!lives)
		return;
	lives[0] = life_of(a, "in events", &info->life_events, grouped);
	lives[1] = life_of(a, "in time", &info->life_us, duration);
	*row = FRAG_ROW_VALUES(frag_info_device_row, FRAG_INFO_DEVICE_ROW);
}

struct frag_rows frag_info_devices(struct frag_answer *a, const struct frag_recording *r,
				   const struct frag_info *infos)
{
	size_t count = r->trace->devs_count;
	struct frag_info_device_row *rows = frag_answer_new(a, count, sizeof(*rows));

	for (uint32_t d = 0; rows && d < count; d++)
		fill_device(a, &rows[d], &infos[d], &r->units[d],
			    frag_source_declared(r->source, d));
	return (struct frag_rows){ rows, rows ? count : 0 };
}

/* ---- its parts -------------------------------------------------------------------------- */

void frag_info_device_parts(struct frag_answer *a, const struct frag_info_device_row *row)
{
	struct class_row *used = frag_answer_new(a, row->requests.count, sizeof(*used));
	const struct class_row *classes = row->requests.rows;
	struct life_row *lives = frag_answer_new(a, 2, sizeof(*lives));
	size_t n = 0, k = 0;

	frag_answer_heading(a, "device %" PRIu64, row->device);
	frag_answer_facts(a, &frag_info_device_shape, row)->indent = 2;
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
	if (lives[0].max == UINT64_MAX) /* nothing was let go */
		return;
	frag_answer_gap(a);
	frag_answer_table(a, &life_row_shape, lives, k)->indent = 2;
}
