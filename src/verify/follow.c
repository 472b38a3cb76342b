/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows a recording. The policy runs as usual; only the card follows the evidence: a segment gets
 * the recorded address, and memory that the recording does not show next is refused, as by the
 * driver.
 */
#include "follow.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

static const char *const seen_names[] = { "segment_alloc", "segment_free", "segment_map",
					  "segment_unmap", "oom",	   "snapshot" };

static void skip_other_evidence(struct follow *f)
{
	while (f->cursor < f->td->seen_count && !frag_seen_is_segment(&f->td->seen[f->cursor]))
		f->cursor++;
}

/* The first difference, and how it reads. */
__attribute__((format(printf, 5, 6))) static void differ(struct follow *f, enum follow_diff diff,
							 frag_addr_t want, frag_addr_t got,
							 const char *fmt, ...)
{
	va_list ap;

	if (f->r->diff != FOLLOW_SAME)
		return;
	f->r->diff = diff;
	f->r->event = f->event;
	f->r->seen = f->cursor;
	f->r->want = want;
	f->r->begin_bytes = f->begin_bytes;
	f->r->got = got;
	va_start(ap, fmt);
	vsnprintf(f->r->text, sizeof(f->r->text), fmt, ap);
	va_end(ap);
}

/* ---- the policy reports its segments ---- */

static void journal(void *ctx, enum frag_segment_event kind, frag_addr_t addr, uint64_t bytes,
		    uint32_t stream)
{
	struct follow *f = ctx;
	const struct frag_evidence *e = expected(f);
	char want[120] = "nothing";

	follow_note_pages(f, kind, addr, bytes);
	if (f->restoring)
		return;
	if (e && e->kind == kind && e->addr == addr && e->bytes == bytes && e->stream == stream) {
		f->r->segments_same++;
		f->cursor++;
		skip_other_evidence(f);
		return;
	}
	if (f->r->diff != FOLLOW_SAME)
		return;
	if (e)
		snprintf(want, sizeof(want), "%s of %" PRIu64 " bytes at 0x%" PRIx64,
			 seen_names[e->kind], e->bytes, e->addr);
	f->r->got_release = kind == FRAG_SEGMENT_FREE || kind == FRAG_SEGMENT_UNMAP;
	differ(f, FOLLOW_SEGMENT, e ? e->addr : FRAG_NO_ADDR, addr,
	       "event %" PRIu64 ": recorded %s, simulated %s of %" PRIu64 " bytes at 0x%" PRIx64,
	       f->event, want, seen_names[kind], bytes, addr);
}

/* ---- after each event ---- */

static void check_alloc(struct follow *f, const struct frag_event *e)
{
	const struct frag_run_slot *s = &f->run->slots[e->slot];
	frag_addr_t want = f->td->addrs[f->event];

	if (e->flags & FRAG_EVF_INITIAL)
		return;
	f->r->allocs++;
	if (s->state != SLOT_LIVE) {
		differ(f, FOLLOW_REFUSED, want, FRAG_NO_ADDR,
		       "event %" PRIu64 ": %" PRIu64 " bytes were served at 0x%" PRIx64
		       ", the simulation is out of memory",
		       f->event, (uint64_t)e->bytes, want);
	} else if (want != FRAG_NO_ADDR && s->b.addr != want) {
		if (f->r->diff == FOLLOW_SAME && f->td->initial.segments_count)
			f->r->got_room = follow_room_at(f, s->b.addr).bytes;
		differ(f, FOLLOW_ADDR, want, s->b.addr,
		       "event %" PRIu64 ": %" PRIu64 " bytes on stream %u recorded at 0x%" PRIx64
		       ", simulated at 0x%" PRIx64,
		       f->event, (uint64_t)e->bytes, e->stream, want, s->b.addr);
	} else {
		f->r->allocs_same++;
	}
}

static void check_refused(struct follow *f, uint64_t granted_before)
{
	f->r->ooms++;
	if (f->run->granted_refusals == granted_before) {
		f->r->ooms_same++;
		return;
	}
	differ(f, FOLLOW_SERVED, FRAG_NO_ADDR, FRAG_NO_ADDR,
	       "event %" PRIu64 ": recorded as out of memory, the simulation serves it", f->event);
}

static void check_evidence_used(struct follow *f)
{
	const struct frag_evidence *e = expected(f);

	if (e)
		differ(f, FOLLOW_MISSING, e->addr, FRAG_NO_ADDR,
		       "event %" PRIu64 ": recorded %s of %" PRIu64 " bytes at 0x%" PRIx64
		       " did not happen in the simulation",
		       f->event, seen_names[e->kind], e->bytes, e->addr);
}

static void finish_refusal(struct follow *f, const struct frag_event *e)
{
	struct follow_refusal *last;

	if (!f->r->refusals_count)
		return;
	last = &f->r->refusals[f->r->refusals_count - 1];
	if (last->event != f->event)
		return;
	last->synced = f->run->syncs != f->syncs_before;
	last->served = e->kind == FRAG_EV_ALLOC && f->run->slots[e->slot].state == SLOT_LIVE;
}

static int step(struct follow *f, struct frag_err *err)
{
	const struct frag_event *e = &f->td->events[f->event];
	uint64_t granted = f->run->granted_refusals;

	f->syncs_before = f->run->syncs;
	f->begin_bytes = f->dev->reserved_bytes;
	FRAG_TRY(frag_run_feed(f->run, e, 1, err));
	finish_refusal(f, e);
	if (e->kind == FRAG_EV_ALLOC)
		check_alloc(f, e);
	else if (e->kind == FRAG_EV_REFUSED)
		check_refused(f, granted);
	check_evidence_used(f);
	if (f->dev->reserved_bytes > f->r->peak_held_bytes)
		f->r->peak_held_bytes = f->dev->reserved_bytes;
	return 0;
}

/* ---- the end: final blocks ---- */

struct final_walk {
	struct follow *f;
	size_t segment;	     /* of the recorded ones */
	uint32_t in_segment; /* number of its blocks seen */
	uint64_t simulated;
	bool differs;
	frag_addr_t at;
};

/* The next recorded block in address order, NULL at the end. */
static const struct frag_final_block *next_final(struct final_walk *w)
{
	const struct frag_trace_dev *td = w->f->td;

	while (w->segment < td->final_segments_count &&
	       w->in_segment == td->final_segments[w->segment].blocks_count) {
		w->segment++;
		w->in_segment = 0;
	}
	if (w->segment == td->final_segments_count)
		return NULL;
	return &td->final_blocks[td->final_segments[w->segment].first_block + w->in_segment++];
}

static void final_block(void *ctx, frag_addr_t addr, uint64_t bytes, enum frag_block_state state,
			uint64_t releasable)
{
	struct final_walk *w = ctx;
	const struct frag_final_block *b = next_final(w);

	(void)releasable;
	w->simulated++;
	if (b && b->addr == addr && b->bytes == bytes && b->state == state)
		w->f->r->finals_same++;
	else if (!w->differs) {
		w->differs = true;
		w->at = addr;
	}
}

static void check_finals(struct follow *f)
{
	struct final_walk w = { .f = f };
	struct frag_visitor v = { .ctx = &w, .block = final_block };

	for (size_t i = 0; i < f->td->final_segments_count; i++)
		f->r->finals += f->td->final_segments[i].blocks_count;
	f->run->policy.ops->visit(f->run->policy.self, &v);
	if (!w.differs && w.simulated == f->r->finals)
		return;
	f->event = f->td->events_count;
	differ(f, FOLLOW_FINAL, FRAG_NO_ADDR, w.at,
	       "final blocks: %" PRIu64 " recorded, %" PRIu64
	       " simulated, first difference at 0x%" PRIx64,
	       f->r->finals, w.simulated, w.at);
}

static int walk(struct follow *f, struct frag_err *err)
{
	skip_other_evidence(f);
	for (f->event = 0; f->event < f->td->events_count; f->event++) {
		FRAG_TRY(step(f, err));
		FRAG_CHECK_ALLOC(!f->short_of_memory, "verify", err);
		if (f->r->diff != FOLLOW_SAME)
			return 0;
	}
	check_evidence_used(f); /* releases after the last event */
	if (f->r->diff == FOLLOW_SAME && f->td->final_segments_count)
		check_finals(f);
	return 0;
}

int follow_recording(const struct frag_trace_dev *td, const struct frag_policy_spec *spec,
		     const struct frag_sim_config *card, uint64_t limit_bytes,
		     struct follow_report *out, struct frag_err *err)
{
	struct follow f = { .td = td, .r = out };
	struct frag_sim_config cfg = *card;
	struct frag_run_options opt;
	int rc;

	*out = (struct follow_report){ 0 };
	frag_run_options_defaults(&opt);
	opt.limit_bytes = limit_bytes;
	opt.skip_oom = opt.restore = opt.limit_changes = true;
	opt.windows_max = 2;
	cfg.place = follow_place;
	cfg.place_ctx = &f;
	FRAG_TRY(frag_sim_open(&cfg, &f.dev, err));
	f.restoring = true;
	rc = frag_run_create_heard(spec, f.dev, td, &opt, journal, &f, &f.run, err);
	f.restoring = false;
	if (!rc)
		rc = walk(&f, err);
	out->open = !rc && out->diff != FOLLOW_SAME && follow_is_open(&f);
	if (!rc)
		rc = frag_run_counters(f.run, &out->counters, err);
	/* this card does only what the file says, so a failure is the file's fault */
	if (rc == FRAG_EDEVICE || rc == FRAG_EPOLICY)
		rc = FRAG_INPUT(err, "the recording is not possible: %s", err ? err->msg : "");
	f.restoring = true; /* frees at the end of the run are not evidence */
	frag_run_destroy(f.run);
	frag_dev_close(f.dev);
	frag_host_free(f.ranges);
	if (rc)
		follow_report_release(out);
	return rc;
}

uint64_t follow_events(const struct frag_trace_dev *td, enum frag_event_kind kind)
{
	uint64_t n = 0;

	for (size_t i = 0; i < td->events_count; i++)
		n += td->events[i].kind == kind && !(td->events[i].flags & FRAG_EVF_INITIAL);
	return n;
}

uint64_t follow_segments(const struct frag_trace_dev *td)
{
	uint64_t n = 0;

	for (size_t i = 0; i < td->seen_count; i++)
		n += frag_seen_is_segment(&td->seen[i]);
	return n;
}

void follow_report_release(struct follow_report *r)
{
	frag_counters_free(r->counters);
	frag_host_free(r->refusals);
	*r = (struct follow_report){ 0 };
}

/* ---- what to follow ---- */

/* Settings as text, built from the fields if the string is missing. */
static int settings_text(const struct frag_trace_settings *s, char *buf, size_t cap,
			 struct frag_err *err)
{
	int n = snprintf(buf, cap, "pytorch:%s", s->conf ? s->conf : "");

	if (n < 0 || (size_t)n + 128 >= cap)
		return FRAG_INPUT(err, "the recorded settings are too long");
	if (!s->present || (s->conf && *s->conf))
		return 0;
	if (s->max_split_bytes != UINT64_MAX)
		n += snprintf(buf + n, cap - (size_t)n, "max_split_size_mb:%" PRIu64 ",",
			      (uint64_t)(s->max_split_bytes / FRAG_MIB));
	if (s->gc_threshold > 0)
		n += snprintf(buf + n, cap - (size_t)n, "garbage_collection_threshold:%.17g,",
			      s->gc_threshold);
	if (s->expandable)
		snprintf(buf + n, cap - (size_t)n, "expandable_segments:True,");
	return 0;
}

int follow_spec(const struct frag_trace *trace, const char *conf, struct frag_policy_spec **out,
		struct frag_err *err)
{
	char text[1024];
	int rc;

	if (conf)
		snprintf(text, sizeof(text), "pytorch:%s", conf);
	else
		FRAG_TRY(settings_text(&trace->settings, text, sizeof(text), err));
	rc = frag_policy_spec_parse(text, out, err);
	if (!rc || rc == FRAG_ENOMEM)
		return rc;
	if (conf)
		return rc;
	return FRAG_INPUT(err, "recorded settings: %s", err ? err->msg : "");
}

int follow_check(const struct frag_trace *trace, uint32_t dev, struct frag_err *err)
{
	if (trace->devs[dev].has_evidence)
		return 0;
	return FRAG_INPUT(err,
			  "trace '%s' has no evidence of its allocator: nothing to verify against",
			  trace->name);
}
