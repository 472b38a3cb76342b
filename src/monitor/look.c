/* SPDX-License-Identifier: Apache-2.0 */
/* One look at every card, its instances and the processes on them. */
#include "monitor.h"

#include <limits.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clean.h"
#include "base/proc.h"

uint64_t frag_monitor_start_of(unsigned pid)
{
	char text[600], *at;
	unsigned long long start = 0;

	frag_proc_read(pid, "stat", text, sizeof(text));
	at = strrchr(text, ')'); /* the name before it may hold anything */
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	return at && sscanf(at, "%llu", &start) == 1 ? start : 0;
}

/* A file of /proc as text that may be shown; "" where it cannot be read. */
static void read_text(unsigned pid, const char *name, char *out, size_t cap)
{
	size_t n = frag_proc_read(pid, name, out, cap);

	while (n && (!out[n - 1] || out[n - 1] == '\n'))
		n--;
	for (size_t i = 0; i < n; i++) /* words of a command line end with it */
		out[i] = out[i] ? out[i] : ' ';
	out[n] = '\0';
	frag_clean_text(out, n);
}

/* Names, user and command line of a process, "" where they cannot be told. */
static void describe(struct frag_monitor_process *p)
{
	char path[40], text[1024];
	struct stat st;
	struct passwd of, *pw = NULL;

	read_text(p->pid, "comm", p->name, sizeof(p->name));
	read_text(p->pid, "cmdline", p->command, sizeof(p->command));
	snprintf(path, sizeof(path), "/proc/%u", p->pid);
	p->uid = UINT_MAX;
	if (!*p->name || stat(path, &st))
		return;
	p->uid = st.st_uid;
	if (!getpwuid_r(st.st_uid, &of, text, sizeof(text), &pw) && pw)
		snprintf(p->user, sizeof(p->user), "%s", pw->pw_name);
	frag_clean_text(p->user, strlen(p->user));
}

/* A process has its cards in the order of ours: the n-th of them that lists it is its n-th. */
static void take_held(const struct frag_monitor_round *r, const struct frag_monitor_card *card,
		      struct frag_monitor_process *p)
{
	struct frag_live_page page;
	unsigned before = 0;

	for (const struct frag_monitor_card *c = r->cards; c < card; c++)
		for (unsigned k = 0; k < c->nvml.processes_count; k++)
			before += c->nvml.processes[k].pid == p->pid;
	if (!frag_live_page_read(p->pid, &page))
		return;
	for (uint64_t d = 0; d < page.devices_count; d++) {
		if (!page.devices[d].allocs_count || before--)
			continue;
		p->held = page.devices[d];
		p->held_known = true;
		return;
	}
}

static void take_processes(const struct frag_monitor_round *r, struct frag_monitor_card *c)
{
	struct frag_monitor_process old[FRAG_NVML_PROCESSES];

	memcpy(old, c->processes, sizeof(old));
	memset(c->processes, 0, sizeof(c->processes));
	for (unsigned k = 0; k < c->nvml.processes_count; k++) {
		struct frag_monitor_process *p = &c->processes[k];
		uint64_t start = frag_monitor_start_of(c->nvml.processes[k].pid);
		unsigned i = 0;

		p->pid = c->nvml.processes[k].pid;
		p->bytes = c->nvml.processes[k].bytes;
		while (i < FRAG_NVML_PROCESSES && (old[i].pid != p->pid || old[i].start != start))
			i++;
		if (i < FRAG_NVML_PROCESSES && p->pid && start) { /* names cost looks into files */
			*p = old[i];
			p->bytes = c->nvml.processes[k].bytes;
			p->held_known = false;
		} else {
			p->start = start;
			describe(p);
		}
		take_held(r, c, p);
	}
}

/* Of card and instance; a new one gets the next place. NULL: too many. */
static struct frag_monitor_card *place_of(struct frag_monitor_round *r, unsigned gpu, int instance)
{
	struct frag_monitor_card *c;

	for (unsigned i = 0; i < r->count; i++)
		if (r->cards[i].gpu == gpu && r->cards[i].instance == instance)
			return &r->cards[i];
	if (r->count == FRAG_MONITOR_CARDS)
		return NULL;
	c = &r->cards[r->count++];
	c->gpu = gpu;
	c->instance = instance;
	if (instance < 0)
		snprintf(c->id, sizeof(c->id), "%u", gpu);
	else
		snprintf(c->id, sizeof(c->id), "%u.%d", gpu, instance);
	return c;
}

static void take(struct frag_monitor *m, struct frag_monitor_card *c,
		 const struct frag_nvml_card *seen)
{
	c->nvml = *seen;
	frag_clean_text(c->nvml.name, strlen(c->nvml.name));
	for (char *at = c->nvml.name; *at; at++) /* a field of CSV, a label */
		if (*at == '"' || *at == '\\' || *at == ',')
			*at = ' ';
	frag_clean_text(c->nvml.fault, strlen(c->nvml.fault));
	take_processes(&m->round, c);
	if (!c->nvml.known && !c->lost)
		frag_monitor_say(m, "gpu %s does not answer: %s", c->id, c->nvml.fault);
	else if (c->nvml.known && c->lost)
		frag_monitor_say(m, "gpu %s answers again", c->id);
	c->lost = !c->nvml.known;
}

/* An instance may be made or taken away at any time. */
static void look_at_instances(struct frag_monitor *m, unsigned gpu)
{
	struct frag_nvml_card seen;

	for (unsigned k = 0; k < FRAG_NVML_INSTANCES; k++) {
		bool there = frag_nvml_read_instance(m->nvml, gpu, k, &seen);
		struct frag_monitor_card *c = NULL;

		if (there) {
			c = place_of(&m->round, gpu, (int)k);
		} else {
			snprintf(seen.fault, sizeof(seen.fault), "the instance no longer exists");
			for (unsigned i = 0; i < m->round.count; i++)
				if (m->round.cards[i].gpu == gpu &&
				    m->round.cards[i].instance == (int)k)
					c = &m->round.cards[i];
		}
		if (c)
			take(m, c, &seen);
	}
}

static void remember(struct frag_monitor *m)
{
	for (unsigned i = 0; i < m->round.count; i++) {
		const struct frag_nvml_card *c = &m->round.cards[i].nvml;
		struct frag_monitor_past *p = &m->past[i];
		size_t cell = p->looks++ % FRAG_MONITOR_PAST;

		p->used[cell] = p->busy[cell] = FRAG_MONITOR_UNKNOWN;
		if (c->known)
			p->used[cell] =
				(unsigned char)(frag_monitor_percent(&m->round.cards[i]) + 0.5);
		if (c->known && c->utilization_percent >= 0)
			p->busy[cell] = (unsigned char)FRAG_MIN(c->utilization_percent, 100);
	}
}

unsigned frag_monitor_past_most(const struct frag_monitor_past *p, bool busy, unsigned per,
				unsigned back)
{
	uint64_t column = p->looks ? (p->looks - 1) / per : 0, first, end;
	unsigned most = FRAG_MONITOR_UNKNOWN;

	if (!p->looks || back > column)
		return most;
	first = (column - back) * per;
	end = FRAG_MIN(first + per, p->looks);
	if (first + FRAG_MONITOR_PAST < p->looks)
		first = p->looks - FRAG_MONITOR_PAST;
	for (uint64_t n = first; n < end; n++) {
		unsigned v = (busy ? p->busy : p->used)[n % FRAG_MONITOR_PAST];

		if (v != FRAG_MONITOR_UNKNOWN && (most == FRAG_MONITOR_UNKNOWN || v > most))
			most = v;
	}
	return most;
}

void frag_monitor_look(struct frag_monitor *m)
{
	unsigned count = frag_nvml_count(m->nvml);
	struct timespec wall, now;

	clock_gettime(CLOCK_REALTIME, &wall);
	clock_gettime(CLOCK_MONOTONIC, &now);
	m->round.unix_ms = (int64_t)wall.tv_sec * 1000 + wall.tv_nsec / 1000000;
	m->round.since_start_s = (double)(now.tv_sec - m->start.tv_sec) +
				 (double)(now.tv_nsec - m->start.tv_nsec) / 1e9;
	for (unsigned i = 0; i < count; i++) {
		struct frag_monitor_card *c = place_of(&m->round, i, -1);
		struct frag_nvml_card seen;

		if (!c)
			break;
		frag_nvml_read(m->nvml, i, &seen);
		take(m, c, &seen);
		if (seen.is_split || m->round.count > count)
			look_at_instances(m, i);
	}
	remember(m);
}

double frag_monitor_percent(const struct frag_monitor_card *c)
{
	return c->nvml.total_bytes
		       ? 100.0 * (double)c->nvml.used_bytes / (double)c->nvml.total_bytes
		       : 0;
}
