/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `cufrag info` says about several traces together, as the ranks of a job
 * write them: a line for each device of each, then how far they are apart.
 *
 * Ownership: zeroed to begin with, release at the end.
 */
#ifndef FRAG_CLI_INFO_RANKS_H
#define FRAG_CLI_INFO_RANKS_H

#include "answer/table.h"
#include "info_scan.h"

struct frag_info_ranks {
	struct frag_table table;
	uint64_t *peaks; /* [count]: live bytes at the peak of each device */
	char (*names)[160];
	size_t count, cap;
};

/* One device of a trace of this name; devs_count: of that trace. Errors: FRAG_ENOMEM. */
int frag_info_ranks_add(struct frag_info_ranks *r, const char *trace, uint32_t devs_count,
			const struct frag_info *info, struct frag_err *err);
/* The table and the spread, on standard output. */
int frag_info_ranks_print(const struct frag_info_ranks *r, struct frag_err *err);
void frag_info_ranks_release(struct frag_info_ranks *r);

#endif
