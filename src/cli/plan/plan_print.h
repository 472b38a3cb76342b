/* SPDX-License-Identifier: Apache-2.0 */
/* What plan found, and its outputs. */
#ifndef FRAG_CLI_PLAN_PRINT_H
#define FRAG_CLI_PLAN_PRINT_H

#include <frag/plan.h>

#include "cli/recordings.h"

#define FRAG_PLAN_METHODS 8

struct frag_plan_method {
	const char *name;
	uint64_t height, ns;
};

/* One device of one trace. */
struct frag_plan_sheet {
	const struct frag_unit *unit;
	struct frag_buffers b;
	uint64_t align, bound, when, target, best;
	uint64_t *offsets, *best_offsets;
	struct frag_plan_method methods[FRAG_PLAN_METHODS];
	size_t methods_count;
	enum frag_search_answer answer;
	bool searched, complete;
	uint64_t nodes;
	struct frag_step_plan steps;
};

/* --json, --csv, and the text unless one of them goes to standard output. plan_path: of the plan of
 * the steps, where there is one. complete: no device is missing. */
int frag_plan_print(const struct frag_cli *cli, const struct frag_recordings *units,
		    const char *plan_path, const struct frag_plan_sheet *sheets, size_t count,
		    bool complete, struct frag_err *err);

/* The lowest placement as CSV: id, lower, upper, size, offset. Complete or not at all. */
int frag_plan_write_placement(const struct frag_plan_sheet *s, const char *path,
			      struct frag_err *err);

#endif
