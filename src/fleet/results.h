/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The results of a sweep: a file of SQLite, schema in docs/choose.md.
 *
 *   results.c          opened, filled, merged, written in the order of their keys
 *   results_db.c       its tables and their columns
 *   results_read.c     read: CSV, counts, rows
 *
 * Words. item: one row, that is one device of one trace under one policy, limit and card. answer:
 * the JSON text that a worker sends back for a trace, with all of its items.
 */
#ifndef FRAG_FLEET_RESULTS_H
#define FRAG_FLEET_RESULTS_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include <frag/base.h>
#include <frag/error.h>

/* At the end of the format of a trace that ended out of memory: what it needs is unknown. */
#define FRAG_STORE_ENDED ", ended out of memory"
/* In the format, before the name of the card that it was recorded on, where the file says it. */
#define FRAG_STORE_CARD ", on "
/* The status where the recorded settings, replayed, reserve another peak than was recorded: its row
 * holds the recorded one, and what other settings save is not known. */
#define FRAG_STORE_UNREPRODUCED "unreproduced"

struct frag_store;
/* Opens `path` for more; `fresh`: it must not be there, else it is made. */
int frag_store_open(struct frag_store **out, const char *path, bool fresh, struct frag_err *err);
/* Opens results that are whole, to read. Errors: FRAG_EINPUT. */
int frag_store_read(struct frag_store **out, const char *path, struct frag_err *err);
void frag_store_close(struct frag_store *s);
FRAG_AUTO_AT(struct frag_store *, frag_store_close)
/* One answer, in one transaction: all of it or nothing. */
int frag_store_put(struct frag_store *s, json_t *answer, struct frag_err *err);
/* Is the trace at this path, with this content, answered as asked for? */
bool frag_store_has(struct frag_store *s, const char *hash, const char *path);
/* A fact about the store that holds for all of it, such as the question that it answers. Errors:
 * FRAG_EUSAGE where it is another one already. */
int frag_store_note(struct frag_store *s, const char *key, const char *text, struct frag_err *err);
/* "1, 3 of 4": the first missing shards; "": none, and then it forgets that there were shards. */
int frag_store_missing_shards(struct frag_store *s, char *text, size_t cap, struct frag_err *err);
/* Adds all of another one. Errors: FRAG_EINPUT where they contradict or ask other things. */
int frag_store_add(struct frag_store *s, const char *path, struct frag_err *err);
/* Writes the results in the order of their keys to a new file, complete or not at all. */
int frag_store_write(struct frag_store *s, const char *path, struct frag_err *err);
int frag_store_csv(struct frag_store *s, const char *path, struct frag_err *err);

struct frag_column {
	const char *name, *type; /* type: SQL's */
	const char *unit, *help;
	bool metric; /* one of frag_metric_list */
};

/* Column i of table `traces`, and of `items`: texts of its own, the metrics but for those of host
 * time, the curve. NULL name behind the last. */
struct frag_column frag_results_trace_column(size_t i);
struct frag_column frag_results_item_column(size_t i);

struct frag_store_counts {
	uint64_t traces, items, completed, unreproduced, refused, failed;
};
int frag_store_count(struct frag_store *s, struct frag_store_counts *out, struct frag_err *err);
/* One result with its trace. Texts are borrowed during the call, NULL where there is none. */
struct frag_store_row {
	const char *path, *policy, *curve, *format;
	int64_t device, devices;
	uint64_t start_us, duration_us;
	uint64_t peak_reserved_bytes, lower_bound_bytes;
	bool recorded, completed, unreproduced, estimate, ended;
};
/* Calls row for every result, by path, device, policy, the largest card and no limit first. Stops
 * where it returns an error, and returns that. */
int frag_store_each(struct frag_store *s, int (*row)(void *ctx, const struct frag_store_row *r),
		    void *ctx, struct frag_err *err);
/* Calls row(ctx, path, text) for every trace that failed; text: why. */
int frag_store_failures(struct frag_store *s,
			int (*row)(void *ctx, const char *path, const char *text), void *ctx,
			struct frag_err *err);

#endif
