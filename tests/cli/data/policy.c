/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guide's policy with an option of another name. Its third allocation, and its frees, do what
 * LIE in the environment says. While it begins with round=2K, or at allocation number INTERRUPT_AT,
 * it is as if Ctrl-C were pressed (INTERRUPT_WITH: another signal, by its number); it goes on.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define frag_policy_external guide
#include "docs/external-policy/mine.c"
#undef frag_policy_external

static const struct frag_opt odd_opts[] = { { .key = "round",
					      .type = FRAG_OPT_T_BYTES,
					      .offset = offsetof(struct params, segment),
					      .def = 512,
					      .min = 1,
					      .max = 1 << 30,
					      .help = "segments are at least so large",
					      .tune = "1K,2K,4K,8K" },
					    FRAG_OPT_END };

static int number(const char *name, int otherwise)
{
	const char *text = getenv(name);

	return text ? atoi(text) : otherwise;
}

static int lies(const char *how)
{
	const char *lie = getenv("LIE");

	return lie && !strcmp(lie, how);
}

static int odd_create(const struct frag_policy_env *env, const void *params, void **out,
		      struct frag_err *err)
{
	if (((const struct params *)params)->segment == 2048)
		raise(SIGINT);
	return create(env, params, out, err);
}

static int odd_release(void *self, const struct frag_block *block, struct frag_err *err)
{
	FRAG_TRY(release(self, block, err));
	return lies("free") ? FRAG_OOM : 0;
}

static int lie(struct frag_block *out, frag_addr_t first)
{
	if (lies("code"))
		return 77;
	if (lies("negative"))
		return -5;
	if (lies("silent"))
		return FRAG_EDEVICE;
	if (lies("class"))
		out->cls = 200;
	else if (lies("overlap"))
		out->addr = first;
	else if (lies("short"))
		out->granted = 1;
	else if (lies("long"))
		out->granted = 1ull << 50;
	else if (lies("endless"))
		out->granted = UINT64_MAX;
	return 0;
}

static int odd_alloc(void *self, const struct frag_request *req, struct frag_block *out,
		     struct frag_err *err)
{
	static frag_addr_t first;
	static int calls;

	if (++calls == number("INTERRUPT_AT", 0))
		raise(number("INTERRUPT_WITH", SIGINT));
	FRAG_TRY(alloc(self, req, out, err));
	if (calls == 1)
		first = out->addr;
	return calls == 3 ? lie(out, first) : 0;
}

#ifdef WRONG_ABI
#define ABI (FRAG_POLICY_ABI + 1)
#else
#define ABI FRAG_POLICY_ABI
#endif

const struct frag_policy_ops frag_policy_external = {
	.abi = ABI,
	.name = "mine",
	.source = "tests of the command line",
	.summary = "first fit, or what LIE says",
	.needs = FRAG_CAN_MALLOC,
	.params_size = sizeof(struct params),
	.opts = odd_opts,
	.create = odd_create,
	.destroy = destroy,
	.alloc = odd_alloc,
	.free = odd_release,
	.free_requested = free_requested,
	.trim = trim,
	.visit = visit,
};
