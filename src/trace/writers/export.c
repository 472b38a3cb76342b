/* SPDX-License-Identifier: Apache-2.0 */
/* The formats, and the walk that all of them see; see export.h. */
#include "export.h"

#include <stdlib.h>
#include <string.h>

#include "base/clean.h"
#include "lib/bisect.h"
#include "lib/grow.h"
#include "recording/recording.h"
#include "replay/hints.h"

#define FRAG_ENTRY(name) extern const struct frag_export_format frag_export_##name;
#include "export_list.inc"
#undef FRAG_ENTRY

const struct frag_export_format *const frag_export_formats[] = {
#define FRAG_ENTRY(name) &frag_export_##name,
#include "export_list.inc"
#undef FRAG_ENTRY
	NULL
};

const char *const frag_export_words[] = {
#define FRAG_ENTRY(name) #name,
#include "export_list.inc"
#undef FRAG_ENTRY
	NULL
};

void frag_export_escaped(FILE *to, const char *text)
{
	size_t left = strlen(text);

	for (const char *p = text; *p; p++, left--) {
		size_t n = frag_clean_length(p, left);

		if (!n)
			fputc('?', to);
		else if (*p == '"' || *p == '\\')
			fprintf(to, "\\%c", *p);
		else
			fwrite(p, 1, n, to);
		p += n ? n - 1 : 0;
		left -= n ? n - 1 : 0;
	}
}

/* ---- the walk ---------------------------------------------------------------------------- */

struct walk {
	struct frag_run *run;
	frag_told_fn fn;
	void *ctx;
	struct frag_export_change *changes;
	size_t count, cap;
	bool short_of_memory;
	size_t slots;
};

static void journal(void *ctx, enum frag_segment_event kind, frag_addr_t addr, uint64_t bytes,
		    uint32_t stream)
{
	struct walk *w = ctx;

	if (FRAG_GROW(w->changes, w->count, w->cap, "export", NULL)) {
		w->short_of_memory = true;
		return;
	}
	w->changes[w->count++] = (struct frag_export_change){ bytes, addr, stream, (uint8_t)kind };
}

static int tell(struct walk *w, const struct frag_event *e, uint64_t index, struct frag_err *err)
{
	const struct frag_run_slot *slot =
		e->kind < FRAG_EV_TRIM && e->slot < w->slots ? &w->run->slots[e->slot] : NULL;
	bool there = slot && slot->state != SLOT_EMPTY && slot->state != SLOT_DROPPED;
	uint64_t granted = w->run->granted_refusals;
	struct frag_told t = { .index = index, .e = e, .addr = FRAG_NO_ADDR, .run = w->run };

	if (e->kind < FRAG_EV_TRIM && !slot)
		return FRAG_INPUT(err, "event %llu names a slot out of range",
				  (unsigned long long)index);
	if (e->kind != FRAG_EV_ALLOC && there)
		t.addr = slot->b.addr;
	w->count = 0;
	FRAG_TRY(frag_run_feed(w->run, e, 1, err));
	FRAG_CHECK_ALLOC(!w->short_of_memory, "export", err);
	if (e->kind == FRAG_EV_ALLOC) {
		t.refused = slot->state == SLOT_DROPPED;
		t.addr = t.refused ? FRAG_NO_ADDR : slot->b.addr;
	} else if (e->kind == FRAG_EV_REFUSED) {
		t.refused = w->run->granted_refusals == granted;
	} else {
		t.dropped = slot && !there;
	}
	t.changes = w->changes;
	t.changes_count = w->count;
	t.requested = w->run->requested;
	t.allocated = w->run->allocated;
	t.active = w->run->allocated + w->run->waiting;
	t.reserved = w->run->dev->reserved_bytes - w->run->start_reserved;
	return w->fn(w->ctx, &t, err);
}

static int tell_batch(void *ctx, const struct frag_event *e, size_t n, uint64_t first,
		      struct frag_err *err)
{
	for (size_t i = 0; i < n; i++)
		FRAG_TRY(tell(ctx, &e[i], first + i, err));
	return 0;
}

static int walk_on(const struct frag_export_job *job, const struct frag_events *ev,
		   struct frag_device *dev, bool restores, struct walk *w,
		   int (*done)(void *ctx, struct frag_run *run, struct frag_err *err),
		   struct frag_err *err)
{
	struct frag_run_options opt;
	int rc;

	frag_target_run_options(&job->target, &opt);
	if (opt.limit_bytes == UINT64_MAX)
		opt.limit_bytes = frag_settled_limit(ev->trace, ev->dev);
	opt.skip_oom = true;
	opt.restore = restores;
	opt.windows_max = 2;
	FRAG_TRY(frag_run_create_heard(job->spec, dev, frag_events_dev(ev), &opt, journal, w,
				       &w->run, err));
	rc = frag_events_each(ev, tell_batch, w, err);
	if (!rc && done)
		rc = done(w->ctx, w->run, err);
	frag_run_destroy(w->run);
	return rc;
}

int frag_export_walk(const struct frag_export_job *job, uint32_t dev, frag_told_fn fn,
		     int (*done)(void *ctx, struct frag_run *run, struct frag_err *err), void *ctx,
		     struct frag_err *err)
{
	struct frag_events ev = { job->trace, dev, job->path };
	bool restores =
		job->as_recorded && !job->path &&
		frag_settled_restores(frag_events_dev(&ev), &job->target.card,
				      frag_target_limit_for(&job->target, frag_events_dev(&ev)));
	struct frag_hints hints = { .trace = frag_events_dev(&ev),
				    .restore =
					    restores && frag_policy_spec_ops(job->spec)->restore };
	struct walk w = { .fn = fn, .ctx = ctx, .slots = frag_events_dev(&ev)->slots_count };
	FRAG_AUTO(frag_dev_close_at) struct frag_device *device = NULL;
	int rc;

	if (job->path)
		hints.lost = true; /* its evidence is not in memory: the card's own rule */
	FRAG_TRY(frag_hints_open(&hints, &job->target.card, &device, err));
	rc = walk_on(job, &ev, device, restores, &w, done, err);
	frag_host_free(w.changes);
	return rc;
}

/* ---- the heap at a moment ---- */

struct visit {
	struct frag_heap_list *list;
	const struct frag_run *run;
	uint32_t *by_addr; /* slots, by address */
	size_t by_addr_count;
	uint32_t stream;
	bool begins; /* the next block is the first of a segment */
	bool short_of_memory;
};

static int by_address(const void *a, const void *b, void *run)
{
	const struct frag_run_slot *slots = ((const struct frag_run *)run)->slots;
	frag_addr_t x = slots[*(const uint32_t *)a].b.addr, y = slots[*(const uint32_t *)b].b.addr;

	return FRAG_ORDER(x, y);
}

static uint32_t slot_at(const struct visit *v, frag_addr_t addr)
{
	size_t at;

	FRAG_BISECT(at, 0, v->by_addr_count, v->run->slots[v->by_addr[at]].b.addr < addr);
	return at < v->by_addr_count && v->run->slots[v->by_addr[at]].b.addr == addr
		       ? v->by_addr[at]
		       : FRAG_NO_SLOT;
}

static void on_segment(void *ctx, frag_addr_t addr, uint64_t bytes, uint32_t stream)
{
	struct visit *v = ctx;

	(void)addr;
	(void)bytes;
	v->stream = stream;
	v->begins = true;
}

static int room(struct frag_heap_list *l)
{
	FRAG_TRY(FRAG_GROW(l->segments, l->segments_count, l->segments_cap, "segments", NULL));
	return FRAG_GROW(l->blocks, l->blocks_count, l->blocks_cap, "blocks", NULL);
}

static void on_block(void *ctx, frag_addr_t addr, uint64_t bytes, enum frag_block_state state,
		     uint64_t releasable)
{
	struct visit *v = ctx;
	struct frag_heap_list *l = v->list;
	struct frag_listed_segment *s; /* after room(), which may move the list */
	uint32_t slot = state == FRAG_STATE_FREE ? FRAG_NO_SLOT : slot_at(v, addr);

	(void)releasable;
	v->short_of_memory |= room(l) != 0;
	if (v->short_of_memory)
		return;
	s = l->segments_count ? &l->segments[l->segments_count - 1] : NULL;
	if (v->begins || !s || s->addr + s->bytes != addr) {
		s = &l->segments[l->segments_count++];
		*s = (struct frag_listed_segment){ .addr = addr,
						   .stream = v->stream,
						   .first_block = l->blocks_count };
		v->begins = false;
	}
	s->bytes += bytes;
	s->blocks_count++;
	l->blocks[l->blocks_count++] = (struct frag_listed_block){
		addr, bytes, slot == FRAG_NO_SLOT ? bytes : v->run->slots[slot].b.requested, slot,
		(uint8_t)state
	};
}

int frag_heap_list_take(struct frag_heap_list *list, struct frag_run *run, struct frag_err *err)
{
	struct visit v = { .list = list, .run = run };
	const struct frag_visitor visitor = { &v, on_segment, on_block };

	FRAG_TRY_CALLOC(v.by_addr, (size_t)run->slots_count + 1, "segments", err);
	for (uint32_t i = 0; i < run->slots_count; i++)
		if (run->slots[i].state != SLOT_EMPTY && run->slots[i].state != SLOT_DROPPED)
			v.by_addr[v.by_addr_count++] = i;
	qsort_r(v.by_addr, v.by_addr_count, sizeof(*v.by_addr), by_address, run);
	if (run->policy.ops->visit)
		run->policy.ops->visit(run->policy.self, &visitor);
	frag_host_free(v.by_addr);
	return v.short_of_memory ? frag_fail_nomem(err, "segments") : 0;
}

void frag_heap_list_release(struct frag_heap_list *list)
{
	FRAG_FREE(list->segments, list->blocks);
	*list = (struct frag_heap_list){ 0 };
}
