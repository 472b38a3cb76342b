/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs layouts in parallel, each in a process group of its own, so that a time limit can end all
 * its processes. The result is smaller than the buffer of the pipe that it comes through.
 */
#include "layouts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <frag/clock.h>

#include "base/interrupt.h"
#include "base/outfile.h"
#include "base/scratch.h"
#include "base/term.h"
#include "inject/launch/family.h"

#define GRACE_NS 5000000000ull /* from asking a process to end to killing it */
#define TRIAL_NS \
	30000000000ull /* added to twice the time of the longest layout: Python first imports everything */
#define ALIKE \
	8u /* after that many layouts failed with one message and none ran, the rest is skipped */
#define PRINTED_BYTES \
	(1ull << 30) /* of output of a layout, so that an endless one does not fill the disk */
#define TRIES 4u     /* confirmations that may fail, for each card and number of ranks */

struct job {
	pid_t pid; /* 0: none */
	enum frag_layout_way way;
	int from;
	size_t point, on;		       /* on: the card itself, or SIZE_MAX */
	uint64_t begin_ns, asked_ns, limit_ns; /* of its time; 0 = none */
	char ended[80];			       /* why cufrag ended it, or empty */
	char log[4200];
};

struct course {
	struct frag_layouts *x;
	struct job jobs[FRAG_LAYOUT_JOBS];
	unsigned running;
	char *folder;
	uint64_t number;
	struct frag_layout_forks forks;
	uint64_t longest_ns; /* that a layout took */
	struct frag_progress progress;
};

/* ---- processes ----------------------------------------------------------------------------- */

static void __attribute__((noreturn)) work(struct course *c, const struct job *j, int to)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC),
	    log = open(j->log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct frag_layout_result *r = calloc(1, sizeof(*r));

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	prctl(PR_SET_CHILD_SUBREAPER, 1); /* for frag_launch_family_kill */
	frag_progress_silence();
	dup2(null, STDIN_FILENO);
	dup2(log, STDOUT_FILENO);
	dup2(log, STDERR_FILENO);
	frag_layout_forks_enter(&c->forks, j->way, c->x);
	if (r)
		frag_layout_record(c->x, j->point, j->on, j->log, r);
	frag_launch_family_kill(getpid()); /* what the program left behind */
	_exit(r && write(to, r, sizeof(*r)) == sizeof(*r) ? 0 : 1);
}

static int start_as(struct course *c, size_t point, size_t on, enum frag_layout_way way,
		    struct frag_err *err)
{
	struct job *j = c->jobs;
	int ends[2];

	while (j->pid)
		j++;
	if (pipe2(ends, O_CLOEXEC))
		return frag_fail(err, FRAG_ENOMEM, "cannot start a process: %s", strerror(errno));
	*j = (struct job){ .from = ends[0],
			   .way = way,
			   .point = point,
			   .on = on,
			   .begin_ns = frag_clock_ns(),
			   .limit_ns = c->x->time_limit_s * 1000000000ull };
	if (way == FRAG_LAYOUT_TRIAL)
		j->limit_ns = 2 * c->longest_ns + TRIAL_NS;
	snprintf(j->log, sizeof(j->log), "%.4000s/%" PRIu64 ".log", c->folder, c->number++);
	fflush(NULL);
	j->pid = fork();
	if (!j->pid)
		work(c, j, ends[1]);
	close(ends[1]);
	if (j->pid < 0) {
		j->pid = 0;
		close(ends[0]);
		return frag_fail(err, FRAG_ENOMEM, "cannot start a process: %s", strerror(errno));
	}
	setpgid(j->pid, j->pid);
	c->running++;
	c->x->recordings += way != FRAG_LAYOUT_TRIAL;
	c->x->border.points[point].running = true;
	return 0;
}

static int start(struct course *c, size_t point, size_t on, struct frag_err *err)
{
	return start_as(c, point, on, frag_layout_forks_way(&c->forks, c->x, point), err);
}

/* The fork server repeats a layout whose result is known. */
static int start_trial(struct course *c, struct frag_err *err)
{
	const size_t point = c->forks.trial;

	c->forks.trial = SIZE_MAX;
	return start_as(c, point, SIZE_MAX, FRAG_LAYOUT_TRIAL, err);
}

/* Sends SIGTERM to a process group; kills it after a grace period. */
static void end(struct job *j)
{
	uint64_t now = frag_clock_ns();

	if (!j->asked_ns) {
		kill(-j->pid, SIGTERM);
	} else if (now - j->asked_ns > GRACE_NS) {
		kill(j->pid, SIGSTOP);
		frag_launch_family_kill(j->pid);
		kill(-j->pid, SIGKILL);
	}
	j->asked_ns = j->asked_ns ? j->asked_ns : now;
}

static void take(struct course *c, struct job *j, struct frag_layout_result *out)
{
	bool whole = read(j->from, out, sizeof(*out)) == sizeof(*out);
	int status = 0;

	close(j->from);
	kill(-j->pid, SIGKILL); /* what it left behind */
	while (waitpid(j->pid, &status, 0) < 0 && errno == EINTR)
		;
	if (!whole) {
		*out = (struct frag_layout_result){ .status = FRAG_LAYOUT_FAILED,
						    .rank = UINT64_MAX,
						    .step_us = UINT64_MAX };
		snprintf(out->message, sizeof(out->message), "its process ended %s %d",
			 WIFSIGNALED(status) ? "by signal" : "with status",
			 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	}
	if (*j->ended) {
		out->status = FRAG_LAYOUT_ENDLESS;
		snprintf(out->message, sizeof(out->message), "%s", j->ended);
	}
	unlink(j->log);
	c->longest_ns = FRAG_MAX(c->longest_ns, frag_clock_ns() - j->begin_ns);
	j->pid = 0;
	c->running--;
	c->x->border.points[j->point].running = false;
}

/* ---- answers ---------------------------------------------------------------------------- */

static uint64_t fits_of(const struct frag_layouts *x, const struct frag_layout_result *r)
{
	uint64_t fits = 0;

	for (size_t c = 0; c < x->cards_count; c++)
		if (r->cards[c].roomy)
			fits |= 1ull << c;
	return fits;
}

/* An answer is clear at one FAR-th of the room: the memory of NCCL does not change it. */
#define FAR 25u

static uint64_t clear_of(const struct frag_layouts *x, const struct frag_layout_result *r)
{
	uint64_t clear = 0;

	for (size_t c = 0; c < x->cards_count; c++) {
		const struct frag_layout_on_card *on = &r->cards[c];
		uint64_t far = on->room_bytes / FAR;

		if (r->status == FRAG_LAYOUT_RAN &&
		    (on->roomy ? r->min_bytes + far < on->room_bytes
			       : r->min_bytes > on->room_bytes + far))
			clear |= 1ull << c;
	}
	return clear;
}

/* Does a layout need more memory with more ranks, beyond the memory of NCCL? */
static bool rises_with_ranks(const struct frag_layouts *x, size_t i)
{
	const uint64_t need = x->results[i].min_bytes;

	for (size_t k = 0; k < x->border.count; k++) {
		const uint64_t other = x->results[k].min_bytes;

		if (x->results[k].status != FRAG_LAYOUT_RAN)
			continue;
		if ((frag_border_expected_below(&x->border, i, k) && need > other + other / FAR) ||
		    (frag_border_expected_below(&x->border, k, i) && other > need + need / FAR))
			return true;
	}
	return false;
}

static void tell(const struct course *c, const struct job *j, const struct frag_layout_result *r)
{
	const struct frag_layouts *x = c->x;
	char text[600], layout[200];
	size_t n;

	frag_axes_text(&x->axes, frag_layout_of(x, j->point), SIZE_MAX, layout, sizeof(layout));
	n = (size_t)snprintf(text, sizeof(text), "%s:", layout);
	if (r->status == FRAG_LAYOUT_RAN)
		n += (size_t)snprintf(text + n, sizeof(text) - n, " needs %s of a card,",
				      FRAG_BYTES(r->min_bytes));
	for (size_t k = 0; r->status == FRAG_LAYOUT_RAN && k < x->cards_count; k++)
		if (frag_layout_on(x, j->point, k) && n < sizeof(text))
			n += (size_t)snprintf(text + n, sizeof(text) - n, " %s %s%s",
					      r->cards[k].roomy	      ? "fits"
					      : r->cards[k].completes ? "is tight on"
								      : "does not fit",
					      x->cards[k]->name, j->on == k ? " itself" : "");
	if (r->status != FRAG_LAYOUT_RAN)
		snprintf(text + n, sizeof(text) - n, " %s: %.200s",
			 r->status == FRAG_LAYOUT_MEMORY ? "out of memory" : "failed", r->message);
	if (x->tell)
		x->tell(x->ctx, text);
}

static void note_result(struct course *c, struct job *j, const struct frag_layout_result *r)
{
	struct frag_layouts *x = c->x;
	struct frag_border_point *p = &x->border.points[j->point];

	if (j->on != SIZE_MAX) {
		x->confirms[x->confirms_count++] =
			(struct frag_layout_confirm){ j->point, j->on, *r };
		return;
	}
	x->results[j->point] = *r;
	if (r->status != FRAG_LAYOUT_RAN && r->status != FRAG_LAYOUT_MEMORY)
		frag_border_fail(&x->border, j->point);
	else if (p->checking)
		frag_border_checked(&x->border, j->point, fits_of(x, r));
	else
		frag_border_decide(&x->border, j->point, fits_of(x, r), clear_of(x, r));
	if (r->status == FRAG_LAYOUT_RAN && !x->border.withdrawn && rises_with_ranks(x, j->point))
		frag_border_expect_nothing(&x->border);
}

/* Takes the result, or runs the layout again if its fork is not trusted. */
static void note_end(struct course *c, struct job *j, const struct frag_layout_result *r)
{
	if (!frag_layout_forks_ended(&c->forks, j->way, c->x, j->point, r)) {
		c->x->results[j->point].anew |= j->way == FRAG_LAYOUT_FORKED;
		return;
	}
	note_result(c, j, r);
	tell(c, j, r);
}

/* Marks a job that takes too long or prints too much. */
static void find_endless(const struct frag_layouts *x, struct job *j)
{
	struct stat st;

	if (j->limit_ns && frag_clock_ns() - j->begin_ns > j->limit_ns)
		snprintf(j->ended, sizeof(j->ended), "no end within %u s (--time-limit)",
			 x->time_limit_s);
	else if (!stat(j->log, &st) && (uint64_t)st.st_size > PRINTED_BYTES)
		snprintf(j->ended, sizeof(j->ended), "it printed more than %s",
			 FRAG_BYTES(PRINTED_BYTES));
}

/* Until one of the jobs ends. */
static void await(struct course *c)
{
	struct frag_layouts *x = c->x;
	unsigned before = c->running;

	while (c->running == before) {
		struct pollfd fds[FRAG_LAYOUT_JOBS];
		nfds_t n = 0;

		for (size_t k = 0; k < FRAG_LAYOUT_JOBS; k++)
			fds[n++] = (struct pollfd){ .fd = c->jobs[k].pid ? c->jobs[k].from : -1,
						    .events = POLLIN };
		poll(fds, n, 100);
		x->interrupted |= frag_interrupted();
		for (size_t k = 0; k < FRAG_LAYOUT_JOBS; k++) {
			struct job *j = &c->jobs[k];
			struct frag_layout_result r;

			if (!j->pid)
				continue;
			if (!fds[k].revents && !*j->ended)
				find_endless(x, j);
			if (*j->ended || x->interrupted)
				end(j);
			if (!fds[k].revents)
				continue;
			take(c, j, &r);
			if (!x->interrupted)
				note_end(c, j, &r);
		}
	}
}

static void drain(struct course *c)
{
	while (c->running)
		await(c);
}

static void show(struct course *c)
{
	size_t decided = 0;

	for (size_t i = 0; i < c->x->border.count; i++)
		decided += c->x->border.points[i].decided == c->x->border.cards;
	frag_progress_update(&c->progress, decided, c->x->border.count);
}

/* ---- in which order --------------------------------------------------------------------- */

/* Does the command fail with one message, whatever its values are? */
static bool hopeless(const struct frag_layouts *x)
{
	const char *said = NULL;
	unsigned failed = 0;

	for (size_t i = 0; i < x->border.count; i++) {
		const struct frag_layout_result *r = &x->results[i];

		if (!r->status)
			continue;
		if (!r->message[0] || r->status == FRAG_LAYOUT_MEMORY ||
		    (said && strcmp(said, r->message) != 0))
			return false;
		said = r->message;
		failed++;
	}
	return failed >= ALIKE;
}

static int search(struct course *c, struct frag_err *err)
{
	struct frag_layouts *x = c->x;

	while (!x->interrupted) {
		bool free = c->running < x->jobs, trial = free && c->forks.trial != SIZE_MAX;
		size_t i = free && !trial && !hopeless(x) ? frag_border_next(&x->border) : SIZE_MAX;

		show(c);
		if (trial) {
			FRAG_TRY(start_trial(c, err));
			continue;
		}
		if (i == SIZE_MAX && !c->running)
			return 0;
		if (i == SIZE_MAX)
			await(c);
		else
			FRAG_TRY(start(c, i, SIZE_MAX, err));
	}
	return 0;
}

/* Runs some of the assumed layouts; after a contradiction the search continues. */
static int check(struct course *c, struct frag_err *err)
{
	struct frag_layouts *x = c->x;

	while (!x->interrupted) {
		uint64_t wrong = x->border.wrong;
		size_t i = frag_border_check(&x->border, x->checks, x->seed);

		if (i != SIZE_MAX)
			FRAG_TRY(start(c, i, SIZE_MAX, err));
		if (i == SIZE_MAX || c->running == x->jobs)
			drain(c);
		if (x->border.wrong != wrong)
			FRAG_TRY(search(c, err));
		if (i == SIZE_MAX)
			break;
	}
	frag_border_count(&x->border);
	return 0;
}

/* The advised layout of a card, if it still has to be recorded (*on: on the card itself, after an assumed one has run). SIZE_MAX: none. */
static size_t unconfirmed(const struct frag_layouts *x, size_t card, size_t *on)
{
	uint64_t fewest = frag_layout_fewest(x, card);
	size_t i = fewest ? frag_layout_best(x, card, fewest) : SIZE_MAX;

	if (i == SIZE_MAX || frag_layout_confirmed(x, i, card) ||
	    (x->exact && x->results[i].status))
		return SIZE_MAX;
	*on = x->results[i].status ? card : SIZE_MAX;
	return i;
}

/* Confirms the advice for all cards in rounds, so that the choice does not depend on run times. */
static int confirm(struct course *c, struct frag_err *err)
{
	struct frag_layouts *x = c->x;

	for (unsigned tries = 0; tries < 2 * TRIES && !x->interrupted; tries++) {
		size_t next[FRAG_LAYOUT_CARDS], on[FRAG_LAYOUT_CARDS], count = 0;

		for (size_t card = 0; card < x->cards_count; card++) {
			bool known = false;

			next[count] = unconfirmed(x, card, &on[count]);
			for (size_t k = 0; k < count; k++) /* it also runs for an earlier one */
				known |= next[k] == next[count] && on[k] == on[count];
			count += next[count] != SIZE_MAX && !known;
		}
		if (!count)
			return 0;
		for (size_t k = 0; k < count && !x->interrupted; k++) {
			if (c->running == x->jobs)
				await(c);
			FRAG_TRY(start(c, next[k], on[k], err));
		}
		drain(c);
	}
	return 0;
}

static int run(struct course *c, struct frag_err *err)
{
	FRAG_TRY(search(c, err));
	FRAG_TRY(check(c, err));
	return confirm(c, err);
}

/* Describes the recordings of a folder: the command with braces, and options that matter. */
static char *tell_command(const struct frag_layouts *x)
{
	FRAG_AUTO_FREE char *text = NULL;
	size_t len;
	FILE *to = open_memstream(&text, &len);

	for (char *const *w = x->words; to && *w; w++)
		fprintf(to, "%s\n", *w);
	if (to)
		fprintf(to, "seed %" PRIu64 "\nvalues %s\nranks %s\n", x->seed, x->pretend.values,
			x->pretend.ranks);
	return to && !fclose(to) ? FRAG_GIVE(text) : NULL;
}

static bool is_same_file(const char *path, const char *text)
{
	FRAG_AUTO_FILE FILE *f = fopen(path, "re");
	char found[65536];
	size_t n = f ? fread(found, 1, sizeof(found), f) : 0;

	return n == strlen(text) && !memcmp(found, text, n);
}

/* Writes the command into the folder, and refuses to reuse recordings of another one. */
static int open_keep(const struct frag_layouts *x, struct frag_err *err)
{
	FRAG_AUTO_FREE char *text = NULL;
	char path[4200];

	if (!x->keep)
		return 0;
	if (mkdir(x->keep, 0777) && errno != EEXIST)
		return frag_fail(err, FRAG_EOUTPUT, "cannot create '%.200s': %s", x->keep,
				 strerror(errno));
	snprintf(path, sizeof(path), "%.4000s/command", x->keep);
	text = tell_command(x);
	FRAG_CHECK_ALLOC(text, "command", err);
	if (x->resume && !access(path, F_OK) && !is_same_file(path, text))
		return frag_fail(err, FRAG_EUSAGE,
				 "the recordings in '%.200s' are of another command (see its file "
				 "'command')",
				 x->keep);
	return frag_outfile_put(path, text, strlen(text), err);
}

int frag_layouts_run(struct frag_layouts *x, struct frag_err *err)
{
	FRAG_AUTO_FREE struct course *c = NULL;
	int rc, reason;

	FRAG_TRY(open_keep(x, err));
	FRAG_TRY_CALLOC(c, 1, "layouts", err);
	c->x = x;
	reason = frag_scratch_folder(NULL, &c->folder);
	if (reason)
		return frag_fail(err, FRAG_EOUTPUT, "cannot create a temporary folder: %s",
				 strerror(reason));
	x->folder = c->folder;
	frag_layout_forks_init(&c->forks, x, c->folder);
	frag_progress_begin(&c->progress, "layouts known");
	rc = run(c, err);
	x->interrupted |= rc != 0;
	drain(c);
	frag_layout_forks_end(&c->forks);
	frag_progress_end(&c->progress);
	frag_scratch_remove(c->folder);
	return rc;
}
