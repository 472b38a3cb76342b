/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy of external.c; while it begins with round=2K, or at allocation number INTERRUPT_AT if that is set, it is as if Ctrl-C
 * were pressed (INTERRUPT_WITH: another signal, by its number). It goes on.
 */
#include <signal.h>
#include <stdlib.h>
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

static int number(const char *name, int otherwise)
{
	const char *text = getenv(name);

	return text ? atoi(text) : otherwise;
}

static int create_and_stop(const struct frag_policy_env *env, const void *params, void **out,
			   struct frag_err *err)
{
	if (((const struct params *)params)->round == 2048)
		raise(SIGINT);
	return create(env, params, out, err);
}

static int alloc_and_interrupt(void *self, const struct frag_request *req, struct frag_block *out,
			       struct frag_err *err)
{
	static int calls;

	if (++calls == number("INTERRUPT_AT", 0))
		raise(number("INTERRUPT_WITH", SIGINT));
	return alloc(self, req, out, err);
}

const struct frag_policy_ops frag_policy_external = {
	.name = "stop",
	.summary = "one cudaMalloc per request, and an interruption",
	MINE_TABLE,
	.opts = tuned,
	.create = create_and_stop,
	.alloc = alloc_and_interrupt,
	.free = release,
};
