/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses are the cause if nothing else can be: the simulated card, which differs between the
 * two replays in nothing but the addresses it is given, must do in every event what the card
 * did when it has the card's, and what was recorded when it has those. Refusals that the
 * recording shows and the size of the card does not explain are something else: the second
 * replay has to be told them. In doubt addresses are not the cause: a card larger than the recorded
 * one reserves longer ranges for expandable segments, which may not fit between recorded addresses.
 */
#include "verify_cause.h"

#include <inttypes.h>
#include <stdio.h>

#include "follow.h"
#include "address_choice.h"

/* One event of the simulated card against the same on the card; `out`: how they differ. */
static bool same_event(const struct card_replay *card, size_t *cursor, const struct watch *w,
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

/* A given address that is not free, for one: the simulated card is not where the card was. */
static int as_answer(int rc, const struct frag_err *err, char *out, size_t cap)
{
	if (rc != FRAG_EDEVICE)
		return rc;
	snprintf(out, cap, "fails: %s", err->msg);
	return 0;
}

static int walk(const struct card_replay *card, struct watch *w, struct tie *tie, char *out,
		size_t cap, struct frag_err *err)
{
	size_t cursor = 0;

	for (size_t i = 0; i < card->td->events_count; i++) {
		FRAG_TRY(watch_step(w, i, err));
		if (!same_event(card, &cursor, w, out, cap))
			return 0;
		tie_look(tie, w);
		if (tie->short_of_memory)
			return frag_fail_nomem(err, "verify");
	}
	return 0;
}

/* At the card's addresses. out: "" or the first difference to the card. */
static int replay_again(struct card_replay *card, struct tie *tie, char *out, size_t cap,
			struct frag_err *err)
{
	FRAG_AUTO(frag_dev_close_at) struct frag_device *dev = NULL;
	FRAG_AUTO(watch_close) struct watch w = { 0 };
	struct frag_err own = { 0 };
	int rc;

	*out = '\0';
	FRAG_TRY(address_log_play(&card->given, &card->twin, &dev, err));
	rc = watch_open(&w, card->spec, dev, card->td, card->limit_bytes, &own);
	if (!rc)
		rc = walk(card, &w, tie, out, cap, &own);
	rc = as_answer(rc, &own, out, cap);
	if (rc && err)
		*err = own;
	return rc;
}

/* At the recorded addresses. out: "" or what differs from the recording all the same. */
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
			 "has to be told that the driver refused memory at event %" PRIu64 "%s",
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
		    "not addresses alone: a simulated card of this size that is given the "
		    "addresses of this one ",
		    text);
		return 0;
	}
	FRAG_TRY(replay_recorded(card, text, sizeof(text), err));
	if (*text) {
		say(r, FRAG_CAUSE_INPUT,
		    "not addresses alone: a simulated card of this size that is given the "
		    "recorded addresses ",
		    text);
		return 0;
	}
	snprintf(text, sizeof(text),
		 "the simulated card does the same in every event if it is given the addresses of "
		 "this one, and what was recorded if it is given those recorded%s%s",
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
