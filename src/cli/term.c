/* SPDX-License-Identifier: Apache-2.0 */
/* The terminal: colour and progress. */
#include "term.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <frag/base.h>
#include <frag/clock.h>

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

void frag_progress_begin(struct frag_progress *p, const char *label)
{
	*p = (struct frag_progress){ .label = label, .on = isatty(STDERR_FILENO) && !dumb() };
	if (p->on) {
		p->begin_ns = frag_clock_ns();
		p->next_ns = p->begin_ns + DELAY_NS;
	}
}

void frag_progress_update(struct frag_progress *p, uint64_t done, uint64_t total)
{
	uint64_t now;

	if (!p->on)
		return;
	now = frag_clock_ns();
	if (now < p->next_ns)
		return;
	p->next_ns = now + EVERY_NS;
	p->shown = true;
	if (total)
		fprintf(stderr, "\r%s %3.0f %%\033[K", p->label,
			100.0 * (double)done / (double)total);
	else
		fprintf(stderr, "\r%s %llu\033[K", p->label, (unsigned long long)done);
	fflush(stderr);
}

void frag_progress_end(struct frag_progress *p)
{
	if (p->shown)
		fputs("\r\033[K", stderr);
	p->on = p->shown = false;
}
