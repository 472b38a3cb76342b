/* SPDX-License-Identifier: Apache-2.0 */
/* The course of a sweep: hands out traces, takes answers in; see sweep.h. */
#include "sweep.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/interrupt.h"
#include "base/term.h"

#define TRIES 2u /* a trace whose worker dies twice has failed */
#define NOTHING SIZE_MAX

struct course {
	struct frag_sweep *s;
	struct frag_answer *answer;
	struct frag_rows *failures;
	struct frag_store *store;
	struct frag_worker *workers;
	size_t workers_count;
	bool is_part;	      /* of what the ranks of an mpirun do */
	bool in_array;	      /* these are ranks of a shard: other shards are missing */
	unsigned char *tries; /* [files.count] */
	size_t next, done;
	bool goes_on;		/* with an interrupted sweep */
	size_t skipped, passed; /* there already; in a folder and no trace */
	struct frag_progress progress;
};

/* ---- which is next ----------------------------------------------------------------- */

static bool already_there(struct course *c, const char *path)
{
	char hash[33];

	return c->goes_on && !frag_sweep_hash(path, hash, NULL) &&
	       frag_store_has(c->store, hash, path);
}

static size_t next_task(struct course *c)
{
	if (frag_interrupted())
		return NOTHING;
	while (c->next < c->s->files.count) {
		size_t task = c->next++;

		if (!already_there(c, c->s->files.list[task].path))
			return task;
		c->done++;
		c->skipped++;
	}
	return NOTHING;
}

/* A trace without an answer: once more? Else it has failed. */
static bool try_again(struct course *c, size_t task)
{
	return !frag_interrupted() && ++c->tries[task] < TRIES;
}

static int give_up(struct course *c, size_t task, const char *why, struct frag_err *err)
{
	json_auto_t *answer = json_pack("{s:s, s:s, s:s}", "path", c->s->files.list[task].path,
					"trace", "", "error", why);

	FRAG_CHECK_ALLOC(answer, "results", err);
	c->done++;
	return frag_store_put(c->store, answer, err);
}

static int take_answer(struct course *c, size_t task, const char *text, struct frag_err *err)
{
	json_auto_t *answer = json_loads(text, 0, NULL);

	c->done++;
	if (!answer)
		return frag_fail(err, FRAG_ENOMEM, "an answer of a worker cannot be read");
	if (!c->s->files.list[task].found || !json_is_true(json_object_get(answer, "no_trace")))
		return frag_store_put(c->store, answer, err);
	c->passed++;
	return 0;
}

/* ---- this machine's workers ------------------------------------------------------------ */

static int feed_worker(struct course *c, struct frag_worker *w, struct frag_err *err)
{
	size_t task = next_task(c);

	return task == NOTHING ? 0 : frag_worker_start(w, task, frag_sweep_work, c->s, err);
}

static int look_at_worker(void *course, struct frag_worker *w, struct frag_err *err)
{
	struct course *c = course;
	FRAG_AUTO_FREE char *answer = NULL;
	size_t task = w->task;
	char why[120];
	int rc;

	frag_progress_update(&c->progress, c->done, c->s->files.count);
	if (!w->pid)
		return feed_worker(c, w, err);
	rc = frag_worker_take(w, why);
	if (!rc)
		return 0;
	if (rc < 0 && try_again(c, task))
		return frag_worker_start(w, task, frag_sweep_work, c->s, err);
	if (rc < 0) {
		FRAG_TRY(give_up(c, task, why, err));
		return feed_worker(c, w, err);
	}
	answer = FRAG_GIVE(w->answer);
	w->cap = 0;
	/* it works on the next one while this answer is put away */
	FRAG_TRY(feed_worker(c, w, err));
	return take_answer(c, task, answer, err);
}

/* ---- the course ---------------------------------------------------------------------------- */

/* What was asked, so that a file of results is never continued or merged with another question. */
static int question_of(const struct frag_sweep *s, struct frag_text *t, struct frag_err *err)
{
	frag_text_addf(t, "cufrag %s: policies", FRAG_VERSION);
	for (size_t i = 0; i < s->policies.count; i++)
		frag_text_addf(t, "%s %s", i ? ";" : "", s->policies.text[i]);
	frag_text_add(t, ", limits");
	for (size_t i = 0; i < s->limits_count; i++)
		frag_text_addf(t, " %s", s->limits[i].text);
	frag_text_addf(t, " (%s), cards", s->target.limit.text ? s->target.limit.text : "none");
	for (size_t i = 0; i < s->cards_count; i++)
		frag_text_addf(t, " %s", s->cards[i]->name);
	frag_text_addf(t, " (%llu, context %llu), seed %llu%s",
		       (unsigned long long)s->target.card.total_bytes,
		       (unsigned long long)s->target.card.context_bytes,
		       (unsigned long long)s->target.seed, s->fit ? ", fit" : "");
	if (s->target.torch)
		frag_text_addf(t, ", torch %u", s->target.torch);
	return frag_text_check(t, err);
}

static int finish(struct course *c, struct frag_err *err)
{
	const struct frag_sweep *s = c->s;

	FRAG_TRY(frag_store_write(c->store, s->output, err));
	if (c->is_part)
		return 0;
	if (s->csv)
		FRAG_TRY(frag_store_csv(c->store, s->csv, err));
	return frag_sweep_answer(s, c->store, c->skipped, c->passed, c->answer, c->failures, err);
}

/* What a shard did, so that --merge sees which are missing, and lists that differ. */
static int note_shard(struct course *c, struct frag_err *err)
{
	struct frag_sweep *s = c->s;
	char list[64], count[16], name[32];

	if (!s->shard.n)
		return 0;
	frag_sweep_files_tell(&s->files, list);
	frag_sweep_files_shard(&s->files, s->shard.i, s->shard.n);
	snprintf(count, sizeof(count), "%u", s->shard.n);
	snprintf(name, sizeof(name), "shard %u", s->shard.i);
	FRAG_TRY(frag_store_note(c->store, "list", list, err));
	FRAG_TRY(frag_store_note(c->store, "shards", count, err));
	return frag_store_note(c->store, name, "", err);
}

/* Beside the target, where results are while they come; an interrupted sweep leaves them. */
static int with_part(struct course *c, bool fresh,
		     int (*work)(struct course *c, struct frag_err *err), struct frag_err *err)
{
	FRAG_AUTO_FREE char *part = NULL;
	int rc;

	if (asprintf(&part, "%s.part", c->s->output) < 0)
		return frag_fail_nomem(err, "results");
	if (c->s->fresh)
		unlink(part);
	c->goes_on = !fresh && !access(part, F_OK);
	rc = frag_store_open(&c->store, part, fresh, err) ?: work(c, err);
	frag_store_close(c->store);
	if (!rc || (c->s->merge && c->store))
		unlink(part);
	return rc;
}

static int sweep(struct course *c, struct frag_err *err)
{
	struct frag_sweep *s = c->s;
	FRAG_AUTO(frag_text_release) struct frag_text question = { 0 };
	int rc;

	FRAG_TRY_CALLOC(c->tries, s->files.count + 1, "sweep", err);
	FRAG_TRY(question_of(s, &question, err));
	FRAG_TRY(frag_store_note(c->store, "question", question.s, err));
	FRAG_TRY(note_shard(c, err));
	if (c->is_part && !s->fresh && !access(s->output, F_OK)) { /* others did not get that far */
		FRAG_TRY(frag_store_add(c->store, s->output, err));
		c->goes_on = true;
	}
	frag_progress_begin(&c->progress, "sweeping");
	rc = frag_workers_run(c->workers, c->workers_count, look_at_worker, c, err);
	frag_progress_end(&c->progress);
	FRAG_TRY(rc);
	if (frag_interrupted() && c->done < s->files.count)
		return frag_fail(err, FRAG_EINTR,
				 "interrupted after %zu of %zu traces; the same command goes on",
				 c->done, s->files.count);
	return finish(c, err);
}

static int merge(struct course *c, struct frag_err *err)
{
	for (size_t i = 0; i < c->s->operands_count; i++)
		FRAG_TRY(frag_store_add(c->store, c->s->operands[i], err));
	if (!c->in_array)
		FRAG_TRY(frag_store_missing_shards(c->store, c->s->missing, sizeof(c->s->missing),
						   err));
	return finish(c, err);
}

static int find_files(struct frag_sweep *s, struct frag_err *err)
{
	for (size_t i = 0; i < s->operands_count; i++)
		FRAG_TRY(frag_sweep_files_add(&s->files, s->operands[i], err));
	if (s->list)
		FRAG_TRY(frag_sweep_files_add_list(&s->files, s->list, err));
	FRAG_TRY(frag_sweep_files_check(s, err));
	if (!s->files.count)
		return FRAG_USAGE(err, "no traces given; name files or folders, or a --list");
	frag_sweep_files_sort(&s->files);
	return 0;
}

/* ---- under mpirun ---------------------------------------------------------------------- */

/* Rank 0: its part and those of the others become the whole, of this machine or of a shard. */
static int merge_ranks(struct course *c, const char *whole, unsigned size, struct frag_err *err)
{
	struct frag_sweep *s = c->s;
	FRAG_AUTO_FREE char **parts = frag_host_calloc(size, sizeof(*parts));
	bool made = parts != NULL;
	int rc;

	for (unsigned r = 0; made && r < size; r++)
		made = asprintf(&parts[r], "%s.part-%u", whole, r) >= 0;
	s->operands = parts;
	s->operands_count = size;
	s->output = whole;
	rc = made ? with_part(c, true, merge, err) : frag_fail_nomem(err, "results");
	for (unsigned r = 0; parts && r < size; r++) {
		if (!rc)
			unlink(parts[r]);
		free(parts[r]);
	}
	return rc;
}

/* A rank that fails ends without the others, and mpirun ends these: the same command goes on from there. */
static int run_rank(struct course *c, const struct frag_ranks *ranks, struct frag_err *err)
{
	struct frag_sweep *s = c->s;
	const char *whole = s->output, *csv = s->csv;
	FRAG_AUTO_FREE char *part = NULL;
	uint64_t counts[2];
	int rank, size;
	char why[200];

	if (s->list && !strcmp(s->list, "-"))
		return FRAG_USAGE(err, "--list - reaches one rank of an mpirun only: name a file");
	if (ranks->start(&rank, &size, why))
		return FRAG_USAGE(err, "MPI does not start: %s", why);
	if (asprintf(&part, "%s.part-%d", whole, rank) < 0)
		return frag_fail_nomem(err, "results");
	FRAG_TRY(find_files(s, err));
	c->is_part = true;
	c->in_array = s->shard.n > 0;
	s->shard.i = s->shard.i * (unsigned)size + (unsigned)rank;
	s->shard.n = FRAG_MAX(s->shard.n, 1u) * (unsigned)size;
	s->output = part;
	s->csv = NULL;
	FRAG_TRY(with_part(c, false, sweep, err));
	counts[0] = c->skipped;
	counts[1] = c->passed;
	if (ranks->sum(counts, 2))
		return FRAG_OUTPUT(err, "the other ranks cannot be reached");
	c->skipped = counts[0];
	c->passed = counts[1];
	c->is_part = false;
	s->is_served = rank > 0;
	s->csv = csv;
	s->output = whole;
	FRAG_TRY(s->is_served ? 0 : merge_ranks(c, whole, (unsigned)size, err));
	ranks->stop();
	return 0;
}

int frag_sweep_run(struct frag_sweep *s, struct frag_answer *a, struct frag_rows *failures,
		   struct frag_err *err)
{
	struct course c = { .s = s, .answer = a, .failures = failures };
	const struct frag_ranks *ranks;
	int rc;

	if (s->merge)
		return with_part(&c, true, merge, err);
	frag_interrupt_catch();
	signal(SIGPIPE, SIG_IGN);
	FRAG_TRY(frag_sweep_ranks_open(&ranks, err));
	c.workers_count = ranks ? 1 : FRAG_MAX(s->threads, 1u);
	FRAG_TRY_CALLOC(c.workers, c.workers_count, "workers", err);
	rc = ranks ? run_rank(&c, ranks, err)
		   : find_files(s, err) ?: with_part(&c, false, sweep, err);
	for (size_t i = 0; i < c.workers_count; i++)
		frag_worker_end(&c.workers[i]);
	FRAG_FREE(c.workers, c.tries);
	return rc;
}
