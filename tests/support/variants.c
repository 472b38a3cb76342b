/* SPDX-License-Identifier: Apache-2.0 */
/* Policy texts from the registry, and the tests of each. */
#include "variants.h"

#include <frag/policy.h>

/* What adaptors wrap: PyTorch's allocator, or the first policy there is. */
static const char *inner_name(void)
{
	size_t n;
	const struct frag_policy_ops *const *list = frag_policy_list(&n);

	if (frag_policy_find("pytorch"))
		return "pytorch";
	for (size_t i = 0; i < n; i++)
		if (!(list[i]->flags & (FRAG_POLICY_ADAPTOR | FRAG_POLICY_STACK)))
			return list[i]->name;
	return "none";
}

/* What is tested now. */
static const char *test_name;
static CMUnitTestFunction test_run;

/* key: "" or of an option. Texts that the policy's own rules refuse are left out. */
static void add(const struct frag_policy_ops *ops, const char *key, const char *value)
{
	/* CONFORMANCE=buddy: only texts that begin so */
	const char *only = getenv("CONFORMANCE");
	bool adaptor = ops->flags & FRAG_POLICY_ADAPTOR;
	struct frag_policy_spec *spec;
	char *text;

	if (asprintf(&text, "%s%s%s%s%s%s%s", ops->name, *key ? ":" : "", key, *key ? "=" : "",
		     value, adaptor ? "/" : "", adaptor ? inner_name() : "") < 0)
		abort();
	if (!frag_policy_spec_parse(text, &spec, &test_err)) {
		frag_policy_spec_destroy(spec);
		if (!only || !strncmp(text, only, strlen(only))) {
			test_add(test_run, text, "%s: %s", text, test_name);
			return;
		}
	} else if (!*key) {
		print_error("'%s': %s\n", text, test_err.msg);
		abort();
	}
	free(text);
}

static void add_option(const struct frag_policy_ops *ops, const struct frag_opt *o)
{
	if (o->type == FRAG_OPT_T_BOOL)
		add(ops, o->key, o->def ? "false" : "true");
	for (uint64_t i = 0; o->type == FRAG_OPT_T_ENUM && o->words[i]; i++)
		if (i != o->def)
			add(ops, o->key, o->words[i]);
}

void conformance_add(const char *name, CMUnitTestFunction run, bool all)
{
	size_t n;
	const struct frag_policy_ops *const *list = frag_policy_list(&n);

	test_name = name;
	test_run = run;
	for (size_t i = 0; i < n; i++) {
		add(list[i], "", "");
		for (const struct frag_opt *o = list[i]->opts;
		     all && o && o->type != FRAG_OPT_T_END; o++)
			add_option(list[i], o);
	}
	/* under these it does more than with its defaults */
	if (all && frag_policy_find("vmm"))
		add(frag_policy_find("vmm"), "piece",
		    "2M,max-page=2M,small-limit=512,slack=0,slack-bytes=0,coarse=1000000");
}
