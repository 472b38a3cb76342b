/* SPDX-License-Identifier: Apache-2.0 */
/* What tune found, and its outputs. */
#ifndef FRAG_CLI_TUNE_PRINT_H
#define FRAG_CLI_TUNE_PRINT_H

#include <frag/plan.h>

#include "cli/recordings.h"

struct frag_tune_show {
	const struct frag_cli *cli;
	const struct frag_recordings *units;
	enum frag_tune_objective objective;
	uint64_t budget, cap, top;
	unsigned first_release, last_release; /* of PyTorch, 0 = not known */
	bool refused;			      /* some setting refuses a request */
};

/* --json, --csv, and the text unless one of them goes to standard output. */
int frag_tune_print(struct frag_tune_show *show, const struct frag_tune *t, struct frag_err *err);

#endif
