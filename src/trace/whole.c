/* SPDX-License-Identifier: Apache-2.0 */
/* Whole traces in memory; see whole.h. Merging: texts and stacks are interned into one table each,
 * events are renumbered in place and shifted to the clock of the part that began first. */
#include "whole.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "base/clean.h"
#include "base/outfile.h"

#include "strings.h"

#define TIME_MAX ((1ull << 40) - 1)
#define STACKS_MAX (1u << 24)

struct merge {
	struct frag_trace *into;
	struct frag_stack_table *stacks;
	/* of the current part: its number -> the merged one */
	uint32_t *string, *frame, *stack;
	uint64_t begin_us; /* of the earliest part, 0 = unknown */
};

static int map_strings(struct merge *m, const struct frag_trace *part, struct frag_err *err)
{
	uint32_t count = part->strings ? frag_strings_count(part->strings) : 1;

	FRAG_TRY_CALLOC(m->string, count, "strings", err);
	for (uint32_t i = 1; i < count; i++)
		FRAG_TRY(frag_strings_intern(m->into->strings, frag_strings_get(part->strings, i),
					     frag_strings_len(part->strings, i), &m->string[i],
					     err));
	return 0;
}

static int map_stacks(struct merge *m, const struct frag_stacks *s, struct frag_err *err)
{
	FRAG_AUTO_FREE uint32_t *frames = NULL;

	m->frame = frag_host_calloc(s->frames_count, sizeof(*m->frame));
	m->stack = frag_host_calloc(s->count, sizeof(*m->stack));
	frames = frag_host_calloc(s->index_count, sizeof(*frames));
	FRAG_CHECK_ALLOC(m->frame && m->stack && frames, "stacks", err);
	for (size_t i = 0; i < s->frames_count; i++) {
		struct frag_frame f = s->frames[i];

		f.name = m->string[f.name];
		f.file = m->string[f.file];
		FRAG_TRY(frag_stack_table_frame(m->stacks, f, &m->frame[i], err));
	}
	for (size_t i = 0; i < s->index_count; i++)
		frames[i] = m->frame[s->index[i]];
	for (size_t i = 0; i < s->count; i++)
		FRAG_TRY(frag_stack_table_stack(m->stacks, frames + s->first[i],
						s->first[i + 1] - s->first[i], &m->stack[i], err));
	return 0;
}

static int renumber_events(const struct merge *m, struct frag_trace_dev *dev, uint64_t shift_us,
			   struct frag_err *err)
{
	for (size_t i = 0; i < dev->events_count; i++) {
		struct frag_event *ev = &dev->events[i];
		uint32_t stack = ev->stack ? m->stack[ev->stack] : 0;

		if (ev->time_us + shift_us > TIME_MAX)
			return FRAG_INPUT(err, "the traces are more than 12 days apart and cannot "
					       "be one");
		ev->time_us += shift_us;
		ev->stack = stack < STACKS_MAX ? stack : FRAG_NO_STACK;
		if (ev->kind == FRAG_EV_MARK)
			ev->slot = m->string[ev->slot];
	}
	for (size_t i = 0; i < dev->seen_count; i++)
		dev->seen[i].time_us += shift_us;
	return 0;
}

static int add_devices(struct merge *m, struct frag_trace *part, struct frag_err *err)
{
	uint64_t shift_us = part->start_us ? part->start_us - m->begin_us : 0;

	for (uint32_t d = 0; d < part->devs_count; d++) {
		FRAG_TRY(renumber_events(m, &part->devs[d], shift_us, err));
		m->into->devs[m->into->devs_count++] = part->devs[d];
		memset(&part->devs[d], 0, sizeof(part->devs[d]));
	}
	m->into->file_bytes += part->file_bytes;
	return 0;
}

static int add_part(struct merge *m, struct frag_trace *part, struct frag_err *err)
{
	int rc = map_strings(m, part, err) ?: map_stacks(m, &part->stacks, err);

	if (!rc)
		rc = add_devices(m, part, err);
	FRAG_FREE(m->string, m->frame, m->stack);
	m->string = m->frame = m->stack = NULL;
	return rc;
}

/* "fsdp.rank0", "fsdp.rank1" -> "fsdp.rank" -> "fsdp": the common beginning, up to a separator. */
static char *common_name(struct frag_trace *const *parts, size_t count)
{
	const char *first = parts[0]->name ? parts[0]->name : "";
	size_t n = strlen(first);
	char *name;

	for (size_t i = 1; i < count; i++) {
		const char *other = parts[i]->name ? parts[i]->name : "";
		size_t k = 0;

		while (k < n && first[k] == other[k])
			k++;
		n = k;
	}
	if (first[n])
		while (n && isalnum((unsigned char)first[n - 1]))
			n--;
	while (n && !isalnum((unsigned char)first[n - 1]))
		n--;
	if (!n)
		return frag_host_strdup("merged");
	name = frag_host_strdup(first);
	if (name)
		name[n] = '\0';
	return name;
}

static void renumber_devices(struct frag_trace *t)
{
	bool clash = false;

	for (uint32_t a = 0; a < t->devs_count; a++)
		for (uint32_t b = a + 1; b < t->devs_count; b++)
			clash |= t->devs[a].ordinal == t->devs[b].ordinal;
	for (uint32_t d = 0; clash && d < t->devs_count; d++)
		t->devs[d].ordinal = d;
}

static int begin(struct merge *m, struct frag_trace *const *parts, size_t count,
		 struct frag_err *err)
{
	struct frag_trace *t = m->into;
	size_t devices = 0;

	for (size_t i = 0; i < count; i++) {
		uint64_t start = parts[i]->start_us;

		devices += parts[i]->devs_count;
		if (start && (!m->begin_us || start < m->begin_us))
			m->begin_us = start;
	}
	t->start_us = m->begin_us;
	t->name = common_name(parts, count);
	t->format = frag_host_strdup(parts[0]->format ? parts[0]->format : "");
	t->devs = frag_host_calloc(devices, sizeof(*t->devs));
	FRAG_CHECK_ALLOC(t->name && t->format && t->devs, "trace", err);
	t->settings = parts[0]->settings;
	memset(&parts[0]->settings, 0, sizeof(parts[0]->settings));
	for (size_t i = 0; i < count && !t->estimate; i++) {
		t->estimate = parts[i]->estimate;
		parts[i]->estimate = NULL;
	}
	FRAG_TRY(frag_strings_create(&t->strings, err));
	return frag_stack_table_create(&m->stacks, err);
}

int frag_trace_merge(struct frag_trace *const *parts, size_t count, struct frag_trace **out,
		     struct frag_err *err)
{
	struct merge m = { .into = frag_host_calloc(1, sizeof(*m.into)) };
	int rc;

	FRAG_CHECK_ALLOC(m.into, "trace", err);
	rc = begin(&m, parts, count, err);
	for (size_t i = 0; !rc && i < count; i++)
		rc = add_part(&m, parts[i], err);
	if (!rc)
		rc = frag_stack_table_take(m.stacks, &m.into->stacks, err);
	if (!rc) {
		renumber_devices(m.into);
		*out = m.into;
	} else {
		frag_trace_destroy(m.into);
	}
	frag_stack_table_destroy(m.stacks);
	return rc;
}

int frag_trace_parts_join(struct frag_trace_parts *p, struct frag_trace **out, struct frag_err *err)
{
	if (p->count != 1)
		return frag_trace_merge(p->list, p->count, out, err);
	*out = FRAG_GIVE(p->list[0]);
	return 0;
}

void frag_trace_parts_release(struct frag_trace_parts *p)
{
	for (size_t i = 0; p->list && i < p->count; i++)
		frag_trace_destroy(p->list[i]);
	frag_host_free(p->list);
}

/* ---- MiniMalloc's CSV ---- */

int frag_minimalloc_write(const struct frag_trace_dev *dev, const char *path, struct frag_err *err)
{
	FRAG_AUTO_FREE size_t *upper = frag_host_calloc(dev->events_count + 1, sizeof(*upper));
	FRAG_AUTO_FREE size_t *born = frag_host_calloc((size_t)dev->slots_count + 1, sizeof(*born));
	struct frag_outfile out;
	size_t n = 0;

	FRAG_CHECK_ALLOC(upper && born, "buffers", err);
	for (size_t i = 0; i < dev->events_count; i++) {
		const struct frag_event *e = &dev->events[i];

		upper[i] = dev->events_count;
		if (e->kind == FRAG_EV_ALLOC)
			born[e->slot] = i;
		else if (e->kind == FRAG_EV_FREE || e->kind == FRAG_EV_FREE_COMPLETED)
			upper[born[e->slot]] = i;
	}
	FRAG_TRY(frag_outfile_open(&out, path, err));
	fputs("id,lower,upper,size\n", out.to);
	for (size_t i = 0; i < dev->events_count; i++)
		if (dev->events[i].kind == FRAG_EV_ALLOC)
			fprintf(out.to, "%zu,%zu,%zu,%" PRIu64 "\n", n++, i, upper[i],
				(uint64_t)dev->events[i].bytes);
	return frag_outfile_commit(&out, err);
}

/* ---- by the name of the file ---- */

int frag_trace_write(const struct frag_trace *trace, const char *path, struct frag_err *err)
{
	if (!frag_ends_with(path, ".csv"))
		return frag_trace_write_cft(trace, path, err);
	if (trace->devs_count != 1)
		return FRAG_USAGE(
			err, "a .csv holds one device, the trace has %u; choose one with --device",
			trace->devs_count);
	return frag_minimalloc_write(&trace->devs[0], path, err);
}

void frag_trace_drop_evidence(struct frag_trace *trace)
{
	for (uint32_t d = 0; d < trace->devs_count; d++) {
		struct frag_trace_dev *dev = &trace->devs[d];

		FRAG_FREE(dev->addrs, dev->seen, dev->final_segments, dev->final_blocks,
			  dev->initial_segments, dev->initial_blocks);
		dev->addrs = NULL;
		dev->seen = NULL;
		dev->final_segments = NULL;
		dev->final_blocks = NULL;
		dev->initial_segments = NULL;
		dev->initial_blocks = NULL;
		dev->seen_count = dev->final_segments_count = dev->final_blocks_count = 0;
		dev->initial = (struct frag_initial_state){ 0 };
		dev->has_evidence = false;
	}
}
