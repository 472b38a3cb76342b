/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why did a replay on a card make other segments than the recording? Two replays on a simulated
 * card of the same size answer this: one at the card's addresses, one at the recorded addresses.
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
	struct frag_sim_config twin; /* configuration of a simulated card like it */
	struct change_list changes;  /* changes of all events, in order, sorted within each event */
	struct address_log given;
};

/*
 * Fills in r->cause and r->cause_text. pre: the trace has evidence and did not begin late. Errors:
 * FRAG_ENOMEM, and those of the policy. A simulated card that cannot continue is an answer, not an
 * error.
 */
int verify_cause_find(struct card_replay *card, struct frag_verify_result *r, struct frag_err *err);

#endif
