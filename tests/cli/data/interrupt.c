/* SPDX-License-Identifier: Apache-2.0 */
/* The policy of external.c; with round=2K it is as if Ctrl-C were pressed while it begins. */
#include <signal.h>
#include <string.h>

#define MINE_ONLY
#include "external.c"

static const struct frag_opt tuned[] = { { .key = "round",
					   .type = FRAG_OPT_T_BYTES,
					   .def = 512,
					   .min = 1,
					   .max = 1 << 30,
					   .help = "sizes are multiples of it",
					   .tune = "1K,2K,4K,8K" },
					 FRAG_OPT_END };

static int create_and_stop(const struct frag_policy_env *env, const void *params, void **out,
			   struct frag_err *err)
{
	if (((const struct params *)params)->round == 2048)
		raise(SIGINT);
	return create(env, params, out, err);
}

const struct frag_policy_ops frag_policy_external = {
	.name = "stop",
	.summary = "one cudaMalloc per request, and an interruption",
	MINE_TABLE,
	.opts = tuned,
	.create = create_and_stop,
	.alloc = alloc,
	.free = release,
};
