/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify on a real card. Its addresses are its own, so only what does not depend on
 * them is compared: that every request is served or refused as recorded, and that the
 * segments which each event takes and gives back are those recorded, by kind and size. The
 * order within one event is left out: releases go by address. Where a tie between blocks of
 * one size was decided by addresses, a different segment may be touched: that is a difference
 * here, and the simulated card, which is given the recorded addresses, tells what it is.
 */
#include <frag/replay.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "follow.h"
#include "run.h"

struct change {
	uint8_t kind; /* enum frag_segment_event */
	uint64_t bytes;
};

struct card_check {
	const struct frag_trace_dev *td;
	struct frag_run *run;
	struct frag_verify_result *r;
	size_t cursor;	     /* next evidence */
	struct change *made; /* by the policy in this event */
	size_t made_count, made_cap;
	struct change *want;
	size_t want_count, want_cap;
	bool listening, short_of_memory;
};

static void add(struct card_check *c, struct change **list, size_t *count, size_t *cap,
		unsigned kind, uint64_t bytes)
{
	if (*count == *cap) {
		size_t more = *cap ? 2 * *cap : 64;
		struct change *grown = frag_host_realloc(*list, more, sizeof(*grown));

		c->short_of_memory |= !grown;
		if (!grown)
			return;
		*list = grown;
		*cap = more;
	}
	(*list)[(*count)++] = (struct change){ .kind = (uint8_t)kind, .bytes = bytes };
}

static void journal(void *ctx, enum frag_segment_event kind, frag_addr_t addr, uint64_t bytes,
		    uint32_t stream)
{
	struct card_check *c = ctx;

	(void)addr, (void)stream;
	if (c->listening)
		add(c, &c->made, &c->made_count, &c->made_cap, kind, bytes);
}

static int compare_changes(const void *a, const void *b)
{
	const struct change *x = a, *y = b;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static const char *const kind_names[] = { "segment_alloc", "segment_free", "segment_map",
					  "segment_unmap" };

static void describe(char *out, size_t cap, const struct change *list, size_t count, size_t at)
{
	if (at < count)
		snprintf(out, cap, "%s of %" PRIu64 " bytes", kind_names[list[at].kind],
			 list[at].bytes);
	else
		snprintf(out, cap, "nothing more");
}

/* What the event did against what is recorded for it; counts what is the same. */
static void compare_event(struct card_check *c, size_t event)
{
	size_t same = 0;

	c->want_count = 0;
	for (; c->cursor < c->td->seen_count && c->td->seen[c->cursor].before <= event;
	     c->cursor++) {
		const struct frag_evidence *e = &c->td->seen[c->cursor];

		if (follow_is_segment(e))
			add(c, &c->want, &c->want_count, &c->want_cap, e->kind, e->bytes);
	}
	if (c->made_count)
		qsort(c->made, c->made_count, sizeof(*c->made), compare_changes);
	if (c->want_count)
		qsort(c->want, c->want_count, sizeof(*c->want), compare_changes);
	while (same < c->want_count && same < c->made_count &&
	       !compare_changes(&c->want[same], &c->made[same]))
		same++;
	c->r->segments_same += same;
	if ((same < c->want_count || same < c->made_count) && !*c->r->first_difference) {
		char want[80], made[80];

		describe(want, sizeof(want), c->want, c->want_count, same);
		describe(made, sizeof(made), c->made, c->made_count, same);
		snprintf(c->r->first_difference, sizeof(c->r->first_difference),
			 "event %zu: recorded %s, on the card %s", event, want, made);
	}
	c->made_count = 0;
}

static void differ(struct card_check *c, size_t event, const char *what)
{
	if (!*c->r->first_difference)
		snprintf(c->r->first_difference, sizeof(c->r->first_difference), "event %zu: %s",
			 event, what);
}

static int step(struct card_check *c, size_t event, struct frag_err *err)
{
	const struct frag_event *e = &c->td->events[event];
	uint64_t granted = c->run->granted_refusals;

	FRAG_TRY(frag_run_feed(c->run, e, 1, err));
	if (e->kind == FRAG_EV_ALLOC) {
		c->r->allocs++;
		if (c->run->slots[e->slot].state == SLOT_LIVE)
			c->r->allocs_same++;
		else
			differ(c, event, "recorded as served, on the card out of memory");
	} else if (e->kind == FRAG_EV_REFUSED) {
		c->r->ooms++;
		if (c->run->granted_refusals == granted)
			c->r->ooms_same++;
		else
			differ(c, event, "recorded as out of memory, the card serves it");
	}
	compare_event(c, event);
	if (c->short_of_memory)
		return frag_fail_nomem(err, "verify");
	return 0;
}

static int walk(struct card_check *c, struct frag_device *device, struct frag_err *err)
{
	struct frag_verify_result *r = c->r;

	c->listening = true;
	for (size_t i = 0; i < c->td->events_count; i++)
		FRAG_TRY(step(c, i, err));
	compare_event(c, SIZE_MAX); /* releases after the last event */
	c->listening = false;
	r->peak_reserved_bytes = device->reserved_peak_bytes;
	for (size_t i = 0; i < c->td->seen_count; i++)
		r->segments += follow_is_segment(&c->td->seen[i]);
	r->identical = !*r->first_difference;
	return frag_run_counters(c->run, &r->counters, err);
}

static int check_late(const struct frag_trace_dev *td, struct frag_err *err)
{
	if (!td->seed.segments_count)
		return 0;
	return frag_fail(err, FRAG_ENOTSUP,
			 "the recording of device %u began late, with %zu segments at addresses "
			 "that a card does not give; verify it on the simulated card (--device "
			 "sim)",
			 td->ordinal, td->seed.segments_count);
}

int frag_verify_card(struct frag_trace *trace, uint32_t dev, struct frag_device *device,
		     const struct frag_sim_config *card, uint64_t limit_bytes, const char *conf,
		     struct frag_verify_result *out, struct frag_err *err)
{
	const struct frag_trace_dev *td = &trace->devs[dev];
	struct card_check c = { .td = td, .r = out };
	struct frag_run_hooks hooks = { .journal = journal, .journal_ctx = &c };
	struct frag_policy_spec *spec;
	struct frag_run_options opt;
	int rc;

	*out = (struct frag_verify_result){ .device_ordinal = td->ordinal };
	FRAG_TRY(check_late(td, err));
	FRAG_TRY(follow_spec(trace, conf, &spec, err));
	frag_run_options_defaults(&opt);
	opt.limit_bytes = limit_bytes;
	opt.skip_oom = true;
	opt.windows_max = 2;
	rc = frag_resolve(trace, dev, card, limit_bytes, err);
	if (!rc)
		rc = frag_run_create_hooked(spec, device, td, &opt, &hooks, &c.run, err);
	if (!rc)
		rc = walk(&c, device, err);
	frag_run_destroy(c.run);
	frag_policy_spec_destroy(spec);
	frag_host_free(c.made);
	frag_host_free(c.want);
	if (rc)
		frag_verify_result_release(out);
	return rc;
}
