/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of a program with changes, as "checkpoint+fused", each in a child, several at a time. */
#include "trial.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <frag/clock.h>

#include "base/last_words.h"
#include "pretend/start/child.h"

#define PCIE_BYTES_PER_SECOND 25e9 /* of pinned memory, PCIe 4.0 x16 */
#define NO_STATUS 126		   /* of a run that was not one */

struct run {
	struct frag_child child;
	unsigned n; /* its number */
	bool late;
	struct frag_advice *x; /* NULL: none of the list */
};

/* Several trials run at a time, so a port that the launcher was given is another one in each. */
static void put_port(char **word)
{
	static const char *const names[] = { "--master-port",	    "--master_port",
					     "--main-process-port", "--main_process_port",
					     "--rdzv-endpoint",	    "--rdzv_endpoint" };
	const unsigned port = frag_launch_free_port();

	for (bool follows = false; port && *word; word++) {
		const size_t n = strcspn(*word, "=");
		const bool has_value = follows || (*word)[n];
		char *at = strrchr(*word, ':') ?: strchr(*word, '='), *text = NULL;
		size_t i = 0;

		while (i < FRAG_ARRAY_LEN(names) && (strncmp(*word, names[i], n) || names[i][n]))
			i++;
		at = at ? at + 1 : *word;
		if (has_value && (follows || i < FRAG_ARRAY_LEN(names)) &&
		    isdigit((unsigned char)*at))
			text = frag_host_alloc(strlen(*word) + 8);
		follows = i < FRAG_ARRAY_LEN(names) && !has_value;
		if (!text)
			continue;
		sprintf(text, "%.*s%u", (int)(at - *word), *word, port);
		*word = text;
	}
}

/* In the child, which ends with the program's status. */
static void __attribute__((noreturn))
work(const struct frag_advising *a, const char *folder, const char *changes)
{
	struct frag_launch launch = a->trials.launch;
	struct frag_err err;
	int status;

	dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDOUT_FILENO);
	launch.stdout_to_stderr = false;
	put_port(a->program.words);
	setenv(CUFRAG_CHANGES, changes, 1);
	frag_launch_put_path(CUFRAG_PRETEND_FORKS, a->trials.folder, "ask");
	if (frag_pretend_run_into(&launch, a->pretend, a->program.words, folder, &status, &err)) {
		fprintf(stderr, "%s\n", err.msg);
		status = NO_STATUS;
	}
	frag_child_leave(status);
}

static int start(struct frag_advising *a, const char *changes, struct frag_advice *x, struct run *r,
		 struct frag_err *err)
{
	char folder[4096];

	*r = (struct run){ .x = x };
	FRAG_TRY(frag_trials_folder(a, &r->n, folder, err));
	frag_trials_path(a, r->n, "log", r->child.log, sizeof(r->child.log));
	FRAG_TRY(frag_child_begin(&r->child, err));
	if (!r->child.pid)
		work(a, folder, changes);
	return 0;
}

/* Is the training unchanged? */
static void check(const struct frag_advising *a, struct frag_trial *t, const struct run *r)
{
	char line[250];

	if (r->late)
		snprintf(t->why, sizeof(t->why), "%snot at its end after %u s", FRAG_TRIAL_UNTRIED,
			 a->seconds);
	else if (!t->done) {
		frag_last_words(r->child.log, line, sizeof(line));
		if (!*line)
			snprintf(line, sizeof(line), "it ended with status %d", t->status);
		snprintf(t->why, sizeof(t->why), FRAG_TRIAL_UNTRIED "%.250s", line);
	} else if (t->steps != a->first.steps)
		snprintf(t->why, sizeof(t->why), "refused: %llu steps of the optimizer, not %llu",
			 (unsigned long long)t->steps, (unsigned long long)a->first.steps);
	else if (t->updated != a->first.updated)
		snprintf(t->why, sizeof(t->why), "refused: %llu weights are updated, not %llu",
			 (unsigned long long)t->updated, (unsigned long long)a->first.updated);
	t->done &= !*t->why;
}

/* False: it is still running, and is ended if it is late or cufrag interrupted. */
static bool ended(struct frag_advising *a, struct run *r, struct frag_trial *t)
{
	struct frag_err err;
	char folder[4096];
	int state;
	bool oom;

	if (!frag_child_ended(&r->child, &state)) {
		a->interrupted |= frag_launch_interrupted();
		r->late |= frag_clock_ns() - r->child.begin_ns > a->seconds * 1000000000ull;
		if (r->late || a->interrupted)
			frag_child_end(&r->child);
		return false;
	}
	*t = (struct frag_trial){ .status = WIFEXITED(state) ? WEXITSTATUS(state) : NO_STATUS };
	if (a->interrupted)
		return true;
	if (!r->late && frag_trial_collect(a, r->n, t->status, t, &oom, &err))
		t->done = false;
	check(a, t, r);
	frag_trials_path(a, r->n, "", folder, sizeof(folder));
	if (!*t->why || !getenv(CUFRAG_CHANGES_DEBUG))
		frag_launch_folder_remove(folder);
	return true;
}

static void fill(struct frag_advising *a, struct frag_advice *x, const struct frag_trial *t)
{
	const struct frag_gpu *card;

	x->left_out = frag_advice_text(a->texts, t->done ? "" : t->why);
	if (!t->done)
		return;
	x->tried = true;
	x->after = t->peaks;
	x->curve = t->curve;
	x->cost = (struct frag_advice_cost){
		.moved = t->moved,
		.calls = frag_advice_above(t->calls, a->first.calls),
		.seconds = ((double)t->span_ns - (double)a->first.span_ns) / 1e9 +
			   (double)t->moved / PCIE_BYTES_PER_SECOND,
	};
	card = frag_catalog_pick(&a->catalog, frag_advice_need(&t->peaks), &a->headroom);
	x->card = card ? card->name : NULL;
	a->tried++;
}

int frag_trial_alone(struct frag_advising *a, const char *names, struct frag_trial *t,
		     struct frag_err *err)
{
	struct run run;

	FRAG_TRY(start(a, names, NULL, &run, err));
	while (!ended(a, &run, t))
		usleep(5000);
	return 0;
}

int frag_trial_each(struct frag_advising *a, struct frag_err *err)
{
	FRAG_AUTO_FREE struct run *runs = NULL;
	size_t next = 0, on = 0;
	int rc = 0;

	FRAG_TRY_CALLOC(runs, a->workers, "advice", err);
	do {
		for (; next < a->count && on < a->workers && !a->interrupted && !rc; next++) {
			struct frag_advice *x = &a->list[next];

			if (!*x->left_out) {
				rc = start(a, x->change, x, &runs[on], err);
				on += !rc;
			}
		}
		a->interrupted |= rc != 0;
		for (size_t i = 0; i < on;) {
			struct frag_trial t;

			if (!ended(a, &runs[i], &t)) {
				i++;
				continue;
			}
			if (!a->interrupted) {
				fill(a, runs[i].x, &t);
				if (a->progress)
					a->progress(a->ctx, a, runs[i].x);
			}
			runs[i] = runs[--on];
		}
		usleep(5000);
	} while (on || (next < a->count && !a->interrupted));
	return rc;
}

/* ---- changes with a number ------------------------------------------------------ */

/* Adds a row for change i with another number. */
static void add_numbered(struct frag_advising *a, size_t i, unsigned n, const struct frag_trial *t)
{
	struct frag_advice *x = &a->list[a->count++];

	*x = a->list[i];
	frag_offer_number(a, x, x->change, n);
	x->most = 0;
	x->tried = false;
	fill(a, x, t);
	if (a->progress)
		a->progress(a->ctx, a, x);
}

/* The smallest number with which it fits, by doubling and bisection, or else the largest. */
static int find_number(struct frag_advising *a, size_t i, struct frag_err *err)
{
	struct frag_trial t, best = { 0 };
	unsigned low = 2, high = 0, n, found = 0;

	while (high ? high - low > 1 : low < a->list[i].most) {
		n = high ? low + (high - low) / 2 : FRAG_MIN(2 * low, a->list[i].most);
		FRAG_TRY(frag_trial_alone(
			a, frag_answer_print(a->texts, "%s=%u", a->list[i].change, n), &t, err));
		if (a->interrupted)
			return 0;
		if (t.done && frag_trial_fits(a, &t.peaks))
			high = n;
		else
			low = n;
		if (t.done && (high == n || !high)) {
			best = t;
			found = n;
		}
	}
	if (found)
		add_numbered(a, i, found, &best);
	return 0;
}

int frag_trial_numbers(struct frag_advising *a, struct frag_err *err)
{
	const size_t n = a->count;

	if (!a->named || frag_trial_fits(a, &a->first.peaks))
		return 0;
	for (size_t i = 0; i < n && !a->interrupted; i++)
		if (a->list[i].most > 2 && a->list[i].tried &&
		    !frag_trial_fits(a, &a->list[i].after))
			FRAG_TRY(find_number(a, i, err));
	return 0;
}
