/* SPDX-License-Identifier: Apache-2.0 */
/* What fit found, and its outputs. */
#ifndef FRAG_CLI_FIT_PRINT_H
#define FRAG_CLI_FIT_PRINT_H

#include "cli/planning.h"

/* One policy on all units. */
struct frag_fit_row {
	const char *text;		 /* borrowed from the command line */
	struct frag_policy_spec **specs; /* per unit */
	struct frag_fit_task *tasks;	 /* per unit, borrowed from the page */
	bool complete, possible;
	uint64_t min_bytes, safe_bytes, ample_bytes;
	size_t worst; /* the unit that decides */
	uint64_t gpus;
	uint64_t probes;
};

struct frag_fit_page {
	const struct frag_cli *cli;
	struct frag_units units;
	uint64_t margin;
	double margin_fraction;		 /* of a card, beside it */
	const struct frag_gpu *gpus[64]; /* by capacity */
	size_t gpus_count;
	struct frag_fit_row *rows;
	size_t rows_count;
	struct frag_fit_task *tasks;
};

/* --json, --csv, and the text unless one of them goes to standard output. */
int frag_fit_print(const struct frag_fit_page *p, struct frag_err *err);
/* _CONDITION if no known card fits; that of FRAG_EINTR after Ctrl-C. */
int frag_fit_status(const struct frag_fit_page *p);

#endif
