/* SPDX-License-Identifier: Apache-2.0 */
/*
 * monitor on a terminal: bars, the last minutes as a sparkline, processes; by ncurses, which is opened when
 * there is a terminal. What has no room is left out in this order: sparklines, processes, cards.
 */
#include "monitor.h"

#if __has_include(<curses.h>)

#include <locale.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NCURSES_NOMACROS 1 /* they are called through a table */
#include <curses.h>

#include <frag/opt.h>

#include "base/library.h"

#define FUNCTIONS(X) \
	X(initscr) \
	X(endwin) \
	X(cbreak) \
	X(noecho) \
	X(curs_set) \
	X(keypad) \
	X(wtimeout) \
	X(wgetch) \
	X(werase) \
	X(wmove) \
	X(waddnstr) \
	X(wattr_set) \
	X(wrefresh) \
	X(getmaxy) \
	X(getmaxx) \
	X(has_colors) \
	X(start_color) \
	X(use_default_colors) \
	X(init_pair)

#define PAST 1200u /* samples kept of each card */
#define SAYS 8u	   /* remarks kept */
#define BAR_MAX 80 /* columns */

enum style { PLAIN, DIM, STRONG, GOOD, WARM, HOT };

struct frag_monitor_screen {
	struct {
		FUNCTIONS(FRAG_SYMBOL_MEMBER)
	} lib;
	WINDOW *win;
	bool colors, utf8;
	int rows, columns, row;
	struct past {
		unsigned char percent[PAST]; /* a ring */
		unsigned count, next;
	} past[FRAG_MONITOR_CARDS];
	char says[SAYS][200];
	unsigned says_count;
};

static bool load(struct frag_monitor_screen *s)
{
	static const char *const files[] = { "libncursesw.so.6", NULL };
	static const struct frag_symbol symbols[] = {
#define X(name) FRAG_SYMBOL(struct frag_monitor_screen, lib.name, #name),
		FUNCTIONS(X)
#undef X
	};
	void *library = frag_library_open(files);

	return library && !FRAG_SYMBOLS_FIND(library, symbols, s);
}

struct frag_monitor_screen *frag_monitor_screen_open(const char **why)
{
	struct frag_monitor_screen *s = frag_host_calloc(1, sizeof(*s));
	const char *charset;

	*why = "no full screen without ncurses (Debian: libncursesw6)";
	if (!s || !load(s)) {
		frag_host_free(s);
		return NULL;
	}
	charset = setlocale(LC_CTYPE, "");
	s->utf8 = charset && (strstr(charset, "UTF-8") || strstr(charset, "utf8"));
	s->win = s->lib.initscr();
	s->lib.cbreak();
	s->lib.noecho();
	s->lib.curs_set(0);
	s->lib.keypad(s->win, 1);
	s->colors = !getenv("NO_COLOR") && s->lib.has_colors() && s->lib.start_color() == OK &&
		    s->lib.use_default_colors() == OK;
	if (s->colors) {
		s->lib.init_pair(GOOD, COLOR_GREEN, -1);
		s->lib.init_pair(WARM, COLOR_YELLOW, -1);
		s->lib.init_pair(HOT, COLOR_RED, -1);
	}
	return s;
}

void frag_monitor_screen_close(struct frag_monitor_screen *s)
{
	if (!s)
		return;
	s->lib.endwin();
	for (unsigned i = 0; i < FRAG_MIN(s->says_count, SAYS); i++)
		fprintf(stderr, "%s\n",
			s->says[(s->says_count > SAYS ? s->says_count + i : i) % SAYS]);
	frag_host_free(s);
}

void frag_monitor_screen_say(struct frag_monitor_screen *s, const char *text)
{
	snprintf(s->says[s->says_count++ % SAYS], sizeof(s->says[0]), "%s", text);
}

/* ---- drawing ----------------------------------------------------------------------------- */

static void use(struct frag_monitor_screen *s, enum style style)
{
	attr_t attr = style == DIM ? A_DIM : style == STRONG || style == HOT ? A_BOLD : A_NORMAL;

	s->lib.wattr_set(s->win, attr, (short)(s->colors && style >= GOOD ? style : 0), NULL);
}

/* At a column of the row in hand; cut at the right edge. */
__attribute__((format(printf, 4, 5))) static void put(struct frag_monitor_screen *s, int column,
						      enum style style, const char *format, ...)
{
	char text[600];
	va_list list;

	if (s->row >= s->rows || column >= s->columns)
		return;
	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	use(s, style);
	s->lib.wmove(s->win, s->row, column);
	/* names are ASCII by now, and what else there is has one byte of three for each column */
	s->lib.waddnstr(s->win, text, strchr(text, '\xe2') ? -1 : s->columns - column);
	use(s, PLAIN);
}

static enum style style_of(double percent)
{
	return percent >= 90 ? HOT : percent >= 75 ? WARM : GOOD;
}

/* Repeats a sign. */
static void put_run(struct frag_monitor_screen *s, int column, enum style style, const char *sign,
		    int n)
{
	char text[600], *at = text;

	for (*at = '\0'; n > 0 && at + 4 < text + sizeof(text); n--)
		at = stpcpy(at, sign);
	put(s, column, style, "%s", text);
}

static void put_bar(struct frag_monitor_screen *s, int column, int width, double percent)
{
	int full = (int)(percent * width / 100 + 0.5);

	full = FRAG_MIN(FRAG_MAX(full, 0), width);
	put_run(s, column, style_of(percent), s->utf8 ? "█" : "#", full);
	put_run(s, column + full, DIM, s->utf8 ? "░" : ".", width - full);
}

/* The latest look is rightmost. */
static void put_past(struct frag_monitor_screen *s, const struct past *p, int column, int width)
{
	static const char *const signs[2][8] = { { "_", "_", ".", "-", "-", "=", "=", "#" },
						 { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" } };
	unsigned n = FRAG_MIN(p->count, (unsigned)FRAG_MAX(width, 0));

	for (unsigned i = 0; i < n; i++) {
		unsigned percent = p->percent[(p->next + PAST - n + i) % PAST];

		put(s, column + width - (int)n + (int)i, style_of(percent), "%s",
		    signs[s->utf8][FRAG_MIN(percent * 8 / 101, 7u)]);
	}
}

static void draw_head(struct frag_monitor *m)
{
	struct frag_monitor_screen *s = m->screen;
	const char *driver = frag_nvml_driver(m->nvml);
	char when[40];

	frag_monitor_stamp(&m->round, when, sizeof(when));
	when[10] = ' ';
	when[19] = '\0';
	put(s, 0, STRONG, "cufrag monitor");
	put(s, 16, DIM, "%s UTC%s%s%s", when, *driver ? ", driver " : "", driver,
	    m->watch.alarms_count ? ", there was an alarm" : "");
	put(s, s->columns - 7, DIM, "q: end");
	s->row += 2;
}

static void draw_card(struct frag_monitor *m, const struct frag_monitor_card *c, bool with_past)
{
	struct frag_monitor_screen *s = m->screen;
	double percent = frag_monitor_percent(c), shown_s;
	int width = FRAG_MIN(FRAG_MAX(s->columns - 60, 10), BAR_MAX);

	put(s, 0, STRONG, "gpu %-4s", c->id);
	if (!c->nvml.known) {
		put(s, 9, HOT, "%s", c->nvml.fault);
		s->row++;
		return;
	}
	put_bar(s, 9, width, percent);
	put(s, 10 + width, style_of(percent), "%5.1f %%", percent);
	put(s, 19 + width, PLAIN, "%s of %s", FRAG_BYTES(c->nvml.used_bytes),
	    FRAG_BYTES(c->nvml.total_bytes));
	if (c->nvml.utilization_percent >= 0)
		put(s, 43 + width, PLAIN, "busy %3d %%", c->nvml.utilization_percent);
	if (c->alarm)
		put(s, 54 + width, HOT, "ALARM");
	s->row++;
	if (!with_past)
		return;
	put_past(s, &s->past[c - m->round.cards], 9, width);
	shown_s = (double)FRAG_MIN(s->past[c - m->round.cards].count, (unsigned)width) *
		  (double)m->o->interval_ms / 1000;
	put(s, 10 + width, DIM, "last %.0f %s  %.40s", shown_s < 120 ? shown_s : shown_s / 60,
	    shown_s < 120 ? "s" : "min", c->nvml.name);
	s->row++;
}

static const char *bytes_text(bool known, uint64_t bytes, char *buf)
{
	return known && bytes != UINT64_MAX ? frag_format_bytes(bytes, buf, 24) : "-";
}

static void draw_processes(struct frag_monitor *m, int room)
{
	struct frag_monitor_screen *s = m->screen;
	const struct frag_monitor_round *r = &m->round;
	char b[5][24];
	unsigned count = 0;

	for (unsigned i = 0; i < r->count; i++)
		count += r->cards[i].nvml.processes_count;
	if (room < 2 || !count)
		return;
	s->row++;
	put(s, 0, DIM, "%-5s %8s %-12s %-16s %10s %10s %10s %14s %12s", "gpu", "pid", "user",
	    "process", "driver", "holds", "reserved", "non-releasable", "largest hole");
	s->row++;
	room -= 2;
	for (unsigned i = 0; i < r->count; i++) {
		for (unsigned k = 0; k < r->cards[i].nvml.processes_count; k++, s->row++) {
			const struct frag_monitor_process *p = &r->cards[i].processes[k];

			if (!room--)
				return;
			put(s, 0, PLAIN, "%-5s %8u %-12.12s %-16.16s %10s %10s %10s %14s %12s",
			    r->cards[i].id, p->pid, p->user, p->name,
			    bytes_text(true, p->bytes, b[0]),
			    bytes_text(p->held_known, p->held.allocated_bytes, b[1]),
			    bytes_text(p->held_known, p->held.reserved_bytes, b[2]),
			    bytes_text(p->held_known, p->held.nonreleasable_bytes, b[3]),
			    bytes_text(p->held_known, p->held.largest_hole_bytes, b[4]));
		}
	}
}

static void draw_foot(struct frag_monitor *m)
{
	struct frag_monitor_screen *s = m->screen;
	unsigned least, most;

	s->row = s->rows - 1;
	if (s->says_count)
		put(s, 0, WARM, "%.*s", s->columns - 1, s->says[(s->says_count - 1) % SAYS]);
	else if (frag_monitor_spread(&m->round, &least, &most))
		put(s, 0, DIM, "from %s (gpu %s) to %s (gpu %s)",
		    FRAG_BYTES(m->round.cards[least].nvml.used_bytes), m->round.cards[least].id,
		    FRAG_BYTES(m->round.cards[most].nvml.used_bytes), m->round.cards[most].id);
}

static void remember(struct frag_monitor *m)
{
	for (unsigned i = 0; i < m->round.count; i++) {
		struct past *p = &m->screen->past[i];

		p->percent[p->next] = (unsigned char)frag_monitor_percent(&m->round.cards[i]);
		p->next = (p->next + 1) % PAST;
		p->count = FRAG_MIN(p->count + 1, PAST);
	}
}

static void draw(struct frag_monitor *m)
{
	struct frag_monitor_screen *s = m->screen;
	int cards = (int)m->round.count;
	bool with_past;

	s->rows = s->lib.getmaxy(s->win);
	s->columns = s->lib.getmaxx(s->win);
	s->row = 0;
	s->lib.werase(s->win);
	draw_head(m);
	with_past = 2 * cards + 8 <= s->rows;
	for (int i = 0; i < cards && s->row < s->rows - 1; i++)
		draw_card(m, &m->round.cards[i], with_past);
	draw_processes(m, s->rows - 2 - s->row);
	draw_foot(m);
	s->lib.wrefresh(s->win);
}

void frag_monitor_screen_draw(struct frag_monitor *m)
{
	remember(m);
	draw(m);
}

bool frag_monitor_screen_wait(struct frag_monitor *m, uint64_t ms)
{
	struct frag_monitor_screen *s = m->screen;
	int key;

	s->lib.wtimeout(s->win, (int)FRAG_MIN(ms, 3600000u));
	key = s->lib.wgetch(s->win);
	if (key == ERR) /* the time is over; or nobody is there any more, which comes at once */
		nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
	if (key == KEY_RESIZE)
		draw(m);
	return key == 'q' || key == 'Q' || key == 3;
}

#else /* built without libncurses-dev */

struct frag_monitor_screen *frag_monitor_screen_open(const char **why)
{
	*why = "no full screen: this program was built without libncurses-dev";
	return NULL;
}
void frag_monitor_screen_close(struct frag_monitor_screen *s)
{
	(void)s;
}
void frag_monitor_screen_draw(struct frag_monitor *m)
{
	(void)m;
}
bool frag_monitor_screen_wait(struct frag_monitor *m, uint64_t ms)
{
	(void)m, (void)ms;
	return false;
}
void frag_monitor_screen_say(struct frag_monitor_screen *s, const char *text)
{
	(void)s, (void)text;
}

#endif
