/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces x policies x limits x cards into one file of results.
 *
 *   sweep_files.c    which traces: files, folders, patterns, lists
 *   sweep_shard.c    which part of them in an array job, or as a rank of an mpirun; names of results
 *   sweep_item.c     one trace, in a process: read, replayed under everything asked for, told as JSON
 *   sweep_run.c      hands out traces, takes results in, resumes an interrupted sweep
 *   sweep_answer.c   what came of it, for people
 *
 * Words. item: one row of results, that is one device of one trace under one policy, limit and
 * card. Its key is made of the content of the trace, these texts and the version of the program,
 * so an item is the same wherever and whenever it was replayed. answer: the JSON text that a
 * worker sends back for a trace, with all of its items.
 */
#ifndef FRAG_SWEEP_SWEEP_H
#define FRAG_SWEEP_SWEEP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <jansson.h>

#include <frag/device.h>
#include <frag/error.h>

#include "answer/answer.h"
#include "answer/row.h"
#include "base/worker.h"
#include "fleet/results.h"
#include "fleet/ranks.h"
#include "recording/policy_texts.h"
#include "recording/target.h"

/* ---- which traces --------------------------------------------------------------- */

struct frag_sweep_file {
	char *path;
	uint64_t bytes; /* on disk; the larger ones are handed out first */
	dev_t device;
	ino_t inode;
	bool found; /* in a folder: it need not be a trace */
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
/* "12 traces, HASH": equal for equal lists. text[64]. */
void frag_sweep_files_tell(const struct frag_sweep_files *f, char *text);
/* Keeps every n-th from the i-th on; sorted before. */
void frag_sweep_files_shard(struct frag_sweep_files *f, unsigned i, unsigned n);
void frag_sweep_files_release(struct frag_sweep_files *f);
struct frag_sweep;
/* Takes out results of sweeps in folders. Errors: FRAG_EUSAGE: an output would replace a trace. */
int frag_sweep_files_check(struct frag_sweep *s, struct frag_err *err);

/* ---- what is asked ---------------------------------------------------------------- */

struct frag_sweep_shard {
	unsigned i, n; /* n 0: not given */
	bool auto_i;   /* the index comes from the environment */
};

struct frag_sweep {
	struct frag_target target; /* tell: called in the workers */
	unsigned threads;
	char *const *operands;
	size_t operands_count;
	struct frag_policy_texts policies;
	struct frag_limit *limits; /* texts owned; "none": no limit; count 0: the target's */
	size_t limits_count, limits_cap;
	const struct frag_gpu **cards; /* count 0: the card of the target */
	size_t cards_count, cards_cap;
	const char *list, *output, *csv;
	uint64_t memory_bytes; /* host memory of one worker; 0 = its share of the machine */
	bool fit, fresh, merge;
	struct frag_sweep_shard shard;

	struct frag_sweep_files files;
	char *of_shard[2]; /* output, csv with the shard's number */
	char missing[128]; /* shards that a merge did not get */
	bool is_served;	   /* by a rank of an mpirun other than the first: there is no answer */
};

/* "3/16": the fourth of sixteen; "/16": the array job says which. */
int frag_sweep_set_shard(void *shard, const char *text, struct frag_err *err);
/* The index of "/16", or all of it, from the environment of an array job, else (of_mpi) the rank of
 * mpirun or srun: each task of an array may be rank 0 of a job of its own. Errors: FRAG_EUSAGE. */
int frag_sweep_find_index(struct frag_sweep_shard *s, bool of_mpi, struct frag_err *err);
/* A shard of an array job? Then finds i, n and the names of the outputs. Errors: FRAG_EUSAGE. */
int frag_sweep_find_shard(struct frag_sweep *s, struct frag_err *err);
void frag_sweep_release(struct frag_sweep *s);

/* ---- one trace -------------------------------------------------------------------- */

/* Hex of the 128 bits of a file's content. text[33]. Errors: FRAG_EINPUT. */
int frag_sweep_hash(const char *path, char *text, struct frag_err *err);
/* Inside of a worker (base/worker.h): answers for the trace files.list[task]. */
void frag_sweep_work(const void *sweep, size_t task, int to);

/* Is this a rank of an mpirun? Then the module is opened. *out NULL: no. Errors: FRAG_EUSAGE. */
int frag_sweep_ranks_open(const struct frag_ranks **out, struct frag_err *err);

/* ---- all of it ----------------------------------------------------------------------- */

/* Errors: also FRAG_EINTR, with what was done kept for the next call. *failures: struct
 * frag_sweep_failure, which the answer owns. */
int frag_sweep_run(struct frag_sweep *s, struct frag_answer *a, struct frag_rows *failures,
		   struct frag_err *err);

#define FRAG_SWEEP_POLICIES "recorded;caching;expandable;vmm" /* where none were given */

/* A trace that failed, and why. */
#define FRAG_SWEEP_FAILURE(F, P, S) \
	F(S, TEXT, path, "trace", "its path") \
	F(S, TEXT, error, "why it failed", "what went wrong")
FRAG_ROW_STRUCT(frag_sweep_failure, FRAG_SWEEP_FAILURE);
extern const struct frag_shape frag_sweep_shape;
/* What came of it. skipped: were there already; passed: files in folders that are not traces. */
int frag_sweep_answer(const struct frag_sweep *s, struct frag_store *store, size_t skipped,
		      size_t passed, struct frag_answer *a, struct frag_rows *failures,
		      struct frag_err *err);

#endif
