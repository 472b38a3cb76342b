/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of `cufrag list` on standard output: aligned, or as Markdown. */
#include "list.h"

#include <string.h>

#include "base/term.h"

void frag_list_heads(struct frag_table *t, size_t count, unsigned right, const char *const *names)
{
	*t = (struct frag_table){ .wraps = true };
	for (size_t i = 0; i < count; i++)
		frag_table_column(t, &(struct frag_table_column){ .head = names[i],
								  .unit = "",
								  .left = !(right >> i & 1) });
}

int frag_list_print(const struct frag_table *list, unsigned indent, struct frag_err *err)
{
	FRAG_AUTO(frag_text_release) struct frag_text text = { 0 };
	struct frag_table t = *list;
	size_t room = frag_term_room(stdout);

	t.room = room > indent ? room - indent : 0;
	frag_table_print(&t, &text);
	FRAG_TRY(frag_text_check(&text, err));
	for (const char *line = frag_text_str(&text); *line;) {
		size_t n = strcspn(line, "\n");

		printf("%*s%.*s\n", (int)indent, "", (int)n, line);
		line += n + (line[n] == '\n');
	}
	return 0;
}

static void markdown_cell(const char *s)
{
	for (; *s; s++) {
		if (*s == '|')
			putchar('\\');
		putchar(*s);
	}
}

int frag_list_markdown(const struct frag_table *t, struct frag_err *err)
{
	const char *cell = frag_text_str(&t->cells);

	FRAG_TRY(frag_text_check(&t->cells, err));
	for (size_t c = 0; c < t->columns_count; c++)
		printf("%s%s", c ? " | " : "| ", t->columns[c].head);
	puts(" |");
	for (size_t c = 0; c < t->columns_count; c++)
		fputs(t->columns[c].left ? "|---" : "|---:", stdout);
	puts("|");
	for (size_t i = 0; i < t->cells_count; i++, cell += strlen(cell) + 1) {
		size_t c = i % t->columns_count;

		fputs(c ? " | " : "| ", stdout);
		markdown_cell(cell);
		if (c + 1 == t->columns_count)
			puts(" |");
	}
	return 0;
}
