/* SPDX-License-Identifier: Apache-2.0 */
/* Edits of lifetimes, and the edited list of events; see edit.h. */
#include "edit.h"

#include <stdlib.h>

#include "lib/grow.h"

enum { AS_RECORDED, REMOVED, ENDED };

int frag_edit_init(struct frag_edit *e, const struct frag_story *s, struct frag_err *err)
{
	*e = (struct frag_edit){ .story = s };
	FRAG_TRY_CALLOC(e->how, s->count + 1, "advice", err);
	FRAG_TRY_CALLOC(e->size, s->count + 1, "advice", err);
	return 0;
}

void frag_edit_release(struct frag_edit *e)
{
	FRAG_FREE(e->how, e->size, e->list);
	*e = (struct frag_edit){ 0 };
}

static void touch(struct frag_edit *e, size_t life)
{
	if (e->how[life] == AS_RECORDED && !e->size[life])
		e->edited_bytes += e->story->lives[life].bytes;
}

void frag_edit_remove(struct frag_edit *e, size_t life)
{
	touch(e, life);
	e->how[life] = REMOVED;
}

void frag_edit_resize(struct frag_edit *e, size_t life, uint64_t bytes)
{
	touch(e, life);
	e->size[life] = bytes;
}

static int insert(struct frag_edit *e, uint64_t at, size_t life, uint32_t id, bool alloc,
		  struct frag_err *err)
{
	FRAG_TRY(FRAG_GROW(e->list, e->count, e->cap, "advice", err));
	e->list[e->count] =
		(struct frag_insert){ at, (uint32_t)e->count, (uint32_t)life, id, alloc };
	e->count++;
	return 0;
}

int frag_edit_end(struct frag_edit *e, size_t life, uint64_t at, struct frag_err *err)
{
	const struct frag_life *l = &e->story->lives[life];

	if (e->how[life] != AS_RECORDED || at >= l->died || at <= l->born)
		return 0;
	touch(e, life);
	e->how[life] = ENDED;
	return insert(e, at, life, FRAG_RECORDED, false, err);
}

int frag_edit_request(struct frag_edit *e, size_t life, uint64_t at, uint32_t *id,
		      struct frag_err *err)
{
	*id = e->ids++;
	return insert(e, at, life, *id, true, err);
}

int frag_edit_free(struct frag_edit *e, size_t life, uint32_t id, uint64_t at, struct frag_err *err)
{
	return at == FRAG_NEVER ? 0 : insert(e, at, life, id, false, err);
}

int frag_edit_add(struct frag_edit *e, size_t life, uint64_t from, uint64_t to,
		  struct frag_err *err)
{
	uint32_t id;

	if (from >= e->story->dev->events_count)
		return 0;
	FRAG_TRY(frag_edit_request(e, life, from, &id, err));
	return frag_edit_free(e, life, id, to, err);
}

/* ---- events -------------------------------------------------------------------------- */

FRAG_COMPARE(by_place, struct frag_insert, FRAG_ORDER(x->at, y->at), FRAG_ORDER(x->seq, y->seq))

static uint64_t size_of(const struct frag_edit *e, size_t life)
{
	return e->size[life] ? e->size[life] : e->story->lives[life].bytes;
}

static void write_insert(const struct frag_edit *edit, const struct frag_insert *in,
			 uint64_t time_us, struct frag_trace_dev *out)
{
	struct frag_event *e = &out->events[out->events_count++];

	*e = edit->story->dev->events[edit->story->lives[in->life].born];
	e->kind = in->alloc ? FRAG_EV_ALLOC : FRAG_EV_FREE;
	e->flags = 0;
	e->bytes = size_of(edit, in->life) & FRAG_MAX_REQUEST;
	e->time_us = time_us;
	if (in->id != FRAG_RECORDED)
		e->slot = edit->story->dev->slots_count + in->id;
}

static void write_event(const struct frag_edit *edit, size_t i, struct frag_trace_dev *out)
{
	struct frag_event e = edit->story->dev->events[i];
	const uint32_t life = edit->story->of[i];

	if (life != FRAG_NO_LIFE) {
		if (edit->how[life] == REMOVED ||
		    (edit->how[life] == ENDED && e.kind != FRAG_EV_ALLOC))
			return;
		e.bytes = size_of(edit, life) & FRAG_MAX_REQUEST;
		e.flags &= (uint8_t)~FRAG_EVF_INITIAL;
	}
	out->events[out->events_count++] = e;
}

int frag_edit_apply(struct frag_edit *e, struct frag_trace_dev *out, struct frag_err *err)
{
	const struct frag_trace_dev *dev = e->story->dev;
	const size_t count = dev->events_count;
	size_t next = 0; /* of e->list */

	*out = *dev;
	out->has_evidence = false;
	out->addrs = NULL;
	out->seen = NULL;
	out->seen_count = out->final_segments_count = out->final_blocks_count = 0;
	out->initial = (struct frag_initial_state){ 0 };
	out->events_count = 0;
	out->slots_count += e->ids;
	out->events = frag_host_alloc((count + e->count + 1) * sizeof(*out->events));
	FRAG_CHECK_ALLOC(out->events, "advice", err);
	if (e->count)
		qsort(e->list, e->count, sizeof(*e->list), by_place);
	for (size_t i = 0; i <= count; i++) {
		for (; next < e->count && (e->list[next].at <= i || i == count); next++)
			write_insert(e, &e->list[next], dev->events[FRAG_MIN(i, count - 1)].time_us,
				     out);
		if (i < count)
			write_event(e, i, out);
	}
	return 0;
}
