/* SPDX-License-Identifier: Apache-2.0 */
/* Rows as CSV (RFC 4180): exact integers, up to 15 digits, nothing for null. */
#include "answer.h"

#include <inttypes.h>

static const struct frag_field *next_column(const struct frag_field *f)
{
	while (!frag_field_ends(f) && (!f->name || f->no_csv || f->type == FRAG_FIELD_OBJECT ||
				       f->type == FRAG_FIELD_LIST || f->type == FRAG_FIELD_MAP ||
				       f->type == FRAG_FIELD_COUNTS))
		f++;
	return frag_field_ends(f) ? NULL : f;
}

void frag_shape_csv_head(const struct frag_shape *s, struct frag_text *out)
{
	const char *comma = "";

	for (const struct frag_field *f = next_column(s->fields); f; f = next_column(f + 1)) {
		frag_text_addf(out, "%s%s", comma, f->name);
		comma = ",";
	}
	frag_text_add(out, "\n");
}

static void add_value(const struct frag_field *f, const void *row, struct frag_text *out)
{
	const void *at = (const char *)row + f->offset;
	FRAG_AUTO(frag_text_release) struct frag_text all = { 0 };

	if (frag_field_is_null(f, row))
		return;
	switch (f->type) {
	case FRAG_FIELD_TEXT:
		frag_text_add_csv(out, *(const char *const *)at);
		break;
	case FRAG_FIELD_INT:
		frag_text_addf(out, "%" PRId64, *(const int64_t *)at);
		break;
	case FRAG_FIELD_RATIO:
	case FRAG_FIELD_REAL:
		frag_text_add_number(out, *(const double *)at);
		break;
	case FRAG_FIELD_BOOL:
		frag_text_add(out, *(const bool *)at ? "true" : "false");
		break;
	case FRAG_FIELD_TEXTS:
		frag_texts_add(at, " ", &all); /* one field, with blanks between them */
		out->failed |= all.failed;
		frag_text_add_csv(out, frag_text_str(&all));
		break;
	default:
		frag_text_addf(out, "%" PRIu64, *(const uint64_t *)at);
	}
}

void frag_shape_csv_row(const struct frag_shape *s, const void *row, struct frag_text *out)
{
	const char *comma = "";

	for (const struct frag_field *f = next_column(s->fields); f; f = next_column(f + 1)) {
		frag_text_add(out, comma);
		add_value(f, row, out);
		comma = ",";
	}
	frag_text_add(out, "\n");
}

void frag_shape_csv(const struct frag_shape *s, const void *rows, size_t count,
		    struct frag_text *out)
{
	frag_shape_csv_head(s, out);
	for (size_t i = 0; i < count; i++)
		frag_shape_csv_row(s, (const char *)rows + i * s->size, out);
}

int frag_answer_put_csv(const struct frag_answer *a, const char *path, struct frag_err *err)
{
	FRAG_AUTO(frag_text_release) struct frag_text out = { 0 };

	FRAG_CHECK_ALLOC(!a->failed, "CSV", err);
	if (a->csv)
		frag_shape_csv(a->csv, a->csv_rows.rows, a->csv_rows.count, &out);
	return frag_text_put(&out, path, err);
}
