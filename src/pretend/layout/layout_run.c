/* SPDX-License-Identifier: Apache-2.0 */
/* Runs layouts in parallel, each in a child of its own, which gives its result through shared memory. */
#include "layouts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <frag/clock.h>

#include "base/interrupt.h"
#include "base/scratch.h"
#include "base/term.h"
#include "inject/launch/inject_files.h"
#include "pretend/start/child.h"

/* Added to twice the time of the longest layout for a known one: Python first imports everything. */
#define KNOWN_NS 30000000000ull
#define WORTH_IT \
	4u	 /* unknown layouts: below, the server and a known one cost more than they save */
#define ALIKE 8u /* after that many layouts failed and none ran, the rest is skipped */
#define PRINTED_BYTES \
	(1ull << 30) /* of output of a layout, so that an endless one does not fill the disk */
#define TRIES 4u     /* confirmations that may fail, for each card and number of ranks */

/*
 * The first layout starts Python itself; the modules that it had imported are then loaded once, in
 * a server from which processes of later layouts are forked (start/child.h), if a fork of that
 * known layout gives the same result.
 */
enum way {
	ANEW,
	FIRST, /* a new Python, described for the server */
	FORKED,
	KNOWN, /* forked, to compare results */
};

struct job {
	struct frag_child child;
	enum way way;
	size_t point, on;  /* on: the card itself, or SIZE_MAX */
	uint64_t limit_ns; /* of its time; 0 = none */
	char ended[80];	   /* why cufrag ended it, or empty */
};

struct course {
	struct frag_layouts *x;
	struct job jobs[FRAG_LAYOUT_JOBS];
	struct frag_layout_result *results; /* of the jobs; shared with the children */
	unsigned running;
	char *folder;
	uint64_t number;
	enum way way;	     /* of the next layout; KNOWN: anew, until that has ended */
	size_t known;	     /* point that has to start as a known one; SIZE_MAX = none */
	pid_t server;	     /* 0 = none */
	uint64_t longest_ns; /* that a layout took */
	struct frag_progress progress;
};

/* ---- processes ----------------------------------------------------------------------------- */

static int start_as(struct course *c, size_t point, size_t on, enum way way, struct frag_err *err)
{
	struct frag_layout_result *r;
	struct job *j = c->jobs;

	while (j->child.pid)
		j++;
	r = &c->results[j - c->jobs];
	*j = (struct job){ .way = way,
			   .point = point,
			   .on = on,
			   .limit_ns = way == KNOWN ? 2 * c->longest_ns + KNOWN_NS
						    : c->x->time_limit_s * 1000000000ull };
	snprintf(j->child.log, sizeof(j->child.log), "%.4000s/%" PRIu64 ".log", c->folder,
		 c->number++);
	memset(r, 0, sizeof(*r));
	FRAG_TRY(frag_child_begin(&j->child, err));
	if (!j->child.pid) {
		c->x->pretend.trial = way == KNOWN;
		if (way == FIRST)
			frag_launch_put_path(CUFRAG_PRETEND_MODULES, c->folder, "modules");
		if (way == FORKED || way == KNOWN)
			frag_launch_put_path(CUFRAG_PRETEND_FORKS, c->folder, "ask");
		frag_layout_record(c->x, point, on, j->child.log, r);
		frag_child_leave(0);
	}
	if (way == KNOWN)
		c->known = SIZE_MAX;
	c->running++;
	c->x->recordings += way != KNOWN;
	c->x->border.points[point].running = true;
	return 0;
}

static int start(struct course *c, size_t point, size_t on, struct frag_err *err)
{
	const bool anew = c->x->results[point].anew || c->way == KNOWN;

	return start_as(c, point, on, anew ? ANEW : c->way, err);
}

/* The result of a job that has ended; state as of waitpid. */
static void take(struct course *c, struct job *j, int state, struct frag_layout_result *out)
{
	*out = c->results[j - c->jobs];
	if (state) {
		*out = (struct frag_layout_result){ .status = FRAG_LAYOUT_FAILED,
						    .rank = UINT64_MAX,
						    .step_us = UINT64_MAX };
		snprintf(out->message, sizeof(out->message), "its process ended %s %d",
			 WIFSIGNALED(state) ? "by signal" : "with status",
			 WIFSIGNALED(state) ? WTERMSIG(state) : WEXITSTATUS(state));
	}
	if (*j->ended) {
		out->status = FRAG_LAYOUT_ENDLESS;
		snprintf(out->message, sizeof(out->message), "%s", j->ended);
	}
	unlink(j->child.log);
	c->longest_ns = FRAG_MAX(c->longest_ns, frag_clock_ns() - j->child.begin_ns);
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

static void tell(const struct course *c, const struct job *j, const struct frag_layout_result *r)
{
	const struct frag_layouts *x = c->x;
	char text[600], layout[200];
	uint64_t peak = UINT64_MAX;
	size_t n;

	frag_axes_text(&x->axes, frag_layout_of(x, j->point), SIZE_MAX, layout, sizeof(layout));
	n = (size_t)snprintf(text, sizeof(text), "%s:", layout);
	for (size_t k = 0; r->status == FRAG_LAYOUT_RAN && k < x->cards_count; k++) {
		if (!frag_layout_on(x, j->point, k) || n >= sizeof(text) - 40)
			continue;
		if (r->cards[k].peak_reserved_bytes != peak)
			n += (size_t)snprintf(text + n, sizeof(text) - n, " peak %s,",
					      FRAG_BYTES(r->cards[k].peak_reserved_bytes));
		peak = r->cards[k].peak_reserved_bytes;
		n += (size_t)snprintf(text + n, sizeof(text) - n, " %s %s%s",
				      r->cards[k].roomy	      ? "fits"
				      : r->cards[k].completes ? "is tight on"
							      : "does not fit",
				      x->cards[k]->name, j->on == k ? " itself" : "");
	}
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
		frag_border_decide(&x->border, j->point, fits_of(x, r));
}

static size_t count_open(const struct frag_layouts *x)
{
	size_t n = 0;

	for (size_t i = 0; i < x->border.count; i++)
		n += x->border.points[i].decided != x->border.cards;
	return n;
}

static void end_server(struct course *c)
{
	frag_forks_end(c->server);
	c->server = 0;
	c->way = ANEW;
}

static bool same_on_card(const struct frag_layout_on_card *a, const struct frag_layout_on_card *b)
{
	return a->completes == b->completes && a->roomy == b->roomy &&
	       !strcmp(a->setting, b->setting) &&
	       a->peak_reserved_bytes == b->peak_reserved_bytes && a->room_bytes == b->room_bytes &&
	       a->rank == b->rank;
}

static bool same(const struct frag_layout_result *a, const struct frag_layout_result *b)
{
	for (size_t c = 0; c < FRAG_LAYOUT_CARDS; c++)
		if (!same_on_card(&a->cards[c], &b->cards[c]))
			return false;
	return a->status == b->status && a->min_bytes == b->min_bytes && a->rank == b->rank &&
	       a->ranks == b->ranks && a->free_bytes == b->free_bytes && a->step_us == b->step_us &&
	       a->events == b->events && !memcmp(a->kinds, b->kinds, sizeof(a->kinds));
}

/* A known layout has ended: did the fork do the same? */
static void compare_known(struct course *c, size_t point, const struct frag_layout_result *r)
{
	c->way = FORKED;
	if (same(r, &c->x->results[point]))
		return;
	end_server(c);
	c->x->tell(c->x->ctx, "Python is started anew for each layout: forked from one that had "
			      "loaded its modules, the first did not do the same");
}

/* False: the result does not count; unless it is a known one, the layout runs again. */
static bool counts(struct course *c, const struct job *j, const struct frag_layout_result *r)
{
	struct frag_layout_result *before = &c->x->results[j->point];

	/* a failed layout may not have loaded the modules that the next one needs */
	if (j->way == FIRST && c->way == FIRST && r->status == FRAG_LAYOUT_RAN &&
	    count_open(c->x) > WORTH_IT && (c->server = frag_forks_begin(c->folder))) {
		c->known = j->point;
		c->way = KNOWN;
	}
	if (j->way == KNOWN) {
		compare_known(c, j->point, r);
		return false;
	}
	if (c->server && waitpid(c->server, NULL, WNOHANG) == c->server) {
		c->server = 0;
		c->way = ANEW;
	}
	/* a fork that failed runs again without one */
	before->anew = j->way == FORKED && (c->way != FORKED || frag_layout_failed(r));
	return !before->anew;
}

/* Takes the result, or leaves the layout for another run if its fork is not trusted. */
static void note_end(struct course *c, struct job *j, int state)
{
	struct frag_layout_result r;

	take(c, j, state, &r);
	if (c->x->interrupted || !counts(c, j, &r))
		return;
	note_result(c, j, &r);
	tell(c, j, &r);
}

/* Marks a job that takes too long or prints too much. */
static void find_endless(const struct frag_layouts *x, struct job *j)
{
	struct stat st;

	if (j->limit_ns && frag_clock_ns() - j->child.begin_ns > j->limit_ns)
		snprintf(j->ended, sizeof(j->ended), "no end within %u s (--time-limit)",
			 x->time_limit_s);
	else if (!stat(j->child.log, &st) && (uint64_t)st.st_size > PRINTED_BYTES)
		snprintf(j->ended, sizeof(j->ended), "it printed more than %s",
			 FRAG_BYTES(PRINTED_BYTES));
}

/* Until one of the jobs ends. */
static void await(struct course *c)
{
	struct frag_layouts *x = c->x;
	const unsigned before = c->running;

	while (c->running == before) {
		usleep(5000);
		x->interrupted |= frag_interrupted();
		for (struct job *j = c->jobs; j < c->jobs + FRAG_LAYOUT_JOBS; j++) {
			int state;

			if (j->child.pid && frag_child_ended(&j->child, &state))
				note_end(c, j, state);
			else if (j->child.pid && !*j->ended)
				find_endless(x, j);
			if (j->child.pid && (*j->ended || x->interrupted))
				frag_child_end(&j->child);
		}
	}
}

static void drain(struct course *c)
{
	while (c->running)
		await(c);
}

/* ---- in which order --------------------------------------------------------------------- */

/* Does the command fail, whatever its values are? */
static bool hopeless(const struct frag_layouts *x)
{
	unsigned failed = 0, ended = 0;

	for (size_t i = 0; i < x->border.count; i++) {
		failed += frag_layout_failed(&x->results[i]);
		ended += x->results[i].status != FRAG_LAYOUT_UNKNOWN;
	}
	return failed >= ALIKE && failed == ended;
}

static int search(struct course *c, struct frag_err *err)
{
	struct frag_layouts *x = c->x;

	while (!x->interrupted) {
		const bool free = c->running < x->jobs, known = c->known != SIZE_MAX;
		size_t i = SIZE_MAX;

		frag_progress_update(&c->progress, x->border.count - count_open(x),
				     x->border.count);
		if (free && !known && !hopeless(x))
			i = frag_border_next(&x->border);
		if (free && known)
			FRAG_TRY(start_as(c, c->known, SIZE_MAX, KNOWN, err));
		else if (i != SIZE_MAX)
			FRAG_TRY(start(c, i, SIZE_MAX, err));
		else if (c->running)
			await(c);
		else
			return 0;
	}
	return 0;
}

/* Searches, and runs some of the assumed layouts; after a contradiction the search continues. */
static int search_and_check(struct course *c, struct frag_err *err)
{
	struct frag_layouts *x = c->x;
	bool more = true;
	size_t i;

	while (more && !x->interrupted) {
		FRAG_TRY(search(c, err));
		while (!x->interrupted && c->running < x->jobs &&
		       (i = frag_border_check(&x->border, x->checks, x->seed)) != SIZE_MAX)
			FRAG_TRY(start(c, i, SIZE_MAX, err));
		more = c->running;
		drain(c);
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
	    (x->fresh && x->results[i].status))
		return SIZE_MAX;
	*on = x->results[i].status ? card : SIZE_MAX;
	return i;
}

/* Confirms the advice for all cards in rounds, so that the choice does not depend on run times. */
static int confirm(struct course *c, struct frag_err *err)
{
	struct frag_layouts *x = c->x;

	for (unsigned tries = 0; tries < 2 * TRIES && !x->interrupted; tries++) {
		for (size_t card = 0; card < x->cards_count && !x->interrupted; card++) {
			size_t on, i = unconfirmed(x, card, &on);

			if (i == SIZE_MAX || (on == SIZE_MAX && x->border.points[i].running))
				continue; /* it also runs for an earlier card */
			if (c->running == x->jobs)
				drain(c);
			FRAG_TRY(start(c, i, on, err));
		}
		if (!c->running)
			return 0;
		drain(c);
	}
	return 0;
}

static int run_in_folder(struct course *c, struct frag_err *err)
{
	const size_t size = FRAG_LAYOUT_JOBS * sizeof(*c->results);
	int rc;

	c->results = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (c->results == MAP_FAILED)
		return frag_fail_nomem(err, "layouts");
	c->x->folder = c->folder;
	c->known = SIZE_MAX;
	/* a memory limit is for children of one process; engines start their own */
	c->way = c->x->fresh || c->x->requests || c->x->pretend.memory_bytes ? ANEW : FIRST;
	frag_progress_begin(&c->progress, "layouts known");
	rc = search_and_check(c, err) ?: confirm(c, err);
	c->x->interrupted |= rc != 0;
	drain(c);
	end_server(c);
	frag_progress_end(&c->progress);
	munmap(c->results, size);
	return rc;
}

int frag_layouts_run(struct frag_layouts *x, struct frag_err *err)
{
	FRAG_AUTO(frag_inject_files_release) struct frag_inject_files files = { 0 };
	FRAG_AUTO_FREE struct course *c = NULL;
	int rc, reason;

	FRAG_TRY(frag_inject_files_open(&files, err)); /* what every run would fail for */
	FRAG_TRY(frag_layout_open_keep(x, err));
	FRAG_TRY_CALLOC(c, 1, "layouts", err);
	c->x = x;
	reason = frag_scratch_folder(NULL, &c->folder);
	if (reason)
		return frag_fail(err, FRAG_EOUTPUT, "cannot create a temporary folder: %s",
				 strerror(reason));
	rc = run_in_folder(c, err);
	frag_scratch_remove(c->folder);
	return rc;
}
