/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify on a real card. The card has its own addresses, so only what does not depend on them is
 * compared: whether every request is served or refused as recorded, and whether each event takes
 * and returns the recorded segments, by kind and size. The order within one event does not count,
 * because releases follow addresses. If addresses decide a tie between blocks of equal size,
 * another segment may be affected. That counts as a difference.
 *
 * Its cause. Addresses are the cause if nothing else can be. Two replays on a simulated card of the
 * same size differ only in the given addresses: with the card's addresses, the simulated card must
 * do in every event what the card did; with the recorded addresses, what was recorded. Recorded
 * refusals that the size of the card does not explain are another cause, because the second replay
 * must be told of them. In doubt, addresses are not the cause: a card larger than the recorded one
 * reserves longer ranges for expandable segments, which may not fit between recorded addresses.
 */
#include <frag/replay.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "resolve.h"
#include "lib/grow.h"
#include "replay/address_log.h"

/* ---- a replay under observation: what each event changes, and whether requests are served ---- */

/* Kinds of change besides those of segments (enum frag_segment_event, which come first). */
#define CHANGE_REFUSED 4 /* recorded as served, out of memory here */
#define CHANGE_SERVED 5	 /* recorded as out of memory, served here */
_Static_assert(FRAG_SEGMENT_UNMAP < CHANGE_REFUSED, "kinds of change are distinct");

struct change {
	size_t event;
	uint64_t bytes;	  /* of the segment, the pages or the request */
	frag_addr_t addr; /* FRAG_NO_ADDR for a request */
	uint8_t kind;
};

struct changes {
	struct change *items;
	size_t count, cap;
};

/* False: host memory is short. */
static bool add_change(struct changes *list, struct change change)
{
	if (FRAG_GROW(list->items, list->count, list->cap, "changes", NULL))
		return false;
	list->items[list->count++] = change;
	return true;
}

/* By kind and bytes, which do not depend on addresses. */
static int compare(const struct change *a, const struct change *b)
{
	return FRAG_ORDER(a->kind, b->kind) ?: FRAG_ORDER(a->bytes, b->bytes);
}

FRAG_COMPARE(compare_all, struct change, compare(x, y), FRAG_ORDER(x->addr, y->addr))

/* Order in an event means nothing, releases follow addresses. */
static void sort(struct changes *list)
{
	if (list->count > 1)
		qsort(list->items, list->count, sizeof(*list->items), compare_all);
}

static void describe(char *out, size_t cap, const struct change *items, size_t count, size_t at)
{
	static const char *const names[] = {
		[FRAG_SEGMENT_ALLOC] = "segment_alloc", [FRAG_SEGMENT_FREE] = "segment_free",
		[FRAG_SEGMENT_MAP] = "segment_map",	[FRAG_SEGMENT_UNMAP] = "segment_unmap",
		[CHANGE_REFUSED] = "out of memory",	[CHANGE_SERVED] = "a refused request",
	};

	if (at < count)
		snprintf(out, cap, "%s of %" PRIu64 " bytes", names[items[at].kind],
			 items[at].bytes);
	else
		snprintf(out, cap, "nothing more");
}

struct watch {
	const struct frag_trace_dev *td;
	struct frag_run *run;
	size_t event;	     /* the current event */
	struct changes made; /* by this event, sorted */
	bool short_of_memory;
};

static void journal(void *ctx, enum frag_segment_event kind, frag_addr_t addr, uint64_t bytes,
		    uint32_t stream)
{
	struct watch *w = ctx;
	struct change c = {
		.event = w->event, .bytes = bytes, .addr = addr, .kind = (uint8_t)kind
	};

	(void)stream;
	w->short_of_memory |= !add_change(&w->made, c);
}

static int watch_open(struct watch *w, const struct frag_policy_spec *spec,
		      struct frag_device *device, const struct frag_trace_dev *td,
		      uint64_t limit_bytes, struct frag_err *err)
{
	struct frag_run_options opt;

	*w = (struct watch){ .td = td };
	frag_run_options_defaults(&opt);
	opt.limit_bytes = limit_bytes;
	opt.skip_oom = true;
	opt.windows_max = 2;
	return frag_run_create_heard(spec, device, td, &opt, journal, w, &w->run, err);
}

/* Replays td->events[event]; `made` then has its changes. Call in order, from 0. */
static int watch_step(struct watch *w, size_t event, struct frag_err *err)
{
	const struct frag_event *e = &w->td->events[event];
	uint64_t granted = w->run->granted_refusals;

	w->event = event;
	w->made.count = 0;
	FRAG_TRY(frag_run_feed(w->run, e, 1, err));
	if (e->kind == FRAG_EV_ALLOC && w->run->slots[e->slot].state != SLOT_LIVE)
		journal(w, CHANGE_REFUSED, FRAG_NO_ADDR, e->bytes, 0);
	if (e->kind == FRAG_EV_REFUSED && w->run->granted_refusals != granted)
		journal(w, CHANGE_SERVED, FRAG_NO_ADDR, e->bytes, 0);
	sort(&w->made);
	return w->short_of_memory ? frag_fail_nomem(err, "verify") : 0;
}

static void watch_close(struct watch *w)
{
	frag_run_destroy(w->run);
	frag_host_free(w->made.items);
	*w = (struct watch){ 0 };
}

/* ---- the check ---- */

struct card_check {
	const struct frag_trace_dev *td;
	const struct frag_policy_spec *spec;
	uint64_t limit_bytes;
	struct frag_sim_config twin; /* configuration of a simulated card like it */
	struct frag_verify_result *r;
	struct watch w;
	size_t cursor; /* next evidence */
	struct changes want;
	struct changes changes; /* of all events on the card, in order, sorted within each */
	struct address_log given;
};

/* Number of leading changes that are the same in both, by kind and size, or by address, too. */
static size_t same_changes(const struct change *a, size_t a_count, const struct changes *b,
			   bool by_address)
{
	size_t n = 0;

	while (n < a_count && n < b->count && !compare(&a[n], &b->items[n]) &&
	       (!by_address || a[n].addr == b->items[n].addr))
		n++;
	return n;
}

/* ---- on the card ---- */

/* The recorded changes of an event. */
static int collect_recorded(struct card_check *c, size_t event, struct frag_err *err)
{
	const struct frag_trace_dev *td = c->td;

	c->want.count = 0;
	for (; c->cursor < td->seen_count && td->seen[c->cursor].before <= event; c->cursor++) {
		const struct frag_evidence *e = &td->seen[c->cursor];
		struct change change = {
			.event = event, .bytes = e->bytes, .addr = e->addr, .kind = e->kind
		};

		FRAG_CHECK_ALLOC(!frag_seen_is_segment(e) || add_change(&c->want, change), "verify",
				 err);
	}
	sort(&c->want);
	return 0;
}

/* Compares the event's changes with the recorded ones; counts matches. */
static int compare_event(struct card_check *c, size_t event, const struct changes *made,
			 struct frag_err *err)
{
	size_t same;
	char want_text[80], made_text[80];

	FRAG_TRY(collect_recorded(c, event, err));
	same = same_changes(c->want.items, c->want.count, made, false);
	c->r->segments_same += same;
	if ((same == c->want.count && same == made->count) || *c->r->first_difference)
		return 0;
	describe(want_text, sizeof(want_text), c->want.items, c->want.count, same);
	describe(made_text, sizeof(made_text), made->items, made->count, same);
	snprintf(c->r->first_difference, sizeof(c->r->first_difference),
		 "event %zu: recorded %s, on the card %s", event, want_text, made_text);
	return 0;
}

/* Counts a request; it differs if it is not served or refused as recorded. */
static void count_request(struct card_check *c, size_t event)
{
	const struct changes *made = &c->w.made;
	unsigned last = made->count ? made->items[made->count - 1].kind : 0;
	unsigned kind = c->td->events[event].kind;
	const char *what = NULL;

	c->r->allocs += kind == FRAG_EV_ALLOC;
	c->r->ooms += kind == FRAG_EV_REFUSED;
	if (last == CHANGE_REFUSED)
		what = "recorded as served, on the card out of memory";
	else if (last == CHANGE_SERVED)
		what = "recorded as out of memory, the card serves it";
	c->r->allocs_same += kind == FRAG_EV_ALLOC && !what;
	c->r->ooms_same += kind == FRAG_EV_REFUSED && !what;
	if (what && !*c->r->first_difference)
		snprintf(c->r->first_difference, sizeof(c->r->first_difference), "event %zu: %s",
			 event, what);
}

static int step(struct card_check *c, size_t event, struct frag_err *err)
{
	const struct changes *made = &c->w.made;

	FRAG_TRY(watch_step(&c->w, event, err));
	for (size_t i = 0; i < made->count; i++)
		FRAG_CHECK_ALLOC(add_change(&c->changes, made->items[i]), "verify", err);
	count_request(c, event);
	return compare_event(c, event, made, err);
}

static int walk(struct card_check *c, struct frag_device *device, struct frag_err *err)
{
	static const struct changes none;
	const struct frag_trace_dev *td = c->td;
	struct frag_verify_result *r = c->r;

	for (size_t i = 0; i < td->events_count; i++)
		FRAG_TRY(step(c, i, err));
	FRAG_TRY(compare_event(c, SIZE_MAX, &none, err)); /* releases after the last event */
	r->peak_reserved_bytes = device->reserved_peak_bytes;
	r->segments = follow_segments(td);
	r->identical = !*r->first_difference;
	return frag_run_counters(c->w.run, &r->counters, err);
}

/* Ends the run and returns all memory. */
static int replay(struct card_check *c, struct frag_device *device, struct frag_err *err)
{
	int rc;

	address_log_record(&c->given, device);
	rc = watch_open(&c->w, c->spec, device, c->td, c->limit_bytes, err);
	if (!rc)
		rc = walk(c, device, err);
	watch_close(&c->w);
	address_log_stop(&c->given);
	if (!rc && c->given.short_of_memory)
		rc = frag_fail_nomem(err, "verify");
	return rc;
}

/* ---- the cause of a difference: the two simulated replays ---- */

/* Compares an event on the simulated card with that on the card; `out`: the difference. */
static bool same_event(const struct card_check *c, size_t *cursor, const struct watch *w, char *out,
		       size_t cap)
{
	const struct change *real = c->changes.items;
	size_t begin = *cursor, count, same;
	char on_card[80], simulated[80];

	while (*cursor < c->changes.count && real[*cursor].event == w->event)
		++*cursor;
	count = *cursor - begin;
	same = same_changes(real + begin, count, &w->made, true);
	if (same == count && same == w->made.count)
		return true;
	describe(on_card, sizeof(on_card), real, *cursor, begin + same);
	describe(simulated, sizeof(simulated), w->made.items, w->made.count, same);
	snprintf(out, cap, "does something else: event %zu: on the card %s, simulated %s", w->event,
		 on_card, simulated);
	return false;
}

/* Replays at the card's addresses. out: "" or the first difference from the card. */
static int replay_again(struct card_check *c, char *out, size_t cap, struct frag_err *err)
{
	FRAG_AUTO(frag_dev_close_at) struct frag_device *dev = NULL;
	FRAG_AUTO(watch_close) struct watch w = { 0 };
	size_t cursor = 0;

	FRAG_TRY(address_log_play(&c->given, &c->twin, &dev, err));
	FRAG_TRY(watch_open(&w, c->spec, dev, c->td, c->limit_bytes, err));
	for (size_t i = 0; i < c->td->events_count; i++) {
		FRAG_TRY(watch_step(&w, i, err));
		if (!same_event(c, &cursor, &w, out, cap))
			return 0;
	}
	return 0;
}

/* Replays at the recorded addresses. out: "" or the remaining difference from the recording. */
static int replay_recorded(struct card_check *c, char *out, size_t cap, struct frag_err *err)
{
	FRAG_AUTO(follow_report_release) struct follow_report f = { 0 };

	FRAG_TRY(follow_recording(c->td, c->spec, &c->twin, c->limit_bytes, &f, err));
	if (f.diff != FOLLOW_SAME)
		snprintf(out, cap, "differs from the recording, too: %s", f.text);
	else if (f.refusals_count)
		snprintf(out, cap,
			 "must be told that the driver refused memory at event %" PRIu64 "%s",
			 f.refusals[0].event,
			 c->limit_bytes == UINT64_MAX
				 ? "; was there a memory limit? give it with --limit"
				 : "");
	return 0;
}

static int find_cause(struct card_check *c, struct frag_err *err)
{
	static const struct {
		int (*replay)(struct card_check *c, char *out, size_t cap, struct frag_err *err);
		enum frag_verify_cause otherwise;
		const char *addresses;
	} tries[] = { { replay_again, FRAG_CAUSE_UNKNOWN, "addresses of this card" },
		      { replay_recorded, FRAG_CAUSE_INPUT, "recorded addresses" } };
	struct frag_verify_result *r = c->r;

	for (size_t i = 0; i < FRAG_ARRAY_LEN(tries); i++) {
		char text[sizeof(r->cause_text) - 100] = "";
		struct frag_err own = { 0 };
		int rc = tries[i].replay(c, text, sizeof(text), &own);

		/* for example, a given address is not free: the simulated card's state differs */
		if (rc == FRAG_EDEVICE)
			snprintf(text, sizeof(text), "fails: %s", own.msg);
		else if (rc && err)
			*err = own;
		if (rc && rc != FRAG_EDEVICE)
			return rc;
		if (!*text)
			continue;
		r->cause = tries[i].otherwise;
		snprintf(r->cause_text, sizeof(r->cause_text),
			 "not addresses alone: a simulated card of this size with the %s %s",
			 tries[i].addresses, text);
		return 0;
	}
	r->cause = FRAG_CAUSE_ADDRESSES;
	snprintf(r->cause_text, sizeof(r->cause_text),
		 "addresses decide it: with the addresses of this card a simulated card does the "
		 "same in every event, and with the recorded addresses what was recorded");
	return 0;
}

/* ---- all of it ---- */

/* A real card that runs only the replay finishes queued work at once. */
static struct frag_sim_config twin_of(const struct frag_device *device,
				      const struct frag_sim_config *card)
{
	struct frag_sim_config twin = *card;
	struct frag_device_info info;

	frag_dev_info(device, &info);
	twin.name = NULL;
	twin.total_bytes = info.total_bytes;
	twin.context_bytes = info.context_bytes;
	twin.work_idle |= !info.modelled;
	return twin;
}

static int check_late(const struct frag_trace_dev *td, struct frag_err *err)
{
	if (!td->initial.segments_count)
		return 0;
	return frag_fail(err, FRAG_ENOTSUP,
			 "the recording of device %u began late, with %zu segments at addresses "
			 "that a real card cannot reproduce; verify it on the simulated card "
			 "(--device sim)",
			 td->ordinal, td->initial.segments_count);
}

int frag_verify_card(struct frag_trace *trace, uint32_t dev, struct frag_device *device,
		     const struct frag_sim_config *card, uint64_t limit_bytes, const char *conf,
		     struct frag_verify_result *out, struct frag_err *err)
{
	const struct frag_trace_dev *td = &trace->devs[dev];
	struct card_check c = {
		.td = td, .limit_bytes = limit_bytes, .twin = twin_of(device, card), .r = out
	};
	struct resolve_try open = { .limit_bytes = limit_bytes, .steps = resolve_steps(td) };
	FRAG_AUTO(frag_policy_spec_destroy_at) struct frag_policy_spec *spec = NULL;
	int rc;

	*out = (struct frag_verify_result){ .device_ordinal = td->ordinal };
	FRAG_TRY(follow_check(trace, dev, err));
	FRAG_TRY(check_late(td, err));
	FRAG_TRY(follow_spec(trace, conf, &spec, err));
	c.spec = spec;
	rc = resolve_try(trace, dev, card, &open, err) ?: replay(&c, device, err);
	if (!rc && !out->identical)
		rc = find_cause(&c, err);
	address_log_release(&c.given);
	FRAG_FREE(c.changes.items, c.want.items);
	if (rc)
		frag_verify_result_release(out);
	return rc;
}
