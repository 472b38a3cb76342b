/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why did a replay on a card make other segments than were recorded? Two replays on a simulated
 * card of the same size tell: one at the addresses that the card gave, one at those recorded.
 */
#ifndef FRAG_VERIFY_VERIFY_CAUSE_H
#define FRAG_VERIFY_VERIFY_CAUSE_H

#include "replay/address_log.h"
#include "watch.h"

/* What happened on the card. */
struct card_replay {
	const struct frag_trace_dev *td;
	const struct frag_policy_spec *spec;
	uint64_t limit_bytes;
	struct frag_sim_config twin; /* the card as a simulated one */
	struct change_list changes;  /* of all events, in order, sorted within each */
	struct address_log given;
};

/*
 * Fills in r->cause and r->cause_text. pre: the trace has evidence and did not begin late.
 * Errors: FRAG_ENOMEM, and of the policy; that a simulated card cannot go on is an answer.
 */
int verify_cause_find(struct card_replay *card, struct frag_verify_result *r, struct frag_err *err);

#endif
