/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What fit, tune and plan share: all traces of the command line at once, and policies by their
 * texts per trace.
 */
#ifndef FRAG_CLI_PLANNING_H
#define FRAG_CLI_PLANNING_H

#include <frag/plan.h>
#include <frag/trace.h>

#include "common.h"
#include "answer/textbuf.h"

/* One device of one trace: what is replayed. */
struct frag_unit {
	const struct frag_trace *trace;
	const struct frag_trace_dev *dev;
	char *label; /* "gnn.default", or "job device 1" where a trace has several */
};

struct frag_units {
	struct frag_trace **traces;
	size_t traces_count;
	struct frag_unit *list;
	size_t count;
};

/* Reads all operands and settles what their recordings leave open. Errors as of the readers. */
int frag_units_read(struct frag_units *u, const struct frag_cli *cli, struct frag_err *err);
void frag_units_release(struct frag_units *u);

/* The limit that its recording had, where its replay is identical and --limit gives no other. */
uint64_t frag_unit_limit(const struct frag_unit *unit, const struct frag_cli *cli);
/* A line with '#' for each recording that had a limit or is not identical; what: of such a limit. */
void frag_units_say(const struct frag_units *u, const struct frag_cli *cli, const char *what,
		    struct frag_text *out);
/* [{trace, recording}] */
json_t *frag_units_json(const struct frag_units *u);

/*
 * The policy that `text` stands for on this trace ("recorded" = its own
 * settings). *out NULL: the trace does not say what it was recorded with.
 */
int frag_unit_spec(const struct frag_unit *unit, const char *text, struct frag_policy_spec **out,
		   struct frag_err *err);

/* Fills card, limit, seed, threads from the shared options; sample replays as everywhere. */
void frag_plan_env_init(struct frag_plan_env *env, const struct frag_cli *cli);

#endif
