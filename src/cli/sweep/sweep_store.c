/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results of a sweep in SQLite; the schema is described in docs/fleet.md.
 *
 * While a sweep runs its results are beside the target (OUTPUT.part), every answer in a
 * transaction of its own, so a kill loses what was in hand and nothing else. At the end all
 * rows are written to the target in the order of their keys: the same bytes, whoever answered first.
 */
#include "sweep.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sqlite3.h>

#include <frag/metrics.h>

#include "report/text/textbuf.h"

#define SCHEMA "1"

struct frag_store {
	sqlite3 *db;
	char *path;
	sqlite3_stmt *put_trace, *put_item, *put_cost;
};

/* Columns: name and type. Of items the metrics come behind, then the last ones. */
struct column {
	const char *name, *type;
};
static const struct column trace_columns[] = {
	{ "path", "TEXT NOT NULL" }, { "trace", "TEXT NOT NULL" }, { "name", "TEXT" },
	{ "format", "TEXT" },	     { "settings", "TEXT" },	   { "devices", "INTEGER" },
	{ "events", "INTEGER" },     { "start_us", "INTEGER" },	   { "duration_us", "INTEGER" },
	{ "error", "TEXT" },
};
static const struct column item_columns[] = {
	{ "item", "TEXT NOT NULL" },
	{ "trace", "TEXT NOT NULL" },
	{ "device", "INTEGER" },
	{ "policy", "TEXT" },
	{ "recorded", "INTEGER" },
	{ "gpu", "TEXT" },
	{ "\"limit\"", "TEXT" },
	{ "capacity_bytes", "INTEGER" },
	{ "context_bytes", "INTEGER" },
	{ "status", "TEXT" },
	{ "message", "TEXT" },
	{ "first_oom_event", "INTEGER" },
	{ "first_oom_bytes", "INTEGER" },
	{ "min_capacity_bytes", "INTEGER" },
	{ "safe_capacity_bytes", "INTEGER" },
};

/* Column i of items, in order: the list above, the metrics, the curve. NULL at the end. */
static const char *item_column(size_t i, const char **type)
{
	static const size_t fixed = FRAG_ARRAY_LEN(item_columns);
	size_t count;
	const struct frag_metric_info *m = frag_metric_list(&count);

	if (i < fixed) {
		*type = item_columns[i].type;
		return item_columns[i].name;
	}
	if (i < fixed + count) {
		*type = m[i - fixed].type == FRAG_METRIC_T_U64 ? "INTEGER" : "REAL";
		return m[i - fixed].name;
	}
	*type = "TEXT";
	return i == fixed + count ? "curve" : NULL;
}

static int fail_db(struct frag_err *err, int code, const char *path, sqlite3 *db)
{
	return frag_fail(err, code, "'%.200s': %s", path, db ? sqlite3_errmsg(db) : "no memory");
}

static int exec(struct frag_store *s, const char *sql, struct frag_err *err)
{
	if (sqlite3_exec(s->db, sql, NULL, NULL, NULL) != SQLITE_OK)
		return fail_db(err, FRAG_EOUTPUT, s->path, s->db);
	return 0;
}

/* ---- open and close ------------------------------------------------------------------ */

static int create_tables(struct frag_store *s, struct frag_err *err)
{
	struct frag_text t = { 0 };
	const char *name, *type;
	int rc;

	frag_text_add(&t,
		      "CREATE TABLE IF NOT EXISTS sweep(key TEXT PRIMARY KEY, value TEXT) WITHOUT "
		      "ROWID;CREATE TABLE IF NOT EXISTS traces(");
	for (size_t i = 0; i < FRAG_ARRAY_LEN(trace_columns); i++)
		frag_text_addf(&t, "%s %s, ", trace_columns[i].name, trace_columns[i].type);
	frag_text_add(&t, "PRIMARY KEY(path)) WITHOUT ROWID;CREATE TABLE IF NOT EXISTS items(");
	for (size_t i = 0; (name = item_column(i, &type)); i++)
		frag_text_addf(&t, "%s %s, ", name, type);
	frag_text_add(&t, "PRIMARY KEY(item)) WITHOUT ROWID;"
			  "INSERT OR IGNORE INTO sweep VALUES('schema','" SCHEMA "');");
	rc = frag_text_check(&t, err);
	if (!rc)
		rc = exec(s, t.s, err);
	frag_text_release(&t);
	return rc;
}

static int prepare(struct frag_store *s, sqlite3_stmt **out, const char *table, size_t columns,
		   struct frag_err *err)
{
	struct frag_text t = { 0 };
	int rc;

	frag_text_addf(&t, "INSERT OR REPLACE INTO %s VALUES(?", table);
	frag_text_repeat(&t, ",?", columns - 1);
	frag_text_add(&t, ")");
	rc = frag_text_check(&t, err);
	if (!rc && sqlite3_prepare_v2(s->db, t.s, -1, out, NULL) != SQLITE_OK)
		rc = fail_db(err, FRAG_EOUTPUT, s->path, s->db);
	frag_text_release(&t);
	return rc;
}

static size_t items_columns(void)
{
	const char *type;
	size_t n = 0;

	while (item_column(n, &type))
		n++;
	return n;
}

static int open_db(struct frag_store **out, const char *path, int flags, struct frag_err *err)
{
	struct frag_store *s = frag_host_calloc(1, sizeof(*s));
	int code = flags & SQLITE_OPEN_READWRITE ? FRAG_EOUTPUT : FRAG_EINPUT;

	*out = s;
	if (s)
		s->path = frag_host_strdup(path);
	if (!s || !s->path)
		return frag_fail_nomem(err, "results");
	if (sqlite3_open_v2(path, &s->db, flags, NULL) != SQLITE_OK)
		return fail_db(err, code, path, s->db);
	sqlite3_extended_result_codes(s->db, 1);
	/* a file made to harm: no views, triggers or functions of its own */
	sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(s->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_db_config(s->db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
	sqlite3_db_config(s->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	return 0;
}

static int text_of_query(struct frag_store *s, const char *sql, char *out, size_t cap)
{
	sqlite3_stmt *q;
	int rc = -1;

	if (sqlite3_prepare_v2(s->db, sql, -1, &q, NULL) == SQLITE_OK) {
		if (sqlite3_step(q) == SQLITE_ROW && sqlite3_column_text(q, 0)) {
			snprintf(out, cap, "%s", (const char *)sqlite3_column_text(q, 0));
			rc = 0;
		}
		sqlite3_finalize(q);
	}
	return rc;
}

static int check_schema(struct frag_store *s, struct frag_err *err)
{
	char text[32];

	if (text_of_query(s, "SELECT value FROM sweep WHERE key='schema'", text, sizeof(text)))
		return frag_fail(err, FRAG_EINPUT, "'%.200s' holds no results of a sweep", s->path);
	if (strcmp(text, SCHEMA) != 0)
		return frag_fail(err, FRAG_EINPUT,
				 "'%.200s' has schema %s, this program reads " SCHEMA, s->path,
				 text);
	return 0;
}

int frag_store_open(struct frag_store **out, const char *path, bool fresh, struct frag_err *err)
{
	static const char *const own = "CREATE TABLE IF NOT EXISTS costs(path TEXT PRIMARY KEY, ns "
				       "INTEGER) WITHOUT ROWID;";
	int rc;

	if (fresh && !access(path, F_OK)) {
		*out = NULL;
		return frag_fail(err, FRAG_EUSAGE,
				 "'%.200s' is left of a sweep that did not end: go on with "
				 "--resume, "
				 "or remove it",
				 path);
	}
	rc = open_db(out, path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, err);
	if (!rc && !fresh && !access(path, F_OK) &&
	    text_of_query(*out, "SELECT name FROM sqlite_master LIMIT 1", (char[64]){ 0 }, 64) == 0)
		rc = check_schema(*out, err);
	if (!rc)
		rc = create_tables(*out, err);
	if (!rc)
		rc = exec(*out, own, err);
	if (!rc)
		rc = prepare(*out, &(*out)->put_trace, "traces", FRAG_ARRAY_LEN(trace_columns),
			     err);
	if (!rc)
		rc = prepare(*out, &(*out)->put_item, "items", items_columns(), err);
	if (!rc)
		rc = prepare(*out, &(*out)->put_cost, "costs", 2, err);
	if (rc) {
		frag_store_close(*out);
		*out = NULL;
	}
	return rc;
}

int frag_store_read(struct frag_store **out, const char *path, struct frag_err *err)
{
	int rc = open_db(out, path, SQLITE_OPEN_READONLY, err);

	if (!rc)
		rc = check_schema(*out, err);
	if (rc) {
		frag_store_close(*out);
		*out = NULL;
	}
	return rc;
}

void frag_store_close(struct frag_store *s)
{
	if (!s)
		return;
	sqlite3_finalize(s->put_trace);
	sqlite3_finalize(s->put_item);
	sqlite3_finalize(s->put_cost);
	sqlite3_close(s->db);
	frag_host_free(s->path);
	frag_host_free(s);
}

/* ---- answers ------------------------------------------------------------------------- */

static void bind(sqlite3_stmt *q, int at, const json_t *v)
{
	char *list;

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
	case JSON_ARRAY:
		list = json_dumps(v, JSON_COMPACT);
		sqlite3_bind_text(q, at, list, -1, SQLITE_TRANSIENT);
		free(list);
		break;
	default:
		sqlite3_bind_null(q, at);
		break;
	}
}

static int step_once(struct frag_store *s, sqlite3_stmt *q, struct frag_err *err)
{
	int rc = sqlite3_step(q);

	sqlite3_reset(q);
	sqlite3_clear_bindings(q);
	return rc == SQLITE_DONE ? 0 : fail_db(err, FRAG_EOUTPUT, s->path, s->db);
}

static int put_item(struct frag_store *s, const json_t *answer, const json_t *item,
		    struct frag_err *err)
{
	const char *name, *type;

	for (size_t i = 0; (name = item_column(i, &type)); i++) {
		char plain[64];

		if (!strcmp(name, "trace")) {
			bind(s->put_item, (int)i + 1, json_object_get(answer, name));
			continue;
		}
		snprintf(plain, sizeof(plain), "%s", name + (*name == '"'));
		plain[strcspn(plain, "\"")] = '\0';
		bind(s->put_item, (int)i + 1, json_object_get(item, plain));
	}
	return step_once(s, s->put_item, err);
}

int frag_store_put(struct frag_store *s, const json_t *answer, uint64_t cost_ns,
		   struct frag_err *err)
{
	const json_t *items = json_object_get(answer, "items");
	size_t i;
	json_t *item;
	int rc;

	FRAG_TRY(exec(s, "BEGIN", err));
	for (i = 0; i < FRAG_ARRAY_LEN(trace_columns); i++)
		bind(s->put_trace, (int)i + 1, json_object_get(answer, trace_columns[i].name));
	rc = step_once(s, s->put_trace, err);
	json_array_foreach((json_t *)items, i, item)
	{
		if (!rc)
			rc = put_item(s, answer, item, err);
	}
	if (!rc && cost_ns) {
		bind(s->put_cost, 1, json_object_get(answer, "path"));
		sqlite3_bind_int64(s->put_cost, 2, (sqlite3_int64)cost_ns);
		rc = step_once(s, s->put_cost, err);
	}
	if (rc) {
		sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
		return rc;
	}
	return exec(s, "COMMIT", err);
}

bool frag_store_has(struct frag_store *s, const char *hash, const char *path)
{
	sqlite3_stmt *q;
	bool has = false;

	if (sqlite3_prepare_v2(s->db,
			       "SELECT 1 FROM traces WHERE path=? AND trace=? AND error IS NULL",
			       -1, &q, NULL) != SQLITE_OK)
		return false;
	sqlite3_bind_text(q, 1, path, -1, SQLITE_STATIC);
	sqlite3_bind_text(q, 2, hash, -1, SQLITE_STATIC);
	has = sqlite3_step(q) == SQLITE_ROW;
	sqlite3_finalize(q);
	return has;
}

int frag_store_question(struct frag_store *s, const char *text, struct frag_err *err)
{
	char *old = frag_host_alloc(strlen(text) + 4096);
	sqlite3_stmt *q;
	int rc = 0;

	if (!old)
		return frag_fail_nomem(err, "results");
	if (!text_of_query(s, "SELECT value FROM sweep WHERE key='question'", old,
			   strlen(text) + 4096)) {
		if (strcmp(old, text) != 0)
			rc = frag_fail(err, FRAG_EUSAGE,
				       "'%.100s' answers another question (%.120s)", s->path, old);
		frag_host_free(old);
		return rc;
	}
	frag_host_free(old);
	if (sqlite3_prepare_v2(s->db, "INSERT INTO sweep VALUES('question',?)", -1, &q, NULL) !=
	    SQLITE_OK)
		return fail_db(err, FRAG_EOUTPUT, s->path, s->db);
	sqlite3_bind_text(q, 1, text, -1, SQLITE_STATIC);
	rc = sqlite3_step(q) == SQLITE_DONE ? 0 : fail_db(err, FRAG_EOUTPUT, s->path, s->db);
	sqlite3_finalize(q);
	return rc;
}

/* ---- whole results ------------------------------------------------------------------- */

/* The other database as `other`. Its name is bound, not quoted. */
static int attach(struct frag_store *s, const char *path, struct frag_err *err)
{
	sqlite3_stmt *q;
	int rc = sqlite3_prepare_v2(s->db, "ATTACH ? AS other", -1, &q, NULL);

	if (rc == SQLITE_OK) {
		sqlite3_bind_text(q, 1, path, -1, SQLITE_STATIC);
		rc = sqlite3_step(q);
		sqlite3_finalize(q);
	}
	return rc == SQLITE_DONE ? 0 : fail_db(err, FRAG_EOUTPUT, path, s->db);
}

/* Columns by name: the other file may have been made by a build with another order. */
static int copy_rows(struct frag_store *s, const char *verb, struct frag_err *err)
{
	struct frag_text t = { 0 }, names = { 0 };
	const char *name, *type;
	int rc;

	for (size_t i = 0; (name = item_column(i, &type)); i++)
		frag_text_addf(&names, "%s%s", i ? "," : "", name);
	frag_text_addf(&t, "%s INTO main.items(%s) SELECT %s FROM other.items ORDER BY item;", verb,
		       frag_text_str(&names), frag_text_str(&names));
	frag_text_addf(&t, "%s INTO main.traces SELECT * FROM other.traces ORDER BY path;", verb);
	frag_text_addf(&t, "%s INTO main.sweep SELECT * FROM other.sweep ORDER BY key;", verb);
	rc = frag_text_check(&t, err);
	if (!rc)
		rc = frag_text_check(&names, err);
	if (!rc)
		rc = exec(s, t.s, err);
	frag_text_release(&names);
	frag_text_release(&t);
	return rc;
}

/* One item, two answers: the same program would not have given them. */
static int check_agree(struct frag_store *s, const char *path, struct frag_err *err)
{
	char text[256];

	if (!text_of_query(s,
			   "SELECT a.policy FROM main.items a JOIN other.items b USING(item) WHERE "
			   "a.status IS NOT b.status OR a.peak_reserved_bytes IS NOT "
			   "b.peak_reserved_bytes LIMIT 1",
			   text, sizeof(text)))
		return frag_fail(err, FRAG_EINPUT,
				 "'%.200s' contradicts the results before it (%s)", path, text);
	if (!text_of_query(s,
			   "SELECT b.value FROM main.sweep a JOIN other.sweep b USING(key) WHERE "
			   "a.value IS NOT b.value LIMIT 1",
			   text, sizeof(text)))
		return frag_fail(err, FRAG_EINPUT, "'%.100s' answers another question (%.200s)",
				 path, text);
	return 0;
}

int frag_store_add(struct frag_store *s, const char *path, struct frag_err *err)
{
	struct frag_store *other;
	int rc = frag_store_read(&other, path, err);

	if (rc)
		return rc;
	frag_store_close(other);
	FRAG_TRY(attach(s, path, err));
	rc = check_agree(s, path, err);
	if (!rc)
		rc = copy_rows(s, "INSERT OR IGNORE", err);
	sqlite3_exec(s->db, "DETACH other", NULL, NULL, NULL);
	return rc;
}

/* The bytes of a whole database, into a file that is complete or absent. */
static int put_image(struct frag_store *from, const char *path, struct frag_err *err)
{
	sqlite3_int64 len;
	unsigned char *image = sqlite3_serialize(from->db, "main", &len, 0);
	int rc;

	if (!image)
		return frag_fail_nomem(err, "results");
	rc = frag_outfile_put(path, (const char *)image, (size_t)len, err);
	sqlite3_free(image);
	return rc;
}

/* In memory first: rows inserted in order make the same pages every time. */
int frag_store_write(struct frag_store *s, const char *path, struct frag_err *err)
{
	struct frag_store *to;
	int rc = open_db(&to, ":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, err);

	if (!rc)
		rc = create_tables(to, err);
	if (!rc)
		rc = attach(to, s->path, err);
	if (!rc)
		rc = exec(to, "BEGIN;", err);
	if (!rc)
		rc = copy_rows(to, "INSERT OR REPLACE", err);
	if (!rc)
		rc = exec(to, "COMMIT; DETACH other;", err);
	if (!rc)
		rc = put_image(to, path, err);
	frag_store_close(to);
	return rc;
}

/* ---- what was found ------------------------------------------------------------------- */

static int csv_of(struct frag_store *s, const char *sql, const char *path, struct frag_err *err)
{
	struct frag_outfile out;
	sqlite3_stmt *q;
	int rc = frag_outfile_open(&out, path, err);

	if (rc)
		return rc;
	if (sqlite3_prepare_v2(s->db, sql, -1, &q, NULL) != SQLITE_OK) {
		frag_outfile_abort(&out);
		return fail_db(err, FRAG_EOUTPUT, s->path, s->db);
	}
	for (int row = -1; row < 0 || sqlite3_step(q) == SQLITE_ROW; row = 0) {
		struct frag_text line = { 0 };

		for (int i = 0; i < sqlite3_column_count(q); i++) {
			const char *text = row < 0 ? sqlite3_column_name(q, i)
						   : (const char *)sqlite3_column_text(q, i);

			frag_text_add(&line, i ? "," : "");
			if (text)
				frag_text_add_csv(&line, text);
		}
		frag_text_add(&line, "\n");
		rc = frag_text_check(&line, err);
		if (!rc)
			fputs(line.s, out.to);
		frag_text_release(&line);
		if (rc)
			break;
	}
	sqlite3_finalize(q);
	if (!rc)
		return frag_outfile_commit(&out, err);
	frag_outfile_abort(&out);
	return rc;
}

int frag_store_csv(struct frag_store *s, const char *path, struct frag_err *err)
{
	struct frag_text t = { 0 };
	const char *name, *type;
	int rc;

	frag_text_add(&t, "SELECT t.path, t.name");
	for (size_t i = 0; (name = item_column(i, &type)); i++)
		if (strcmp(name, "curve") != 0)
			frag_text_addf(&t, ", i.%s", name);
	frag_text_add(&t, " FROM items i JOIN traces t USING(trace) ORDER BY t.path, i.device, "
			  "i.item");
	rc = frag_text_check(&t, err);
	if (!rc)
		rc = csv_of(s, t.s, path, err);
	frag_text_release(&t);
	return rc;
}

int frag_store_costs(struct frag_store *s, const char *path, struct frag_err *err)
{
	return csv_of(s, "SELECT path, ns FROM costs ORDER BY path", path, err);
}

int frag_store_count(struct frag_store *s, struct frag_store_counts *out, struct frag_err *err)
{
	static const char *const sql[] = {
		"SELECT count(*) FROM traces",
		"SELECT count(*) FROM items",
		"SELECT count(*) FROM items WHERE status='completed'",
		"SELECT count(*) FROM items WHERE status='refused'",
		"SELECT count(*) FROM traces WHERE error IS NOT NULL",
	};
	uint64_t *const to[] = { &out->traces, &out->items, &out->completed, &out->refused,
				 &out->failed };

	for (size_t i = 0; i < FRAG_ARRAY_LEN(sql); i++) {
		char text[32];

		if (text_of_query(s, sql[i], text, sizeof(text)))
			return fail_db(err, FRAG_EOUTPUT, s->path, s->db);
		*to[i] = strtoull(text, NULL, 10);
	}
	return 0;
}

int frag_store_each(struct frag_store *s, int (*row)(void *ctx, const struct frag_store_row *r),
		    void *ctx, struct frag_err *err)
{
	static const char sql[] =
		"SELECT t.path, t.name, i.policy, i.curve, i.device, t.devices, t.start_us, "
		"t.duration_us, i.peak_reserved_bytes, i.lower_bound_bytes, i.modelled_ns, "
		"i.recorded, "
		"i.status='completed' FROM items i JOIN traces t USING(trace) WHERE "
		"i.status<>'failed' "
		"AND t.path IS NOT NULL AND i.policy IS NOT NULL ORDER BY t.path, i.device, "
		"i.policy, "
		"i.\"limit\" NOT IN ('', 'none'), i.capacity_bytes DESC";
	sqlite3_stmt *q;
	int rc = 0, step = SQLITE_DONE;

	if (sqlite3_prepare_v2(s->db, sql, -1, &q, NULL) != SQLITE_OK)
		return fail_db(err, FRAG_EINPUT, s->path, s->db);
	while (!rc && (step = sqlite3_step(q)) == SQLITE_ROW) {
		struct frag_store_row r = {
			.path = (const char *)sqlite3_column_text(q, 0),
			.name = (const char *)sqlite3_column_text(q, 1),
			.policy = (const char *)sqlite3_column_text(q, 2),
			.curve = (const char *)sqlite3_column_text(q, 3),
			.device = sqlite3_column_int64(q, 4),
			.devices = sqlite3_column_int64(q, 5),
			.start_us = (uint64_t)sqlite3_column_int64(q, 6),
			.duration_us = (uint64_t)sqlite3_column_int64(q, 7),
			.peak_reserved_bytes = (uint64_t)sqlite3_column_int64(q, 8),
			.lower_bound_bytes = (uint64_t)sqlite3_column_int64(q, 9),
			.modelled_ns = (uint64_t)sqlite3_column_int64(q, 10),
			.recorded = sqlite3_column_int(q, 11),
			.completed = sqlite3_column_int(q, 12),
		};

		rc = row(ctx, &r);
	}
	if (!rc && step != SQLITE_DONE)
		rc = fail_db(err, FRAG_EINPUT, s->path, s->db);
	sqlite3_finalize(q);
	return rc;
}

int frag_store_failures(struct frag_store *s,
			int (*row)(void *ctx, const char *path, const char *text), void *ctx,
			struct frag_err *err)
{
	sqlite3_stmt *q;
	int rc = 0;

	if (sqlite3_prepare_v2(
		    s->db, "SELECT path, error FROM traces WHERE error IS NOT NULL ORDER BY path",
		    -1, &q, NULL) != SQLITE_OK)
		return fail_db(err, FRAG_EOUTPUT, s->path, s->db);
	while (!rc && sqlite3_step(q) == SQLITE_ROW)
		rc = row(ctx, (const char *)sqlite3_column_text(q, 0),
			 (const char *)sqlite3_column_text(q, 1));
	sqlite3_finalize(q);
	return rc;
}
