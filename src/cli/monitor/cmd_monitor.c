/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cufrag monitor: the cards of this machine, live, by the driver's management library. What fails on the way (a
 * card, a file, a closed pipe) is said once and the watch goes on.
 */
#include "monitor.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "base/clean.h"

static const struct frag_arg options[] = {
	{ FRAG_ARG_OWN, "interval", .set = frag_monitor_set_interval, .value = "TIME", .def = "1s",
	  .help = "between two looks, as 100ms or 2s" },
	{ FRAG_ARG_UINT, "count", FRAG_ARG_AT(struct frag_monitor_options, count), .value = "N",
	  .min = 1, .max = 1000000000, .help = "end after so many looks (default: at Ctrl-C)" },
	{ FRAG_ARG_FLAG, "json", FRAG_ARG_AT(struct frag_monitor_options, json),
	  .help = "JSON lines instead of text" },
	{ FRAG_ARG_TEXT, "csv", FRAG_ARG_AT(struct frag_monitor_options, csv), .value = "FILE",
	  .help = "also append a line per card to this file" },
	{ FRAG_ARG_BYTES, "rotate", FRAG_ARG_AT(struct frag_monitor_options, rotate_bytes),
	  .value = "SIZE", .min = 1, .max = UINT64_MAX >> 1, .def = "64M",
	  .help = "at this size FILE becomes FILE.1, and a new one begins" },
	{ FRAG_ARG_TEXT, "textfile", FRAG_ARG_AT(struct frag_monitor_options, textfile),
	  .value = "FILE", .help = "keep the latest look there for node_exporter of Prometheus" },
	{ FRAG_ARG_OWN, "alarm", .set = frag_monitor_set_alarm, .value = "PERCENT%",
	  .help = "say when a card uses so much of its memory, as 80%[,for=30s][,run=COMMAND], and "
		  "when it is 5 points below again; the exit status is 1 then" },
	{ 0 },
};

struct monitor {
	const struct frag_cli *cli;
	const struct frag_monitor_options *o;
	struct frag_nvml *nvml;
	struct frag_monitor_round round;
	struct frag_monitor_watch watch;
	struct frag_monitor_told told;
	bool lost[FRAG_MONITOR_CARDS];
	struct timespec start;
};

static void look(struct monitor *m)
{
	struct frag_monitor_round *r = &m->round;
	struct timespec wall, now;

	clock_gettime(CLOCK_REALTIME, &wall);
	clock_gettime(CLOCK_MONOTONIC, &now);
	r->unix_ms = (int64_t)wall.tv_sec * 1000 + wall.tv_nsec / 1000000;
	r->since_start_s = (double)(now.tv_sec - m->start.tv_sec) +
			   (double)(now.tv_nsec - m->start.tv_nsec) / 1e9;
	r->count = FRAG_MIN(frag_nvml_count(m->nvml), FRAG_MONITOR_CARDS);
	for (unsigned i = 0; i < r->count; i++) {
		struct frag_nvml_card *c = &r->cards[i];

		frag_nvml_read(m->nvml, i, c);
		frag_clean_text(c->name, strlen(c->name));
		for (char *at = c->name; *at; at++) /* a field of CSV, a label */
			if (*at == '"' || *at == '\\' || *at == ',')
				*at = ' ';
		frag_clean_text(c->fault, strlen(c->fault));
		if (!c->known && !m->lost[i])
			frag_cli_note(m->cli, "gpu %u does not answer: %s", i, c->fault);
		else if (c->known && m->lost[i])
			frag_cli_note(m->cli, "gpu %u answers again", i);
		m->lost[i] = !c->known;
	}
}

static void tell_once(const struct monitor *m, int rc, bool *told, const struct frag_err *err)
{
	if (rc && !*told)
		frag_cli_note(m->cli, "%s; the watch goes on", err->msg);
	*told = rc != 0;
}

/* Errors: of standard output, if nobody else listens. */
static int write_round(struct monitor *m, struct frag_err *err)
{
	const struct frag_monitor_options *o = m->o;
	struct frag_err fault = { 0 };
	int rc;

	if (!m->told.output) {
		rc = frag_monitor_print(&m->round, o->json, &fault);
		if (rc && !o->csv && !o->textfile && !o->alarm.on) {
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
	return 0;
}

/* Until the next multiple of the interval since the start; rounds that were missed are skipped. */
static void wait_next(const struct monitor *m)
{
	uint64_t ms = m->o->interval_ms,
		 next = ((uint64_t)(m->round.since_start_s * 1000) / ms + 1) * ms;
	struct timespec at = m->start;

	at.tv_sec += (time_t)(next / 1000);
	at.tv_nsec += (long)(next % 1000) * 1000000;
	if (at.tv_nsec >= 1000000000) {
		at.tv_sec++;
		at.tv_nsec -= 1000000000;
	}
	while (!frag_interrupted() &&
	       clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
}

static int watch(struct monitor *m, struct frag_err *err)
{
	for (unsigned done = 0; !frag_interrupted();) {
		look(m);
		frag_monitor_check(m->cli, &m->o->alarm, &m->round, &m->watch);
		FRAG_TRY(write_round(m, err));
		if (m->o->count && ++done >= m->o->count)
			break;
		wait_next(m);
	}
	return m->watch.alarms_count ? FRAG_EXIT_CONDITION : 0;
}

static int run(struct frag_cli *cli, void *values, struct frag_err *err)
{
	struct monitor *m = frag_host_calloc(1, sizeof(*m));
	int rc;

	if (!m)
		return frag_fail_nomem(err, "monitor");
	m->cli = cli;
	m->o = values;
	for (unsigned i = 0; i < FRAG_MONITOR_CARDS; i++)
		m->watch.over_since_s[i] = -1;
	clock_gettime(CLOCK_MONOTONIC, &m->start);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_IGN);
	rc = frag_nvml_open(&m->nvml, err);
	if (!rc) {
		frag_interrupt_catch();
		rc = watch(m, err);
	}
	frag_nvml_close(m->nvml);
	frag_host_free(m);
	return rc;
}

const struct frag_cmd frag_cmd_monitor = {
	.name = "monitor",
	.summary = "watch the memory of this machine's cards, with logs, metrics and an alarm",
	.group = FRAG_GROUP_OTHER,
	.about =
		"Says for every card, once a second, how much memory is in use, how busy it is and "
		"which processes hold how much, as the driver tells it (NVML). A card that is "
		"lost, "
		"a full disk or a closed pipe is said once, and the watch goes on.",
	.examples = "  cufrag monitor\n"
		    "  cufrag monitor --interval 100ms --csv run.csv\n"
		    "  cufrag monitor --alarm '90%,for=30s,run=notify-send \"GPU is full\"'\n"
		    "  cufrag monitor --textfile /var/lib/node_exporter/cufrag.prom > /dev/null\n",
	.options = FRAG_CMD_OPTIONS(options),
	.options_size = sizeof(struct frag_monitor_options),
	.run = run,
};
