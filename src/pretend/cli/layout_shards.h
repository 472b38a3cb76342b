/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts as shards of an array job that share a folder of recordings; results for fleet. */
#ifndef FRAG_CLI_LAYOUT_SHARDS_H
#define FRAG_CLI_LAYOUT_SHARDS_H

#include "cli/common.h"
#include "fleet/sweep.h"
#include "pretend/layout/layouts.h"

/* Which shard this process is, if any; the program does not see the variables of the array job. store: NULL = not given. Errors: FRAG_EUSAGE. */
int frag_layout_find_shard(struct frag_layouts *x, struct frag_sweep_shard *shard,
			   const char *store, struct frag_err *err);
/* Writes what `cufrag sweep DIR -o PATH` writes, on the cards of the plan. */
int frag_layout_store(struct frag_cli *cli, const struct frag_layouts *x, const char *path,
		      struct frag_err *err);

#endif
