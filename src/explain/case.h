/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What explain, diagnose and diff look at: one device of a recording with its steps and call sites,
 * and how it is replayed.
 *
 *	FRAG_AUTO(frag_case_close) struct frag_case c = { .events = …, .spec = …, .target = … };
 *	FRAG_TRY(frag_case_open(&c, FRAG_BY_LINE, NULL, err));
 *	FRAG_TRY(frag_case_replay(&c, &cursor, err));
 *
 * Ownership: events and spec are borrowed; history and sites belong to the case until
 * frag_case_close.
 */
#ifndef FRAG_EXPLAIN_CASE_H
#define FRAG_EXPLAIN_CASE_H

#include "history.h"
#include "recording/estimate.h"
#include "recording/sites.h"
#include "recording/target.h"
#include "replay_cursor.h"

struct frag_case {
	struct frag_events events;
	const struct frag_policy_spec *spec;
	bool recorded;		   /* spec are the recorded settings */
	struct frag_target target; /* without a limit: that of the recording, or found from it */
	unsigned threads;
	/* filled by frag_case_open */
	uint64_t limit_bytes; /* UINT64_MAX = none known */
	bool limit_guessed;   /* the limit is the most that was ever reserved */
	uint64_t limit_low_bytes, limit_high_bytes; /* of an inferred limit, else both 0 */
	bool card_full; /* the limit is what the card had for the process: none was set */
	struct frag_neighbours neighbours; /* that left no more of the card; count 0 = none */
	uint64_t recorded_peak_bytes;	   /* 0 = not known, or the replay is a what-if */
	bool other_card; /* than the pretended one that refused requests: they may be served */
	bool restores; /* replays start with the blocks that were there when the recording began */
	struct frag_history history;
	struct frag_sites sites;
};

/* Errors: FRAG_ENOMEM, those of the events; it is to be closed then, too. */
int frag_case_open(struct frag_case *c, enum frag_site_by by, const char *frame,
		   struct frag_err *err);
void frag_case_close(struct frag_case *c);

/* The limit becomes the most that the recording ever reserved, if it says. */
bool frag_case_guess_limit(struct frag_case *c);
/* Settings of its replays. */
void frag_case_run_options(const struct frag_case *c, struct frag_run_options *run);
/* Opens a replay of it, at its first event. */
int frag_case_replay(const struct frag_case *c, struct frag_cursor *s, struct frag_err *err);

/* "step 12", "part 3 of 32" or "the part after the last step", as steps were found; in: "in step
 * 12", "after the last step". The macros are expressions. */
const char *frag_case_step_text(const struct frag_case *c, size_t step, bool in, char *buf,
				size_t size);
#define FRAG_STEP(c, step) frag_case_step_text((c), (step), false, (char[64]){ 0 }, 64)
#define FRAG_IN_STEP(c, step) frag_case_step_text((c), (step), true, (char[64]){ 0 }, 64)
/* Its number for people, from 1; UINT64_MAX where steps are unknown or none is meant. */
uint64_t frag_case_step_number(const struct frag_case *c, size_t step);

/*
 * The requests that a case refuses, for explain and diagnose alike: those that were refused when
 * recorded and are refused again, and the first that the replay itself refuses, after which the
 * program would not go on. Under the recorded settings and no other limit, all that were recorded
 * count.
 */
struct frag_refused_at {
	struct frag_refusal r;	 /* live_bytes: granted, and waiting for another stream */
	uint64_t reserved_bytes; /* then */
	uint64_t limit_bytes;	 /* what the process could have reserved */
	bool limit_changed;	 /* to that, by the program while it ran */
};

struct frag_refusals {
	struct frag_refused_at list[FRAG_REFUSALS_KEPT]; /* by event */
	size_t count;
};

/* Errors: those of replays. */
int frag_refusals_find(const struct frag_case *c, struct frag_refusals *out, struct frag_err *err);

#endif
