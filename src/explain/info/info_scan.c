/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics of a device's events for `cufrag info`. Memory follows the blocks
 * that are live at a time and the different names of marks, not the length of
 * the trace.
 */
#include "info.h"
#include "lib/grow.h"

#include <string.h>

/* 512 B: the unit of PyTorch; 1, 10 and 20 MiB: where it changes its ways */
const uint64_t frag_info_class_bytes[FRAG_INFO_CLASSES] = {
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

	while (bytes > frag_info_class_bytes[c])
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
			info->unsure_count += (ev->flags & FRAG_EVF_UNSURE) != 0;
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

size_t frag_info_marks(const struct frag_info *info, size_t n, uint32_t *names, uint32_t *counts)
{
	size_t found = 0;

	for (size_t i = 0; i < info->marks_cap; i++) {
		uint32_t c = info->marks[i];
		size_t at = found;

		if (!c || (found == n && c <= counts[n - 1]))
			continue;
		if (found < n)
			found++;
		else
			at--;
		for (; at && counts[at - 1] < c; at--) {
			counts[at] = counts[at - 1];
			names[at] = names[at - 1];
		}
		counts[at] = c;
		names[at] = (uint32_t)i;
	}
	return found;
}
