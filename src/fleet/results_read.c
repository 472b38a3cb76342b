/* SPDX-License-Identifier: Apache-2.0 */
/* Results of a sweep read: CSV, counts, rows for the plan of a fleet. */
#include <string.h>

#include "base/outfile.h"
#include "answer/textbuf.h"
#include "results.h"
#include "results_internal.h"

/* SQLite indexes a join with this; with the table, which has no rowid, it tries every pair. */
#define TRACES "CROSS JOIN (SELECT * FROM traces LIMIT -1) t USING(trace)"

static int csv_of(struct frag_store *s, const char *sql, const char *path, struct frag_err *err)
{
	FRAG_AUTO(frag_outfile_abort) struct frag_outfile out = { 0 };
	FRAG_AUTO(frag_db_finalize) sqlite3_stmt *q = NULL;

	FRAG_TRY(frag_outfile_open(&out, path, err));
	FRAG_TRY(frag_db_prepare(s, sql, FRAG_EOUTPUT, &q, err));
	for (int row = -1; row < 0 || sqlite3_step(q) == SQLITE_ROW; row = 0) {
		FRAG_AUTO(frag_text_release) struct frag_text line = { 0 };

		for (int i = 0; i < sqlite3_column_count(q); i++) {
			const char *text = row < 0 ? sqlite3_column_name(q, i)
						   : (const char *)sqlite3_column_text(q, i);

			frag_text_add(&line, i ? "," : "");
			if (text)
				frag_text_add_csv(&line, text);
		}
		frag_text_add(&line, "\n");
		FRAG_TRY(frag_text_check(&line, err));
		fputs(line.s, out.to);
	}
	return frag_outfile_commit(&out, err);
}

int frag_store_csv(struct frag_store *s, const char *path, struct frag_err *err)
{
	FRAG_AUTO(frag_text_release) struct frag_text t = { 0 };
	struct frag_column c;

	frag_text_add(&t, "SELECT t.path, t.name, t.estimate");
	for (size_t i = 0; (c = frag_results_item_column(i)).name; i++)
		if (strcmp(c.name, "curve") != 0)
			frag_text_addf(&t, ", i.\"%s\"", c.name);
	frag_text_add(&t, " FROM items i " TRACES " ORDER BY t.path, i.device, i.item");
	FRAG_TRY(frag_text_check(&t, err));
	return csv_of(s, t.s, path, err);
}

int frag_store_count(struct frag_store *s, struct frag_store_counts *out, struct frag_err *err)
{
	static const char sql[] =
		"SELECT (SELECT count(*) FROM traces), count(*), total(status='completed'), "
		"total(status='" FRAG_STORE_UNREPRODUCED
		"'), total(status='refused'), (SELECT count(*) FROM traces WHERE error IS NOT "
		"NULL) FROM items";
	FRAG_AUTO(frag_db_finalize) sqlite3_stmt *q = NULL;
	uint64_t *const to[] = { &out->traces,	     &out->items,   &out->completed,
				 &out->unreproduced, &out->refused, &out->failed };

	FRAG_TRY(frag_db_prepare(s, sql, FRAG_EINPUT, &q, err));
	if (sqlite3_step(q) != SQLITE_ROW)
		return frag_db_fail(s, FRAG_EINPUT, err);
	for (int i = 0; i < (int)FRAG_ARRAY_LEN(to); i++)
		*to[i] = (uint64_t)sqlite3_column_int64(q, i);
	return 0;
}

/* A number that a sweep may have written; *good becomes false where it is not. */
static uint64_t number_at(sqlite3_stmt *q, int column, bool *good)
{
	int64_t n = sqlite3_column_int64(q, column);

	*good = *good && n >= 0 && n <= 1ll << 60;
	return (uint64_t)n;
}

int frag_store_each(struct frag_store *s, int (*row)(void *ctx, const struct frag_store_row *r),
		    void *ctx, struct frag_err *err)
{
	static const char sql[] =
		"SELECT t.path, t.format, i.policy, i.curve, i.device, t.devices, t.start_us, "
		"t.duration_us, i.peak_reserved_bytes, i.lower_bound_bytes, i.recorded, "
		"i.status<>'refused', i.status='" FRAG_STORE_UNREPRODUCED
		"', t.estimate, t.format LIKE '%" FRAG_STORE_ENDED "' FROM items i " TRACES
		" WHERE i.status<>'failed' AND t.path IS NOT NULL AND i.policy IS NOT NULL ORDER "
		"BY t.path, i.device, i.policy, i.\"limit\" NOT IN ('', 'none'), i.capacity_bytes "
		"DESC";
	FRAG_AUTO(frag_db_finalize) sqlite3_stmt *q = NULL;
	int step;

	FRAG_TRY(frag_db_prepare(s, sql, FRAG_EINPUT, &q, err));
	while ((step = sqlite3_step(q)) == SQLITE_ROW) {
		bool good = true;
		struct frag_store_row r = {
			.path = (const char *)sqlite3_column_text(q, 0),
			.format = (const char *)sqlite3_column_text(q, 1),
			.policy = (const char *)sqlite3_column_text(q, 2),
			.curve = (const char *)sqlite3_column_text(q, 3),
			.device = (int64_t)number_at(q, 4, &good),
			.devices = (int64_t)number_at(q, 5, &good),
			.start_us = number_at(q, 6, &good),
			.duration_us = number_at(q, 7, &good),
			.peak_reserved_bytes = number_at(q, 8, &good),
			.lower_bound_bytes = number_at(q, 9, &good),
			.recorded = sqlite3_column_int(q, 10),
			.completed = sqlite3_column_int(q, 11),
			.unreproduced = sqlite3_column_int(q, 12),
			.estimate = sqlite3_column_int(q, 13),
			.ended = sqlite3_column_int(q, 14),
		};

		if (!good)
			return FRAG_INPUT(
				err, "'%.200s' holds a number that no sweep writes, of '%.200s'",
				s->path, r.path);
		FRAG_TRY(row(ctx, &r));
	}
	return step == SQLITE_DONE ? 0 : frag_db_fail(s, FRAG_EINPUT, err);
}

int frag_store_failures(struct frag_store *s,
			int (*row)(void *ctx, const char *path, const char *text), void *ctx,
			struct frag_err *err)
{
	static const char sql[] = "SELECT path, error FROM traces WHERE error IS NOT NULL AND path "
				  "IS NOT NULL ORDER BY path";
	FRAG_AUTO(frag_db_finalize) sqlite3_stmt *q = NULL;
	int step;

	FRAG_TRY(frag_db_prepare(s, sql, FRAG_EINPUT, &q, err));
	while ((step = sqlite3_step(q)) == SQLITE_ROW)
		FRAG_TRY(row(ctx, (const char *)sqlite3_column_text(q, 0),
			     (const char *)sqlite3_column_text(q, 1)));
	return step == SQLITE_DONE ? 0 : frag_db_fail(s, FRAG_EINPUT, err);
}
