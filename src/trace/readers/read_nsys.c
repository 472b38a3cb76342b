/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nsight Systems' exported database: `nsys profile --cuda-memory-usage=true`, then `nsys export
 * --type sqlite`. The table CUDA_GPU_MEMORY_USAGE_EVENTS has a row per allocation and free of
 * device and managed memory; host memory and what modules take when they are loaded are left out.
 * Under a caching allocator these are its segments. Columns vary by version: streams are read where
 * there are any.
 *
 * The file is hostile: views, virtual tables and functions of it are refused, and the work is
 * limited by its size.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sqlite3.h>

#include "base/scratch.h"
#include "trace/log/log.h"

#define MAGIC "SQLite format 3"
#define TABLE "CUDA_GPU_MEMORY_USAGE_EVENTS"
#define SPOOL_BYTES 65536u
#define STEPS_UNIT 100000 /* of the virtual machine, between two looks at the budget */

enum { MEM_DEVICE = 2, MEM_ARRAY = 3, MEM_MANAGED = 4 };

struct reader {
	struct frag_log log; /* first: see read_rows */
	FILE *spool;	     /* a copy, if the input is not a plain file; already unlinked */
	sqlite3 *db;
	int64_t budget; /* units of steps that are left */
};

static int fail_sql(const struct reader *r, struct frag_err *err)
{
	if (r->budget < 0)
		return FRAG_INPUT(err, "'%.200s': the database needs too much work for its size",
				  frag_input_name(r->log.lines.in));
	return FRAG_INPUT(err, "'%.200s': %.120s", frag_input_name(r->log.lines.in),
			  r->db ? sqlite3_errmsg(r->db) : "cannot be opened as a database");
}

/* ---- the file ------------------------------------------------------------------------ */

static bool plain_file(const char *path, uint64_t *bytes)
{
	char magic[sizeof(MAGIC)] = "";
	struct stat st;
	FILE *f;

	if (stat(path, &st) || !S_ISREG(st.st_mode) || !(f = fopen(path, "rb")))
		return false;
	*bytes = (uint64_t)st.st_size;
	if (fread(magic, 1, sizeof(magic), f) != sizeof(magic))
		magic[0] = '\0';
	fclose(f);
	return !memcmp(magic, MAGIC, sizeof(MAGIC));
}

/* The plain bytes into a file of `path`, which the caller removes from aside again. */
static int spool(struct reader *r, char **path, uint64_t *bytes, struct frag_err *err)
{
	const unsigned char *at;
	size_t got;
	int fd, reason = frag_scratch_file(NULL, path, &fd);

	if (reason == ENOMEM)
		return frag_fail_nomem(err, "database");
	if (reason)
		return FRAG_OUTPUT(err, "no temporary file for the database: %s", strerror(reason));
	r->spool = fdopen(fd, "w");
	if (!r->spool) {
		close(fd);
		return frag_fail_nomem(err, "database");
	}
	for (*bytes = 0;; *bytes += got) {
		FRAG_TRY(frag_input_peek(r->log.lines.in, SPOOL_BYTES, &at, &got, err));
		if (!got)
			break;
		if (fwrite(at, 1, got, r->spool) != got)
			return FRAG_OUTPUT(err, "no room for a copy of the database");
		FRAG_TRY(frag_input_skip(r->log.lines.in, got, err));
	}
	if (fflush(r->spool))
		return FRAG_OUTPUT(err, "no room for a copy of the database");
	return 0;
}

static int out_of_budget(void *ctx)
{
	struct reader *r = ctx;

	return --r->budget < 0;
}

/* SQLite takes the missing end of a last page for zeros, which hides rows. */
static int check_whole(const struct reader *r, const char *path, uint64_t bytes,
		       struct frag_err *err)
{
	unsigned char head[100] = { 0 };
	uint64_t page, count;
	FILE *f = fopen(path, "rb");
	size_t got = f ? fread(head, 1, sizeof(head), f) : 0;

	if (f)
		fclose(f);
	page = (uint64_t)head[16] << 8 | head[17];
	page = page == 1 ? 65536 : page;
	count = (uint64_t)head[28] << 24 | (uint64_t)head[29] << 16 | (uint64_t)head[30] << 8 |
		head[31];
	/* the count holds if the change counters beside it are the same */
	if (got < sizeof(head) || (!memcmp(head + 24, head + 92, 4) && bytes < page * count))
		return frag_fail_at(err, FRAG_EINPUT, bytes, "'%.200s': the database is cut short",
				    frag_input_name(r->log.lines.in));
	return 0;
}

/* A path as a URI: everything but plain characters escaped. */
static char *uri_of(const char *path)
{
	static const char tail[] = "?mode=ro&immutable=1";
	char *uri = frag_host_alloc(3 * strlen(path) + sizeof(tail) + 8), *to;

	if (!uri)
		return NULL;
	to = uri + sprintf(uri, "file:");
	for (; *path; path++) {
		bool plain = (*path >= 'a' && *path <= 'z') || (*path >= 'A' && *path <= 'Z') ||
			     (*path >= '0' && *path <= '9') || strchr("/._-", *path);

		to += sprintf(to, plain ? "%c" : "%%%02X", (unsigned char)*path);
	}
	memcpy(to, tail, sizeof(tail));
	return uri;
}

static int open_database(struct reader *r, struct frag_err *err)
{
	const char *path = frag_input_name(r->log.lines.in);
	char *copy = NULL, *uri = NULL;
	uint64_t bytes = 0;
	int rc = 0;

	if (!plain_file(path, &bytes)) {
		rc = spool(r, &copy, &bytes, err);
		path = copy;
	}
	if (!rc)
		rc = check_whole(r, path, bytes, err);
	if (!rc) {
		uri = uri_of(path);
		rc = uri ? 0 : frag_fail_nomem(err, "path");
	}
	if (!rc && sqlite3_open_v2(uri, &r->db,
				   SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX,
				   NULL) != SQLITE_OK)
		rc = fail_sql(r, err);
	frag_host_free(uri);
	frag_scratch_remove(copy); /* it stays open; without a name no other process can open it */
	FRAG_TRY(rc);
	r->budget = 100 + (int64_t)(bytes / 1024);
	sqlite3_progress_handler(r->db, STEPS_UNIT, out_of_budget, r);
	sqlite3_db_config(r->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(r->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_limit(r->db, SQLITE_LIMIT_LENGTH, 1 << 24);
	return 0;
}

/* ---- rows ---------------------------------------------------------------------------- */

/* Columns that are there, by bit; the table has to be one, not a view or of a module. */
enum { HAS_START = 1, HAS_STREAM = 2, HAS_DEVICE = 4, HAS_KIND = 8, HAS_REST = 16 | 32 | 64 };

static int read_columns(struct reader *r, unsigned *has, struct frag_err *err)
{
	static const char *const names[] = { "start",	"streamId", "deviceId",
					     "memKind", "address",  "memoryOperationType",
					     "bytes" };
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(r->db,
				    "SELECT p.name FROM sqlite_master m, pragma_table_xinfo('" TABLE
				    "') p WHERE m.name = '" TABLE
				    "' AND m.type = 'table' AND m.sql LIKE 'CREATE TABLE%' AND "
				    "p.hidden = 0",
				    -1, &st, NULL);

	*has = 0;
	while (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(st, 0);

		for (unsigned i = 0; name && i < FRAG_ARRAY_LEN(names); i++)
			*has |= strcmp(name, names[i]) ? 0u : 1u << i;
		rc = SQLITE_OK;
	}
	sqlite3_finalize(st);
	if (rc != SQLITE_DONE)
		return fail_sql(r, err);
	if (!*has)
		return FRAG_INPUT(err,
				  "'%.200s' has no table " TABLE
				  ": record with nsys profile --cuda-memory-usage=true",
				  frag_input_name(r->log.lines.in));
	if ((*has & (HAS_START | HAS_REST)) != (HAS_START | HAS_REST))
		return FRAG_INPUT(err, "'%.200s': " TABLE " lacks a column it needs",
				  frag_input_name(r->log.lines.in));
	return 0;
}

static int fail_row(int64_t row, struct frag_err *err)
{
	return frag_log_fail(err, "row", (uint64_t)row,
			     "neither an allocation nor a free in " TABLE);
}

static int take_row(struct reader *r, sqlite3_stmt *st, struct frag_err *err)
{
	int64_t row = sqlite3_column_int64(st, 0), ns = sqlite3_column_int64(st, 1);
	int64_t bytes = sqlite3_column_int64(st, 3), device = sqlite3_column_int64(st, 5);
	int kind = sqlite3_column_int(st, 6), oper = sqlite3_column_int(st, 4);
	struct frag_log_entry e = { .line = (uint64_t)row,
				    .id = (uint64_t)sqlite3_column_int64(st, 2),
				    .action = oper ? FRAG_LOG_FREE : FRAG_LOG_ALLOC,
				    .device = (uint32_t)device,
				    .time_us = (uint64_t)ns,
				    .stream = FRAG_LOG_UNKNOWN };

	if (kind != MEM_DEVICE && kind != MEM_ARRAY && kind != MEM_MANAGED)
		return 0;
	if (ns < 0 || bytes < 0 || device < 0 || device > UINT16_MAX || oper < 0 || oper > 1)
		return fail_row(row, err);
	e.bytes = oper && !bytes ? FRAG_LOG_UNKNOWN : (uint64_t)bytes;
	if (sqlite3_column_type(st, 7) == SQLITE_INTEGER)
		e.stream = (uint64_t)sqlite3_column_int64(st, 7);
	return frag_log_later(&r->log, &e, err);
}

static int read_rows(struct frag_log *log, struct frag_err *err)
{
	struct reader *r = (struct reader *)log;
	char sql[320];
	sqlite3_stmt *st = NULL;
	unsigned has;
	int rc, failed = 0;

	FRAG_TRY(open_database(r, err) ?: read_columns(r, &has, err));
	snprintf(sql, sizeof(sql),
		 "SELECT rowid, start, address, bytes, memoryOperationType, %s, %s, %s FROM " TABLE,
		 has & HAS_DEVICE ? "deviceId" : "0", has & HAS_KIND ? "memKind" : "2",
		 has & HAS_STREAM ? "streamId" : "NULL");
	rc = sqlite3_prepare_v2(r->db, sql, -1, &st, NULL);
	while (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW && !failed) {
		failed = take_row(r, st, err);
		rc = SQLITE_OK;
	}
	sqlite3_finalize(st);
	if (failed)
		return failed;
	return rc == SQLITE_DONE ? frag_log_add_sorted(log, 1000, 0, err) : fail_sql(r, err);
}

static int read_nsys(struct frag_input *in, const char *options, struct frag_trace **out,
		     struct frag_err *err)
{
	struct reader r = { .log = { .lines.in = in, .place = "row" } };
	int rc = frag_log_read(&r.log, "nsys", options, read_rows, out, err);

	sqlite3_close(r.db);
	if (r.spool)
		fclose(r.spool);
	return rc;
}

static int probe(const unsigned char *bytes, size_t len)
{
	return len >= sizeof(MAGIC) && !memcmp(bytes, MAGIC, sizeof(MAGIC)) ? 70 : 0;
}

const struct frag_reader_ops frag_reader_nsys = {
	.name = "nsys",
	.summary = "Nsight Systems' sqlite with CUDA memory usage: times, devices; streams only "
		   "from newer versions",
	.probe = probe,
	.read = read_nsys,
};
