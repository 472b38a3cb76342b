/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cards of this machine, sampled at an interval. What fails on the way (a card, a file, a
 * closed pipe) is reported once, and the watch goes on.
 */
#include "monitor.h"

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

static uint64_t now_ms(const struct frag_monitor *m)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)((now.tv_sec - m->start.tv_sec) * 1000 +
			  (now.tv_nsec - m->start.tv_nsec) / 1000000);
}

/* Until the next multiple of the interval since the start; rounds that were missed are skipped.
 * True: a key ended the watch. */
static bool wait_next(struct frag_monitor *m)
{
	uint64_t ms = m->o->interval_ms,
		 next = ((uint64_t)(m->round.since_start_s * 1000) / ms + 1) * ms, now;

	while (!frag_interrupted() && (now = now_ms(m)) < next) {
		uint64_t left = next - now;
		struct timespec pause = { .tv_sec = (time_t)(left / 1000),
					  .tv_nsec = (long)(left % 1000) * 1000000 };

		if (!m->screen)
			clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
		else if (frag_monitor_screen_wait(m, left))
			return true;
	}
	return false;
}

static int watch(struct frag_monitor *m, struct frag_err *err)
{
	for (unsigned done = 0; !frag_interrupted();) {
		frag_monitor_look(m);
		frag_monitor_check(m);
		FRAG_TRY(write_round(m, err));
		if (m->o->count && ++done >= m->o->count)
			break;
		if (wait_next(m))
			break;
	}
	return 0;
}

static bool wants_screen(const struct frag_monitor_options *o)
{
	const char *term = getenv("TERM");

	return !o->json && !o->plain && isatty(STDOUT_FILENO) && isatty(STDIN_FILENO) && term &&
	       *term && strcmp(term, "dumb") != 0;
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
	const char *why = NULL;
	char url[128];

	FRAG_TRY(frag_nvml_open(&m->nvml, err));
	FRAG_TRY(open_servers(m, url, sizeof(url), err));
	frag_interrupt_catch();
	if (wants_screen(m->o)) {
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
