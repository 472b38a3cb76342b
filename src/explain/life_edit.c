/* SPDX-License-Identifier: Apache-2.0 */
/* Edits of blocks, and the edited events; see life_edit.h. */
#include "life_edit.h"

#include <stdlib.h>
#include <string.h>

#include "lib/grow.h"

enum { AS_RECORDED, REMOVED, ENDED };

struct frag_change_of {
	uint64_t bytes : 48; /* 0 = unchanged */
	uint64_t how : 2;
};

struct frag_insert {
	uint64_t at; /* before this event */
	size_t seq;
	uint64_t born; /* whose size it has; FRAG_NEVER: its own */
	struct frag_event event;
};

static int change(struct frag_edit *e, uint64_t born, struct frag_change_of **out,
		  struct frag_err *err)
{
	if (!e->of)
		FRAG_TRY_CALLOC(e->of, e->count + 1, "edit", err);
	e->edited = true;
	*out = &e->of[born - e->first];
	return 0;
}

int frag_edit_resize(struct frag_edit *e, uint64_t born, uint64_t bytes, struct frag_err *err)
{
	struct frag_change_of *c = NULL;

	FRAG_TRY(change(e, born, &c, err));
	c->bytes = bytes & FRAG_MAX_REQUEST;
	c->how = bytes ? c->how : REMOVED;
	return 0;
}

int frag_edit_insert(struct frag_edit *e, uint64_t at, uint64_t born, struct frag_event event,
		     struct frag_err *err)
{
	FRAG_TRY(FRAG_GROW(e->list, e->inserts, e->cap, "edit", err));
	e->list[e->inserts] = (struct frag_insert){ at, e->inserts, born, event };
	e->inserts++;
	return 0;
}

int frag_edit_half(struct frag_edit *e, uint64_t born, uint8_t kind, uint32_t slot, uint64_t at,
		   struct frag_err *err)
{
	struct frag_event event = e->events[born - e->first];

	event.kind = kind;
	event.flags = 0;
	event.slot = slot;
	return at == FRAG_NEVER ? 0 : frag_edit_insert(e, at, born, event, err);
}

int frag_edit_add(struct frag_edit *e, uint64_t born, uint64_t from, uint64_t to,
		  struct frag_err *err)
{
	if (from >= e->first + e->count)
		return 0;
	FRAG_TRY(frag_edit_half(e, born, FRAG_EV_ALLOC, e->slots++, from, err));
	return frag_edit_half(e, born, FRAG_EV_FREE, e->slots - 1, to, err);
}

int frag_edit_end(struct frag_edit *e, uint64_t born, uint64_t died, uint64_t at,
		  struct frag_err *err)
{
	struct frag_change_of *c = NULL;

	if (at >= died || at <= born || (e->of && e->of[born - e->first].how != AS_RECORDED))
		return 0;
	FRAG_TRY(change(e, born, &c, err));
	c->how = ENDED;
	return frag_edit_half(e, born, FRAG_EV_FREE, e->events[born - e->first].slot, at, err);
}

/* ---- the edited events ------------------------------------------------------------------ */

FRAG_COMPARE(by_place, struct frag_insert, FRAG_ORDER(x->at, y->at), FRAG_ORDER(x->seq, y->seq))

/* How the block that was requested there is changed; the event gets its size. */
static unsigned edited(const struct frag_edit *e, uint64_t born, struct frag_event *event)
{
	const struct frag_change_of *c = &e->of[born - e->first];

	if (c->bytes)
		event->bytes = c->bytes;
	return c->how;
}

/* Does the edited list have event i? born: by slot, of the block that is in it. */
static bool stays(const struct frag_edit *e, size_t i, uint64_t *born, struct frag_event *event)
{
	unsigned how;

	if (event->kind > FRAG_EV_FREE_COMPLETED || !e->of)
		return true;
	if (event->kind == FRAG_EV_ALLOC)
		born[event->slot] = e->first + i;
	if (born[event->slot] == FRAG_NEVER)
		return true;
	how = edited(e, born[event->slot], event);
	return how == AS_RECORDED || (how == ENDED && event->kind == FRAG_EV_ALLOC);
}

int frag_edit_apply(struct frag_edit *e, struct frag_event **out, size_t *count,
		    struct frag_err *err)
{
	FRAG_AUTO_FREE uint64_t *born = frag_host_alloc((e->slots + 1) * sizeof(*born));
	struct frag_event *list = frag_host_alloc((e->count + e->inserts + 1) * sizeof(*list));
	size_t n = 0, next = 0;

	*out = list;
	FRAG_CHECK_ALLOC(born && list, "edit", err);
	memset(born, 0xff, (e->slots + 1) * sizeof(*born));
	if (e->inserts)
		qsort(e->list, e->inserts, sizeof(*e->list), by_place);
	for (size_t i = 0; i <= e->count; i++) {
		for (; next < e->inserts && (e->list[next].at <= e->first + i || i == e->count);
		     next++) {
			list[n] = e->list[next].event;
			if (e->of && e->list[next].born != FRAG_NEVER)
				edited(e, e->list[next].born, &list[n]);
			if (e->count)
				list[n].time_us = e->events[FRAG_MIN(i, e->count - 1)].time_us;
			n++;
		}
		if (i == e->count)
			break;
		list[n] = e->events[i];
		n += stays(e, i, born, &list[n]);
	}
	*count = n;
	return 0;
}

void frag_edit_release(struct frag_edit *e)
{
	FRAG_FREE(e->of, e->list);
	*e = (struct frag_edit){ 0 };
}
