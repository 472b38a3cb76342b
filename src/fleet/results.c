/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results of a sweep: answers as they come, results of shards together, all of it written out.
 *
 * While a sweep runs its results are beside the target (OUTPUT.part), every answer in a transaction
 * of its own, so a kill loses what was in hand and nothing else. At the end all of it is copied to
 * the target: the same bytes, whoever answered first.
 */
#include <string.h>

#include "answer/textbuf.h"
#include "base/outfile.h"
#include "results.h"
#include "results_internal.h"

/* ---- answers ------------------------------------------------------------------------- */

static void bind(sqlite3_stmt *q, int at, const json_t *v)
{
	switch (v ? json_typeof(v) : JSON_NULL) {
	case JSON_STRING:
		sqlite3_bind_text(q, at, json_string_value(v), -1, SQLITE_TRANSIENT);
		break;
	case JSON_INTEGER:
		sqlite3_bind_int64(q, at, json_integer_value(v));
		break;
	case JSON_REAL:
		sqlite3_bind_double(q, at, json_real_value(v));
		break;
	case JSON_TRUE:
	case JSON_FALSE:
		sqlite3_bind_int(q, at, json_is_true(v));
		break;
	default:
		sqlite3_bind_null(q, at);
		break;
	}
}

/* Rows of a table; `trace` is that of the answer. */
static int insert(struct frag_store *s, const char *table, struct frag_column (*column)(size_t),
		  const json_t *answer, json_t *rows, struct frag_err *err)
{
	FRAG_AUTO(frag_text_release) struct frag_text t = { 0 };
	FRAG_AUTO(frag_db_finalize) sqlite3_stmt *q = NULL;
	struct frag_column c;
	size_t i, n = 0;
	json_t *row;

	while (column(n).name)
		n++;
	frag_text_addf(&t, "INSERT OR REPLACE INTO %s VALUES(?", table);
	frag_text_repeat(&t, ",?", n - 1);
	frag_text_add(&t, ")");
	FRAG_TRY(frag_text_check(&t, err));
	FRAG_TRY(frag_db_prepare(s, t.s, FRAG_EOUTPUT, &q, err));
	json_array_foreach(rows, i, row)
	{
		for (size_t k = 0; (c = column(k)).name; k++)
			bind(q, (int)k + 1,
			     json_object_get(strcmp(c.name, "trace") ? row : answer, c.name));
		if (sqlite3_step(q) != SQLITE_DONE)
			return frag_db_fail(s, FRAG_EOUTPUT, err);
		sqlite3_reset(q);
	}
	return 0;
}

int frag_store_put(struct frag_store *s, json_t *answer, struct frag_err *err)
{
	json_auto_t *list = json_pack("[O]", answer);
	int rc;

	FRAG_CHECK_ALLOC(list, "results", err);
	FRAG_TRY(frag_db_exec(s, "BEGIN", err));
	rc = insert(s, "traces", frag_results_trace_column, answer, list, err)
		     ?: insert(s, "items", frag_results_item_column, answer,
			       json_object_get(answer, "items"), err);
	if (rc) {
		sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
		return rc;
	}
	return frag_db_exec(s, "COMMIT", err);
}

bool frag_store_has(struct frag_store *s, const char *hash, const char *path)
{
	static const char sql[] = "SELECT 1 FROM traces WHERE path=? AND trace=? AND error IS NULL";
	FRAG_AUTO(frag_db_finalize) sqlite3_stmt *q = NULL;

	if (frag_db_prepare(s, sql, FRAG_EINPUT, &q, NULL))
		return false;
	sqlite3_bind_text(q, 1, path, -1, SQLITE_STATIC);
	sqlite3_bind_text(q, 2, hash, -1, SQLITE_STATIC);
	return sqlite3_step(q) == SQLITE_ROW;
}

int frag_store_note(struct frag_store *s, const char *key, const char *text, struct frag_err *err)
{
	static const char sql[] = "INSERT INTO sweep VALUES(?1,?2) ON CONFLICT(key) DO UPDATE SET "
				  "key=key RETURNING value";
	FRAG_AUTO(frag_db_finalize) sqlite3_stmt *q = NULL;
	const char *old;

	FRAG_TRY(frag_db_prepare(s, sql, FRAG_EOUTPUT, &q, err));
	sqlite3_bind_text(q, 1, key, -1, SQLITE_STATIC);
	sqlite3_bind_text(q, 2, text, -1, SQLITE_STATIC);
	if (sqlite3_step(q) != SQLITE_ROW)
		return frag_db_fail(s, FRAG_EOUTPUT, err);
	old = (const char *)sqlite3_column_text(q, 0);
	if (!old || strcmp(old, text) != 0)
		return FRAG_USAGE(err,
				  "'%.100s' is of a sweep with other options or traces (%.120s); "
				  "--fresh begins anew",
				  s->path, old ? old : "");
	return sqlite3_step(q) == SQLITE_DONE ? 0 : frag_db_fail(s, FRAG_EOUTPUT, err);
}

int frag_store_missing_shards(struct frag_store *s, char *text, size_t cap, struct frag_err *err)
{
	static const char missing[] =
		"WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i+1 FROM n WHERE i+1 < (SELECT "
		"CAST(value AS INTEGER) FROM sweep WHERE key='shards')) SELECT group_concat(i, ', "
		"') || ' of ' || (SELECT value FROM sweep WHERE key='shards') FROM (SELECT i FROM "
		"n WHERE 'shard ' || i NOT IN (SELECT key FROM sweep) LIMIT 8)";

	*text = '\0';
	if (!frag_db_text(s, missing, text, cap))
		return 0;
	return frag_db_exec(
		s, "DELETE FROM sweep WHERE key IN ('shards','list') OR key LIKE 'shard %'", err);
}

/* ---- whole results ------------------------------------------------------------------- */

/* The name of a file is bound, not quoted. */
static int run_with(struct frag_store *s, const char *sql, const char *path, struct frag_err *err)
{
	FRAG_AUTO(frag_db_finalize) sqlite3_stmt *q = NULL;

	FRAG_TRY(frag_db_prepare(s, sql, FRAG_EOUTPUT, &q, err));
	sqlite3_bind_text(q, 1, path, -1, SQLITE_STATIC);
	return sqlite3_step(q) == SQLITE_DONE
		       ? 0
		       : FRAG_OUTPUT(err, "'%.200s': %s", path, sqlite3_errmsg(s->db));
}

/* Columns by name: the other file may have been made by a build with another order. */
static void add_copy(struct frag_text *t, const char *table, struct frag_column (*column)(size_t))
{
	FRAG_AUTO(frag_text_release) struct frag_text names = { 0 };
	struct frag_column c;

	for (size_t i = 0; (c = column(i)).name; i++)
		frag_text_addf(&names, "%s\"%s\"", i ? "," : "", c.name);
	frag_text_addf(t, "INSERT OR IGNORE INTO main.%s(%s) SELECT %s FROM other.%s;", table,
		       frag_text_str(&names), frag_text_str(&names), table);
}

static int copy_rows(struct frag_store *s, struct frag_err *err)
{
	FRAG_AUTO(frag_text_release) struct frag_text t = { 0 };

	add_copy(&t, "items", frag_results_item_column);
	add_copy(&t, "traces", frag_results_trace_column);
	frag_text_add(&t, "INSERT OR IGNORE INTO main.sweep SELECT * FROM other.sweep;");
	FRAG_TRY(frag_text_check(&t, err));
	return frag_db_exec(s, t.s, err);
}

/* One item, two answers: the same program would not have given them. */
static int check_agree(struct frag_store *s, const char *path, struct frag_err *err)
{
	char text[256];

	if (!frag_db_text(s,
			  "SELECT a.policy FROM main.items a JOIN other.items b USING(item) WHERE "
			  "a.status IS NOT b.status OR a.peak_reserved_bytes IS NOT "
			  "b.peak_reserved_bytes LIMIT 1",
			  text, sizeof(text)))
		return FRAG_INPUT(err, "'%.200s' contradicts the earlier results (%s)", path, text);
	if (!frag_db_text(s,
			  "SELECT b.value FROM main.sweep a JOIN other.sweep b USING(key) WHERE "
			  "a.value IS NOT b.value LIMIT 1",
			  text, sizeof(text)))
		return FRAG_INPUT(err,
				  "'%.100s' is of a sweep with other options or traces (%.200s)",
				  path, text);
	return 0;
}

int frag_store_add(struct frag_store *s, const char *path, struct frag_err *err)
{
	struct frag_store *other;
	int rc;

	FRAG_TRY(frag_store_read(&other, path, err));
	frag_store_close(other);
	FRAG_TRY(run_with(s, "ATTACH ? AS other", path, err));
	rc = check_agree(s, path, err) ?: copy_rows(s, err);
	sqlite3_exec(s->db, "DETACH other", NULL, NULL, NULL);
	return rc;
}

/* Tables are in the order of their keys: a copy without gaps has the same pages every time. */
int frag_store_write(struct frag_store *s, const char *path, struct frag_err *err)
{
	FRAG_AUTO(frag_outfile_abort) struct frag_outfile out = { 0 };

	FRAG_TRY(frag_outfile_open(&out, path, err));
	if (!out.temp)
		return FRAG_OUTPUT(err, "cannot write '%.200s': not a file", path);
	FRAG_TRY(run_with(s, "VACUUM INTO ?", out.temp, err));
	return frag_outfile_commit(&out, err);
}
