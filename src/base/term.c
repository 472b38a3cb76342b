/* SPDX-License-Identifier: Apache-2.0 */
/* The terminal: colour and progress. */
#include "term.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include <frag/base.h>
#include <frag/clock.h>

#include "clean.h"
#include "interrupt.h"

#define DELAY_MS 750u /* a slightly shorter interval, so that something moves within every second */
#define EVERY_NS 100000000u
#define BEAT_NS 250000000

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

const char *frag_term_style(bool color, const char *style)
{
	static const struct {
		const char *name, *code;
	} styles[] = {
		{ "off", "\033[0m" },	{ "bold", "\033[1m" },	 { "dim", "\033[2m" },
		{ "red", "\033[31m" },	{ "green", "\033[32m" }, { "yellow", "\033[33m" },
		{ "blue", "\033[34m" },
	};

	for (size_t i = 0; color && i < FRAG_ARRAY_LEN(styles); i++)
		if (!strcmp(styles[i].name, style))
			return styles[i].code;
	return "";
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
	pthread_mutex_t lock; /* protects everything below, and the output */
	pthread_cond_t changed;
	pthread_t thread;	   /* while a line may be shown */
	struct frag_progress *now; /* innermost work; NULL: show nothing */
	bool beats, wiped;	   /* there is a thread; the line is empty */
	/* nothing is shown before; counted from the first work, as short pieces add up */
	uint64_t quiet_ns;
} line = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .wiped = true };

/* Tests show every line from the beginning. */
static uint64_t delay_ns(void)
{
	const char *ms = getenv("FRAG_PROGRESS_DELAY_MS");

	return (ms ? strtoul(ms, NULL, 10) : DELAY_MS) * 1000000ull;
}

static bool is_late(uint64_t now_ns)
{
	return now_ns >= line.quiet_ns;
}

/* pre: locked. The estimate assumes that the rest takes as long as the part done. */
static void draw(uint64_t now_ns)
{
	const struct frag_progress *p = line.now;
	double past = (double)(now_ns - p->begin_ns) / 1e9;

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

/* Moves while the work reports nothing. */
static void *beat(void *none)
{
	struct timespec until;

	pthread_mutex_lock(&line.lock);
	while (line.now) {
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += BEAT_NS;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		pthread_cond_timedwait(&line.changed, &line.lock, &until);
		if (line.now && is_late(frag_clock_ns()))
			draw(frag_clock_ns());
	}
	pthread_mutex_unlock(&line.lock);
	return none;
}

/* pre: locked. Signals go to the working thread. Without a thread, only updates move the line. */
static void begin_beat(void)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	line.beats = !pthread_create(&line.thread, NULL, beat, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void update(void *ctx, uint64_t done, uint64_t total)
{
	frag_progress_update(ctx, done, total);
}

void frag_progress_show(struct frag_progress *p, const char *label)
{
	uint64_t now = frag_clock_ns();

	*p = (struct frag_progress){ .on = !silent && isatty(STDERR_FILENO) && !dumb(),
				     .begin_ns = now };
	p->watch = (struct frag_watch){ .progress = update, .ctx = p, .stop = frag_interrupt_flag };
	snprintf(p->label, sizeof(p->label), "%s", label);
	frag_clean_text(p->label, strlen(p->label));
	if (!p->on)
		return;
	pthread_mutex_lock(&line.lock);
	line.quiet_ns = line.quiet_ns ? line.quiet_ns : now + delay_ns();
	p->outer = line.now;
	line.now = p;
	if (is_late(now))
		draw(now);
	if (!line.beats)
		begin_beat();
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
	if (is_late(now))
		draw(now);
	pthread_mutex_unlock(&line.lock);
}

void frag_progress_end(struct frag_progress *p)
{
	bool last;

	if (!p->on)
		return;
	p->on = false;
	pthread_mutex_lock(&line.lock);
	wipe();
	line.now = p->outer;
	last = !line.now && line.beats;
	if (last)
		pthread_cond_signal(&line.changed);
	pthread_mutex_unlock(&line.lock);
	if (last)
		pthread_join(line.thread, NULL);
	line.beats &= !last;
}

void frag_progress_wipe(void)
{
	if (silent) /* also in a process that was forked from one with a line */
		return;
	pthread_mutex_lock(&line.lock);
	wipe();
	pthread_mutex_unlock(&line.lock);
}
