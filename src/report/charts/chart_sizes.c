/* SPDX-License-Identifier: Apache-2.0 */
/* What the program asks for: sizes and lifetimes of its requests, from the trace alone. */
#include "chart.h"

#include <string.h>

#define SIZE_BINS 49  /* [2^i, 2^(i+1)) bytes */
#define LIFE_PER_10 2 /* bins per decade */
#define LIFE_BINS (LIFE_PER_10 * 13)

struct bins {
	uint64_t count[SIZE_BINS], bytes[SIZE_BINS];
	uint64_t life_count[LIFE_BINS], life_bytes[LIFE_BINS];
	uint64_t allocs, never_freed;
};

/* Bin of a lifetime in microseconds or events: half decades, below 1 counts as 1. */
static unsigned life_bin(uint64_t life)
{
	unsigned bin = 0;
	uint64_t edge = 10;

	while (bin / LIFE_PER_10 < LIFE_BINS / LIFE_PER_10 - 1 && life >= edge) {
		edge *= 10;
		bin += LIFE_PER_10;
	}
	/* upper half of the decade: life >= sqrt(10) * edge/10, squared to stay in integers */
	if ((unsigned __int128)life * life * 10 >= (unsigned __int128)edge * edge)
		bin++;
	return FRAG_MIN(bin, (unsigned)LIFE_BINS - 1);
}

/* A lifetime ends where the program lets go, not where the last stream does. */
static void count_event(struct bins *b, const struct frag_event *ev, uint64_t now, uint64_t *born)
{
	unsigned bin;

	switch (ev->kind) {
	case FRAG_EV_ALLOC:
		b->allocs++;
		b->never_freed++;
		bin = ev->bytes ? frag_log2(ev->bytes) : 0;
		b->count[bin]++;
		b->bytes[bin] += ev->bytes;
		born[ev->slot] = now;
		break;
	case FRAG_EV_FREE:
	case FRAG_EV_FREE_REQUESTED:
		bin = life_bin(now - born[ev->slot]);
		b->life_count[bin]++;
		b->life_bytes[bin] += ev->bytes;
		b->never_freed--;
		break;
	default:
		break;
	}
}

/* false: the trace is gone, or memory is short. */
static bool fill(const struct frag_section *s, struct bins *b)
{
	const struct frag_trace_dev *d = s->events;
	FRAG_AUTO_FREE uint64_t *born = NULL;

	memset(b, 0, sizeof(*b));
	if (!d || !d->events)
		return false;
	born = frag_host_calloc(d->slots_count, sizeof(*born));
	if (!born)
		return false;
	for (size_t i = 0; i < d->events_count; i++) {
		const struct frag_event *ev = &d->events[i];

		count_event(b, ev, s->duration_us ? ev->time_us : i, born);
	}
	return true;
}

/* Edges of lifetimes in seconds, or events. */
static double life_edge(const struct frag_section *s, unsigned bin)
{
	double edge = bin % LIFE_PER_10 ? 3.16227766 : 1;

	for (unsigned i = 0; i < bin / LIFE_PER_10; i++)
		edge *= 10;
	return s->duration_us ? edge / 1e6 : edge;
}

#define COLUMNS(X, s) \
	X(s, TEXT, kind) \
	X(s, REAL, low) \
	X(s, REAL, high) \
	X(s, COUNT, count) \
	X(s, BYTES, bytes)
FRAG_CSV_ROW(row, COLUMNS)

static struct frag_rows rows(const struct frag_chart_job *job)
{
	const char *life = job->section->duration_us ? "lifetime_s" : "lifetime_events";
	struct row *list = frag_answer_new(job->answer, SIZE_BINS + LIFE_BINS, sizeof(*list));
	unsigned first = SIZE_BINS, last = 0;
	size_t n = 0;
	struct bins b;

	if (!list || !fill(job->section, &b) || !b.allocs)
		return (struct frag_rows){ 0 };
	for (unsigned i = 0; i < SIZE_BINS; i++) {
		if (!b.count[i])
			continue;
		first = FRAG_MIN(first, i);
		last = i;
	}
	for (unsigned i = first; i <= last; i++)
		list[n++] = (struct row){ "size_bytes", (double)(1ull << i), (double)(2ull << i),
					  b.count[i], b.bytes[i] };
	for (unsigned i = 0; i < LIFE_BINS; i++)
		if (b.life_count[i])
			list[n++] = (struct row){ life, life_edge(job->section, i),
						  life_edge(job->section, i + 1), b.life_count[i],
						  b.life_bytes[i] };
	return (struct frag_rows){ list, n };
}

/* From which size on requests hold half of all bytes that were asked for. */
static void finding(const struct frag_chart_job *job, struct frag_title *out)
{
	uint64_t sum = 0, above = 0;
	const char *from, *ratio;
	unsigned bin = SIZE_BINS;
	struct bins b;

	if (!fill(job->section, &b))
		return;
	for (unsigned i = 0; i < SIZE_BINS; i++)
		sum += b.bytes[i];
	while (bin && above < sum / 2)
		above += b.bytes[--bin];
	if (!sum)
		return;
	from = frag_title_bytes(out, "from_bytes", 1ull << bin);
	ratio = frag_title_percent(out, "above_ratio", (double)above / (double)sum, 0);
	frag_text_addf(&out->text, "Requests of %s and more make up %s of the bytes", from, ratio);
}

static void note(const struct frag_chart_job *job, struct frag_text *out)
{
	struct bins b;

	if (!fill(job->section, &b) || !b.never_freed)
		return;
	frag_text_addf(out, " %s of %s requests are never freed and have no lifetime here.",
		       FRAG_GROUPED(b.never_freed), FRAG_GROUPED(b.allocs));
}

static const char *extra(const struct frag_chart_job *job)
{
	return job->section->duration_us ? "s" : "events";
}

const struct frag_chart_ops frag_chart_sizes = {
	.name = "sizes",
	.rank = 80,
	.heading = "Sizes and lifetimes of requests",
	FRAG_CHART_HOOKS,
	.caption = "Left: sizes of the requests. Right: how long they live. Solid bars count "
		   "requests, hatched ones weigh them by bytes: many small blocks that live long "
		   "between few large ones are what pins memory.",
	.note = note,
	.extra = extra,
};
