/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What compare adds to the policies asked for: the offline placement of each device, and a
 * plan for policy `planned` where none is given. Both run as tasks of the pool.
 */
#ifndef FRAG_SESSION_OPTIMUM_H
#define FRAG_SESSION_OPTIMUM_H

#include "session.h"

/* Places what task->dev asked for into task->optimum, unless that takes too long. */
int frag_session_place(const struct frag_session *s, struct frag_session_task *task);

/* Is this policy `planned` without a plan, in a session that makes one? */
bool frag_session_wants_plan(const struct frag_session *s, const struct frag_policy_spec *spec);
/* Is it `planned` without a plan? */
bool frag_lacks_plan(const struct frag_policy_spec *spec);

/* A spec with a plan made from the first steps of a device; the plan is in a temporary folder. */
struct frag_planned {
	struct frag_policy_spec *spec;
	char *folder, *about; /* about: what the plan was made of, for the result */
};
/* any_size: however long that takes. Errors: FRAG_ENOTSUP: nothing to plan from, or too much. */
int frag_plan_ahead(const struct frag_trace_dev *dev, const struct frag_policy_spec *from,
		    bool any_size, struct frag_planned *out, struct frag_err *err);
void frag_planned_release(struct frag_planned *p);

/* With --out on a simulated card: where the blocks of the baseline lie, and of what is advised. */
int frag_session_layouts(const struct frag_session *s, struct frag_section *sec,
			 struct frag_err *err);

#endif
