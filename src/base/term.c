/* SPDX-License-Identifier: Apache-2.0 */
/* The terminal: colour and progress. */
#include "term.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <frag/base.h>
#include <frag/clock.h>

#include "clean.h"
#include "interrupt.h"

#define EVERY_NS 100000000u

static bool dumb(void)
{
	const char *term = getenv("TERM");

	return !term || !*term || !strcmp(term, "dumb");
}

bool frag_term_color(enum frag_color mode, FILE *to)
{
	const char *no = getenv("NO_COLOR");

	if (mode != FRAG_COLOR_AUTO)
		return mode == FRAG_COLOR_ALWAYS;
	return !(no && *no) && !dumb() && isatty(fileno(to));
}

unsigned frag_term_columns(FILE *to)
{
	struct winsize size;

	if (isatty(fileno(to)) && !ioctl(fileno(to), TIOCGWINSZ, &size) && size.ws_col)
		return size.ws_col;
	return 80;
}

unsigned frag_term_room(FILE *to)
{
	const char *columns = getenv("COLUMNS");
	long n;

	if (isatty(fileno(to)))
		return frag_term_columns(to);
	n = columns ? strtol(columns, NULL, 10) : 0;
	return n > 0 && n < 10000 ? (unsigned)n : 0;
}

/* ---- progress ------------------------------------------------------------------------- */

static bool silent;

void frag_progress_silence(void)
{
	silent = true;
}

/* The progress line, one for the whole program. */
static struct {
	pthread_mutex_t lock;	   /* protects everything below, and the output */
	struct frag_progress *now; /* innermost work; NULL: show nothing */
	bool wiped;		   /* the line is empty */
} line = { .lock = PTHREAD_MUTEX_INITIALIZER, .wiped = true };

/* pre: locked. The estimate assumes that the rest takes as long as the part done. */
static void draw(void)
{
	const struct frag_progress *p = line.now;
	double past = (double)(frag_clock_ns() - p->begin_ns) / 1e9;

	line.wiped = false;
	fprintf(stderr, "\r%s", p->label);
	if (p->total)
		fprintf(stderr, " %3.0f %%", 100.0 * (double)p->done / (double)p->total);
	else if (p->done)
		fprintf(stderr, " %llu", (unsigned long long)p->done);
	if (past >= 1)
		fprintf(stderr, ", %.0f s", past);
	if (p->total && p->done && past > 2)
		fprintf(stderr, ", about %.0f s left",
			past * (double)(p->total - FRAG_MIN(p->done, p->total)) / (double)p->done);
	fputs("\033[K", stderr);
	fflush(stderr);
}

/* pre: locked. */
static void wipe(void)
{
	if (!line.wiped)
		fputs("\r\033[K", stderr);
	line.wiped = true;
}

static void update(void *ctx, uint64_t done, uint64_t total)
{
	frag_progress_update(ctx, done, total);
}

void frag_progress_show(struct frag_progress *p, const char *label)
{
	*p = (struct frag_progress){ .on = !silent && isatty(STDERR_FILENO) && !dumb(),
				     .begin_ns = frag_clock_ns() };
	p->watch = (struct frag_watch){ .progress = update, .ctx = p, .stop = frag_interrupt_flag };
	snprintf(p->label, sizeof(p->label), "%s", label);
	frag_clean_text(p->label, strlen(p->label));
	if (!p->on)
		return;
	pthread_mutex_lock(&line.lock);
	p->outer = line.now;
	line.now = p;
	draw();
	pthread_mutex_unlock(&line.lock);
}

void frag_progress_begin(struct frag_progress *p, const char *label)
{
	frag_progress_show(p, label);
	frag_interrupt_catch();
}

void frag_progress_update(struct frag_progress *p, uint64_t done, uint64_t total)
{
	uint64_t now;

	if (!p->on || (now = frag_clock_ns()) < p->next_ns)
		return;
	p->next_ns = now + EVERY_NS;
	pthread_mutex_lock(&line.lock);
	p->done = done;
	p->total = total;
	draw();
	pthread_mutex_unlock(&line.lock);
}

void frag_progress_end(struct frag_progress *p)
{
	if (!p->on)
		return;
	p->on = false;
	pthread_mutex_lock(&line.lock);
	wipe();
	line.now = p->outer;
	if (line.now)
		draw();
	pthread_mutex_unlock(&line.lock);
}

void frag_progress_wipe(void)
{
	if (silent) /* also in a process that was forked from one with a line */
		return;
	pthread_mutex_lock(&line.lock);
	wipe();
	pthread_mutex_unlock(&line.lock);
}
