/* SPDX-License-Identifier: Apache-2.0 */
/* The terminal: colour and progress. */
#include "term.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <frag/base.h>
#include <frag/clock.h>

#include "interrupt.h"

#define DELAY_NS 1000000000u
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

static bool silent;

void frag_progress_silence(void)
{
	silent = true;
}

static void update(void *ctx, uint64_t done, uint64_t total)
{
	frag_progress_update(ctx, done, total);
}

/* Many short pieces of work are a long one: what counts is when the first of them began. */
void frag_progress_begin(struct frag_progress *p, const char *label)
{
	static uint64_t first_ns;
	uint64_t now = frag_clock_ns();

	first_ns = first_ns ? first_ns : now;
	*p = (struct frag_progress){ .on = !silent && isatty(STDERR_FILENO) && !dumb(),
				     .begin_ns = now,
				     .next_ns = FRAG_MAX(now, first_ns + DELAY_NS) };
	snprintf(p->label, sizeof(p->label), "%s", label);
	if (p->on && now >= p->next_ns) {
		fprintf(stderr, "\r%s\033[K", p->label);
		fflush(stderr);
		p->shown = true;
	}
	p->watch = (struct frag_watch){ .progress = update, .ctx = p, .stop = frag_interrupt_flag };
	frag_interrupt_catch();
}

/* The estimate assumes that the rest goes as the part that is done. */
void frag_progress_update(struct frag_progress *p, uint64_t done, uint64_t total)
{
	uint64_t now;
	double past;

	if (!p->on || (now = frag_clock_ns()) < p->next_ns)
		return;
	p->next_ns = now + EVERY_NS;
	p->shown = true;
	past = (double)(now - p->begin_ns) / 1e9;
	fprintf(stderr, "\r%s", p->label);
	if (total && done && past > 2)
		fprintf(stderr, ", about %.0f s left,",
			past * (double)(total - FRAG_MIN(done, total)) / (double)done);
	if (total)
		fprintf(stderr, " %3.0f %%\033[K", 100.0 * (double)done / (double)total);
	else
		fprintf(stderr, " %llu\033[K", (unsigned long long)done);
	fflush(stderr);
}

void frag_progress_end(struct frag_progress *p)
{
	if (p->shown)
		fputs("\r\033[K", stderr);
	p->on = p->shown = false;
}
