/* SPDX-License-Identifier: Apache-2.0 */
/* An answer as Markdown, for docs/. */
#include "answer.h"

#include <string.h>

#include "table.h"

static void add_cell(const struct frag_field *f, const void *row, struct frag_text *out)
{
	FRAG_AUTO(frag_text_release) struct frag_text cell = { 0 }, clean = { 0 };

	frag_field_text(f, row, &cell);
	out->failed |= cell.failed;
	frag_text_add_clean(&clean, frag_text_str(&cell), strlen(frag_text_str(&cell)));
	out->failed |= clean.failed;
	for (const char *p = frag_text_str(&clean); *p; p++) {
		frag_text_add(out, *p == '|' ? "\\" : *p == '\n' ? " " : "");
		frag_text_addn(out, p, *p != '\n');
	}
}

static void add_table(const struct frag_part *part, struct frag_text *out)
{
	struct frag_field columns[FRAG_TABLE_COLUMNS];
	size_t count = frag_part_columns(part, true, columns);

	for (size_t c = 0; c < count; c++)
		frag_text_addf(out, "%s%s%s%s%s", c ? " | " : "| ", columns[c].head,
			       columns[c].unit ? " (" : "", columns[c].unit ? columns[c].unit : "",
			       columns[c].unit ? ")" : "");
	frag_text_add(out, " |\n");
	for (size_t c = 0; c < count; c++)
		frag_text_add(out, frag_field_left(&columns[c]) ? "|---" : "|---:");
	frag_text_add(out, "|\n");
	for (size_t i = 0; i < frag_part_shown(part); i++) {
		for (size_t c = 0; c < count; c++) {
			frag_text_add(out, c ? " | " : "| ");
			add_cell(&columns[c], frag_part_row(part, i), out);
		}
		frag_text_add(out, " |\n");
	}
}

/* What a part is between. */
static const struct {
	const char *before, *after;
} around[] = {
	[FRAG_PART_HEADING] = { "\n### ", "\n\n" }, [FRAG_PART_ITEM] = { "* ", "\n" },
	[FRAG_PART_REMARK] = { "", "\n\n" },	    [FRAG_PART_SAY] = { "", "\n\n" },
	[FRAG_PART_WARN] = { "", "\n\n" },	    [FRAG_PART_CONCLUSION] = { "", "\n\n" },
	[FRAG_PART_VERDICT] = { "", "\n\n" },	    [FRAG_PART_PASTE] = { "    ", "\n" },
	[FRAG_PART_GAP] = { NULL, NULL },
};

static void add_part(const struct frag_part *part, struct frag_text *out)
{
	if (around[part->kind].before) {
		frag_text_add(out, around[part->kind].before);
		frag_text_add_clean(out, part->text, strlen(part->text));
		frag_text_add(out, around[part->kind].after);
	}
	if (part->kind != FRAG_PART_TABLE)
		return;
	frag_text_add(out, part->indent ? "\n" : "");
	add_table(part, out);
}

int frag_answer_markdown(const struct frag_answer *a, struct frag_text *out, struct frag_err *err)
{
	FRAG_CHECK_ALLOC(!a->failed, "answer", err);
	for (size_t i = 0; i < a->parts_count; i++)
		if (!a->parts[i].text_only)
			add_part(&a->parts[i], out);
	return frag_text_check(out, err);
}
