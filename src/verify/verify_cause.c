/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses are the cause if nothing else can be. The two simulated replays differ only in the
 * given addresses. With the card's addresses, the simulated card must do in every event what the
 * card did; with the recorded addresses, what was recorded. Recorded refusals that the size of the
 * card does not explain are another cause, because the second replay must be told of them. In
 * doubt, addresses are not the cause: a card larger than the recorded one reserves longer ranges
 * for expandable segments, which may not fit between recorded addresses.
 */
#include "verify_cause.h"

#include <inttypes.h>
#include <stdio.h>

#include "follow.h"
#include "address_choice.h"

/* Compares an event on the simulated card with that on the card; `out`: the difference. */
static bool same_event(const struct card_replay *card, size_t *cursor, const struct change_watch *w,
		       char *out, size_t cap)
{
	const struct change *real = card->changes.items, *sim = w->made.items;
	size_t begin = *cursor, same = 0, count;
	char on_card[80], simulated[80];

	while (*cursor < card->changes.count && real[*cursor].event == w->event)
		++*cursor;
	count = *cursor - begin;
	while (same < count && same < w->made.count &&
	       !change_compare(&real[begin + same], &sim[same]) &&
	       real[begin + same].addr == sim[same].addr)
		same++;
	if (same == count && same == w->made.count)
		return true;
	change_describe(on_card, sizeof(on_card), real, *cursor, begin + same);
	change_describe(simulated, sizeof(simulated), sim, w->made.count, same);
	snprintf(out, cap, "does something else: event %zu: on the card %s, simulated %s", w->event,
		 on_card, simulated);
	return false;
}

/* For example, a given address is not free: the simulated card's state differs. */
static int as_answer(int rc, const struct frag_err *err, char *out, size_t cap)
{
	if (rc != FRAG_EDEVICE)
		return rc;
	snprintf(out, cap, "fails: %s", err->msg);
	return 0;
}

static int walk(const struct card_replay *card, struct change_watch *w, struct tie *tie, char *out,
		size_t cap, struct frag_err *err)
{
	size_t cursor = 0;

	for (size_t i = 0; i < card->td->events_count; i++) {
		FRAG_TRY(change_watch_step(w, i, err));
		if (!same_event(card, &cursor, w, out, cap))
			return 0;
		tie_look(tie, w);
		FRAG_CHECK_ALLOC(!tie->short_of_memory, "verify", err);
	}
	return 0;
}

/* Replays at the card's addresses. out: "" or the first difference from the card. */
static int replay_again(struct card_replay *card, struct tie *tie, char *out, size_t cap,
			struct frag_err *err)
{
	FRAG_AUTO(frag_dev_close_at) struct frag_device *dev = NULL;
	FRAG_AUTO(change_watch_close) struct change_watch w = { 0 };
	struct frag_err own = { 0 };
	int rc;

	*out = '\0';
	FRAG_TRY(address_log_play(&card->given, &card->twin, &dev, err));
	rc = change_watch_open(&w, card->spec, dev, card->td, card->limit_bytes, &own);
	if (!rc)
		rc = walk(card, &w, tie, out, cap, &own);
	rc = as_answer(rc, &own, out, cap);
	if (rc && err)
		*err = own;
	return rc;
}

/* Replays at the recorded addresses. out: "" or the remaining difference from the recording. */
static int replay_recorded(const struct card_replay *card, char *out, size_t cap,
			   struct frag_err *err)
{
	struct follow_report f = { 0 };
	struct frag_err own = { 0 };
	int rc = follow_recording(card->td, card->spec, &card->twin, card->limit_bytes, &f, &own);

	*out = '\0';
	if (!rc && f.diff != FOLLOW_SAME)
		snprintf(out, cap, "differs from the recording, too: %s", f.text);
	else if (!rc && f.refusals_count)
		snprintf(out, cap,
			 "must be told that the driver refused memory at event %" PRIu64 "%s",
			 f.refusals[0].event,
			 card->limit_bytes == UINT64_MAX
				 ? "; was there a memory limit? give it with --limit"
				 : "");
	follow_report_release(&f);
	rc = as_answer(rc, &own, out, cap);
	if (rc && err)
		*err = own;
	return rc;
}

static void say(struct frag_verify_result *r, enum frag_verify_cause cause, const char *text,
		const char *detail)
{
	r->cause = cause;
	snprintf(r->cause_text, sizeof(r->cause_text), "%s%s", text, detail);
}

static int find(struct card_replay *card, struct tie *tie, struct frag_verify_result *r,
		struct frag_err *err)
{
	char text[sizeof(r->cause_text) - 100];

	FRAG_TRY(replay_again(card, tie, text, sizeof(text), err));
	if (*text) {
		say(r, FRAG_CAUSE_UNKNOWN,
		    "not addresses alone: a simulated card of this size with the addresses of "
		    "this card ",
		    text);
		return 0;
	}
	FRAG_TRY(replay_recorded(card, text, sizeof(text), err));
	if (*text) {
		say(r, FRAG_CAUSE_INPUT,
		    "not addresses alone: a simulated card of this size with the recorded "
		    "addresses ",
		    text);
		return 0;
	}
	snprintf(text, sizeof(text),
		 "with the addresses of this card a simulated card does the same in every event, "
		 "and with the recorded addresses what was recorded%s%s",
		 *tie->text ? "; " : "", tie->text);
	say(r, FRAG_CAUSE_ADDRESSES,
	    tie->equal ? "a tie that addresses decide: " : "addresses decide it: ", text);
	return 0;
}

int verify_cause_find(struct card_replay *card, struct frag_verify_result *r, struct frag_err *err)
{
	FRAG_AUTO(tie_release) struct tie tie = { 0 };

	return find(card, &tie, r, err);
}
