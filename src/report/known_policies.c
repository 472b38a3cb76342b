/* SPDX-License-Identifier: Apache-2.0 */
/* Policies and their options, from the policies' own tables; see known_things.h. */
#include "known_things.h"

#include <string.h>

#include <frag/policy.h>

struct option_row {
	const char *key, *type, *range, *shown, *def, *help;
};

static const struct frag_field option_fields[] = {
	FRAG_FIELD(TEXT, struct option_row, key, "option", "as it is written"),
	FRAG_FIELD(TEXT, struct option_row, type, "type",
		   "bytes, integer, number, bool, word or text", .spare = 2),
	FRAG_FIELD(TEXT, struct option_row, range, NULL, "values it takes; empty = any"),
	FRAG_FIELD_SHOWN(TEXT, struct option_row, shown, "range", "values it takes", .spare = 1),
	FRAG_FIELD_AS(TEXT, "default", struct option_row, def, "default",
		      "the value as on the command line"),
	FRAG_FIELD(TEXT, struct option_row, help, "meaning", "what it does"),
	FRAG_FIELD_END,
};
static const struct frag_shape option_shape =
	FRAG_SHAPE("option", struct option_row, option_fields, "an option of a policy");

/* the heads are those of the overview of docs/policies.md */
#define POLICY(F, P, S) \
	F(S, TEXT, name, ops->name, "policy", "as --policy takes it") \
	F(S, TEXT, summary, ops->summary, "what it does", "in one line") \
	F(S, TEXT, source, ops->source, "rules from", "where its rules come from") \
	F(S, TEXT, trims, ops->trims, NULL, "memory that a trim gives back") \
	F(S, TEXT, checked, ops->checked, NULL, "what it was checked against") \
	F(S, TEXTS, needs, needs_of(a, ops->needs), NULL, \
	  "kinds of memory that the device must serve") \
	P(S, TEXT, needs_text, needs_text(a, ops->needs), "needs", "kinds of memory") \
	F(S, BOOL, adaptor, (ops->flags & FRAG_POLICY_ADAPTOR), NULL, "wraps another policy") \
	F(S, BOOL, linear, (ops->flags & FRAG_POLICY_LINEAR), NULL, \
	  "its time grows with the number of blocks") \
	F(S, LIST, options, option_rows(a, ops->opts), NULL, "its options", .of = &option_shape)
FRAG_VALUED_ROW_AS(, frag_known_policy_shape, policy_row, "policy", POLICY, "an allocation policy");

#define SHORT(F, P, S) \
	F(S, TEXT, name, "short name", "of a policy with options") \
	F(S, TEXT, policy, "stands for", "the policy with its options")
FRAG_ROW_AS(, frag_known_short_shape, short_row, "short_name", SHORT, "a short name of a policy");

static struct frag_rows option_rows(struct frag_answer *a, const struct frag_opt *opts)
{
	struct option_row *rows;
	size_t n = 0;

	while (opts && opts[n].type != FRAG_OPT_T_END)
		n++;
	rows = frag_answer_new(a, n, sizeof(*rows));
	for (size_t i = 0; rows && i < n; i++) {
		struct frag_opt one[2] = { FRAG_OPT_END, FRAG_OPT_END };
		char text[FRAG_OPT_STRING_MAX + 2], range[256];
		union {
			uint64_t number;
			double real;
			char text[FRAG_OPT_STRING_MAX];
		} value;

		/* the default as it would be typed: of a params block of one field */
		one[0] = opts[i];
		one[0].offset = 0;
		frag_opt_defaults(one, &value);
		frag_opt_format(one, &value, text, sizeof(text));
		frag_opt_range(&opts[i], range, sizeof(range));
		rows[i] = (struct option_row){ .key = opts[i].key,
					       .type = frag_opt_type_name(opts[i].type),
					       .range = frag_answer_print(a, "%s", range),
					       .def = frag_answer_print(a, "%s", text),
					       .help = opts[i].help };
		rows[i].shown = *range ? rows[i].range : "any";
	}
	return (struct frag_rows){ rows, rows ? n : 0 };
}

static struct frag_rows needs_of(struct frag_answer *a, uint32_t needs)
{
	static const struct {
		uint32_t bit;
		const char *name;
	} kinds[] = { { FRAG_CAN_MALLOC, "malloc" },
		      { FRAG_CAN_VMM, "vmm" },
		      { FRAG_CAN_ASYNC, "async" },
		      { FRAG_CAN_MANAGED, "managed" } };
	const char **names = frag_answer_new(a, FRAG_ARRAY_LEN(kinds), sizeof(*names));
	size_t n = 0;

	for (size_t i = 0; names && i < FRAG_ARRAY_LEN(kinds); i++)
		if (needs & kinds[i].bit)
			names[n++] = kinds[i].name;
	return (struct frag_rows){ names, n };
}

static const char *needs_text(struct frag_answer *a, uint32_t needs)
{
	char text[120];

	frag_policy_needs_text(needs, text, sizeof(text));
	return frag_answer_print(a, "%s", *text ? text : "nothing");
}

/* "pytorch: what it does", facts, the table of options. */
static void show(struct frag_answer *a, const struct frag_policy_ops *ops,
		 const struct policy_row *row)
{
	static const struct {
		uint32_t flag;
		const char *text;
	} flags[] = {
		{ FRAG_POLICY_ADAPTOR, "wraps another policy" },
		{ FRAG_POLICY_STACK, "frees in reverse order of allocs only" },
		{ FRAG_POLICY_LINEAR, "time grows with the number of blocks" },
		{ FRAG_POLICY_FOREIGN_SYNC, "has a rule of its own across streams" },
		{ FRAG_POLICY_HIDDEN, "hidden" },
	};
	FRAG_AUTO(frag_text_release) struct frag_text needs = { 0 };

	frag_text_add(&needs, row->needs_text);
	for (size_t i = 0; i < FRAG_ARRAY_LEN(flags); i++)
		if (ops->flags & flags[i].flag)
			frag_text_addf(&needs, "; %s", flags[i].text);
	a->failed |= needs.failed;
	frag_answer_heading(a, "%s", ops->name);
	frag_answer_item(a, "what it does: %s", ops->summary);
	frag_answer_item(a, "source: %s", ops->source);
	frag_answer_item(a, "needs: %s", frag_text_str(&needs));
	if (ops->trims)
		frag_answer_item(a, "trim gives back: %s", ops->trims);
	if (ops->checked)
		frag_answer_item(a, "checked against: %s", ops->checked);
	if (row->options.count) {
		struct frag_part *table =
			frag_answer_table(a, &option_shape, row->options.rows, row->options.count);

		table->indent = 4;
		table->wraps = true;
	}
}

static void show_short_names(struct frag_answer *a, struct frag_known *known)
{
	const struct frag_policy_ops *ops;
	const char *name, *options;
	struct short_row *rows;
	size_t n = 0;

	while (frag_policy_short(n, &ops, &options))
		n++;
	rows = frag_answer_new(a, n, sizeof(*rows));
	for (size_t i = 0; rows && i < n && (name = frag_policy_short(i, &ops, &options)); i++)
		rows[i] =
			(struct short_row){ name, frag_answer_print(a, "%s%s%s", ops->name,
								    *options ? ":" : "", options) };
	known->short_names = (struct frag_rows){ rows, rows ? n : 0 };
	frag_answer_heading(a, "short names");
	frag_answer_table(a, &frag_known_short_shape, rows, known->short_names.count)->indent = 4;
}

int frag_known_policies(struct frag_answer *a, struct frag_known *known, const char *only,
			bool hidden, struct frag_err *err)
{
	size_t n, shown = 0;
	const struct frag_policy_ops *const *list = frag_policy_list(&n);
	struct policy_row *rows = frag_answer_new(a, n, sizeof(*rows));
	const struct frag_policy_ops *ops;

	FRAG_CHECK_ALLOC(rows, "list of policies", err);
	/* an overview, which text does without */
	if (!only)
		frag_answer_table(a, &frag_known_policy_shape, rows, 0)->page_only = true;
	for (size_t i = 0; i < n; i++) {
		if (only ? strcmp(list[i]->name, only) != 0
			 : list[i]->flags & FRAG_POLICY_HIDDEN && !hidden)
			continue;
		ops = list[i];
		rows[shown] = FRAG_ROW_VALUES(policy_row, POLICY);
		show(a, ops, &rows[shown++]);
	}
	if (!only)
		a->parts[0].rows.count = shown;
	known->policies = (struct frag_rows){ rows, shown };
	frag_answer_csv(a, &frag_known_policy_shape, rows, shown);
	if (!only)
		show_short_names(a, known);
	return a->failed ? frag_fail_nomem(err, "list of policies") : 0;
}
