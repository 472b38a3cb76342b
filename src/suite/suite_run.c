/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The course of a run: hands rows (of the card: turns) out to processes, and keeps each in
 * OUT/suite.part as it comes, so that a run that was stopped goes on there; see suite.h.
 */
#include "suite.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <frag/clock.h>

#include "base/clean.h"
#include "base/interrupt.h"
#include "base/outfile.h"
#include "base/term.h"
#include "base/worker.h"

#define SECOND 1000000000ull

/* What a process works on: one row, or on the card a turn of each of these policies. */
struct job {
	size_t workload, *policies, count;
	uint64_t deadline_ns;
};

struct course {
	struct frag_suite *s;
	FILE *part;
	char *path;   /* of it */
	json_t *kept; /* rows, or turns, that are done: as JSON */
	struct frag_suite_trace trace;
	size_t opened; /* which workload that is; SIZE_MAX = none */
	struct frag_worker *workers;
	struct job *jobs;	 /* of the workers */
	size_t workload, policy; /* the next to look at */
	uint64_t begin_ns;
	struct frag_suite_card card;
	struct frag_progress progress;
};

static const char *policy_of(const struct course *c, size_t i)
{
	return c->s->policies.text[i];
}

/* ---- what is done ---------------------------------------------------------------------- */

/* Rows of another question are never mixed in: of other workloads, another program or card. */
static int question_of(const struct course *c, struct frag_text *t, struct frag_err *err)
{
	const struct frag_suite *s = c->s;

	frag_text_addf(t, "cufrag %s suite %s, %llu events, seed %llu, %s %s", FRAG_VERSION,
		       s->manifest.sha256, (unsigned long long)s->manifest.events_max,
		       (unsigned long long)s->target.seed, s->card ? c->card.name : "simulated",
		       s->card ? c->card.driver : "");
	for (size_t i = 0; i < s->policies.count; i++) {
		char hash[FRAG_SHA256_TEXT];

		if (frag_ends_with(policy_of(c, i), ".so")) {
			FRAG_TRY(frag_sha256_file(policy_of(c, i), hash, err));
			frag_text_addf(t, " %s", hash);
		}
	}
	return frag_text_check(t, err);
}

static int keep(struct course *c, json_t *row, struct frag_err *err)
{
	FRAG_AUTO_FREE char *line = json_dumps(row, JSON_COMPACT | JSON_SORT_KEYS);
	bool kept = line && !json_array_append(c->kept, row);

	FRAG_CHECK_ALLOC(kept, "rows", err);
	if (fprintf(c->part, "%s\n", line) < 0 || fflush(c->part))
		return FRAG_OUTPUT(err, "cannot write '%.200s': %m", c->path);
	return 0;
}

static bool is_of(const struct course *c, json_t *row, size_t w, size_t p)
{
	const char *workload = json_string_value(json_object_get(row, "workload")),
		   *policy = json_string_value(json_object_get(row, "policy"));

	return !strcmp(workload, c->s->manifest.workloads[w].name) &&
	       !strcmp(policy, policy_of(c, p));
}

/* What an earlier call kept, and where this one goes on; a line may be cut. */
static int open_part(struct course *c, struct frag_err *err)
{
	FRAG_AUTO(frag_text_release) struct frag_text question = { 0 };
	FRAG_AUTO_FILE FILE *in = fopen(c->path, "r");
	FRAG_AUTO_FREE char *line = NULL;
	struct frag_suite_row row;
	size_t cap = 0;
	ssize_t n = in ? getline(&line, &cap, in) : -1;

	FRAG_TRY(question_of(c, &question, err));
	if (n > 0 && (strncmp(line, question.s, question.len) != 0 || line[question.len] != '\n'))
		return FRAG_USAGE(err,
				  "'%.200s' is of a run of something else; remove it, or name "
				  "another folder with --out",
				  c->path);
	while (n > 0 && getline(&line, &cap, in) > 0) {
		json_auto_t *json = json_loads(line, 0, NULL);

		if (json && frag_suite_row_read(&row, json))
			FRAG_CHECK_ALLOC(!json_array_append(c->kept, json), "rows", err);
	}
	FRAG_TRY(frag_make_dirs(c->s->out, err));
	c->part = fopen(c->path, "a");
	if (!c->part || fprintf(c->part, "%s\n", n > 0 ? "" : question.s) < 0)
		return FRAG_OUTPUT(err, "cannot write '%.200s': %m", c->path);
	return 0;
}

/* The turns of one row, into the row; the one row that the simulated division has. */
static int sum(const struct course *c, size_t w, size_t p, struct frag_suite_row *row,
	       bool *is_done, struct frag_err *err)
{
	FRAG_AUTO_FREE struct frag_suite_row *turns = NULL;
	size_t n = 0;

	FRAG_TRY_CALLOC(turns, json_array_size(c->kept) + 1, "turns", err);
	for (size_t i = 0; i < json_array_size(c->kept); i++)
		if (is_of(c, json_array_get(c->kept, i), w, p))
			n += frag_suite_row_read(&turns[n], json_array_get(c->kept, i));
	*is_done = n && frag_suite_sum_turns(turns, n, row);
	return 0;
}

/* ---- processes ---------------------------------------------------------------------------- */

static void work(const void *course, size_t i, int to)
{
	const struct course *c = course;
	const struct job *j = &c->jobs[i];

	if (!c->s->card)
		frag_worker_bound(0, c->s->jobs);
	for (size_t k = 0; k < j->count; k++) {
		const char *policy = policy_of(c, j->policies[k]);
		struct frag_suite_row row = frag_suite_row_empty(
			&c->s->manifest.workloads[j->workload], &c->trace, policy);
		json_auto_t *json = NULL;
		FRAG_AUTO_FREE char *line = NULL;

		if (c->s->card)
			frag_suite_turn(c->s, &c->trace, policy, &row);
		else
			frag_suite_measure(c->s, &c->trace, policy, &row);
		json = frag_shape_json(&frag_suite_row_shape, &row);
		line = json ? json_dumps(json, JSON_COMPACT) : NULL;
		if (!line)
			return;
		frag_worker_tell(to, line, strlen(line));
		frag_worker_tell(to, "\n", 1);
	}
}

/* What is next: a row, or the policies that need a further turn. */
static int find_job(struct course *c, struct job *j, struct frag_err *err)
{
	size_t policies = c->s->policies.count, most = c->s->card ? policies : 1;
	struct frag_suite_row row;
	bool is_done;

	for (j->count = 0; c->workload < c->s->manifest.workloads_count; c->workload++) {
		j->workload = c->workload;
		for (; c->policy < policies && j->count < most; c->policy++) {
			FRAG_TRY(sum(c, c->workload, c->policy, &row, &is_done, err));
			if (!is_done)
				j->policies[j->count++] = c->policy;
		}
		if (j->count)
			break;
		c->policy = 0;
	}
	if (c->s->card)
		c->policy = 0; /* after this turn its rows are looked at again */
	return 0;
}

/* A process that has just ended may be on the card for a moment more. */
static int check_alone(struct course *c, struct frag_err *err)
{
	for (unsigned i = 0; i < 10; i++) {
		FRAG_TRY(frag_suite_card_look(c->s->ordinal, &c->card, err));
		if (!c->card.processes)
			return 0;
		usleep(300000);
	}
	return frag_fail(err, FRAG_EDEVICE,
			 "another process is on the card; what was measured is kept, and the same "
			 "command goes on");
}

static int start(struct course *c, size_t i, struct frag_err *err)
{
	struct job *j = &c->jobs[i];

	FRAG_TRY(find_job(c, j, err));
	if (!j->count)
		return 0;
	if (c->opened != j->workload) {
		frag_suite_trace_release(&c->trace);
		FRAG_TRY(frag_suite_trace_open(&c->s->manifest,
					       &c->s->manifest.workloads[j->workload],
					       &c->s->target, &c->trace, err));
		c->opened = j->workload;
	}
	if (c->s->card)
		FRAG_TRY(check_alone(c, err));
	j->deadline_ns = frag_clock_ns() + c->s->timeout_s * SECOND;
	return frag_worker_start(&c->workers[i], i, work, c, err);
}

/* The lines that a process told before it ended; then the row without an answer has failed. */
static int keep_lines(struct course *c, const struct job *j, const struct frag_worker *w,
		      const char *state, const char *why, struct frag_err *err)
{
	char *at = w->answer, *end;
	struct frag_suite_row row;
	size_t lines = 0;

	for (; at && (end = memchr(at, '\n', w->len - (size_t)(at - w->answer))); at = end + 1) {
		json_auto_t *json = json_loadb(at, (size_t)(end - at), 0, NULL);

		if (!json || !frag_suite_row_read(&row, json))
			break;
		FRAG_TRY(keep(c, json, err));
		lines++;
	}
	if (lines < j->count) {
		json_auto_t *json = NULL;

		row = frag_suite_row_empty(&c->s->manifest.workloads[j->workload], NULL,
					   policy_of(c, j->policies[lines]));
		row.state = state;
		row.why = why;
		json = frag_shape_json(&frag_suite_row_shape, &row);
		FRAG_CHECK_ALLOC(json, "rows", err);
		return keep(c, json, err);
	}
	return 0;
}

static bool is_stopped(const struct course *c)
{
	return frag_interrupted() ||
	       (c->s->budget_s && frag_clock_ns() - c->begin_ns > c->s->budget_s * SECOND);
}

static int look(void *course, struct frag_worker *w, struct frag_err *err)
{
	struct course *c = course;
	size_t policies = c->s->policies.count, i = (size_t)(w - c->workers), before = w->len;
	struct job *j = &c->jobs[i];
	bool late = w->pid && frag_clock_ns() > j->deadline_ns;
	char why[120];
	int rc;

	frag_progress_update(&c->progress, c->workload * policies + c->policy,
			     c->s->manifest.workloads_count * policies);
	if (late)
		kill(w->pid, SIGKILL);
	rc = w->pid ? frag_worker_take(w, why) : 0;
	if (w->len > before)
		j->deadline_ns = frag_clock_ns() + c->s->timeout_s * SECOND;
	if (rc)
		FRAG_TRY(keep_lines(c, j, w, late ? "timeout" : "crashed",
				    late ? "it took longer than --timeout" : why, err));
	return w->pid || is_stopped(c) ? 0 : start(c, i, err);
}

static int hand_out(struct course *c, struct frag_err *err)
{
	FRAG_TRY(frag_workers_run(c->workers, c->s->jobs, look, c, err));
	if (!is_stopped(c) || c->workload == c->s->manifest.workloads_count)
		return 0;
	return frag_fail(err, FRAG_EINTR,
			 "stopped in workload %zu of %zu; the same command goes on",
			 c->workload + 1, c->s->manifest.workloads_count);
}

/* ---- all of it ---------------------------------------------------------------------------- */

/* Rows in the order of the manifest, whatever order they came in. */
static int finish(struct course *c, struct frag_err *err)
{
	FRAG_AUTO_FREE char *path = frag_path_join(c->s->out, "suite.json"), *text = NULL;
	json_auto_t *rows = json_array(), *doc = NULL;
	size_t policies = c->s->policies.count;

	FRAG_CHECK_ALLOC(path && rows, "result", err);
	for (size_t i = 0; i < c->s->manifest.workloads_count * policies; i++) {
		struct frag_suite_row row = { 0 };
		bool is_done;

		FRAG_TRY(sum(c, i / policies, i % policies, &row, &is_done, err));
		json_array_append_new(rows, frag_shape_json(&frag_suite_row_shape, &row));
	}
	doc = frag_suite_result_make(c->s, rows, c->s->card ? &c->card : NULL);
	text = doc ? json_dumps(doc, JSON_INDENT(1) | JSON_SORT_KEYS) : NULL;
	FRAG_CHECK_ALLOC(text, "result", err);
	FRAG_TRY(frag_outfile_put(path, text, strlen(text), err));
	unlink(c->path);
	return 0;
}

static int run(struct course *c, struct frag_err *err)
{
	size_t policies = c->s->policies.count;
	FRAG_AUTO_FREE size_t *lists = NULL;
	int rc;

	FRAG_TRY_CALLOC(c->workers, c->s->jobs, "suite", err);
	FRAG_TRY_CALLOC(c->jobs, c->s->jobs, "suite", err);
	FRAG_TRY_CALLOC(lists, c->s->jobs * policies, "suite", err);
	for (size_t i = 0; i < c->s->jobs; i++)
		c->jobs[i].policies = lists + i * policies;
	if (c->s->card)
		FRAG_TRY(frag_suite_card_look(c->s->ordinal, &c->card, err));
	FRAG_TRY(open_part(c, err));
	frag_progress_begin(&c->progress, c->s->card ? "measuring on the card" : "measuring");
	rc = hand_out(c, err);
	frag_progress_end(&c->progress);
	rc = rc ?: finish(c, err);
	if (rc && !json_array_size(c->kept))
		unlink(c->path);
	for (size_t i = 0; i < c->s->jobs; i++)
		frag_worker_end(&c->workers[i]);
	return rc;
}

int frag_suite_run(struct frag_suite *s, struct frag_err *err)
{
	struct course c = { .s = s,
			    .path = frag_path_join(s->out, "suite.part"),
			    .kept = json_array(),
			    .opened = SIZE_MAX,
			    .begin_ns = frag_clock_ns() };
	int rc;

	s->jobs = s->card ? 1 : FRAG_MAX(s->jobs, 1u);
	frag_interrupt_catch();
	signal(SIGPIPE, SIG_IGN);
	rc = c.path && c.kept ? run(&c, err) : frag_fail_nomem(err, "suite");
	if (c.part)
		fclose(c.part);
	frag_suite_trace_release(&c.trace);
	json_decref(c.kept);
	FRAG_FREE(c.path, c.workers, c.jobs);
	return rc;
}
