/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The built-in policies. make writes gen/policy_list.inc with one FRAG_ENTRY(<file>) per
 * policies/<file>.c; it is included twice, for the externs and for the table. The table is sorted
 * by name once, because '_' in a file name and '-' in a policy name sort differently.
 */
#include "spec.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/args.h"

#ifndef FRAG_POLICY_LIST /* a test may bring its own */
#define FRAG_POLICY_LIST "policy_list.inc"
#endif

#define FRAG_ENTRY(file) extern const struct frag_policy_ops frag_policy_##file;
#include FRAG_POLICY_LIST
#undef FRAG_ENTRY

static const struct frag_policy_ops *table[] = {
#define FRAG_ENTRY(file) &frag_policy_##file,
#include FRAG_POLICY_LIST
#undef FRAG_ENTRY
	NULL
};
#define TABLE_COUNT (FRAG_ARRAY_LEN(table) - 1)
#define ALIASES_MAX 32 /* most policies, for "did you mean" */

const char *frag_class_name(enum frag_class cls)
{
	static const char *const names[] = {
#define FRAG_X_(name, text) text,
		FRAG_CLASS_LIST(FRAG_X_)
#undef FRAG_X_
	};

	return (unsigned)cls < FRAG_CLASS_COUNT ? names[cls] : "?";
}

FRAG_COMPARE(by_name, const struct frag_policy_ops *, strcmp((*x)->name, (*y)->name))

static void sort_table(void)
{
	qsort(table, TABLE_COUNT, sizeof(table[0]), by_name);
}

const struct frag_policy_ops *const *frag_policy_list(size_t *count)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, sort_table);
	*count = TABLE_COUNT;
	return table;
}

/* '_' and '-' mean the same in a name. */
static bool same_name(const char *name, const char *typed)
{
	for (; *name && *typed; name++, typed++)
		if (*name != (*typed == '_' ? '-' : *typed))
			return false;
	return *name == *typed;
}

const struct frag_policy_ops *frag_policy_find(const char *name)
{
	size_t n;
	const struct frag_policy_ops *const *list = frag_policy_list(&n);

	for (size_t i = 0; i < n; i++)
		if (same_name(list[i]->name, name))
			return list[i];
	return NULL;
}

const char *frag_policy_short(size_t i, const struct frag_policy_ops **ops, const char **options)
{
	size_t n;
	const struct frag_policy_ops *const *list = frag_policy_list(&n);

	for (size_t k = 0; k < n; k++) {
		for (const struct frag_policy_alias *a = list[k]->aliases; a && a->name; a++) {
			if (i--)
				continue;
			*ops = list[k];
			*options = a->options;
			return a->name;
		}
	}
	return NULL;
}

int frag_policy_unknown(const char *name, struct frag_err *err)
{
	const char *words[TABLE_COUNT + ALIASES_MAX + 1], *alias, *options;
	size_t count, n = 0;
	const struct frag_policy_ops *const *list = frag_policy_list(&count), *ops;

	for (size_t i = 0; i < count; i++)
		if (!(list[i]->flags & FRAG_POLICY_HIDDEN))
			words[n++] = list[i]->name;
	for (size_t i = 0; i < ALIASES_MAX && (alias = frag_policy_short(i, &ops, &options)); i++)
		words[n++] = alias;
	words[n] = NULL;
	return frag_fail_unknown(err, "unknown policy", name, words, " (cufrag list policies)");
}

static bool proper_name(const char *name)
{
	return name && *name && !name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-")];
}

int frag_policy_ops_check(const struct frag_policy_ops *ops, struct frag_err *err)
{
	struct frag_err detail = { 0 };

	/* checks the ABI first, because another ABI changes the meaning of all other fields */
	if (ops->abi != FRAG_POLICY_ABI)
		return frag_fail(err, FRAG_ECHECK, "policy has ABI %u, this program has ABI %u",
				 ops->abi, FRAG_POLICY_ABI);
	if (!proper_name(ops->name))
		return frag_fail(err, FRAG_ECHECK, "a policy has no valid name (a-z, 0-9, -)");
	if (!ops->summary || !*ops->summary || !ops->source || !*ops->source)
		return frag_fail(err, FRAG_ECHECK, "policy '%s' lacks its summary or its source",
				 ops->name);
	if (!ops->create || !ops->destroy || !ops->alloc || !ops->free)
		return frag_fail(err, FRAG_ECHECK,
				 "policy '%s' lacks create, destroy, alloc or free", ops->name);
	if (!ops->visit && !(ops->flags & FRAG_POLICY_NO_MEMORY))
		return frag_fail(err, FRAG_ECHECK, "policy '%s' lacks visit", ops->name);
	if (!ops->conf != !ops->conf_variable || (ops->conf && !ops->parse))
		return frag_fail(err, FRAG_ECHECK,
				 "policy '%s' has conf, conf_variable or parse without the others",
				 ops->name);
	if ((ops->flags & FRAG_POLICY_PLANNED) && !frag_opt_find(ops->opts, "plan"))
		return frag_fail(err, FRAG_ECHECK, "policy '%s' has no option for its plan",
				 ops->name);
	if (frag_opt_check(ops->opts, ops->params_size, &detail))
		return frag_fail(err, FRAG_ECHECK, "policy '%s': %s", ops->name, detail.msg);
	return 0;
}

size_t frag_policy_needs_text(uint32_t needs, char *buf, size_t cap)
{
	static const struct {
		uint32_t bit;
		const char *text;
	} names[] = {
		{ FRAG_CAN_MALLOC, "cudaMalloc" },
		{ FRAG_CAN_VMM, "virtual memory management" },
		{ FRAG_CAN_ASYNC, "memory pools" },
		{ FRAG_CAN_MANAGED, "managed memory" },
	};
	size_t used = 0;

	if (cap)
		buf[0] = '\0';
	for (size_t i = 0; i < FRAG_ARRAY_LEN(names); i++) {
		size_t at = FRAG_MIN(used, cap);

		if (needs & names[i].bit)
			used += (size_t)snprintf(cap ? buf + at : NULL, cap - at, "%s%s",
						 used ? ", " : "", names[i].text);
	}
	return used;
}
