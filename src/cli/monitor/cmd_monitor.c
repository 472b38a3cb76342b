/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cufrag monitor: the cards of this machine, live, by the driver's management library. What fails on the way (a
 * card, a file, a closed pipe) is said once and the watch goes on.
 */
#include "monitor.h"

#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const struct frag_arg options[] = {
	{ FRAG_ARG_OWN, "interval", .set = frag_monitor_set_interval, .value = "TIME", .def = "1s",
	  .help = "between two looks, as 100ms or 2s" },
	{ FRAG_ARG_UINT, "count", FRAG_ARG_AT(struct frag_monitor_options, count), .value = "N",
	  .min = 1, .max = 1000000000, .help = "end after so many looks (default: at Ctrl-C)" },
	{ FRAG_ARG_FLAG, "json", FRAG_ARG_AT(struct frag_monitor_options, json),
	  .help = "JSON lines instead of text" },
	{ FRAG_ARG_FLAG, "plain", FRAG_ARG_AT(struct frag_monitor_options, plain),
	  .help = "lines of text also on a terminal, instead of the full screen" },
	{ FRAG_ARG_TEXT, "csv", FRAG_ARG_AT(struct frag_monitor_options, csv), .value = "FILE",
	  .file = FRAG_ARG_WRITES, .help = "also append a line per card to this file" },
	{ FRAG_ARG_BYTES, "rotate", FRAG_ARG_AT(struct frag_monitor_options, rotate_bytes),
	  .value = "SIZE", .min = 1, .max = UINT64_MAX >> 1, .def = "64M",
	  .help = "at this size FILE becomes FILE.1, and a new one begins" },
	{ FRAG_ARG_TEXT, "textfile", FRAG_ARG_AT(struct frag_monitor_options, textfile),
	  .value = "FILE", .file = FRAG_ARG_WRITES,
	  .help = "keep the latest look there for node_exporter of Prometheus" },
	{ FRAG_ARG_TEXT, "listen", FRAG_ARG_AT(struct frag_monitor_options, listen),
	  .value = "ADDRESS:PORT",
	  .help = "serve the latest look to Prometheus at /metrics; a port alone is one of this "
		  "machine only" },
	{ FRAG_ARG_OWN, "alarm", .set = frag_monitor_set_alarm, .value = "PERCENT%",
	  .help = "say when a card uses so much of its memory, as 80%[,for=30s][,run=COMMAND], and "
		  "when it is 5 points below again; the exit status is 1 then" },
	{ 0 },
};

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
		frag_cli_note(m->cli, "%s", text);
}

static void tell_once(const struct frag_monitor *m, int rc, bool *told, const struct frag_err *err)
{
	if (rc && !*told)
		frag_monitor_say(m, "%s; the watch goes on", err->msg);
	*told = rc != 0;
}

/* Errors: of standard output, if nobody else listens. */
static int write_round(struct frag_monitor *m, struct frag_err *err)
{
	const struct frag_monitor_options *o = m->o;
	struct frag_err fault = { 0 };
	int rc;

	if (m->screen) {
		frag_monitor_screen_draw(m);
	} else if (!m->told.output) {
		rc = frag_monitor_print(&m->round, o->json, &fault);
		if (rc && !o->csv && !o->textfile && !o->alarm.on && !m->server) {
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
		frag_monitor_server_take(m->server, &m->round);
	return 0;
}

static uint64_t now_ms(const struct frag_monitor *m)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)((now.tv_sec - m->start.tv_sec) * 1000 +
			  (now.tv_nsec - m->start.tv_nsec) / 1000000);
}

/* Until the next multiple of the interval since the start; rounds that were missed are skipped. True: a key
 * ended the watch. */
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
	return m->watch.alarms_count ? FRAG_EXIT_CONDITION : 0;
}

static bool wants_screen(const struct frag_monitor_options *o)
{
	const char *term = getenv("TERM");

	return !o->json && !o->plain && isatty(STDOUT_FILENO) && isatty(STDIN_FILENO) && term &&
	       *term && strcmp(term, "dumb") != 0;
}

static int open_all(struct frag_monitor *m, struct frag_err *err)
{
	const char *why = NULL;

	FRAG_TRY(frag_nvml_open(&m->nvml, err));
	if (m->o->listen) {
		FRAG_TRY(frag_monitor_server_open(m->o->listen, &m->server, err));
		frag_monitor_say(m, "metrics are served on port %u, /metrics",
				 frag_monitor_server_port(m->server));
	}
	frag_interrupt_catch();
	if (wants_screen(m->o)) {
		m->screen = frag_monitor_screen_open(&why);
		if (!m->screen)
			frag_monitor_say(m, "%s", why);
	}
	return 0;
}

static int run(struct frag_cli *cli, void *values, struct frag_err *err)
{
	FRAG_AUTO_FREE struct frag_monitor *m = NULL;
	int rc;

	FRAG_TRY_CALLOC(m, 1, "monitor", err);
	m->cli = cli;
	m->o = values;
	for (unsigned i = 0; i < FRAG_MONITOR_CARDS; i++)
		m->watch.over_since_s[i] = -1;
	clock_gettime(CLOCK_MONOTONIC, &m->start);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_IGN);
	rc = open_all(m, err) ?: watch(m, err);
	frag_monitor_screen_close(m->screen);
	frag_monitor_server_close(m->server);
	frag_nvml_close(m->nvml);
	return rc;
}

const struct frag_cmd frag_cmd_monitor = {
	.name = "monitor",
	.summary = "watch the memory of this machine's cards, with logs, metrics and an alarm",
	.group = FRAG_GROUP_RECORD,
	.rank = 4,
	.about =
		"Says for every card, once a second, how much memory is in use, how busy it is and "
		"which processes hold how much, as the driver tells it (NVML), and what recorded "
		"processes say of themselves. Fills the screen of a terminal; q ends it. A card "
		"that is lost, "
		"a full disk or a closed pipe is said once, and the watch goes on.",
	.examples = "  cufrag monitor\n"
		    "  cufrag monitor --interval 100ms --csv run.csv\n"
		    "  cufrag monitor --alarm '90%,for=30s,run=notify-send \"GPU is full\"'\n"
		    "  cufrag monitor --listen 9400 > /dev/null\n"
		    "  cufrag monitor --textfile /var/lib/node_exporter/cufrag.prom > /dev/null\n",
	.options = FRAG_CMD_OPTIONS(options),
	.options_size = sizeof(struct frag_monitor_options),
	.run = run,
};
