/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logs: the memory that a card or process uses over time. That is what the allocator reserved, so a
 * leak shows only after the cache is used up, and growing fragmentation looks the same; the text
 * says so. The start of the program does not count: everything before it first uses half of its
 * peak.
 */
#include "diagnose.h"

#include <frag/opt.h>

#define PARTS 32u
#define SAMPLES_MIN 12u
#define FULL_PART 0.97
#define PACE_MOST 0x1p50 /* bytes a second: faster than any card */
#define CLIMB_PART 0.02	 /* of the largest value */

/* Samples after the program has begun, and before it ends. */
static void running(const struct frag_memlog_series *s, size_t *from, size_t *to)
{
	double low = 0.05 * s->most;
	size_t first = 0, last = s->count;

	while (first < last && s->list[first].bytes <= low)
		first++;
	while (last > first && s->list[last - 1].bytes <= low)
		last--;
	*from = first;
	*to = last;
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

static void tell_leak(const struct frag_memlog_series *s, size_t from, size_t to, size_t parts,
		      const struct frag_climb *climb, struct frag_findings *out)
{
	struct frag_finding *f = frag_findings_add(out, FRAG_FOUND_LEAK, s->name);
	double seconds = s->list[to - 1].time - s->list[from].time;
	double pace = seconds > 0 ? climb->per_step * (double)parts / seconds : 0;

	pace = FRAG_MIN(pace, PACE_MOST);
	frag_finding_say(f,
			 "memory in use keeps growing: by %s in %.0f s (Mann-Kendall z = %.1f, "
			 "Theil-Sen slope %s per minute)",
			 FRAG_BYTES((uint64_t)climb->grown), seconds, climb->z,
			 FRAG_BYTES((uint64_t)(pace * 60)));
	if (s->total > s->most && pace > 0)
		frag_finding_say(f, "; the card is full in %.0f minutes",
				 (s->total - s->most) / pace / 60);
	frag_finding_say(f, ". A log shows what the allocator reserved: a leak, or growing "
			    "fragmentation; a recording tells which");
	frag_finding_number(f, "bytes_per_s", pace);
	frag_finding_number(f, "grown_bytes", climb->grown);
	frag_finding_number(f, "mann_kendall_z", climb->z);
	frag_finding_number(f, "most_bytes", s->most);
}

static void tell_steady(const struct frag_memlog_series *s, size_t n, struct frag_findings *out)
{
	bool full = s->total > 0 && s->most >= FULL_PART * s->total;
	struct frag_finding *f = frag_findings_add(out, FRAG_FOUND_STEADY, s->name);

	frag_finding_say(f,
			 "memory in use does not grow: at most %s in %zu samples after the start",
			 FRAG_BYTES((uint64_t)s->most), n);
	if (n < SAMPLES_MIN)
		frag_finding_say(f, ", too few to tell a trend");
	if (full)
		frag_finding_say(f, "; the card is full, which a caching allocator can cause "
				    "without need: record the program to see");
	frag_finding_number(f, "most_bytes", s->most);
	frag_finding_number(f, "samples_count", (double)n);
}

static int judge(const struct frag_memlog_series *s, struct frag_findings *out, double *work,
		 struct frag_err *err)
{
	struct frag_climb climb;
	size_t from, to, parts, half;
	bool climbs = false;

	running(s, &from, &to);
	for (half = from; half < to && s->list[half].bytes < 0.5 * s->most; half++)
		;
	parts = floors(s->list + half, to - half, work);
	if (to - half >= SAMPLES_MIN)
		FRAG_TRY(frag_climbs(work, parts, CLIMB_PART * s->most, &climb, &climbs, err));
	if (climbs)
		tell_leak(s, half, to, parts, &climb, out);
	else
		tell_steady(s, to - half, out);
	return 0;
}

int frag_diagnose_log(const struct frag_memlog *log, struct frag_findings *out,
		      struct frag_err *err)
{
	FRAG_AUTO_FREE struct frag_checked_device *used = NULL;
	FRAG_AUTO_FREE double *work = NULL;
	size_t n = 0;

	FRAG_TRY_CALLOC(used, log->count, "diagnosis", err);
	FRAG_TRY_CALLOC(work, FRAG_MEMLOG_SAMPLES + 1, "diagnosis", err);
	frag_findings_note(out, "%s, %zu series", log->format, log->count);
	for (size_t i = 0; i < log->count; i++) {
		struct frag_memlog_series *s = &log->list[i];

		FRAG_TRY(judge(s, out, work, err));
		/* an idle card is not out of balance */
		if (s->most >= 64 * (double)FRAG_MIB)
			used[n++] = (struct frag_checked_device){ .name = s->name,
								  .peak_active_bytes =
									  (uint64_t)s->most };
	}
	frag_find_imbalance(used, n, out);
	return 0;
}
