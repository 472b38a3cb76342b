/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The database behind the results of a sweep: its tables, and how it is opened. For results.c and
 * results_read.c; the schema is described in docs/choose.md.
 */
#ifndef FRAG_FLEET_RESULTS_INTERNAL_H
#define FRAG_FLEET_RESULTS_INTERNAL_H

#include <sqlite3.h>

#include <stddef.h>

#include <frag/error.h>

struct frag_store {
	sqlite3 *db;
	char *path;
};

/* What SQLite says of its last call. Returns `code`. */
int frag_db_fail(const struct frag_store *s, int code, struct frag_err *err);
/* Errors: FRAG_EOUTPUT. */
int frag_db_exec(struct frag_store *s, const char *sql, struct frag_err *err);
/* The first column of the first row as text. 0, or -1 where there is none. */
int frag_db_text(struct frag_store *s, const char *sql, char *out, size_t cap);
/* A statement, for FRAG_AUTO(frag_db_finalize). Errors: `code`. */
int frag_db_prepare(struct frag_store *s, const char *sql, int code, sqlite3_stmt **out,
		    struct frag_err *err);
void frag_db_finalize(sqlite3_stmt **q);

#endif
