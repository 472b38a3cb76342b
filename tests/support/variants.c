/* SPDX-License-Identifier: Apache-2.0 */
/* Policy texts from the registry, and the tests of each. */
#include "variants.h"

#include <frag/policy.h>

struct variant {
	char text[256];
	bool plain; /* the defaults */
};

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

static struct variant *variants_all(size_t *count)
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

void conformance_add(const char *name, CMUnitTestFunction run, bool all)
{
	/* CONFORMANCE=buddy: only texts that begin so */
	const char *only = getenv("CONFORMANCE");
	static struct variant *v;
	static size_t count;

	if (!v)
		v = variants_all(&count);
	for (size_t i = 0; i < count; i++)
		if ((all || v[i].plain) && (!only || !strncmp(v[i].text, only, strlen(only))))
			test_add(run, v[i].text, "%s: %s", v[i].text, name);
}
