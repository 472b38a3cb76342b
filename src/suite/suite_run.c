/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The course of a run: hands rows (of the card: turns) out to processes, and keeps each in OUT/suite.part as it comes,
 * so that a run that was stopped goes on there; see suite.h.
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

struct course {
	struct frag_suite *s;
	FILE *part;
	char *path;   /* of it */
	json_t *kept; /* rows, or turns, that are done: as JSON */
	struct frag_suite_trace trace;
	size_t opened; /* which workload that is; SIZE_MAX = none */
	struct frag_worker *workers;
	uint64_t *deadlines; /* of the workers */
	const size_t *turns; /* policies of the next child on the card */
	size_t turns_count;
	size_t done;
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

	frag_text_addf(t, "cufrag %s suite %s %s seed %llu %s %s", FRAG_VERSION,
		       s->manifest.version, s->manifest.sha256, (unsigned long long)s->target.seed,
		       s->card ? c->card.name : "simulated", s->card ? c->card.driver : "");
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
		return frag_fail(err, FRAG_EOUTPUT, "cannot write '%.200s': %m", c->path);
	return 0;
}

static int keep_row(struct course *c, const struct frag_suite_row *row, struct frag_err *err)
{
	json_auto_t *json = frag_shape_json(&frag_suite_row_shape, row);

	FRAG_CHECK_ALLOC(json, "rows", err);
	return keep(c, json, err);
}

static bool is_of(const struct course *c, json_t *row, size_t w, size_t p)
{
	const char *workload = json_string_value(json_object_get(row, "workload")),
		   *policy = json_string_value(json_object_get(row, "policy"));

	return !strcmp(workload, c->s->manifest.workloads[w].name) &&
	       !strcmp(policy, policy_of(c, p));
}

static bool has(const struct course *c, size_t w, size_t p)
{
	for (size_t i = 0; i < json_array_size(c->kept); i++)
		if (is_of(c, json_array_get(c->kept, i), w, p))
			return true;
	return false;
}

/* What an earlier call kept; the last line may be cut. */
static int read_part(struct course *c, const char *question, struct frag_err *err)
{
	FRAG_AUTO_FILE FILE *in = fopen(c->path, "r");
	FRAG_AUTO_FREE char *line = NULL;
	struct frag_suite_row row;
	size_t cap = 0;
	ssize_t n = in ? getline(&line, &cap, in) : -1;

	if (n <= 0)
		return 0;
	line[n - (line[n - 1] == '\n')] = '\0';
	if (strcmp(line, question) != 0)
		return frag_fail(err, FRAG_EUSAGE,
				 "'%.200s' is of a run of something else; remove it, or name "
				 "another folder with --out",
				 c->path);
	while (getline(&line, &cap, in) > 0) {
		json_auto_t *json = json_loads(line, 0, NULL);

		if (json && frag_suite_row_read(&row, json))
			FRAG_CHECK_ALLOC(!json_array_append(c->kept, json), "rows", err);
	}
	return 0;
}

static int open_part(struct course *c, struct frag_err *err)
{
	FRAG_AUTO(frag_text_release) struct frag_text question = { 0 };
	json_auto_t *found = NULL;

	FRAG_TRY(frag_make_dirs(c->s->out, err));
	FRAG_TRY(question_of(c, &question, err));
	FRAG_TRY(read_part(c, question.s, err));
	found = FRAG_GIVE(c->kept);
	c->kept = json_array();
	c->part = fopen(c->path, "w");
	if (!c->part)
		return frag_fail(err, FRAG_EOUTPUT, "cannot write '%.200s': %m", c->path);
	fprintf(c->part, "%s\n", question.s);
	for (size_t i = 0; i < json_array_size(found); i++)
		FRAG_TRY(keep(c, json_array_get(found, i), err));
	return 0;
}

static int open_workload(struct course *c, size_t w, struct frag_err *err)
{
	const struct frag_suite *s = c->s;

	if (c->opened == w)
		return 0;
	frag_suite_trace_release(&c->trace);
	c->opened = SIZE_MAX;
	FRAG_TRY(frag_suite_trace_open(&s->manifest, &s->manifest.workloads[w], &s->target,
				       &c->trace, err));
	c->opened = w;
	return 0;
}

/* ---- the simulated division: a process per row ------------------------------------------- */

static void tell_row(const struct frag_suite_row *row, int to)
{
	json_t *json = frag_shape_json(&frag_suite_row_shape, row);
	char *line = json ? json_dumps(json, JSON_COMPACT) : NULL;

	if (!line)
		_exit(1);
	frag_worker_tell(to, line, strlen(line));
	frag_worker_tell(to, "\n", 1);
	free(line);
	json_decref(json);
}

static void work_row(const void *course, size_t task, int to)
{
	const struct course *c = course;
	size_t policies = c->s->policies.count;
	const char *policy = policy_of(c, task % policies);
	struct frag_suite_row row =
		frag_suite_row_empty(&c->s->manifest.workloads[task / policies], &c->trace, policy);

	frag_worker_bound(0, c->s->jobs);
	frag_suite_measure(c->s, &c->trace, policy, &row);
	tell_row(&row, to);
}

/* A worker without an answer: its row has failed. */
static int give_up(struct course *c, size_t w, size_t p, bool late, const char *why,
		   struct frag_err *err)
{
	struct frag_suite_row row =
		frag_suite_row_empty(&c->s->manifest.workloads[w], NULL, policy_of(c, p));

	row.state = late ? "timeout" : "crashed";
	row.why = late ? "it took longer than --timeout" : why;
	return keep_row(c, &row, err);
}

/* 1: it has ended. */
static int look_at_worker(struct course *c, size_t i, char *why, bool *late)
{
	struct frag_worker *w = &c->workers[i];
	size_t before = w->len;
	int rc;

	if (!w->pid)
		return 0;
	*late = frag_clock_ns() > c->deadlines[i];
	if (*late)
		kill(w->pid, SIGKILL);
	rc = frag_worker_take(w, why);
	if (w->len > before)
		c->deadlines[i] = frag_clock_ns() + c->s->timeout_s * SECOND;
	return rc;
}

static int start(struct course *c, size_t i, size_t task,
		 void (*work)(const void *course, size_t task, int to), struct frag_err *err)
{
	c->deadlines[i] = frag_clock_ns() + c->s->timeout_s * SECOND;
	return frag_worker_start(&c->workers[i], task, work, c, err);
}

/* Lines of rows; *count: how many. */
static int keep_lines(struct course *c, const struct frag_worker *w, size_t *count,
		      struct frag_err *err)
{
	for (char *at = w->answer, *end;
	     at && (end = memchr(at, '\n', w->len - (size_t)(at - w->answer))); at = end + 1) {
		json_auto_t *json = json_loadb(at, (size_t)(end - at), 0, NULL);
		struct frag_suite_row row;

		if (!json || !frag_suite_row_read(&row, json))
			break;
		FRAG_TRY(keep(c, json, err));
		++*count;
	}
	return 0;
}

static int take_rows(struct course *c, struct frag_err *err)
{
	size_t policies = c->s->policies.count;

	frag_worker_wait(c->workers, c->s->jobs, 200);
	for (size_t i = 0; i < c->s->jobs; i++) {
		size_t task = c->workers[i].task, lines = 0;
		char why[120];
		bool late;
		int rc = look_at_worker(c, i, why, &late);

		if (!rc)
			continue;
		FRAG_TRY(keep_lines(c, &c->workers[i], &lines, err));
		if (!lines)
			FRAG_TRY(give_up(c, task / policies, task % policies, late, why, err));
		c->done++;
	}
	return 0;
}

static bool busy(const struct course *c)
{
	for (size_t i = 0; i < c->s->jobs; i++)
		if (c->workers[i].pid)
			return true;
	return false;
}

static int run_rows(struct course *c, struct frag_err *err)
{
	size_t policies = c->s->policies.count, next = 0,
	       total = policies * c->s->manifest.workloads_count;

	do {
		for (size_t i = 0; i < c->s->jobs && next < total; i++) {
			while (next < total && has(c, next / policies, next % policies)) {
				next++;
				c->done++;
			}
			if (c->workers[i].pid || next == total)
				continue;
			FRAG_TRY(open_workload(c, next / policies, err));
			FRAG_TRY(start(c, i, next++, work_row, err));
		}
		frag_progress_update(&c->progress, c->done, total);
		if (busy(c))
			FRAG_TRY(take_rows(c, err));
	} while (!frag_interrupted() && (busy(c) || next < total));
	if (frag_interrupted() && c->done < total)
		return frag_fail(err, FRAG_EINTR,
				 "interrupted after %zu of %zu rows; the same command goes on",
				 c->done, total);
	return 0;
}

/* ---- the card: a process for a turn of each policy --------------------------------------- */

static void work_turns(const void *course, size_t task, int to)
{
	const struct course *c = course;

	for (size_t i = 0; i < c->turns_count; i++) {
		const char *policy = policy_of(c, c->turns[i]);
		struct frag_suite_row row =
			frag_suite_row_empty(&c->s->manifest.workloads[task], &c->trace, policy);

		frag_suite_turn(c->s, &c->trace, policy, &row);
		tell_row(&row, to);
	}
}

/* The turns of one row, into the row. true: it is finished. */
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

static bool out_of_time(const struct course *c)
{
	return c->s->budget_s && frag_clock_ns() - c->begin_ns > c->s->budget_s * SECOND;
}

/* One turn of every policy that needs more of them. */
static int take_turns(struct course *c, size_t w, struct frag_err *err)
{
	size_t lines = 0;
	char why[120];
	bool late = false;
	int rc;

	FRAG_TRY(frag_suite_card_look(c->s->ordinal, &c->card, err));
	if (c->card.processes)
		return frag_fail(err, FRAG_EDEVICE,
				 "another process is on the card; what was measured is kept, and "
				 "the same command goes on");
	FRAG_TRY(start(c, 0, w, work_turns, err));
	do
		frag_worker_wait(c->workers, 1, 200);
	while (!frag_interrupted() && !(rc = look_at_worker(c, 0, why, &late)));
	if (frag_interrupted())
		return 0;
	FRAG_TRY(keep_lines(c, &c->workers[0], &lines, err));
	return lines < c->turns_count ? give_up(c, w, c->turns[lines], late, why, err) : 0;
}

static int run_turns(struct course *c, struct frag_err *err)
{
	size_t policies = c->s->policies.count, total = policies * c->s->manifest.workloads_count;
	FRAG_AUTO_FREE size_t *turns = NULL;
	struct frag_suite_row row;

	FRAG_TRY_CALLOC(turns, policies, "turns", err);
	c->turns = turns;
	for (size_t w = 0; w < c->s->manifest.workloads_count; w++) {
		do {
			c->turns_count = 0;
			for (size_t p = 0; p < policies; p++) {
				bool is_done;

				FRAG_TRY(sum(c, w, p, &row, &is_done, err));
				if (!is_done)
					turns[c->turns_count++] = p;
			}
			frag_progress_update(&c->progress, (w + 1) * policies - c->turns_count,
					     total);
			if (!c->turns_count)
				break;
			if (frag_interrupted() || out_of_time(c))
				return frag_fail(err, FRAG_EINTR,
						 "stopped after %zu of %zu rows; the same command "
						 "goes on",
						 (w + 1) * policies - c->turns_count, total);
			FRAG_TRY(open_workload(c, w, err));
			FRAG_TRY(take_turns(c, w, err));
		} while (c->turns_count);
	}
	return 0;
}

/* ---- all of it ---------------------------------------------------------------------------- */

/* In the order of the manifest, whatever order they came in. */
static int put_in_order(struct course *c, json_t *rows, struct frag_err *err)
{
	for (size_t w = 0; w < c->s->manifest.workloads_count; w++)
		for (size_t p = 0; p < c->s->policies.count; p++) {
			struct frag_suite_row row;
			bool is_done;
			json_t *json;

			FRAG_TRY(sum(c, w, p, &row, &is_done, err));
			json = frag_shape_json(&frag_suite_row_shape, &row);
			FRAG_CHECK_ALLOC(!json_array_append_new(rows, json), "rows", err);
		}
	return 0;
}

static int finish(struct course *c, struct frag_err *err)
{
	FRAG_AUTO_FREE char *path = frag_path_join(c->s->out, "suite.json");
	json_auto_t *rows = json_array(), *doc = NULL;
	FRAG_AUTO_FREE char *text = NULL;

	FRAG_CHECK_ALLOC(path && rows, "result", err);
	FRAG_TRY(put_in_order(c, rows, err));
	doc = frag_suite_result_make(c->s, rows, c->s->card ? &c->card : NULL);
	text = doc ? json_dumps(doc, JSON_INDENT(1) | JSON_SORT_KEYS) : NULL;
	FRAG_CHECK_ALLOC(text, "result", err);
	FRAG_TRY(frag_outfile_put(path, text, strlen(text), err));
	unlink(c->path);
	return 0;
}

static int run(struct course *c, struct frag_err *err)
{
	int rc;

	FRAG_TRY(frag_suite_manifest_check(&c->s->manifest, err));
	if (c->s->card)
		FRAG_TRY(frag_suite_card_look(c->s->ordinal, &c->card, err));
	FRAG_TRY(open_part(c, err));
	frag_progress_begin(&c->progress, c->s->card ? "measuring on the card" : "measuring");
	rc = c->s->card ? run_turns(c, err) : run_rows(c, err);
	frag_progress_end(&c->progress);
	rc = rc ?: finish(c, err);
	if (rc && !json_array_size(c->kept))
		unlink(c->path);
	return rc;
}

int frag_suite_run(struct frag_suite *s, struct frag_err *err)
{
	struct course c = { .s = s, .opened = SIZE_MAX, .begin_ns = frag_clock_ns() };
	int rc;

	s->jobs = FRAG_MAX(s->jobs, 1u);
	c.path = frag_path_join(s->out, "suite.part");
	c.kept = json_array();
	c.workers = frag_host_calloc(s->jobs, sizeof(*c.workers));
	c.deadlines = frag_host_calloc(s->jobs, sizeof(*c.deadlines));
	frag_interrupt_catch();
	signal(SIGPIPE, SIG_IGN);
	rc = c.path && c.kept && c.workers && c.deadlines ? run(&c, err)
							  : frag_fail_nomem(err, "suite");
	for (size_t i = 0; c.workers && i < s->jobs; i++)
		frag_worker_end(&c.workers[i]);
	if (c.part)
		fclose(c.part);
	frag_suite_trace_release(&c.trace);
	json_decref(c.kept);
	FRAG_FREE(c.path, c.workers, c.deadlines);
	return rc;
}
