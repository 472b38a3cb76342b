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
/*
 * The spec of task->spec with a plan made from the first steps of task->dev, in a temporary
 * folder *folder; give both back with frag_session_drop_plan. *about: what the plan was made of,
 * for the result. Errors: FRAG_ENOTSUP with task->left_out where there is nothing to plan from.
 */
int frag_session_make_plan(const struct frag_session *s, struct frag_session_task *task,
			   struct frag_policy_spec **spec, char **folder, char **about);
void frag_session_drop_plan(struct frag_policy_spec *spec, char *folder);

/* With --out on a simulated card: where the blocks of the baseline lie, and of what is advised. */
int frag_session_layouts(const struct frag_session *s, struct frag_section *sec,
			 struct frag_err *err);

#endif
