/* SPDX-License-Identifier: Apache-2.0 */
/* The alarm: its text, when it is raised, what it runs. */
#include "monitor.h"
#include "protocol_list.inc"

#include <ctype.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
		return frag_fail(err, FRAG_EUSAGE,
				 "'%.40s' is not an interval; write it as 100ms, 1s or 2m", text);
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
		return frag_fail(err, FRAG_EUSAGE,
				 "'%.60s' is not an alarm; write it as 80%%,for=30s,run=COMMAND",
				 text);
	at = end + 1;
	if (!strncmp(at, ",for=", 5) && !read_seconds(at + 5, &at, &a->for_s))
		return frag_fail(err, FRAG_EUSAGE, "'%.60s': for= takes a time, such as 30s", text);
	if (!strncmp(at, ",run=", 5) && at[5]) {
		a->command = at + 5;
		return 0;
	}
	if (*at)
		return frag_fail(err, FRAG_EUSAGE,
				 "'%.60s': only for=TIME and run=COMMAND may follow the limit",
				 text);
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
	setenv(CUFRAG_ALARM_GPU, gpu, 1);
	setenv(CUFRAG_ALARM_PERCENT, part, 1);
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

void frag_monitor_check(struct frag_monitor *m)
{
	for (unsigned i = 0; m->o->alarm.on && i < m->round.count; i++)
		check_card(m, i);
}
