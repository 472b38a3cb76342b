/* SPDX-License-Identifier: Apache-2.0 */
/* The policy of external.c, whose third allocation does what the environment's LIE says. */
#include <stdlib.h>
#include <string.h>

#define MINE_ONLY
#include "external.c"

static unsigned calls;
static struct frag_block first;

static int lie(struct frag_block *out)
{
	const char *how = getenv("LIE");

	if (!how)
		return 0;
	if (!strcmp(how, "code"))
		return 77;
	if (!strcmp(how, "negative"))
		return -5;
	if (!strcmp(how, "silent"))
		return FRAG_EDEVICE;
	if (!strcmp(how, "class"))
		out->cls = 200;
	else if (!strcmp(how, "overlap"))
		out->addr = first.addr;
	else if (!strcmp(how, "short"))
		out->granted = 1;
	else if (!strcmp(how, "long"))
		out->granted = 1ull << 50;
	else if (!strcmp(how, "endless"))
		out->granted = UINT64_MAX;
	return 0;
}

static int alloc_and_lie(void *self, const struct frag_request *req, struct frag_block *out,
			 struct frag_err *err)
{
	FRAG_TRY(alloc(self, req, out, err));
	if (!calls)
		first = *out;
	return ++calls == 3 ? lie(out) : 0;
}

static int free_and_lie(void *self, const struct frag_block *block, struct frag_err *err)
{
	const char *how = getenv("LIE");

	FRAG_TRY(release(self, block, err));
	return how && !strcmp(how, "free") ? FRAG_OOM : 0;
}

const struct frag_policy_ops frag_policy_external = {
	.name = "liar",
	.summary = "one cudaMalloc per request, and a lie",
	MINE_TABLE,
	.opts = opts,
	.create = create,
	.alloc = alloc_and_lie,
	.free = free_and_lie,
};
