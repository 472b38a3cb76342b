/* SPDX-License-Identifier: Apache-2.0 */
/* The course of a sweep: hands out traces, takes answers in; see sweep.h. */
#include "sweep.h"

#include <poll.h>
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
	struct frag_sweep_worker *workers;
	size_t workers_count;
	const struct frag_ranks *ranks; /* NULL: one machine */
	int rank, ranks_count;
	size_t *rank_task;    /* [ranks_count], NOTHING = idle */
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

static int feed_worker(struct course *c, struct frag_sweep_worker *w, struct frag_err *err)
{
	size_t task = next_task(c);

	return task == NOTHING
		       ? 0
		       : frag_sweep_worker_start(w, c->s, task, c->s->files.list[task].path, err);
}

static int look_at_worker(struct course *c, struct frag_sweep_worker *w, struct frag_err *err)
{
	FRAG_AUTO_FREE char *answer = NULL;
	size_t task = w->task;
	char why[120];
	int rc = w->pid ? frag_sweep_worker_take(w, why) : 0;

	if (!rc)
		return 0;
	if (rc < 0 && try_again(c, task))
		return frag_sweep_worker_start(w, c->s, task, c->s->files.list[task].path, err);
	if (rc < 0)
		return give_up(c, task, why, err);
	answer = FRAG_GIVE(w->answer);
	w->cap = 0;
	/* it works on the next one while this answer is put away */
	FRAG_TRY(feed_worker(c, w, err));
	return take_answer(c, task, answer, err);
}

static void wait_for_workers(struct course *c, unsigned us)
{
	struct timespec t = { .tv_nsec = (long)us * 1000 };
	struct pollfd fds[256];
	nfds_t n = 0;

	for (size_t i = 0; i < c->workers_count && n < FRAG_ARRAY_LEN(fds); i++)
		if (c->workers[i].pid)
			fds[n++] = (struct pollfd){ .fd = c->workers[i].from, .events = POLLIN };
	ppoll(fds, n, &t, NULL);
}

/* ---- other ranks ------------------------------------------------------------------------ */

static int give_rank(struct course *c, int r, size_t task, struct frag_err *err)
{
	c->rank_task[r] = task;
	return frag_sweep_rank_give(c->ranks, r, task, c->s->files.list[task].path)
		       ? frag_fail(err, FRAG_EOUTPUT, "rank %d cannot be reached", r)
		       : 0;
}

static int feed_ranks(struct course *c, struct frag_err *err)
{
	for (int r = 1; r < c->ranks_count; r++) {
		size_t task = c->rank_task[r] == NOTHING ? next_task(c) : NOTHING;

		if (task != NOTHING)
			FRAG_TRY(give_rank(c, r, task, err));
	}
	return 0;
}

/* One answer, if there is one: *came. */
static int look_at_ranks(struct course *c, bool *came, struct frag_err *err)
{
	size_t task;
	bool failed;
	FRAG_AUTO_FREE char *text = NULL;
	int rank;

	*came = c->ranks && frag_sweep_rank_take(c->ranks, &rank, &task, &failed, &text);
	if (!*came)
		return 0;
	if (rank > 0 && rank < c->ranks_count && c->rank_task[rank] == task) {
		if (failed && try_again(c, task))
			return give_rank(c, rank, task, err);
		c->rank_task[rank] = NOTHING;
		FRAG_TRY(feed_ranks(c, err));
		FRAG_TRY(failed ? give_up(c, task, text, err) : take_answer(c, task, text, err));
	}
	return 0;
}

static bool busy(const struct course *c)
{
	for (size_t i = 0; i < c->workers_count; i++)
		if (c->workers[i].pid)
			return true;
	for (int r = 1; r < c->ranks_count; r++)
		if (c->rank_task[r] != NOTHING)
			return true;
	return false;
}

/* ---- the course ---------------------------------------------------------------------------- */

static int hand_out(struct course *c, struct frag_err *err)
{
	size_t total = c->s->files.count;
	unsigned idle = 0;

	do {
		bool came = true;

		FRAG_TRY(feed_ranks(c, err));
		for (size_t i = 0; i < c->workers_count; i++)
			if (!c->workers[i].pid)
				FRAG_TRY(feed_worker(c, &c->workers[i], err));
		frag_progress_update(&c->progress, c->done, total);
		/* messages of ranks wake no thread: poll, with growing intervals */
		wait_for_workers(c, c->ranks ? frag_sweep_rank_pause_us(idle) : 200000);
		while (came) {
			FRAG_TRY(look_at_ranks(c, &came, err));
			idle = came ? 0 : idle + 1;
		}
		for (size_t i = 0; i < c->workers_count; i++)
			FRAG_TRY(look_at_worker(c, &c->workers[i], err));
	} while (!frag_interrupted() && (busy(c) || c->next < total));
	return 0;
}

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
static int with_part(struct course *c, int (*work)(struct course *c, struct frag_err *err),
		     struct frag_err *err)
{
	FRAG_AUTO_FREE char *part = NULL;
	int rc;

	if (asprintf(&part, "%s.part", c->s->output) < 0)
		return frag_fail_nomem(err, "results");
	if (c->s->fresh)
		unlink(part);
	c->goes_on = !c->s->merge && !access(part, F_OK);
	rc = frag_store_open(&c->store, part, c->s->merge, err) ?: work(c, err);
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
	frag_progress_begin(&c->progress, "sweeping");
	rc = hand_out(c, err);
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
	FRAG_TRY(frag_store_missing_shards(c->store, c->s->missing, sizeof(c->s->missing), err));
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
		return frag_fail(err, FRAG_EUSAGE,
				 "no traces given; name files or folders, or a --list");
	frag_sweep_files_sort(&s->files);
	return 0;
}

static int start_ranks(struct course *c, struct frag_err *err)
{
	char why[200];

	if (!c->ranks)
		return 0;
	if (c->ranks->start(&c->rank, &c->ranks_count, why))
		return frag_fail(err, FRAG_EUSAGE, "MPI does not start: %s", why);
	c->rank_task = frag_host_calloc((size_t)c->ranks_count, sizeof(*c->rank_task));
	FRAG_CHECK_ALLOC(c->rank_task, "ranks", err);
	for (int r = 0; r < c->ranks_count; r++)
		c->rank_task[r] = NOTHING;
	return 0;
}

static int run_course(struct course *c, struct frag_err *err)
{
	int rc;

	FRAG_TRY(start_ranks(c, err));
	c->s->is_served = c->rank > 0;
	if (c->s->is_served)
		return frag_sweep_rank_serve(c->s, c->ranks, &c->workers[0], err);
	rc = find_files(c->s, err) ?: with_part(c, sweep, err);
	for (int r = 1; r < c->ranks_count; r++)
		frag_sweep_rank_give(c->ranks, r, 0, NULL);
	return rc;
}

int frag_sweep_run(struct frag_sweep *s, struct frag_answer *a, struct frag_rows *failures,
		   struct frag_err *err)
{
	struct course c = { .s = s, .answer = a, .failures = failures };
	int rc;

	if (s->merge)
		return with_part(&c, merge, err);
	frag_interrupt_catch();
	signal(SIGPIPE, SIG_IGN);
	FRAG_TRY(frag_sweep_ranks_open(&c.ranks, err));
	c.workers_count = c.ranks ? 1 : FRAG_MAX(s->threads, 1u);
	FRAG_TRY_CALLOC(c.workers, c.workers_count, "workers", err);
	rc = run_course(&c, err);
	for (size_t i = 0; i < c.workers_count; i++)
		frag_sweep_worker_end(&c.workers[i]);
	if (c.ranks && c.ranks_count)
		c.ranks->stop();
	FRAG_FREE(c.rank_task, c.workers, c.tries);
	return rc;
}
