/* SPDX-License-Identifier: Apache-2.0 */
/* `cufrag list policies`: text, Markdown and JSON, all from the policies' own tables. */
#include "list.h"

#include <string.h>

#include <frag/policy.h>

static bool wanted(const struct frag_policy_ops *ops, const struct frag_list_options *o)
{
	if (o->only)
		return !strcmp(ops->name, o->only);
	return o->all || !(ops->flags & FRAG_POLICY_HIDDEN);
}

/* The default of an option as it would be typed. */
static void default_text(const struct frag_opt *opt, char *buf, size_t cap)
{
	/* the default is formatted from a params block of one field */
	struct frag_opt one[2] = { *opt, FRAG_OPT_END };
	union {
		uint64_t number;
		double real;
		char text[FRAG_OPT_STRING_MAX];
	} value;

	one[0].offset = 0;
	frag_opt_defaults(one, &value);
	frag_opt_format(one, &value, buf, cap);
}

/* One row per option. */
static void option_rows(struct frag_table *t, const struct frag_opt *opts, bool markdown)
{
	const char *tick = markdown ? "`" : "";
	char text[FRAG_OPT_STRING_MAX + 2], range[256];

	for (const struct frag_opt *o = opts; o && o->type != FRAG_OPT_T_END; o++) {
		default_text(o, text, sizeof(text));
		frag_opt_range(o, range, sizeof(range));
		frag_table_cell(t, "%s%s%s", tick, o->key, tick);
		frag_table_cell(t, "%s", frag_opt_type_name(o->type));
		frag_table_cell(t, "%s", *range ? range : "any");
		frag_table_cell(t, "%s", *text ? text : "-");
		frag_table_cell(t, "%s", o->help);
	}
}

static int option_table(const struct frag_policy_ops *ops, bool markdown, struct frag_err *err)
{
	static const char *const heads[] = { "option", "type", "range", "default", "meaning" };
	static const char *const spare[] = { "range", "type", NULL };
	FRAG_AUTO(frag_table_release) struct frag_table t = { 0 };

	if (!ops->opts || ops->opts->type == FRAG_OPT_T_END)
		return 0;
	frag_list_heads(&t, FRAG_ARRAY_LEN(heads), 0, heads);
	t.spare = spare;
	option_rows(&t, ops->opts, markdown);
	return markdown ? frag_list_markdown(&t, err) : frag_list_print(&t, 4, err);
}

static void flags_text(const struct frag_policy_ops *ops, char *buf, size_t cap)
{
	snprintf(buf, cap, "%s%s%s%s%s",
		 ops->flags & FRAG_POLICY_ADAPTOR ? "; wraps another policy" : "",
		 ops->flags & FRAG_POLICY_STACK ? "; frees in reverse order of allocs only" : "",
		 ops->flags & FRAG_POLICY_LINEAR ? "; time linear in the number of blocks" : "",
		 ops->flags & FRAG_POLICY_FOREIGN_SYNC ? "; has its own rule across streams" : "",
		 ops->flags & FRAG_POLICY_HIDDEN ? "; hidden" : "");
}

static int print_policy(const struct frag_policy_ops *ops, bool color, struct frag_err *err)
{
	char needs[120], flags[200];

	frag_policy_needs_text(ops->needs, needs, sizeof(needs));
	flags_text(ops, flags, sizeof(flags));
	printf("%s%s%s: %s\n    source: %s\n    needs: %s%s\n", frag_term_style(color, "bold"),
	       ops->name, frag_term_style(color, "off"), ops->summary, ops->source,
	       *needs ? needs : "nothing", flags);
	if (ops->trims)
		printf("    trim gives back: %s\n", ops->trims);
	if (ops->checked)
		printf("    checked against: %s\n", ops->checked);
	return option_table(ops, false, err);
}

static int markdown_policy(const struct frag_policy_ops *ops, struct frag_err *err)
{
	char needs[120], flags[200];

	frag_policy_needs_text(ops->needs, needs, sizeof(needs));
	flags_text(ops, flags, sizeof(flags));
	printf("\n### %s\n\n%c%s. Source: %s. Needs: %s%s.\n\n", ops->name,
	       ops->summary[0] >= 'a' && ops->summary[0] <= 'z' ? ops->summary[0] - 32
								: ops->summary[0],
	       ops->summary + 1, ops->source, *needs ? needs : "nothing", flags);
	if (ops->trims)
		printf("Trim gives back: %s.%s", ops->trims, ops->checked ? " " : "\n\n");
	if (ops->checked)
		printf("Checked against: %s.\n\n", ops->checked);
	if (!ops->opts || ops->opts->type == FRAG_OPT_T_END)
		puts("No options.");
	return option_table(ops, true, err);
}

/* Name, summary, source and needs of all on one page. */
static int markdown_overview(const struct frag_list_options *o, struct frag_err *err)
{
	static const char *const heads[] = { "policy", "what it does", "rules from", "needs" };
	size_t n;
	const struct frag_policy_ops *const *list = frag_policy_list(&n);
	FRAG_AUTO(frag_table_release) struct frag_table t = { 0 };
	char needs[120];

	frag_list_heads(&t, FRAG_ARRAY_LEN(heads), 0, heads);
	for (size_t i = 0; i < n; i++) {
		if (!wanted(list[i], o))
			continue;
		frag_policy_needs_text(list[i]->needs, needs, sizeof(needs));
		frag_table_cell(&t, "[`%s`](#%s)", list[i]->name, list[i]->name);
		frag_table_cell(&t, "%s", list[i]->summary);
		frag_table_cell(&t, "%s", list[i]->source);
		frag_table_cell(&t, "%s", *needs ? needs : "nothing");
	}
	return frag_list_markdown(&t, err);
}

static void print_short_names(bool markdown)
{
	const struct frag_policy_ops *ops;
	const char *name, *options;

	puts(markdown ? "\nShort names:\n" : "\nshort names:");
	for (size_t i = 0; (name = frag_policy_short(i, &ops, &options)); i++)
		printf(markdown ? "* `%s` is `%s%s%s`\n" : "    %-10s  %s%s%s\n", name, ops->name,
		       *options ? ":" : "", options);
}

int frag_list_policies(const struct frag_cli *cli, const struct frag_list_options *o,
		       struct frag_err *err)
{
	bool color = frag_term_color(cli->color, stdout), first = true;
	size_t n;
	const struct frag_policy_ops *const *list = frag_policy_list(&n);

	if (o->markdown && !o->only) {
		FRAG_TRY(markdown_overview(o, err));
		print_short_names(true);
	}
	for (size_t i = 0; i < n; i++) {
		if (!wanted(list[i], o))
			continue;
		if (!first && !o->markdown)
			putchar('\n');
		first = false;
		FRAG_TRY(o->markdown ? markdown_policy(list[i], err)
				     : print_policy(list[i], color, err));
	}
	if (!o->markdown && !o->only)
		print_short_names(false);
	return 0;
}

static json_t *option_json(const struct frag_opt *o)
{
	char text[FRAG_OPT_STRING_MAX + 2], range[256];

	default_text(o, text, sizeof(text));
	frag_opt_range(o, range, sizeof(range));
	return json_pack("{s:s, s:s, s:s, s:s, s:s}", "key", o->key, "type",
			 frag_opt_type_name(o->type), "range", range, "default", text, "help",
			 o->help);
}

static json_t *policy_json(const struct frag_policy_ops *ops)
{
	static const struct {
		uint32_t bit;
		const char *name;
	} caps[] = { { FRAG_CAN_MALLOC, "malloc" },
		     { FRAG_CAN_VMM, "vmm" },
		     { FRAG_CAN_ASYNC, "async" },
		     { FRAG_CAN_MANAGED, "managed" } };
	json_t *opts = json_array(), *needs = json_array();

	for (const struct frag_opt *o = ops->opts; o && o->type != FRAG_OPT_T_END; o++)
		json_array_append_new(opts, option_json(o));
	for (size_t i = 0; i < FRAG_ARRAY_LEN(caps); i++)
		if (ops->needs & caps[i].bit)
			json_array_append_new(needs, json_string(caps[i].name));
	return json_pack("{s:s, s:s, s:s, s:s?, s:s?, s:o, s:b, s:b, s:o}", "name", ops->name,
			 "summary", ops->summary, "source", ops->source, "trims", ops->trims,
			 "checked", ops->checked, "needs", needs, "adaptor",
			 !!(ops->flags & FRAG_POLICY_ADAPTOR), "linear",
			 !!(ops->flags & FRAG_POLICY_LINEAR), "options", opts);
}

json_t *frag_list_policies_json(const struct frag_list_options *o)
{
	size_t n;
	const struct frag_policy_ops *const *list = frag_policy_list(&n);
	json_t *all = json_array();

	for (size_t i = 0; i < n; i++)
		if (wanted(list[i], o))
			json_array_append_new(all, policy_json(list[i]));
	return all;
}
