/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify on a real card. The card has its own addresses, so only what does not depend on them is
 * compared: whether every request is served or refused as recorded, and whether each event takes
 * and returns the recorded segments, by kind and size. The order within one event does not count,
 * because releases follow addresses. If addresses decide a tie between blocks of equal size,
 * another segment may be affected. That counts as a difference, and verify_cause.c finds out
 * whether addresses are its cause.
 */
#include <frag/replay.h>

#include <stdio.h>

#include "follow.h"
#include "verify_cause.h"

struct card_check {
	struct card_replay card;
	struct change_watch w;
	struct frag_verify_result *r;
	size_t cursor; /* next evidence */
	struct change_list want;
};

/* The recorded changes of an event. */
static int collect_recorded(struct card_check *c, size_t event, struct frag_err *err)
{
	const struct frag_trace_dev *td = c->card.td;

	c->want.count = 0;
	for (; c->cursor < td->seen_count && td->seen[c->cursor].before <= event; c->cursor++) {
		const struct frag_evidence *e = &td->seen[c->cursor];
		struct change change = {
			.event = event, .bytes = e->bytes, .addr = e->addr, .kind = e->kind
		};

		FRAG_CHECK_ALLOC(!follow_is_segment(e) || changes_add(&c->want, &change), "verify",
				 err);
	}
	changes_sort(&c->want);
	return 0;
}

/* Compares the event's changes with the recorded ones; counts matches. */
static int compare_event(struct card_check *c, size_t event, const struct change_list *made,
			 struct frag_err *err)
{
	size_t same = 0;
	char want_text[80], made_text[80];

	FRAG_TRY(collect_recorded(c, event, err));
	while (same < c->want.count && same < made->count &&
	       !change_compare(&c->want.items[same], &made->items[same]))
		same++;
	c->r->segments_same += same;
	if ((same == c->want.count && same == made->count) || *c->r->first_difference)
		return 0;
	change_describe(want_text, sizeof(want_text), c->want.items, c->want.count, same);
	change_describe(made_text, sizeof(made_text), made->items, made->count, same);
	snprintf(c->r->first_difference, sizeof(c->r->first_difference),
		 "event %zu: recorded %s, on the card %s", event, want_text, made_text);
	return 0;
}

/* Counts a request; it differs if it is not served or refused as recorded. */
static void count_request(struct card_check *c, size_t event)
{
	const struct change_list *made = &c->w.made;
	unsigned last = made->count ? made->items[made->count - 1].kind : 0;
	unsigned kind = c->card.td->events[event].kind;
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
	const struct change_list *made = &c->w.made;

	FRAG_TRY(change_watch_step(&c->w, event, err));
	for (size_t i = 0; i < made->count; i++)
		FRAG_CHECK_ALLOC(changes_add(&c->card.changes, &made->items[i]), "verify", err);
	count_request(c, event);
	return compare_event(c, event, made, err);
}

static int walk(struct card_check *c, struct frag_device *device, struct frag_err *err)
{
	static const struct change_list none;
	const struct frag_trace_dev *td = c->card.td;
	struct frag_verify_result *r = c->r;

	for (size_t i = 0; i < td->events_count; i++)
		FRAG_TRY(step(c, i, err));
	FRAG_TRY(compare_event(c, SIZE_MAX, &none, err)); /* releases after the last event */
	r->peak_reserved_bytes = device->reserved_peak_bytes;
	for (size_t i = 0; i < td->seen_count; i++)
		r->segments += follow_is_segment(&td->seen[i]);
	r->identical = !*r->first_difference;
	return frag_run_counters(c->w.run, &r->counters, err);
}

/* Ends the run and returns all memory. */
static int replay(struct card_check *c, struct frag_device *device, struct frag_err *err)
{
	int rc;

	address_log_record(&c->card.given, device);
	rc = change_watch_open(&c->w, c->card.spec, device, c->card.td, c->card.limit_bytes, err);
	if (!rc)
		rc = walk(c, device, err);
	change_watch_close(&c->w);
	address_log_stop(&c->card.given);
	if (!rc && c->card.given.short_of_memory)
		rc = frag_fail_nomem(err, "verify");
	return rc;
}

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
	struct card_check c = { .r = out };
	struct frag_policy_spec *spec;
	int rc;

	*out = (struct frag_verify_result){ .device_ordinal = td->ordinal };
	FRAG_TRY(follow_check(trace, dev, err));
	FRAG_TRY(check_late(td, err));
	FRAG_TRY(follow_spec(trace, conf, &spec, err));
	c.card = (struct card_replay){
		.td = td, .spec = spec, .limit_bytes = limit_bytes, .twin = twin_of(device, card)
	};
	rc = frag_resolve(trace, dev, card, limit_bytes, err) ?: replay(&c, device, err);
	if (!rc && !out->identical)
		rc = verify_cause_find(&c.card, out, err);
	address_log_release(&c.card.given);
	FRAG_FREE(c.card.changes.items, c.want.items);
	frag_policy_spec_destroy(spec);
	if (rc)
		frag_verify_result_release(out);
	return rc;
}
