/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Estimates what a change in a program would save from its recording: edits the lifetimes of its blocks as the change would, and
 * replays the result. The sentence of each estimate names its assumptions.
 *
 * A change is a file edit_NAME.c with `const struct frag_edit_kind frag_edit_NAME`; make lists it.
 *
 *	struct frag_edit e;
 *	FRAG_TRY(frag_edit_init(&e, p->story, err));
 *	frag_edit_end(&e, life, event, err); frag_edit_add(&e, life, from, to, err); …
 *	rc = frag_plan_propose(p, &e, &(struct frag_proposal){ … }, err);
 *	frag_edit_release(&e);
 */
#ifndef FRAG_ADVISE_EDIT_H
#define FRAG_ADVISE_EDIT_H

#include <frag/plan.h>

#include "advice.h"
#include "answer/textbuf.h"
#include "lives.h"
#include "loops.h"

/*
 * Advice from a recording, the largest saving first. Changes that save less than 1 % of a peak are
 * dropped. Of several devices the one with the highest peak is used. pre: the events are in memory
 * (FRAG_EUSAGE). The caller releases (*out)[*n] with frag_advices_release. Errors: FRAG_ENOMEM,
 * FRAG_EINPUT, those of replays; FRAG_EINTR.
 */
int frag_advise_edits(const struct frag_recording *rec, struct frag_advice **out, size_t *n,
		      struct frag_err *err);
/* Only other settings and allocators, whose replay is exact. */
int frag_advise_settings(const struct frag_recording *rec, struct frag_advice **out, size_t *n,
			 struct frag_err *err);

/* ---- one edit ------------------------------------------------------------------------- */

/* An added request or free. */
struct frag_insert {
	uint64_t at; /* before this event */
	uint32_t seq, life;
	uint32_t id; /* of a new block; FRAG_RECORDED: frees the recorded block */
	bool alloc;
};
#define FRAG_RECORDED UINT32_MAX

struct frag_edit {
	const struct frag_story *story;
	uint8_t *how;	/* [lives]: edit of the recorded block */
	uint64_t *size; /* [lives]: new size in bytes, 0 = unchanged */
	struct frag_insert *list;
	size_t count, cap;
	uint32_t ids;
	uint64_t edited_bytes; /* of all lives that were edited */
};

int frag_edit_init(struct frag_edit *e, const struct frag_story *s, struct frag_err *err);
void frag_edit_release(struct frag_edit *e);
/* Removes the block. */
void frag_edit_remove(struct frag_edit *e, size_t life);
/* Changes its size. pre: bytes > 0 */
void frag_edit_resize(struct frag_edit *e, size_t life, uint64_t bytes);
/* Frees it before event `at`, if that is earlier than recorded. */
int frag_edit_end(struct frag_edit *e, size_t life, uint64_t at, struct frag_err *err);
/* Adds a block of the same size, requested before event `from` and freed before event `to` (FRAG_NEVER: never). Additions at one
 * event keep the order of the calls. Nothing is added behind the last event. */
int frag_edit_add(struct frag_edit *e, size_t life, uint64_t from, uint64_t to,
		  struct frag_err *err);
/* The two halves of frag_edit_add. */
int frag_edit_request(struct frag_edit *e, size_t life, uint64_t at, uint32_t *id,
		      struct frag_err *err);
int frag_edit_free(struct frag_edit *e, size_t life, uint32_t id, uint64_t at,
		   struct frag_err *err);
bool frag_edit_touched(const struct frag_edit *e, size_t life);
/* A copy of the device with the edited events; the caller frees only these (frag_host_free). */
int frag_edit_apply(struct frag_edit *e, struct frag_trace_dev *out, struct frag_err *err);

/* ---- the context of a change ---------------------------------------------------------- */

struct frag_advice_plan {
	const struct frag_story *story;
	struct frag_loops loops;
	struct frag_plan_env env;
	struct frag_catalog catalog;
	struct frag_headroom headroom;
	struct frag_policy_spec *plain, *expandable;
	struct frag_advice_peaks before;
	struct frag_advice *list;
	size_t count, cap;
};

struct frag_proposal {
	const char *change;
	const char *what;     /* a sentence */
	const char *where;    /* "train.py:41 forward"; NULL: the line of `stack` */
	uint32_t stack;	      /* FRAG_NO_STACK: no line */
	const char *numerics; /* NULL: none */
	struct frag_advice_cost cost;
};

/* Replays the edit, and adds it to the list if it saves enough. */
int frag_plan_propose(struct frag_advice_plan *p, struct frag_edit *e,
		      const struct frag_proposal *o, struct frag_err *err);
/* Adds a row that says why there is no estimate. */
int frag_plan_leave_out(struct frag_advice_plan *p, const char *change, const char *why,
			struct frag_err *err);
/* Replays the unchanged recording under another policy or setting. */
int frag_plan_propose_policy(struct frag_advice_plan *p, const char *policy,
			     const struct frag_proposal *o, struct frag_err *err);

struct frag_edit_kind {
	const char *name;
	int (*propose)(struct frag_advice_plan *p, struct frag_err *err);
};

#endif
