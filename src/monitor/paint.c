/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ncurses as a library that is found when it is wanted; see paint.h. No header of it is needed: the
 * names and numbers below are those of its version 6.
 */
#include "paint.h"

#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#include "base/clean.h"
#include "base/interrupt.h"
#include "base/library.h"

enum { KEY_DOWN = 0402, KEY_UP, KEY_LEFT, KEY_RIGHT, KEY_HOME, KEY_NPAGE = 0522, KEY_PPAGE };
enum { KEY_END = 0550, KEY_RESIZE = 0632 };
enum { A_NORMAL = 0, A_REVERSE = 1 << 18, A_DIM = 1 << 20, A_BOLD = 1 << 21 };
enum { COLOR_RED = 1, COLOR_GREEN, COLOR_YELLOW };
enum { ERR = -1, OK };

#define FUNCTIONS(X) \
	X(void *, initscr, (void)) \
	X(int, endwin, (void)) \
	X(int, cbreak, (void)) \
	X(int, noecho, (void)) \
	X(int, curs_set, (int)) \
	X(int, keypad, (void *, bool)) \
	X(void, wtimeout, (void *, int)) \
	X(int, wgetch, (void *)) \
	X(int, werase, (void *)) \
	X(int, wmove, (void *, int, int)) \
	X(int, waddnstr, (void *, const char *, int)) \
	X(int, wattr_set, (void *, unsigned, short, void *)) \
	X(int, wrefresh, (void *)) \
	X(int, clearok, (void *, bool)) \
	X(int, reset_prog_mode, (void)) \
	X(int, set_escdelay, (int)) \
	X(int, getmaxy, (const void *)) \
	X(int, getmaxx, (const void *)) \
	X(bool, has_colors, (void)) \
	X(int, start_color, (void)) \
	X(int, use_default_colors, (void)) \
	X(int, init_pair, (short, short, short))

static struct library {
#define X(type, name, params) type(*name) params;
	FUNCTIONS(X)
#undef X
} library;

/* ---- the terminal as before ---------------------------------------------------------------- */

static volatile sig_atomic_t is_open, resumed;

/* As ncurses itself does on SIGINT and SIGTERM, which are caught here. */
static void put_back(void)
{
	if (!is_open)
		return;
	is_open = 0;
	library.endwin();
}

static void on_fatal(int sig)
{
	put_back();
	signal(sig, SIG_DFL);
	raise(sig);
}

static void on_resume(int sig)
{
	resumed = sig;
}

static void guard(void)
{
	static const int fatal[] = { SIGQUIT, SIGABRT, SIGSEGV, SIGBUS,	 SIGILL,    SIGFPE,
				     SIGSYS,  SIGTRAP, SIGUSR1, SIGUSR2, SIGALRM,   SIGXCPU,
				     SIGPROF, SIGPWR,  SIGIO,	SIGPOLL, SIGVTALRM, SIGSTKFLT };
	struct sigaction old, act = { .sa_handler = on_fatal };

	for (size_t i = 0; i < FRAG_ARRAY_LEN(fatal); i++)
		if (!sigaction(fatal[i], NULL, &old) && old.sa_handler == SIG_DFL)
			sigaction(fatal[i], &act, NULL);
	act.sa_handler = on_resume;
	sigaction(SIGCONT, &act, NULL);
	is_open = 1;
	frag_interrupt_clean(put_back);
}

/* ---- open and close ------------------------------------------------------------------------ */

static bool load(void)
{
	static const char *const files[] = { "libncursesw.so.6", NULL };
	static const struct frag_symbol symbols[] = {
#define X(type, name, params) FRAG_SYMBOL(struct library, name, #name),
		FUNCTIONS(X)
#undef X
	};
	void *found = frag_library_open(files);

	return found && !FRAG_SYMBOLS_FIND(found, symbols, &library);
}

bool frag_paint_open(struct frag_paint *p, const char **why)
{
	const char *charset;

	*why = "no full screen without ncurses (Debian: libncursesw6)";
	if (!load())
		return false;
	charset = setlocale(LC_CTYPE, "");
	p->utf8 = charset && (strcasestr(charset, "UTF-8") || strcasestr(charset, "utf8"));
	p->window = library.initscr();
	guard();
	library.cbreak();
	library.noecho();
	library.curs_set(0);
	library.set_escdelay(50);
	library.keypad(p->window, 1);
	p->colors = !getenv("NO_COLOR") && library.has_colors() && library.start_color() == OK &&
		    library.use_default_colors() == OK;
	if (p->colors) {
		library.init_pair(FRAG_PAINT_GOOD, COLOR_GREEN, -1);
		library.init_pair(FRAG_PAINT_WARM, COLOR_YELLOW, -1);
		library.init_pair(FRAG_PAINT_HOT, COLOR_RED, -1);
	}
	return true;
}

void frag_paint_close(struct frag_paint *p)
{
	put_back();
	p->window = NULL;
}

/* ---- painting ------------------------------------------------------------------------------ */

void frag_paint_begin(struct frag_paint *p)
{
	p->rows = library.getmaxy(p->window);
	p->columns = library.getmaxx(p->window);
	p->row = 0;
	library.werase(p->window);
}

void frag_paint_end(struct frag_paint *p)
{
	library.wrefresh(p->window);
}

/* Cuts it to this many columns. */
static void fit(const struct frag_paint *p, char *at, int columns)
{
	mbstate_t state = { 0 };

	for (size_t n, left = strlen(at); left; at += n, left -= n) {
		wchar_t sign;
		int width = 1;

		n = frag_clean_length(at, left);
		if (n != 1 && (!n || !p->utf8 || mbrtowc(&sign, at, n, &state) != n ||
			       (width = wcwidth(sign)) < 0)) {
			n = FRAG_MAX(n, 1u);
			*at = '?';
			memmove(at + 1, at + n, left - n + 1);
			left -= n - 1;
			n = 1;
			width = 1;
			state = (mbstate_t){ 0 };
		}
		columns -= width;
		if (columns < 0) {
			*at = '\0';
			return;
		}
	}
}

void frag_paint_put(struct frag_paint *p, int column, int width, enum frag_paint_style style,
		    const char *format, ...)
{
	unsigned attr = style == FRAG_PAINT_DIM					? A_DIM
			: style == FRAG_PAINT_STRONG || style == FRAG_PAINT_HOT ? A_BOLD
			: style == FRAG_PAINT_CHOSEN				? A_REVERSE
										: A_NORMAL;
	bool colored = p->colors && style >= FRAG_PAINT_GOOD && style <= FRAG_PAINT_HOT;
	char text[2048];
	va_list list;

	if (p->row < 0 || p->row >= p->rows || column < 0 || column >= p->columns)
		return;
	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	fit(p, text, FRAG_MIN(width, p->columns - column));
	library.wattr_set(p->window, attr, (short)(colored ? style : 0), NULL);
	library.wmove(p->window, p->row, column);
	library.waddnstr(p->window, text, -1);
	library.wattr_set(p->window, A_NORMAL, 0, NULL);
}

void frag_paint_run(struct frag_paint *p, int column, enum frag_paint_style style, const char *sign,
		    int n)
{
	char text[2000], *at = text;

	for (*at = '\0'; n > 0 && at + 4 < text + sizeof(text); n--)
		at = stpcpy(at, sign);
	frag_paint_put(p, column, p->columns, style, "%s", text);
}

uint32_t frag_paint_wait(struct frag_paint *p, uint64_t ms)
{
	static const struct {
		int from;
		uint32_t to;
	} keys[] = { { KEY_UP, FRAG_KEY_UP },	      { KEY_DOWN, FRAG_KEY_DOWN },
		     { KEY_LEFT, FRAG_KEY_LEFT },     { KEY_RIGHT, FRAG_KEY_RIGHT },
		     { KEY_HOME, FRAG_KEY_HOME },     { KEY_END, FRAG_KEY_END },
		     { KEY_PPAGE, FRAG_KEY_PAGE_UP }, { KEY_NPAGE, FRAG_KEY_PAGE_DOWN },
		     { KEY_RESIZE, FRAG_KEY_REDRAW } };
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	int key;

	library.wtimeout(p->window, (int)FRAG_MIN(ms, 3600000u));
	key = library.wgetch(p->window);
	if (resumed) { /* also after SIGSTOP, which cannot be handled */
		resumed = 0;
		library.reset_prog_mode();
		library.clearok(p->window, 1);
		return FRAG_KEY_REDRAW;
	}
	if (key == ERR) { /* timeout, signal, or the terminal is gone */
		if (poll(&in, 1, 0) > 0 && in.revents & (POLLHUP | POLLERR | POLLNVAL))
			return FRAG_KEY_GONE;
		nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
	}
	for (size_t i = 0; i < FRAG_ARRAY_LEN(keys); i++)
		if (key == keys[i].from)
			return keys[i].to;
	if (key == 'L' - '@') { /* asks for a fresh screen in every program */
		library.clearok(p->window, 1);
		return FRAG_KEY_REDRAW;
	}
	return key > 0 && key < 256 ? (uint32_t)key : FRAG_KEY_NONE;
}
