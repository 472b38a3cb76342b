/* SPDX-License-Identifier: Apache-2.0 */
/* What fit found, and its outputs. */
#ifndef FRAG_CLI_FIT_PRINT_H
#define FRAG_CLI_FIT_PRINT_H

#include <frag/plan.h>

#include "cli/recordings.h"

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
	bool costly; /* spends much of the recorded time in the driver */
};

struct frag_fit_page {
	const struct frag_cli *cli;
	struct frag_recordings units;
	struct frag_catalog catalog;
	struct frag_fit_row *rows;
	size_t rows_count;
	struct frag_fit_task *tasks;
};

/* Does the policy spend 1 % of the recorded time in the driver, on a card that is large enough? */
bool frag_fit_costly(const struct frag_unit *unit, const struct frag_fit *fit);
/* What card g has for the process; what that reserves where nothing is short. Bytes. */
uint64_t frag_fit_room(const struct frag_fit_page *p, size_t g, const struct frag_headroom *kept);
uint64_t frag_fit_peak(const struct frag_fit_page *p, const struct frag_fit_row *row);
/* Does it run on card g with room for its peak and all that is to stay free? */
bool frag_fit_roomy(const struct frag_fit_page *p, const struct frag_fit_row *row, size_t g);
/* The best policy on card g: with room before tight; SIZE_MAX = none completes. */
size_t frag_fit_best_row(const struct frag_fit_page *p, size_t g);
/* "fits", "tight" or "does not fit". */
const char *frag_fit_answer(const struct frag_fit_page *p, size_t g);
/* The smallest card, or where all have a price the cheapest, on which `row` (SIZE_MAX = the best
 * policy of each card) has room; SIZE_MAX = none. */
size_t frag_fit_card(const struct frag_fit_page *p, size_t row);
/* Is the price of any card known? */
bool frag_fit_priced(const struct frag_fit_page *p);
/* For the time that was recorded, a card for each device; 0 = not known. */
double frag_fit_job_price(const struct frag_fit_page *p, const struct frag_gpu *gpu);
/* --json, --csv, and the text unless one of them goes to standard output. */
int frag_fit_print(const struct frag_fit_page *p, struct frag_err *err);
/* _CONDITION if no known card fits; that of FRAG_EINTR after Ctrl-C. */
int frag_fit_status(const struct frag_fit_page *p);

#endif
