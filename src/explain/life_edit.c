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

static int change(struct frag_edit *e, uint64_t born, unsigned how, uint64_t bytes,
		  struct frag_err *err)
{
	struct frag_change_of *c;

	if (!e->of)
		FRAG_TRY_CALLOC(e->of, e->count + 1, "edit", err);
	e->edited = true;
	c = &e->of[born - e->first];
	c->how = how ? how : c->how;
	c->bytes = bytes ? bytes & FRAG_MAX_REQUEST : c->bytes;
	return 0;
}

int frag_edit_remove(struct frag_edit *e, uint64_t born, struct frag_err *err)
{
	return change(e, born, REMOVED, 0, err);
}

int frag_edit_resize(struct frag_edit *e, uint64_t born, uint64_t bytes, struct frag_err *err)
{
	return change(e, born, AS_RECORDED, bytes, err);
}

static int insert(struct frag_edit *e, uint64_t at, uint64_t born, struct frag_event event,
		  struct frag_err *err)
{
	FRAG_TRY(FRAG_GROW(e->list, e->inserts, e->cap, "edit", err));
	e->list[e->inserts] = (struct frag_insert){ at, e->inserts, born, event };
	e->inserts++;
	return 0;
}

int frag_edit_insert(struct frag_edit *e, uint64_t at, struct frag_event event,
		     struct frag_err *err)
{
	return insert(e, at, FRAG_NEVER, event, err);
}

static int again(struct frag_edit *e, uint64_t born, uint8_t kind, uint32_t slot, uint64_t at,
		 struct frag_err *err)
{
	struct frag_event event = e->events[born - e->first];

	event.kind = kind;
	event.flags = 0;
	event.slot = slot;
	return insert(e, at, born, event, err);
}

int frag_edit_request(struct frag_edit *e, uint64_t born, uint64_t at, uint32_t *slot,
		      struct frag_err *err)
{
	*slot = e->slots++;
	return again(e, born, FRAG_EV_ALLOC, *slot, at, err);
}

int frag_edit_free(struct frag_edit *e, uint64_t born, uint32_t slot, uint64_t at,
		   struct frag_err *err)
{
	return at == FRAG_NEVER ? 0 : again(e, born, FRAG_EV_FREE, slot, at, err);
}

int frag_edit_add(struct frag_edit *e, uint64_t born, uint64_t from, uint64_t to,
		  struct frag_err *err)
{
	uint32_t slot;

	if (from >= e->first + e->count)
		return 0;
	FRAG_TRY(frag_edit_request(e, born, from, &slot, err));
	return frag_edit_free(e, born, slot, to, err);
}

int frag_edit_end(struct frag_edit *e, uint64_t born, uint64_t died, uint64_t at,
		  struct frag_err *err)
{
	if (at >= died || at <= born || (e->of && e->of[born - e->first].how != AS_RECORDED))
		return 0;
	FRAG_TRY(change(e, born, ENDED, 0, err));
	return frag_edit_free(e, born, e->events[born - e->first].slot, at, err);
}

/* ---- the edited events ------------------------------------------------------------------ */

FRAG_COMPARE(by_place, struct frag_insert, FRAG_ORDER(x->at, y->at), FRAG_ORDER(x->seq, y->seq))

static void resize(const struct frag_edit *e, uint64_t born, struct frag_event *event)
{
	const struct frag_change_of *c =
		born == FRAG_NEVER || !e->of ? NULL : &e->of[born - e->first];

	if (c && c->bytes)
		event->bytes = c->bytes;
}

/* Does the edited list have event i? born: by slot, of the block that is in it. */
static bool stays(const struct frag_edit *e, size_t i, uint64_t *born, struct frag_event *event)
{
	const bool of_block = event->kind <= FRAG_EV_FREE_COMPLETED;
	uint64_t at;

	if (!of_block || !e->of || event->slot >= e->slots)
		return true;
	if (event->kind == FRAG_EV_ALLOC)
		born[event->slot] = e->first + i;
	at = born[event->slot];
	if (at == FRAG_NEVER)
		return true;
	resize(e, at, event);
	return e->of[at - e->first].how == AS_RECORDED ||
	       (e->of[at - e->first].how == ENDED && event->kind == FRAG_EV_ALLOC);
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
			resize(e, e->list[next].born, &list[n]);
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
