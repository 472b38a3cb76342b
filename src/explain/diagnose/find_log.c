/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logs: the memory that a card or process uses over time. That is what the allocator reserved, so a
 * leak shows only after the cache is used up, and growing fragmentation looks the same; the text
 * says so. It is looked for after the program first uses half of its peak, and goes back from there
 * as far as nothing rises much faster: what came before is its start.
 */
#include "diagnose.h"

#include <string.h>
#include <time.h>

#include <frag/opt.h>

#define PARTS 32u
#define SAMPLES_MIN 12u
#define IDLE_PART 0.05 /* of the most: no program runs */
#define FALL_PART 0.5  /* of what it stood at, in one sample, to near its start: a new run */
#define NEAR 1.25
#define FULL_PART 0.97
#define PACE_MOST 0x1p50 /* bytes a second: faster than any card */
#define CLIMB_PART 0.02	 /* of the largest value */
#define FAST 5		 /* times the pace of the growth: loading */
#define LOADS 1.5	 /* within one saw tooth, in the same way */
#define SPIKE_PART 0.25	 /* of the most: at least; of the time: at most */
#define DATE_LEAST 1e8	 /* seconds since 1970; less is a time of day or of the run */
#define DATE_MOST 1e11
#define SAW_MOST 64u /* samples between two low points */

/* Samples between which a program runs; from `half` on it has used half of its most. */
struct run {
	size_t from, half, to;
	double most;
};

/* The last one before r->to; false: there is none. */
static bool run_before(const struct frag_memlog_series *s, struct run *r)
{
	const double low = IDLE_PART * s->most;
	size_t start = 0;

	while (start < r->to && s->list[start].bytes <= low)
		start++;
	while (r->to && s->list[r->to - 1].bytes <= low)
		r->to--;
	r->most = 0;
	for (r->from = r->to; r->from && s->list[r->from - 1].bytes > low;) {
		const struct frag_memlog_sample *y = &s->list[--r->from];

		r->most = FRAG_MAX(r->most, y->bytes);
		if (r->from && y->bytes <= FALL_PART * y[-1].bytes &&
		    y->bytes <= NEAR * s->list[start].bytes)
			break; /* started again before a sample saw it idle */
	}
	for (r->half = r->from; r->half < r->to && s->list[r->half].bytes < 0.5 * r->most;)
		r->half++;
	return r->to;
}

/* The least of each of at most PARTS equal parts. Returns their number. */
static size_t floors(const struct frag_memlog_sample *y, size_t n, double *out)
{
	size_t parts = FRAG_MIN(n, (size_t)PARTS);

	for (size_t p = 0; p < parts; p++) {
		size_t a = p * n / parts, b = (p + 1) * n / parts;

		out[p] = y[a].bytes;
		for (size_t i = a; i < b; i++)
			out[p] = FRAG_MIN(out[p], y[i].bytes);
	}
	return parts;
}

/* Of the samples from one on: saw teeth rise, their feet do not. */
static double foot(const struct frag_memlog_series *s, size_t at, size_t saw)
{
	double y = s->list[at].bytes;

	for (size_t i = 1; i < saw; i++)
		y = FRAG_MIN(y, s->list[at + i].bytes);
	return y;
}

/* Where the growth that was found, at a pace of so many bytes a sample, began: behind what rises
 * much faster, the loading. */
static size_t beginning(const struct frag_memlog_series *s, const struct run *r, double pace)
{
	const size_t n = r->to - r->half, saw = FRAG_MAX(FRAG_MIN(n / PARTS, SAW_MOST), 1u);
	size_t at = r->half + n / 2;

	for (size_t hop = n / 8; hop; hop /= 2)
		while (at >= r->from + hop &&
		       foot(s, at, saw) - foot(s, at - hop, saw) <= FAST * pace * (double)hop)
			at -= hop;
	while (at < r->half && foot(s, at + saw, saw) > LOADS * foot(s, at, saw))
		at++;
	return at;
}

/* The card, process or column. */
static const char *whose(const struct frag_memlog_series *s)
{
	const size_t n = strlen(FRAG_MEMLOG_IN_USE);

	return s->name + (strncmp(s->name, FRAG_MEMLOG_IN_USE, n) ? 0 : n);
}

static const char *lasting(const struct frag_memlog *log, struct frag_answer *a, double seconds)
{
	return log->unit	   ? frag_answer_print(a, "%.0f %ss", seconds, log->unit)
	       : seconds >= 172800 ? frag_answer_print(a, "%.1f days", seconds / 86400)
	       : seconds >= 7200   ? frag_answer_print(a, "%.1f hours", seconds / 3600)
	       : seconds >= 120	   ? frag_answer_print(a, "%.0f minutes", seconds / 60)
				   : frag_answer_print(a, "%.0f s", seconds);
}

/* The time of a sample as the log has it: a date, or seconds. */
static const char *clock_of(const struct frag_memlog *log, double time, struct frag_answer *a)
{
	const double since = log->first_time + time;
	const time_t at = !log->unit && since > DATE_LEAST && since < DATE_MOST ? (time_t)since : 0;
	char text[32];
	struct tm tm;

	if (!at || !gmtime_r(&at, &tm) || !strftime(text, sizeof(text), "%F %T", &tm))
		return log->unit ? frag_answer_print(a, "%s %.0f", log->unit, since)
				 : frag_answer_print(a, "%.0f s", since);
	return frag_answer_print(a, "%s", text);
}

/* last: it ends with the log. */
static void tell_leak(const struct frag_memlog *log, const struct frag_memlog_series *s,
		      struct run r, bool last, const struct frag_climb *climb,
		      struct frag_findings *out)
{
	struct frag_finding *f = frag_findings_add(out, FRAG_FOUND_LEAK, whose(s));
	const size_t from = beginning(s, &r, climb->grown / (double)(r.to - r.half));
	const double since = s->list[from].time, until = s->list[r.to - 1].time,
		     seconds = until - s->list[r.half].time;
	double low[PARTS], grown, pace;
	const size_t parts = floors(s->list + from, r.to - from, low);

	grown = (low[parts - 1] - low[0]) * (double)parts / (double)(parts - 1);
	grown = grown > 0 ? grown : climb->grown; /* what climbs may have been lower before */
	pace = seconds > 0 ? FRAG_MIN(climb->grown / seconds, PACE_MOST) : 0;
	SAY("%s %s: by %s in %s, lately %s per %s (Mann-Kendall z = %.1f)", s->name,
	    last ? "keeps growing" : "kept growing until it fell", FRAG_BYTES((uint64_t)grown),
	    lasting(log, out->texts, until - since),
	    FRAG_BYTES((uint64_t)(pace * (log->unit ? 1 : 60))), log->unit ?: "minute", climb->z);
	if (last && s->total > r.most && pace > 0)
		SAY("; the card is full in %s",
		    lasting(log, out->texts, (s->total - r.most) / pace));
	r.to = r.from;
	if (!last || run_before(s, &r))
		SAY("; this is one of several runs, from %s to %s",
		    clock_of(log, since, out->texts), clock_of(log, until, out->texts));
	if (strcasestr(s->name, "alloc"))
		SAY(". What is allocated grows, so it is no fragmentation; a recording tells "
		    "where");
	else
		SAY(". A log shows what the allocator reserved: a leak, or growing fragmentation; "
		    "a recording tells which");
	frag_finding_number(f, frag_answer_print(out->texts, "bytes_per_%s", log->unit ?: "s"),
			    pace);
	frag_finding_number(f, "grown_bytes", grown);
	frag_finding_number(f, "mann_kendall_z", climb->z);
	frag_finding_number(f, "most_bytes", s->most);
}

static void tell_steady(const struct frag_memlog *log, const struct frag_memlog_series *s, size_t n,
			struct frag_findings *out)
{
	const struct frag_memlog_series *top = &(struct frag_memlog_series){ 0 };
	bool full = s->total > 0 && s->most >= FULL_PART * s->total, few = n < SAMPLES_MIN;
	struct frag_finding *f =
		frag_findings_add(out, few ? FRAG_FOUND_UNDECIDED : FRAG_FOUND_STEADY, whose(s));

	SAY("%s %s: at most %s in %s after the start%s", s->name,
	    few ? "was read" : "does not grow", FRAG_BYTES((uint64_t)s->most),
	    frag_answer_count(f->texts, n, "sample", "samples"),
	    few ? ", too few to tell a trend" : "");
	for (size_t i = 0; few && s == log->list && i < log->count; i++)
		if (!strncmp(whose(&log->list[i]), "process ", 8) && log->list[i].most > top->most)
			top = &log->list[i];
	if (top->count)
		SAY("; of its processes, %s holds most: %s", whose(top) + 8,
		    FRAG_BYTES((uint64_t)top->most));
	if (full)
		SAY("; the card is full, which a caching allocator can cause without need: record "
		    "the program to see");
	frag_finding_number(f, "most_bytes", s->most);
	frag_finding_number(f, "samples_count", (double)n);
}

/* Rises once, far and not for long, from what it stands at half of the time. */
static bool tell_spike(const struct frag_memlog *log, const struct frag_memlog_series *s,
		       size_t from, size_t to, struct frag_findings *out)
{
	double low[PARTS], base, rise;
	size_t first = from, end;
	struct frag_finding *f;

	base = frag_median(low, floors(s->list + from, to - from, low));
	rise = s->most - base;
	while (first < to && s->list[first].bytes <= base + rise / 2)
		first++;
	for (end = to; end > first && s->list[end - 1].bytes <= base + rise / 2; end--)
		;
	if (rise < SPIKE_PART * s->most || first == from || end == to ||
	    (double)(end - first) > SPIKE_PART * (double)(to - from))
		return false;
	f = frag_findings_add(out, FRAG_FOUND_SPIKE, whose(s));
	SAY("%s stood at %s and rose by %s to %s from %s to %s", s->name,
	    FRAG_BYTES((uint64_t)base), FRAG_BYTES((uint64_t)rise), FRAG_BYTES((uint64_t)s->most),
	    clock_of(log, s->list[first].time, out->texts),
	    clock_of(log, s->list[end].time, out->texts));
	frag_finding_number(f, "most_bytes", s->most);
	frag_finding_number(f, "rise_bytes", rise);
	return true;
}

static int judge(const struct frag_memlog *log, const struct frag_memlog_series *s,
		 struct frag_findings *out, struct frag_err *err)
{
	struct frag_climb climb = { 0 };
	struct run r = { .to = s->count };
	double low[PARTS];
	size_t all = 0, end = 0, from = 0;
	bool climbs = false;

	for (; run_before(s, &r); r.to = from = r.from) {
		const size_t n = r.to - r.half;

		if (n >= SAMPLES_MIN)
			FRAG_TRY(frag_climbs(low, floors(s->list + r.half, n, low),
					     CLIMB_PART * s->most, &climb, &climbs, err));
		if (climbs) {
			tell_leak(log, s, r, !end, &climb, out);
			return 0;
		}
		end = end ?: r.to;
		all += n;
	}
	if (all < SAMPLES_MIN || !tell_spike(log, s, from, end, out))
		tell_steady(log, s, all, out);
	return 0;
}

int frag_diagnose_log(const struct frag_memlog *log, struct frag_findings *out,
		      struct frag_err *err)
{
	NOTE("%s, %zu series", log->format, log->count);
	for (size_t i = 0; i < log->count; i++)
		FRAG_TRY(judge(log, &log->list[i], out, err));
	return 0;
}
