/* SPDX-License-Identifier: Apache-2.0 */
/* Policy texts from the registry, and the cmocka array made of them. */
#include "variants.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <frag/policy.h>

struct list {
	struct variant *at;
	size_t count, cap;
};

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

/* options: "" or "key=value". Texts that the policy's own rules refuse are left out. */
static void add(struct list *l, const struct frag_policy_ops *ops, const char *options)
{
	struct frag_policy_spec *spec;
	struct variant v = { .plain = !*options };
	bool adaptor = ops->flags & FRAG_POLICY_ADAPTOR;
	struct frag_err err;
	int rc;

	snprintf(v.text, sizeof(v.text), "%s%s%s%s%s", ops->name, *options ? ":" : "", options,
		 adaptor ? "/" : "", adaptor ? inner_name() : "");
	rc = frag_policy_spec_parse(v.text, &spec, &err);
	if (rc && v.plain) {
		print_error("'%s': %s\n", v.text, err.msg);
		abort();
	}
	if (rc)
		return;
	frag_policy_spec_destroy(spec);
	if (l->count == l->cap) {
		l->cap = 2 * l->cap + 64;
		l->at = realloc(l->at, l->cap * sizeof(*l->at));
		if (!l->at)
			abort();
	}
	l->at[l->count++] = v;
}

static void add_option(struct list *l, const struct frag_policy_ops *ops, const struct frag_opt *o)
{
	char text[128];

	if (o->type == FRAG_OPT_T_BOOL) {
		snprintf(text, sizeof(text), "%s=%s", o->key, o->def ? "false" : "true");
		add(l, ops, text);
	}
	for (uint64_t i = 0; o->type == FRAG_OPT_T_ENUM && o->words[i]; i++) {
		if (i == o->def)
			continue;
		snprintf(text, sizeof(text), "%s=%s", o->key, o->words[i]);
		add(l, ops, text);
	}
}

/* Options of a policy under which it does more than with its defaults. */
static const struct {
	const char *name, *options;
} busier[] = {
	{ "vmm", "piece=2M,max-page=2M,small-limit=512,slack=0,slack-bytes=0,coarse=1000000" },
};

struct variant *variants_all(size_t *count)
{
	size_t n;
	const struct frag_policy_ops *const *list = frag_policy_list(&n);
	struct list l = { 0 };

	for (size_t i = 0; i < n; i++) {
		add(&l, list[i], "");
		for (const struct frag_opt *o = list[i]->opts; o && o->type != FRAG_OPT_T_END; o++)
			add_option(&l, list[i], o);
	}
	for (size_t i = 0; i < FRAG_ARRAY_LEN(busier); i++)
		if (frag_policy_find(busier[i].name))
			add(&l, frag_policy_find(busier[i].name), busier[i].options);
	*count = l.count;
	return l.at;
}

int conformance_run(const struct conformance_test *tests, size_t count)
{
	/* CONFORMANCE=buddy: only texts that begin so */
	const char *only = getenv("CONFORMANCE");
	size_t variants, n = 0;
	struct variant *v = variants_all(&variants);
	struct CMUnitTest *array = calloc(variants * count + 1, sizeof(*array));
	int failed;

	if (!array)
		abort();
	for (size_t i = 0; i < variants; i++) {
		if (only && strncmp(v[i].text, only, strlen(only)) != 0)
			continue;
		for (size_t t = 0; t < count; t++) {
			char *name;

			if (!v[i].plain && !tests[t].all)
				continue;
			if (asprintf(&name, "%s: %s", v[i].text, tests[t].name) < 0)
				abort();
			array[n++] = (struct CMUnitTest){ .name = name,
							  .test_func = tests[t].run,
							  .initial_state = v[i].text };
		}
	}
	failed = _cmocka_run_group_tests("policies", array, n, NULL, NULL);
	for (size_t i = 0; i < n; i++)
		free((char *)(uintptr_t)array[i].name);
	free(array);
	free(v);
	return failed;
}
