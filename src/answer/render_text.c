/* SPDX-License-Identifier: Apache-2.0 */
/* An answer as text for a terminal: sentences are broken between words where the terminal ends. */
#include "answer.h"

#include <string.h>

#include "base/term.h"
#include "table.h"

static void add_table(const struct frag_part *part, unsigned columns, struct frag_text *out)
{
	FRAG_AUTO(frag_text_release) struct frag_text t = { 0 };

	if (part->rows.count)
		frag_part_print(part, columns > part->indent ? columns - part->indent : columns,
				&t);
	out->failed |= t.failed;
	for (const char *line = frag_text_str(&t); *line;) {
		size_t n = strcspn(line, "\n");

		frag_text_repeat(out, " ", n ? part->indent : 0);
		frag_text_add_clean(out, line, n + (line[n] == '\n'));
		line += n + (line[n] == '\n');
	}
	if (frag_part_shown(part) < part->rows.count)
		frag_text_addf(out, "and %zu more\n", part->rows.count - frag_part_shown(part));
}

/* Heading and value of each field that is there; a value of several lines stays in its column. */
static void add_facts(const struct frag_part *part, unsigned columns, struct frag_text *out)
{
	struct frag_field fields[FRAG_TABLE_COLUMNS];
	size_t count = frag_part_columns(part, false, fields), width = 0;

	for (size_t i = 0; i < count; i++)
		width = FRAG_MAX(width, frag_text_width(fields[i].head));
	for (size_t i = 0; i < count; i++) {
		FRAG_AUTO(frag_text_release)
		struct frag_text first = { 0 }, rest = { 0 }, value = { 0 };

		if (!frag_part_fact(part, &fields[i], &value))
			continue;
		frag_text_repeat(&first, " ", part->indent);
		frag_text_add(&first, fields[i].head);
		frag_text_repeat(&first, " ", width + 2 - frag_text_width(fields[i].head));
		frag_text_repeat(&rest, " ", part->indent + width + 2);
		out->failed |= first.failed || rest.failed || value.failed;
		frag_text_add_lines(out, frag_text_str(&first), frag_text_str(&rest),
				    frag_text_str(&value), columns);
	}
}

/* What the first line of a sentence begins with, and those that follow. */
static const struct {
	const char *first, *rest;
} margins[] = {
	[FRAG_PART_REMARK] = { "# ", "# " },
	[FRAG_PART_SAY] = { "", "" },
	[FRAG_PART_WARN] = { "", "" },
	[FRAG_PART_CONCLUSION] = { "answer: ", "  " },
	[FRAG_PART_VERDICT] = { "verdict: ", "  " },
	[FRAG_PART_ITEM] = { "  ", "    " },
	[FRAG_PART_WORD] = { NULL, NULL },
};

static void add_part(const struct frag_part *part, unsigned columns, bool color,
		     struct frag_text *out)
{
	FRAG_AUTO(frag_text_release) struct frag_text lines = { 0 };

	switch (part->kind) {
	case FRAG_PART_PASTE:
		frag_text_add_clean(out, part->label, strlen(part->label));
		frag_text_add(out, *part->label ? ": " : "    ");
		frag_text_add_clean(out, part->text, strlen(part->text));
		frag_text_add(out, "\n");
		break;
	case FRAG_PART_HEADING:
		frag_text_add_lines(&lines, "", "", part->text, columns);
		out->failed |= lines.failed;
		frag_text_add(out, out->len ? "\n" : "");
		frag_text_add(out, color ? "\033[1m" : "");
		frag_text_addn(out, frag_text_str(&lines), lines.len ? lines.len - 1 : 0);
		frag_text_addf(out, "%s\n", color ? "\033[0m" : "");
		break;
	case FRAG_PART_TABLE:
		add_table(part, columns, out);
		break;
	case FRAG_PART_FACTS:
		add_facts(part, columns, out);
		break;
	case FRAG_PART_GAP:
		frag_text_add(out, "\n");
		break;
	default: /* pages alone have the others */
		if (margins[part->kind].first)
			frag_text_add_lines(out, margins[part->kind].first,
					    margins[part->kind].rest, part->text, columns);
	}
}

/* What is left with --brief. */
static const unsigned brief = 1u << FRAG_PART_CONCLUSION | 1u << FRAG_PART_VERDICT |
			      1u << FRAG_PART_WARN | 1u << FRAG_PART_PASTE;

int frag_answer_text(const struct frag_answer *a, unsigned columns, struct frag_text *out,
		     struct frag_err *err)
{
	FRAG_CHECK_ALLOC(!a->failed, "answer", err);
	for (size_t i = 0; i < a->parts_count; i++)
		if (!a->parts[i].page_only && (!a->brief || 1u << a->parts[i].kind & brief))
			add_part(&a->parts[i], columns, a->color, out);
	return frag_text_check(out, err);
}
