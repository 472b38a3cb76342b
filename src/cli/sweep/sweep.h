/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `cufrag sweep`: traces x policies x limits x cards into one file of results.
 *
 *   sweep_files.c    which traces: files, folders, patterns, lists; which of them are this shard's
 *   sweep_item.c     one trace: read, replayed under everything asked for, told as JSON
 *   sweep_workers.c  processes that do so, one trace at a time, and a new one where one died
 *   sweep_ranks.c    the same over the ranks of an mpirun
 *   sweep_store.c    the results: SQLite, schema in docs/fleet.md; its tables sweep_db.c
 *   sweep_tell.c     the results read: CSV, counts, rows
 *   sweep_run.c      hands out traces, takes results in, goes on where a run before ended
 *
 * Words. item: one row of results, that is one device of one trace under one policy, limit and
 * card. Its key is made of the content of the trace, these texts and the version of the program,
 * so an item is the same wherever and whenever it was replayed. answer: the JSON text that a
 * worker sends back for a trace, with all of its items.
 */
#ifndef FRAG_CLI_SWEEP_H
#define FRAG_CLI_SWEEP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <jansson.h>

#include <frag/device.h>
#include <frag/error.h>

#include "cli/common.h"
#include "cli/policy_texts.h"
#include "mpi/ranks.h"

/* ---- which traces --------------------------------------------------------------- */

struct frag_sweep_file {
	char *path;
	uint64_t bytes; /* on disk; the larger ones are handed out first */
	bool found;	/* in a folder: it need not be a trace */
};

struct frag_sweep_files {
	struct frag_sweep_file *list;
	size_t count, cap;
};

/*
 * Adds what `operand` stands for: a file, a folder with all below it (names that begin with a dot
 * apart, links to folders not followed), or a pattern. Errors: FRAG_EINPUT where there is nothing.
 */
int frag_sweep_files_add(struct frag_sweep_files *f, const char *operand, struct frag_err *err);
/* Adds the operands in the lines of a file, "-" = standard input. Empty lines, # … are passed. */
int frag_sweep_files_add_list(struct frag_sweep_files *f, const char *path, struct frag_err *err);
/* Largest first, then by path, each once. */
void frag_sweep_files_sort(struct frag_sweep_files *f);
/* Keeps every n-th from the i-th on; sorted before. */
void frag_sweep_files_shard(struct frag_sweep_files *f, unsigned i, unsigned n);
void frag_sweep_files_release(struct frag_sweep_files *f);

/* ---- what is asked ---------------------------------------------------------------- */

struct frag_sweep_texts {
	char **text;
	size_t count, cap;
};

struct frag_sweep_shard {
	unsigned i, n; /* n 0: not given */
	bool auto_i;   /* the index comes from the environment */
};

struct frag_sweep {
	const struct frag_cli *cli;
	struct frag_policy_texts policies;
	struct frag_sweep_texts settings, limits, gpus;
	const char *list, *output;
	uint64_t memory_bytes; /* host memory of one worker; 0 = its share of the machine */
	bool fit, resume, merge;
	struct frag_sweep_shard shard;
	const char *costs;

	struct frag_sweep_files files;
	const struct frag_gpu **cards; /* of `gpus`; count 0: the card of the shared options */
	size_t cards_count;
};

/* ---- one trace -------------------------------------------------------------------- */

/* Hex of the 128 bits of a file's content. text[33]. Errors: FRAG_EINPUT. */
int frag_sweep_hash(const char *path, char *text, struct frag_err *err);
/*
 * The answer for one trace, a new reference; a trace that cannot be read is an answer, too. NULL:
 * memory is short.
 */
json_t *frag_sweep_item_run(const struct frag_sweep *s, const char *path);

/* ---- workers ------------------------------------------------------------------------ */

/* One process that answers for traces, one at a time. */
struct frag_sweep_worker {
	pid_t pid;	       /* 0 = none */
	int to, from;	       /* pipes */
	size_t task;	       /* what it works on, SIZE_MAX = nothing */
	char *answer;	       /* as far as it came */
	size_t len, cap, need; /* need: with its length in front */
	uint64_t begin_ns;
};

/* Starts the process. Errors: FRAG_ENOMEM and what the system says. */
int frag_sweep_worker_start(struct frag_sweep_worker *w, const struct frag_sweep *s,
			    struct frag_err *err);
/* Hands out a task. 0, or <0 where the worker is gone. */
int frag_sweep_worker_give(struct frag_sweep_worker *w, size_t task, const char *path);
/* Takes what has come. 1: w->answer is whole, len bytes; 0: not yet; <0: the worker is gone. */
int frag_sweep_worker_take(struct frag_sweep_worker *w);
/* Ends it and says why it ended: text[120]. */
void frag_sweep_worker_end(struct frag_sweep_worker *w, char *why);

/* Is this a rank of an mpirun? Then the module is opened. *out NULL: no. Errors: FRAG_EUSAGE. */
int frag_sweep_ranks_open(const struct frag_ranks **out, struct frag_err *err);
/* A rank above 0: answers what rank 0 asks, by a worker of its own. */
int frag_sweep_rank_serve(const struct frag_sweep *s, const struct frag_ranks *ranks,
			  struct frag_sweep_worker *w, struct frag_err *err);
/* Rank 0: hands a trace to another one, ends one (path NULL), looks for an answer: 1 and *rank, *task,
 * *failed, *text (the answer, or why there is none; the caller's), or 0. */
int frag_sweep_rank_give(const struct frag_ranks *ranks, int rank, size_t task, const char *path);
/* How long to wait after so many looks at nothing: short while answers come, so that short traces
 * lose little, and longer then. Microseconds. */
unsigned frag_sweep_rank_pause_us(unsigned idle);
int frag_sweep_rank_take(const struct frag_ranks *ranks, int *rank, size_t *task, bool *failed,
			 char **text);

/* ---- results ------------------------------------------------------------------------ */

struct frag_store;
/* Opens `path` for more; `fresh`: it must not be there, else it is made. */
int frag_store_open(struct frag_store **out, const char *path, bool fresh, struct frag_err *err);
/* Opens results that are whole, to read. Errors: FRAG_EINPUT. */
int frag_store_read(struct frag_store **out, const char *path, struct frag_err *err);
void frag_store_close(struct frag_store *s);
FRAG_AUTO_AT(struct frag_store *, frag_store_close)
/* One answer, in one transaction: all of it or nothing. cost_ns is kept where it is not 0. */
int frag_store_put(struct frag_store *s, const json_t *answer, uint64_t cost_ns,
		   struct frag_err *err);
/* Is the trace at this path, with this content, answered as asked for? question: of the sweep. */
bool frag_store_has(struct frag_store *s, const char *hash, const char *path);
/* What was asked for; a store answers one question only. Errors: FRAG_EUSAGE. */
int frag_store_question(struct frag_store *s, const char *text, struct frag_err *err);
/* Adds all of another one. Errors: FRAG_EINPUT where they contradict or ask other things. */
int frag_store_add(struct frag_store *s, const char *path, struct frag_err *err);
/* Writes the results in the order of their keys to a new file, complete or not at all. */
int frag_store_write(struct frag_store *s, const char *path, struct frag_err *err);
int frag_store_csv(struct frag_store *s, const char *path, struct frag_err *err);
int frag_store_costs(struct frag_store *s, const char *path, struct frag_err *err);

struct frag_store_counts {
	uint64_t traces, items, completed, refused, failed;
};
int frag_store_count(struct frag_store *s, struct frag_store_counts *out, struct frag_err *err);
/* One result with its trace. Texts are borrowed during the call, NULL where there is none. */
struct frag_store_row {
	const char *path, *name, *policy, *curve;
	int64_t device, devices;
	uint64_t start_us, duration_us;
	uint64_t peak_reserved_bytes, lower_bound_bytes, modelled_ns;
	bool recorded, completed, estimate;
};
/* Calls row for every result, by path, device, policy, the largest card and no limit first. Stops
 * where it returns an error, and returns that. */
int frag_store_each(struct frag_store *s, int (*row)(void *ctx, const struct frag_store_row *r),
		    void *ctx, struct frag_err *err);
/* Calls row(ctx, path, text) for every trace that failed; text: why. */
int frag_store_failures(struct frag_store *s,
			int (*row)(void *ctx, const char *path, const char *text), void *ctx,
			struct frag_err *err);

/* The whole command; sweep_run.c. Returns an exit status or an error. */
int frag_sweep_run(struct frag_sweep *s, struct frag_err *err);

#endif
