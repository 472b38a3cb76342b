/* SPDX-License-Identifier: Apache-2.0 */
/* The formats, and the walk that all of them see; see export.h. */
#include "export.h"

#include <string.h>

#include "base/clean.h"
#include "lib/grow.h"
#include "recording/recording.h"
#include "replay/hints.h"
#include "replay/run.h"

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
		return frag_fail(err, FRAG_EINPUT, "event %llu names a slot out of range",
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

	frag_run_options_defaults(&opt);
	opt.limit_bytes = frag_target_limit(&job->target);
	if (opt.limit_bytes == UINT64_MAX)
		opt.limit_bytes = frag_settled_limit(ev->trace, ev->dev);
	opt.seed = job->target.seed;
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
