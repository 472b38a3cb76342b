/* SPDX-License-Identifier: Apache-2.0 */
/* Shared options: what args.c (the parse) and args_values.c (their meaning) know of each other. */
#ifndef FRAG_CLI_ARGS_H
#define FRAG_CLI_ARGS_H

#include "common.h"

/* keys of the shared options */
enum {
	FRAG_ARGS_DEVICE = 0x1000,
	FRAG_ARGS_MANAGED_MAX,
	FRAG_ARGS_COST,
	FRAG_ARGS_GPU,
	FRAG_ARGS_CAPACITY,
	FRAG_ARGS_CONTEXT,
	FRAG_ARGS_WORK,
	FRAG_ARGS_LIMIT,
	FRAG_ARGS_JSON,
	FRAG_ARGS_CSV,
	FRAG_ARGS_OUT,
	FRAG_ARGS_SEED,
	FRAG_ARGS_THREADS,
	FRAG_ARGS_COLOR,
	FRAG_ARGS_END,
};

/* Takes the value of one shared option. Errors: FRAG_EUSAGE. */
int frag_args_shared(struct frag_cli *cli, int key, const char *arg, struct frag_err *err);
/* The card after all options are known: --capacity and --context override --gpu. */
int frag_args_card(struct frag_cli *cli, struct frag_err *err);

#endif
