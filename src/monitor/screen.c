/* SPDX-License-Identifier: Apache-2.0 */
/*
 * monitor on a terminal: bars, the last minutes of each card, processes, which can be sorted and,
 * after a question, ended. What has no room is left out in this order: curves, processes, cards.
 */
#include "monitor.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <frag/opt.h>

#include "paint.h"
#include "monitor_table.h"

/* glibc has functions for them only since 2.36 */
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif

#define SAYS 8u		/* remarks kept */
#define BAR_MAX 80	/* columns */
#define CURVE_MAX 4	/* rows */
#define PROCESSES_MIN 5 /* rows that curves leave to processes */

struct frag_monitor_screen {
	struct frag_paint paint;
	struct frag_monitor_table table;
	char says[SAYS][200];
	unsigned says_count;
	unsigned span; /* of the curves */
	bool help;
	int sig; /* asked about: end `victim` by it? 0: no question */
	struct frag_monitor_process victim;
	bool has_gpu; /* it has one open */
};

static const unsigned spans_s[] = { 60, 300, 1200, 3600 };

struct frag_monitor_screen *frag_monitor_screen_open(const char **why)
{
	struct frag_monitor_screen *s = frag_host_calloc(1, sizeof(*s));

	*why = "no full screen: memory is short";
	if (s && frag_paint_open(&s->paint, why)) {
		s->span = 1;
		return s;
	}
	frag_host_free(s);
	return NULL;
}

void frag_monitor_screen_close(struct frag_monitor_screen *s)
{
	if (!s)
		return;
	frag_paint_close(&s->paint);
	for (unsigned i = 0; i < FRAG_MIN(s->says_count, SAYS); i++)
		fprintf(stderr, "%s\n",
			s->says[(s->says_count > SAYS ? s->says_count + i : i) % SAYS]);
	frag_host_free(s);
}

void frag_monitor_screen_say(struct frag_monitor_screen *s, const char *text)
{
	snprintf(s->says[s->says_count++ % SAYS], sizeof(s->says[0]), "%s", text);
}

/* ---- cards --------------------------------------------------------------------------------- */

static enum frag_paint_style style_of(double percent)
{
	return percent >= 90 ? FRAG_PAINT_HOT : percent >= 75 ? FRAG_PAINT_WARM : FRAG_PAINT_GOOD;
}

/* One row of a curve: eighths of cells, `above` rows over its foot. */
static void put_curve_row(struct frag_paint *p, int column, int width, const unsigned char *percent,
			  int rows, int above, bool busy)
{
	static const char *const signs[2][9] = { { " ", "_", "_", ".", "-", "-", "=", "=", "#" },
						 { " ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" } };

	for (int i = 0; i < width; i++) {
		int v = percent[i], eighths;

		if (v == FRAG_MONITOR_UNKNOWN)
			continue;
		eighths = FRAG_MAX(v * rows * 8 / 100, 1) - above * 8;
		frag_paint_put(p, column + i, 1, busy ? FRAG_PAINT_PLAIN : style_of(v), "%s",
			       signs[p->utf8][FRAG_MAX(FRAG_MIN(eighths, 8), 0)]);
	}
}

/* The curve of one figure with its caption above; the latest look is rightmost. */
static void draw_curve(struct frag_monitor *m, unsigned card, bool busy, int column, int width,
		       int rows)
{
	struct frag_paint *p = &m->screen->paint;
	/* looks in a column, so that the columns show about as much time as was asked for */
	uint64_t looks = (uint64_t)spans_s[m->screen->span] * 1000 / m->o->interval_ms;
	unsigned most = 0,
		 per = (unsigned)FRAG_MAX(FRAG_MIN((looks + (unsigned)width / 2) / (unsigned)width,
						   FRAG_MONITOR_PAST / (unsigned)width),
					  1u);
	double shown_s = (double)per * width * (double)m->o->interval_ms / 1000;
	unsigned char percent[400];
	int top = p->row;

	width = FRAG_MIN(width, (int)sizeof(percent));
	for (int i = 0; i < width; i++) {
		percent[i] = (unsigned char)frag_monitor_past_most(&m->past[card], busy, per,
								   (unsigned)(width - 1 - i));
		if (percent[i] != FRAG_MONITOR_UNKNOWN)
			most = FRAG_MAX(most, percent[i]);
	}
	frag_paint_put(p, column, width, FRAG_PAINT_DIM, "%s, last %.0f %s, at most %u %%",
		       busy ? "busy" : "memory", shown_s < 120 ? shown_s : shown_s / 60,
		       shown_s < 120 ? "s" : "min", most);
	for (int above = rows - 1; above >= 0; above--) {
		p->row++;
		put_curve_row(p, column, width, percent, rows, above, busy);
	}
	p->row = top;
}

static void draw_bar_row(struct frag_monitor *m, const struct frag_monitor_card *c)
{
	struct frag_paint *p = &m->screen->paint;
	double percent = frag_monitor_percent(c);
	int width = FRAG_MIN(FRAG_MAX(p->columns - 60, 6), BAR_MAX);
	int full = FRAG_MIN(FRAG_MAX((int)(percent * width / 100 + 0.5), 0), width);

	frag_paint_put(p, 0, 8, c->alarm ? FRAG_PAINT_HOT : FRAG_PAINT_STRONG, "gpu %s", c->id);
	if (!c->nvml.known) {
		frag_paint_put(p, 9, p->columns, FRAG_PAINT_HOT, "%s", c->nvml.fault);
		return;
	}
	frag_paint_run(p, 9, style_of(percent), p->utf8 ? "█" : "#", full);
	frag_paint_run(p, 9 + full, FRAG_PAINT_DIM, p->utf8 ? "░" : ".", width - full);
	frag_paint_put(p, 10 + width, 7, style_of(percent), "%5.1f %%", percent);
	frag_paint_put(p, 19 + width, 23, FRAG_PAINT_PLAIN, "%s of %s",
		       FRAG_BYTES(c->nvml.used_bytes), FRAG_BYTES(c->nvml.total_bytes));
	if (c->nvml.utilization_percent >= 0)
		frag_paint_put(p, 43 + width, 10, FRAG_PAINT_PLAIN, "busy %3d %%",
			       c->nvml.utilization_percent);
	if (c->alarm)
		frag_paint_put(p, 54 + width, 5, FRAG_PAINT_HOT, "ALARM");
}

/* curve: rows of it, -1 = no caption either */
static void draw_card(struct frag_monitor *m, unsigned card, int curve)
{
	struct frag_paint *p = &m->screen->paint;
	int left = 9, room = p->columns - left - 1, width = p->columns >= 100 ? room / 2 - 1 : room;

	draw_bar_row(m, &m->round.cards[card]);
	p->row++;
	if (curve < 0)
		return;
	frag_paint_put(p, left, room, FRAG_PAINT_DIM, "%s", m->round.cards[card].nvml.name);
	p->row++;
	if (!curve)
		return;
	draw_curve(m, card, false, left, FRAG_MAX(width, 1), curve);
	if (width < room)
		draw_curve(m, card, true, left + width + 2, width, curve);
	p->row += curve + 1;
}

/* ---- the whole screen ---------------------------------------------------------------------- */

static void draw_head(struct frag_monitor *m)
{
	struct frag_paint *p = &m->screen->paint;
	const char *driver = frag_nvml_driver(m->nvml), *keys = "h: keys  q: end";
	char when[40];

	frag_monitor_stamp(&m->round, when, sizeof(when));
	when[10] = ' ';
	when[19] = '\0';
	frag_paint_put(p, 0, p->columns, FRAG_PAINT_STRONG, "cufrag monitor");
	frag_paint_put(p, 16, p->columns - 16 - (int)strlen(keys) - 1, FRAG_PAINT_DIM,
		       "%s UTC%s%s%s", when, *driver ? ", driver " : "", driver,
		       m->watch.alarms_count ? ", there was an alarm" : "");
	frag_paint_put(p, p->columns - (int)strlen(keys), p->columns, FRAG_PAINT_DIM, "%s", keys);
	p->row += 2;
}

static void draw_help(struct frag_paint *p)
{
	static const char *const keys[] = {
		"Up Down Tab Home End PgUp PgDn   choose a process; Esc: none",
		"Left Right                       move the command lines",
		", .  or s                        sort by another column",
		"/                                sort the other way round",
		"T  K                             end the chosen process: SIGTERM, SIGKILL",
		"+ -                              minutes in the curves",
		"h                                this list; any key: back",
		"q or Ctrl-C                      end the watch",
	};

	for (size_t i = 0; i < FRAG_ARRAY_LEN(keys); i++, p->row++)
		frag_paint_put(p, 0, p->columns, FRAG_PAINT_PLAIN, "%s", keys[i]);
}

static void draw_foot(struct frag_monitor *m)
{
	struct frag_monitor_screen *s = m->screen;
	struct frag_paint *p = &s->paint;

	p->row = p->rows - 1;
	if (s->sig)
		frag_paint_put(p, 0, p->columns - 1, FRAG_PAINT_HOT,
			       "%s to pid %u of %s%s? y: yes, any other key: no  (%s)",
			       s->sig == SIGKILL ? "SIGKILL" : "SIGTERM", s->victim.pid,
			       *s->victim.user ? s->victim.user : "?",
			       s->has_gpu ? "" : ", no GPU open", s->victim.name);
	else if (s->says_count)
		frag_paint_put(p, 0, p->columns - 1, FRAG_PAINT_WARM, "%s",
			       s->says[(s->says_count - 1) % SAYS]);
}

void frag_monitor_screen_draw(struct frag_monitor *m)
{
	struct frag_monitor_screen *s = m->screen;
	struct frag_paint *p = &s->paint;
	int processes = (int)frag_monitor_table_count(&m->round), rows, curve;

	frag_paint_begin(p);
	draw_head(m);
	if (s->help) {
		draw_help(p);
	} else {
		/* rows of each curve; -1: there is not even room for the names */
		rows = p->rows - 4 - (processes ? 2 + FRAG_MIN(processes, PROCESSES_MIN) : 0);
		rows = rows / FRAG_MAX((int)m->round.count, 1) - 2; /* bar, name */
		curve = rows < 0 ? -1 : rows < 2 ? 0 : FRAG_MIN(rows - 1, CURVE_MAX);
		for (unsigned i = 0; i < m->round.count && p->row < p->rows - 1; i++)
			draw_card(m, i, curve);
		p->row++;
		frag_monitor_table_draw(&s->table, p, &m->round, p->rows - 1 - p->row);
	}
	draw_foot(m);
	frag_paint_end(p);
}

/* ---- ending the chosen process ------------------------------------------------------------ */

/* Could it be ended? Asks only. Errors: FRAG_EUSAGE. */
static int may_end(const struct frag_monitor_process *p, struct frag_err *err)
{
	if (p->pid == 1)
		return FRAG_USAGE(err, "pid 1 is the system itself");
	if (!p->pid || !p->start)
		return FRAG_USAGE(
			err, "pid %u cannot be seen from here (a container, or another user's)",
			p->pid);
	if (geteuid() && p->uid != geteuid())
		return FRAG_USAGE(err, "pid %u belongs to %s: only its owner can end it", p->pid,
				  *p->user ? p->user : "another user");
	return 0;
}

/* Has it a GPU open, as far as can be seen? In a container the driver may tell numbers of the host,
 * which here belong to others. */
static bool has_gpu(unsigned pid)
{
	char path[300], to[16];
	const struct dirent *entry;
	bool found = false;
	DIR *all;

	snprintf(path, sizeof(path), "/proc/%u/fd", pid);
	all = opendir(path);
	while (all && !found && (entry = readdir(all))) {
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/%u/fd/%.200s", pid, entry->d_name);
		n = readlink(path, to, sizeof(to) - 1);
		to[FRAG_MAX(n, 0)] = '\0';
		found = !strncmp(to, "/dev/nvidia", 11) || !strcmp(to, "/dev/dxg");
	}
	if (all)
		closedir(all);
	return found;
}

/* By SIGTERM or SIGKILL. Between the choice and the signal the process may end and its number go to
 * another; so it is held by a descriptor (pidfd), and its time of start compared. Errors:
 * FRAG_EUSAGE. */
static int end_process(const struct frag_monitor_process *p, int sig, struct frag_err *err)
{
	int fd, rc;

	FRAG_TRY(may_end(p, err));
	fd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	if (fd < 0 && errno == ENOSYS) /* Linux before 5.3 */
		fd = -ENOSYS;
	if (frag_monitor_start_of(p->pid) != p->start || (fd < 0 && fd != -ENOSYS)) {
		if (fd >= 0)
			close(fd);
		return FRAG_USAGE(err, "pid %u has ended already", p->pid);
	}
	rc = fd >= 0 ? (int)syscall(SYS_pidfd_send_signal, fd, sig, NULL, 0)
		     : kill((pid_t)p->pid, sig);
	rc = rc ? errno : 0;
	if (fd >= 0)
		close(fd);
	return rc ? FRAG_USAGE(err, "pid %u was not signalled: %s", p->pid, strerror(rc)) : 0;
}

/* ---- keys ---------------------------------------------------------------------------------- */

static void ask_to_end(struct frag_monitor *m, int sig)
{
	const struct frag_monitor_process *p =
		frag_monitor_table_chosen(&m->screen->table, &m->round);
	struct frag_err err = { 0 };

	if (!p) {
		frag_monitor_say(m, "choose a process first: Up, Down");
	} else if (may_end(p, &err)) {
		frag_monitor_say(m, "%s", err.msg);
	} else {
		m->screen->victim = *p;
		m->screen->has_gpu = has_gpu(p->pid);
		m->screen->sig = sig;
	}
}

static void answer(struct frag_monitor *m, uint32_t key)
{
	struct frag_monitor_screen *s = m->screen;
	const char *name = s->sig == SIGKILL ? "SIGKILL" : "SIGTERM";
	struct frag_err err = { 0 };

	if (key != 'y' && key != 'Y')
		frag_monitor_say(m, "pid %u was left alone", s->victim.pid);
	else if (end_process(&s->victim, s->sig, &err))
		frag_monitor_say(m, "%s", err.msg);
	else
		frag_monitor_say(m, "%s was sent to pid %u, %s", name, s->victim.pid,
				 s->victim.name);
	s->sig = 0;
}

static void take_key(struct frag_monitor *m, uint32_t key)
{
	struct frag_monitor_screen *s = m->screen;

	if (key == FRAG_KEY_REDRAW)
		return;
	if (s->help)
		s->help = false;
	else if (s->sig)
		answer(m, key);
	else if (key == 'h' || key == '?')
		s->help = true;
	else if (key == 'T' || key == 'K')
		ask_to_end(m, key == 'K' ? SIGKILL : SIGTERM);
	else if (key == '+' || key == '-')
		s->span = FRAG_MIN(s->span + (key == '+' ? 1u
					      : s->span	 ? -1u
							 : 0u),
				   (unsigned)FRAG_ARRAY_LEN(spans_s) - 1);
	else
		frag_monitor_table_key(&s->table, &m->round, key);
}

bool frag_monitor_screen_wait(struct frag_monitor *m, uint64_t ms)
{
	struct frag_monitor_screen *s = m->screen;
	uint32_t key = frag_paint_wait(&s->paint, ms);

	if (key == 3 || key == FRAG_KEY_GONE || ((key == 'q' || key == 'Q') && !s->sig && !s->help))
		return true;
	if (key != FRAG_KEY_NONE) {
		take_key(m, key);
		frag_monitor_screen_draw(m);
	}
	return false;
}
