/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The database of a sweep's results: tables, opening, closing; see results_internal.h.
 *
 * While it grows it is this process's alone, with a log beside it (SQLite's WAL, which needs no
 * shared memory that way, so folders of other machines will do): an answer is safe when this
 * process is killed, and what a killed machine loses is at most what came last, not the file. A
 * sync of every answer cost ten times the replay of a short trace.
 */
#include "results.h"
#include "results_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <frag/metrics.h>

#include "answer/textbuf.h"
#include "report/report.h"

#define SCHEMA "1"

int frag_db_fail(const struct frag_store *s, int code, struct frag_err *err)
{
	return frag_fail(err, code, "'%.200s': %s", s->path,
			 s->db ? sqlite3_errmsg(s->db) : "no memory");
}

int frag_db_exec(struct frag_store *s, const char *sql, struct frag_err *err)
{
	if (sqlite3_exec(s->db, sql, NULL, NULL, NULL) != SQLITE_OK)
		return frag_db_fail(s, FRAG_EOUTPUT, err);
	return 0;
}

int frag_db_prepare(struct frag_store *s, const char *sql, int code, sqlite3_stmt **out,
		    struct frag_err *err)
{
	return sqlite3_prepare_v2(s->db, sql, -1, out, NULL) == SQLITE_OK
		       ? 0
		       : frag_db_fail(s, code, err);
}

void frag_db_finalize(sqlite3_stmt **q)
{
	sqlite3_finalize(*q);
}

/* ---- columns ---- */

#define METRICS_MAX 256u
#define OWN(name, type, unit, help) \
	{ \
		name, type, unit, "of a sweep: " help, false \
	}

struct frag_column frag_results_trace_column(size_t i)
{
	static const struct frag_column columns[] = {
		OWN("path", "TEXT NOT NULL", "", "where the trace was found"),
		OWN("trace", "TEXT NOT NULL", "", "XXH3-128 of the file"),
		OWN("name", "TEXT", "", "name that the trace gives itself"),
		OWN("format", "TEXT", "", "format of the trace"),
		OWN("settings", "TEXT", "", "recorded allocator settings"),
		OWN("devices", "INTEGER", "", "devices of the trace"),
		OWN("events", "INTEGER", "", "events of all its devices"),
		OWN("start_us", "INTEGER", "us", "Unix time of the first event, 0 = unknown"),
		OWN("duration_us", "INTEGER", "us", "from the first event to the last"),
		OWN("estimate", "INTEGER", "", "1 = recorded without a GPU"),
		OWN("error", "TEXT", "", "why the trace failed, empty = it did not"),
	};

	return i < FRAG_ARRAY_LEN(columns) ? columns[i] : (struct frag_column){ 0 };
}

struct frag_column frag_results_item_column(size_t i)
{
	static const struct frag_column columns[] = {
		OWN("item", "TEXT NOT NULL", "", "key of the result"),
		OWN("trace", "TEXT NOT NULL", "", "XXH3-128 of the file"),
		OWN("device", "INTEGER", "", "device of the trace"),
		OWN("policy", "TEXT", "", "policy and settings"),
		OWN("recorded", "INTEGER", "", "1 = the recording's own settings"),
		OWN("gpu", "TEXT", "", "card of --gpu"),
		OWN("limit", "TEXT", "", "limit as it was asked for"),
		OWN("capacity_bytes", "INTEGER", "B", "memory of the card"),
		OWN("context_bytes", "INTEGER", "B", "of it, what the CUDA context takes"),
		OWN("status", "TEXT", "",
		    "completed; unreproduced = the recorded settings reserve another peak than was "
		    "recorded; refused = a request was; failed = see message"),
		OWN("message", "TEXT", "", "why it failed"),
		OWN("first_oom_event", "INTEGER", "", "index of the first refused request"),
		OWN("first_oom_bytes", "INTEGER", "B", "its size"),
		{ "min_capacity_bytes", "INTEGER", "B", "of a sweep --fit: smallest card that does",
		  false },
		{ "safe_capacity_bytes", "INTEGER", "B",
		  "of a sweep --fit: from this capacity on no replay failed", false },
	};
	static const struct frag_column curve =
		OWN("curve", "TEXT", "", "reserved over time, [[us, bytes], ...] (not in CSV)");
	static struct frag_column all[FRAG_ARRAY_LEN(columns) + METRICS_MAX + 2];
	static size_t n; /* asked for with every row: put together once */

	if (!n) {
		size_t count;
		const struct frag_metric_info *m = frag_metric_list(&count);

		for (size_t k = 0; k < FRAG_ARRAY_LEN(columns); k++)
			all[n++] = columns[k];
		for (size_t k = 0; k < count && k < METRICS_MAX; k++)
			if (!frag_report_is_host(&m[k]))
				all[n++] = (struct frag_column){ m[k].name,
								 m[k].type == FRAG_METRIC_T_U64
									 ? "INTEGER"
									 : "REAL",
								 m[k].unit, m[k].help, true };
		all[n++] = curve;
	}
	return i < n ? all[i] : (struct frag_column){ 0 };
}

/* ---- open and close ------------------------------------------------------------------ */

static int create_tables(struct frag_store *s, struct frag_err *err)
{
	FRAG_AUTO(frag_text_release) struct frag_text t = { 0 };
	struct frag_column c;

	frag_text_add(&t, "CREATE TABLE IF NOT EXISTS sweep(key TEXT PRIMARY KEY, value TEXT) "
			  "WITHOUT ROWID;CREATE TABLE IF NOT EXISTS traces(");
	for (size_t i = 0; (c = frag_results_trace_column(i)).name; i++)
		frag_text_addf(&t, "\"%s\" %s, ", c.name, c.type);
	frag_text_add(&t, "PRIMARY KEY(path)) WITHOUT ROWID;CREATE TABLE IF NOT EXISTS items(");
	for (size_t i = 0; (c = frag_results_item_column(i)).name; i++)
		frag_text_addf(&t, "\"%s\" %s, ", c.name, c.type);
	frag_text_add(&t, "PRIMARY KEY(item)) WITHOUT ROWID;INSERT OR IGNORE INTO sweep "
			  "VALUES('schema','" SCHEMA "');");
	FRAG_TRY(frag_text_check(&t, err));
	return frag_db_exec(s, t.s, err);
}

static int open_db(struct frag_store **out, const char *path, int flags, struct frag_err *err)
{
	struct frag_store *s = frag_host_calloc(1, sizeof(*s));
	int code = flags & SQLITE_OPEN_READWRITE ? FRAG_EOUTPUT : FRAG_EINPUT;

	*out = s;
	if (s)
		s->path = frag_host_strdup(path);
	FRAG_CHECK_ALLOC(s && s->path, "results", err);
	if (sqlite3_open_v2(path, &s->db, flags, NULL) != SQLITE_OK)
		return frag_db_fail(s, code, err);
	sqlite3_extended_result_codes(s->db, 1);
	/* a file made to harm: no views, triggers or functions of its own */
	sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(s->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_db_config(s->db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
	sqlite3_db_config(s->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	return 0;
}

int frag_db_text(struct frag_store *s, const char *sql, char *out, size_t cap)
{
	FRAG_AUTO(frag_db_finalize) sqlite3_stmt *q = NULL;

	if (frag_db_prepare(s, sql, FRAG_EINPUT, &q, NULL) || sqlite3_step(q) != SQLITE_ROW ||
	    !sqlite3_column_text(q, 0))
		return -1;
	snprintf(out, cap, "%s", (const char *)sqlite3_column_text(q, 0));
	return 0;
}

static int check_schema(struct frag_store *s, struct frag_err *err)
{
	char text[32];

	if (frag_db_text(s, "SELECT value FROM sweep WHERE key='schema'", text, sizeof(text)))
		return FRAG_INPUT(err, "'%.200s' holds no results of a sweep", s->path);
	if (strcmp(text, SCHEMA) != 0)
		return FRAG_INPUT(err, "'%.200s' has schema %s, this program reads " SCHEMA,
				  s->path, text);
	return 0;
}

int frag_store_open(struct frag_store **out, const char *path, bool fresh, struct frag_err *err)
{
	/* where the folder has no WAL, SQLite stays with its journal */
	static const char *const alone = "PRAGMA main.locking_mode=EXCLUSIVE;PRAGMA "
					 "main.journal_mode=WAL;PRAGMA main.synchronous=NORMAL;";
	/* made here, not by SQLite, which would go through a link that leads nowhere */
	int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | (fresh ? O_EXCL : 0), 0666);
	FRAG_AUTO(frag_store_close_at) struct frag_store *s = NULL;

	*out = NULL;
	if (fd >= 0)
		close(fd);
	else if (errno != EEXIST)
		return FRAG_OUTPUT(err, "cannot write '%.200s': %s", path, strerror(errno));
	else
		return frag_fail(
			err, FRAG_EUSAGE,
			"'%.200s' is of an interrupted sweep: end that first, or remove it", path);
	FRAG_TRY(open_db(&s, path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, err));
	FRAG_TRY(frag_db_exec(s, alone, err));
	if (!fresh &&
	    frag_db_text(s, "SELECT name FROM sqlite_master LIMIT 1", (char[64]){ 0 }, 64) == 0)
		FRAG_TRY(check_schema(s, err));
	FRAG_TRY(create_tables(s, err));
	*out = FRAG_GIVE(s);
	return 0;
}

int frag_store_read(struct frag_store **out, const char *path, struct frag_err *err)
{
	FRAG_AUTO(frag_store_close_at) struct frag_store *s = NULL;

	*out = NULL;
	FRAG_TRY(open_db(&s, path, SQLITE_OPEN_READONLY, err));
	FRAG_TRY(check_schema(s, err));
	*out = FRAG_GIVE(s);
	return 0;
}

void frag_store_close(struct frag_store *s)
{
	if (!s)
		return;
	sqlite3_close(s->db);
	FRAG_FREE(s->path, s);
}
