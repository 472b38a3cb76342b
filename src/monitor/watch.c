/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cards of this machine, sampled at an interval. What fails on the way (a card, a file, a
 * closed pipe) is reported once, and the watch goes on.
 */
#include "monitor.h"

#include <ctype.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/interrupt.h"

void frag_monitor_say(const struct frag_monitor *m, const char *format, ...)
{
	char text[300];
	va_list list;

	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	if (m->screen)
		frag_monitor_screen_say(m->screen, text);
	else
		m->note(m->note_ctx, text);
}

/* ---- the alarm ---------------------------------------------------------------------------- */

#define HYSTERESIS_PERCENT 5

/* "100ms", "1.5s", "2m", "3" (seconds). False: not a duration. *end: after it. */
static bool read_seconds(const char *text, const char **end, double *out)
{
	char *at;

	if (!isdigit((unsigned char)*text))
		return false;
	*out = strtod(text, &at);
	if (at != text + strspn(text, "0123456789.")) /* 0x10, 1e3 */
		return false;
	if (!strncmp(at, "ms", 2)) {
		*out /= 1000;
		at += 2;
	} else if (*at == 's') {
		at++;
	} else if (*at == 'm') {
		*out *= 60;
		at++;
	}
	*end = at;
	return *out <= 86400;
}

int frag_monitor_set_interval(void *field, const char *text, struct frag_err *err)
{
	struct frag_monitor_options *o = field;
	const char *end;
	double s;

	if (!read_seconds(text, &end, &s) || *end || s < 0.01)
		return FRAG_USAGE(err, "'%.40s' is not an interval; write it as 100ms, 1s or 2m",
				  text);
	o->interval_ms = (uint64_t)(s * 1000 + 0.5);
	return 0;
}

int frag_monitor_set_alarm(void *field, const char *text, struct frag_err *err)
{
	struct frag_monitor_alarm *a = &((struct frag_monitor_options *)field)->alarm;
	unsigned long percent;
	const char *at;
	char *end;

	*a = (struct frag_monitor_alarm){ .on = true };
	percent = isdigit((unsigned char)*text) ? strtoul(text, &end, 10) : 0;
	a->percent = percent <= 100 ? (unsigned)percent : 0;
	if (!a->percent || *end != '%')
		return FRAG_USAGE(
			err, "'%.60s' is not an alarm; write it as 80%%,for=30s,run=COMMAND", text);
	at = end + 1;
	if (!strncmp(at, ",for=", 5) && !read_seconds(at + 5, &at, &a->for_s))
		return FRAG_USAGE(err, "'%.60s': for= takes a time, such as 30s", text);
	if (!strncmp(at, ",run=", 5) && at[5]) {
		a->command = at + 5;
		return 0;
	}
	if (*at)
		return FRAG_USAGE(
			err, "'%.60s': only for=TIME and run=COMMAND may follow the limit", text);
	return 0;
}

/* In a process of its own that is not waited for, so the watch goes on. */
static void run_command(const struct frag_monitor *m, const char *gpu, unsigned percent)
{
	char part[16];
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid < 0)
		frag_monitor_say(m, "cannot start the command of the alarm");
	if (pid)
		return;
	/* the command does not inherit the signals that this program ignores */
	signal(SIGPIPE, SIG_DFL);
	signal(SIGCHLD, SIG_DFL);
	snprintf(part, sizeof(part), "%u", percent);
	setenv("CUFRAG_ALARM_GPU", gpu, 1);
	setenv("CUFRAG_ALARM_PERCENT", part, 1);
	if (m->screen) /* what it says has no place there */
		dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
	dup2(STDERR_FILENO, STDOUT_FILENO);
	execl("/bin/sh", "sh", "-c", m->o->alarm.command, (char *)NULL);
	_exit(127);
}

static void check_card(struct frag_monitor *m, unsigned i)
{
	const struct frag_monitor_alarm *a = &m->o->alarm;
	struct frag_monitor_card *c = &m->round.cards[i];
	double *since = &m->watch.over_since_s[i], percent, now = m->round.since_start_s;

	if (!c->nvml.known || !c->nvml.total_bytes)
		return; /* an unknown value neither raises nor ends an alarm */
	percent = frag_monitor_percent(c);
	if (percent < a->percent)
		*since = -1;
	else if (*since < 0)
		*since = now;
	if (!c->alarm && *since >= 0 && now - *since >= a->for_s) {
		c->alarm = true;
		m->watch.alarms_count++;
		frag_monitor_say(m, "alarm: gpu %s uses %.0f %% of its memory", c->id, percent);
		if (a->command)
			run_command(m, c->id, (unsigned)percent);
	} else if (c->alarm && percent < (double)a->percent - HYSTERESIS_PERCENT) {
		c->alarm = false;
		frag_monitor_say(m, "over: gpu %s uses %.0f %% of its memory", c->id, percent);
	}
}

/* ---- the watch ---------------------------------------------------------------------------- */

static void tell_once(const struct frag_monitor *m, int rc, bool *told, const struct frag_err *err)
{
	if (rc && !*told)
		frag_monitor_say(m, "%s; the watch goes on", err->msg);
	*told = rc != 0;
}

/* Errors: of standard output, if it is the only output. */
static int write_round(struct frag_monitor *m, struct frag_err *err)
{
	const struct frag_monitor_options *o = m->o;
	struct frag_err fault = { 0 };
	int rc;

	if (m->screen) {
		frag_monitor_screen_draw(m);
	} else if (!m->told.output) {
		rc = frag_monitor_print(&m->round, o->json, &fault);
		if (rc && !o->csv && !o->textfile && !o->alarm.on && !m->server && !m->web) {
			*err = fault;
			return rc;
		}
		tell_once(m, rc, &m->told.output, &fault);
	}
	if (o->csv)
		tell_once(m, frag_monitor_append_csv(o, &m->round, &fault), &m->told.csv, &fault);
	if (o->textfile)
		tell_once(m, frag_monitor_write_textfile(o->textfile, &m->round, &fault),
			  &m->told.textfile, &fault);
	if (m->server)
		frag_monitor_server_take(m->server, m);
	if (m->web)
		frag_monitor_server_take(m->web, m);
	return 0;
}

/* Until the next multiple of the interval since the start; rounds that were missed are skipped.
 * True: a key ended the watch. */
static bool wait_next(struct frag_monitor *m)
{
	uint64_t ms = m->o->interval_ms,
		 next = ((uint64_t)(m->round.since_start_s * 1000) / ms + 1) * ms;

	while (!frag_interrupted()) {
		struct timespec now, pause;
		int64_t left;

		clock_gettime(CLOCK_MONOTONIC, &now);
		left = (int64_t)next - (now.tv_sec - m->start.tv_sec) * 1000 -
		       (now.tv_nsec - m->start.tv_nsec) / 1000000;
		if (left <= 0)
			break;
		pause = (struct timespec){ left / 1000, left % 1000 * 1000000 };
		if (!m->screen)
			clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
		else if (frag_monitor_screen_wait(m, (uint64_t)left))
			return true;
	}
	return false;
}

static int watch(struct frag_monitor *m, struct frag_err *err)
{
	for (unsigned done = 0; !frag_interrupted();) {
		frag_monitor_look(m);
		for (unsigned i = 0; m->o->alarm.on && i < m->round.count; i++)
			check_card(m, i);
		FRAG_TRY(write_round(m, err));
		if (m->o->count && ++done >= m->o->count)
			break;
		if (wait_next(m))
			break;
	}
	return 0;
}

static int open_servers(struct frag_monitor *m, char *url, size_t cap, struct frag_err *err)
{
	if (m->o->listen) {
		FRAG_TRY(frag_monitor_server_open(m->o->listen, false, &m->server, err));
		frag_monitor_say(m, "metrics are served on port %u, /metrics",
				 frag_monitor_server_port(m->server));
	}
	*url = '\0';
	if (m->o->web) {
		FRAG_TRY(frag_monitor_server_open(m->o->web, true, &m->web, err));
		frag_monitor_server_url(m->web, url, cap);
	}
	return 0;
}

static int open_all(struct frag_monitor *m, struct frag_err *err)
{
	const char *why = NULL, *term = getenv("TERM");
	char url[128];

	FRAG_TRY(frag_nvml_open(&m->nvml, err));
	FRAG_TRY(open_servers(m, url, sizeof(url), err));
	frag_interrupt_catch();
	if (!m->o->json && !m->o->plain && isatty(STDOUT_FILENO) && isatty(STDIN_FILENO) && term &&
	    *term && strcmp(term, "dumb") != 0) {
		m->screen = frag_monitor_screen_open(&why);
		if (!m->screen)
			frag_monitor_say(m, "%s", why);
	}
	if (*url) /* last, so that the screen shows it */
		frag_monitor_say(m, "page: %s", url);
	return 0;
}

int frag_monitor_run(const struct frag_monitor_options *o,
		     void (*note)(const void *ctx, const char *text), const void *note_ctx,
		     bool *alarmed, struct frag_err *err)
{
	FRAG_AUTO_FREE struct frag_monitor *m = NULL;
	int rc;

	FRAG_TRY_CALLOC(m, 1, "monitor", err);
	m->note = note;
	m->note_ctx = note_ctx;
	m->o = o;
	for (unsigned i = 0; i < FRAG_MONITOR_CARDS; i++)
		m->watch.over_since_s[i] = -1;
	clock_gettime(CLOCK_MONOTONIC, &m->start);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_IGN);
	rc = open_all(m, err) ?: watch(m, err);
	*alarmed = m->watch.alarms_count > 0;
	frag_monitor_screen_close(m->screen);
	frag_monitor_server_close(m->server);
	frag_monitor_server_close(m->web);
	frag_nvml_close(m->nvml);
	return rc;
}
