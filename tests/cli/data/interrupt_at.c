/* SPDX-License-Identifier: Apache-2.0 */
/* The policy of external.c; at its tenth allocation it is as if Ctrl-C were pressed. It goes on. */
#include <signal.h>
#include <stdlib.h>

#define MINE_ONLY
#include "external.c"

static int alloc_and_interrupt(void *self, const struct frag_request *req, struct frag_block *out,
			       struct frag_err *err)
{
	const char *with = getenv("INTERRUPT_WITH"); /* a number; none: SIGINT */
	static int calls;

	if (++calls == 10)
		raise(with ? atoi(with) : SIGINT);
	return alloc(self, req, out, err);
}

const struct frag_policy_ops frag_policy_external = {
	.name = "interrupt",
	.summary = "one cudaMalloc per request, and an interruption",
	MINE_TABLE,
	.opts = opts,
	.create = create,
	.alloc = alloc_and_interrupt,
	.free = release,
};
