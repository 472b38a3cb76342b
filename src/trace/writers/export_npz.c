/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays for NumPy: a value per event in each column, with stacks, frames and texts as numbers that
 * refer to each other; or the segments and blocks of one moment. docs/understand.md lists them.
 */
#include "export.h"

#include "heap_list.h"
#include "npz_write.h"
#include "trace/strings.h"

/* name, bytes of a value, what it is of a struct frag_told *t and its event *e */
#define EVENT_COLUMNS(X) \
	X(time_us, 8, e->time_us) \
	X(bytes, 8, e->kind == FRAG_EV_MARK ? 0 : e->bytes) \
	X(address, 8, t->addr) \
	X(requested_bytes, 8, t->requested) \
	X(allocated_bytes, 8, t->allocated) \
	X(active_bytes, 8, t->active) \
	X(reserved_bytes, 8, t->reserved) \
	X(slot, 4, e->slot) \
	X(stack, 4, e->stack) \
	X(stream, 2, e->stream) \
	X(pool, 2, e->pool) \
	X(kind, 1, t->refused ? FRAG_EV_REFUSED : e->kind) \
	X(flags, 1, e->flags)
/* of a struct frag_listed_segment *s */
#define SEGMENT_COLUMNS(X) \
	X(address, 8, s->addr) \
	X(bytes, 8, s->bytes) \
	X(first_block, 8, s->first_block) \
	X(blocks_count, 8, s->blocks_count) \
	X(stream, 4, s->stream)
/* of a struct frag_listed_block *b, and the event that asked for it */
#define BLOCK_COLUMNS(X) \
	X(address, 8, b->addr) \
	X(bytes, 8, b->bytes) \
	X(requested_bytes, 8, b->slot == FRAG_NO_SLOT ? 0 : b->requested) \
	X(event, 8, birth ? birth->event : UINT64_MAX) \
	X(stack, 4, birth ? birth->stack : FRAG_NO_STACK) \
	X(state, 1, b->state)

struct birth {
	uint64_t event;
	uint32_t stack;
};

struct npz {
	const struct frag_export_job *job;
	struct frag_npz w;
	size_t first;	      /* column of the device in hand */
	struct birth *births; /* [slots] */
	uint32_t ordinal;
};

static int add_column(struct npz *n, const char *table, const char *name, unsigned width,
		      uint64_t count, struct frag_err *err)
{
	char text[64];

	snprintf(text, sizeof(text), "device%u.%s.%s", n->ordinal, table, name);
	return frag_npz_column(&n->w, text, width, count, err);
}

/* ---- events -------------------------------------------------------------------------------- */

static int on_event(void *ctx, const struct frag_told *t, struct frag_err *err)
{
	struct npz *n = ctx;
	const struct frag_event *e = t->e;
	size_t column = n->first;

#define X(name, width, value) FRAG_TRY(frag_npz_add(&n->w, column++, (uint64_t)(value), err));
	EVENT_COLUMNS(X)
#undef X
	return 0;
}

static int put_events(struct npz *n, uint32_t dev, struct frag_err *err)
{
	uint64_t count = n->job->trace->devs[dev].events_count;

	n->first = n->w.count;
#define X(name, width, value) FRAG_TRY(add_column(n, "events", #name, width, count, err));
	EVENT_COLUMNS(X)
#undef X
	return frag_export_walk(n->job, dev, on_event, NULL, n, err);
}

/* ---- a moment ------------------------------------------------------------------------------ */

static int note_birth(void *ctx, const struct frag_told *t, struct frag_err *err)
{
	struct npz *n = ctx;

	(void)err;
	if (t->e->kind == FRAG_EV_ALLOC && !t->refused)
		n->births[t->e->slot] = (struct birth){ t->index, t->e->stack };
	return t->index >= n->job->after;
}

static int put_heap(struct npz *n, const struct frag_heap_list *l, struct frag_err *err)
{
	size_t column = n->w.count;

#define X(name, width, value) \
	FRAG_TRY(add_column(n, "segments", #name, width, l->segments_count, err));
	SEGMENT_COLUMNS(X)
#undef X
	for (const struct frag_listed_segment *s = l->segments; s < l->segments + l->segments_count;
	     s++) {
		size_t c = column;
#define X(name, width, value) FRAG_TRY(frag_npz_add(&n->w, c++, value, err));
		SEGMENT_COLUMNS(X)
#undef X
	}
	column = n->w.count;
#define X(name, width, value) FRAG_TRY(add_column(n, "blocks", #name, width, l->blocks_count, err));
	BLOCK_COLUMNS(X)
#undef X
	for (const struct frag_listed_block *b = l->blocks; b < l->blocks + l->blocks_count; b++) {
		const struct birth *birth = b->slot == FRAG_NO_SLOT ? NULL : &n->births[b->slot];
		size_t c = column;
#define X(name, width, value) FRAG_TRY(frag_npz_add(&n->w, c++, value, err));
		BLOCK_COLUMNS(X)
#undef X
	}
	return 0;
}

static int on_moment(void *ctx, struct frag_run *run, struct frag_err *err)
{
	FRAG_AUTO(frag_heap_list_release) struct frag_heap_list list = { 0 };

	FRAG_TRY(frag_heap_list_take(&list, run, err));
	return put_heap(ctx, &list, err);
}

static int put_moment(struct npz *n, uint32_t dev, struct frag_err *err)
{
	int rc;

	FRAG_TRY_CALLOC(n->births, (size_t)n->job->trace->devs[dev].slots_count + 1, "export", err);
	rc = frag_export_walk(n->job, dev, note_birth, on_moment, n, err);
	FRAG_FREE(n->births);
	return rc;
}

/* ---- what all devices share ---------------------------------------------------------------- */

static int put_texts(struct npz *n, struct frag_err *err)
{
	const struct frag_strings *s = n->job->trace->strings;
	uint32_t count = s ? frag_strings_count(s) : 0;
	uint64_t bytes = 0;
	size_t column = n->w.count;

	for (uint32_t i = 0; i < count; i++)
		bytes += frag_strings_len(s, i);
	FRAG_TRY(frag_npz_column(&n->w, "texts.first", 8, count + 1ull, err));
	FRAG_TRY(frag_npz_column(&n->w, "texts.bytes", 1, bytes, err));
	bytes = 0;
	for (uint32_t i = 0; i < count; i++) {
		const char *text = frag_strings_get(s, i);

		FRAG_TRY(frag_npz_add(&n->w, column, bytes, err));
		for (size_t k = 0; k < frag_strings_len(s, i); k++, bytes++)
			FRAG_TRY(frag_npz_add(&n->w, column + 1, (unsigned char)text[k], err));
	}
	return frag_npz_add(&n->w, column, bytes, err);
}

static int put_stacks(struct npz *n, struct frag_err *err)
{
	static const uint64_t none = 0;
	const struct frag_stacks *s = &n->job->trace->stacks;
	size_t column;

	FRAG_TRY(frag_npz_put(&n->w, "stacks.first", 8, s->count ? s->first : &none, s->count + 1,
			      err));
	FRAG_TRY(frag_npz_put(&n->w, "stacks.frames", 4, s->index, s->index_count, err));
	column = n->w.count;
	FRAG_TRY(frag_npz_column(&n->w, "frames.name", 4, s->frames_count, err));
	FRAG_TRY(frag_npz_column(&n->w, "frames.file", 4, s->frames_count, err));
	FRAG_TRY(frag_npz_column(&n->w, "frames.line", 4, s->frames_count, err));
	for (size_t i = 0; i < s->frames_count; i++)
		FRAG_TRY(frag_npz_add(&n->w, column, s->frames[i].name, err)
				 ?: frag_npz_add(&n->w, column + 1, s->frames[i].file, err)
				 ?: frag_npz_add(&n->w, column + 2, s->frames[i].line, err));
	return 0;
}

static int put_all(struct npz *n, struct frag_err *err)
{
	const struct frag_trace *t = n->job->trace;
	bool moment = n->job->after != UINT64_MAX;

	for (uint32_t d = 0; d < t->devs_count; d++) {
		n->ordinal = t->devs[d].ordinal;
		FRAG_TRY(moment ? put_moment(n, d, err) : put_events(n, d, err));
	}
	if (moment)
		return 0;
	FRAG_TRY(frag_npz_put(&n->w, "start_us", 8, &t->start_us, 1, err));
	FRAG_TRY(put_texts(n, err));
	return put_stacks(n, err);
}

static int put(const struct frag_export_job *job, struct frag_err *err)
{
	struct npz n = { .job = job };
	int rc;

	FRAG_TRY(frag_npz_begin(&n.w, job->to, err));
	rc = put_all(&n, err) ?: frag_npz_end(&n.w, err);
	frag_npz_release(&n.w);
	return rc;
}

const struct frag_export_format frag_export_npz = { .takes_moment = true, .write = put };
