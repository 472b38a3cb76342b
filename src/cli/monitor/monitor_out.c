/* SPDX-License-Identifier: Apache-2.0 */
/* One round as lines, JSON, CSV and OpenMetrics. */
#include "monitor.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <frag/opt.h>

#include "base/clean.h"

static void stamp(const struct frag_monitor_round *r, char *buf, size_t cap)
{
	time_t s = (time_t)(r->unix_ms / 1000);
	struct tm tm;
	size_t n = gmtime_r(&s, &tm) ? strftime(buf, cap, "%FT%T", &tm) : 0;

	snprintf(buf + n, cap - n, ".%03dZ", (int)(r->unix_ms % 1000));
}

/* "python alice": name and user of a process, "" where they cannot be told. Hostile text made harmless. */
static void describe(unsigned pid, char *name, size_t name_cap, char *user, size_t user_cap)
{
	char path[40];
	struct stat st;
	struct passwd of, *pw = NULL;
	char text[1024];
	FILE *f;

	name[0] = user[0] = '\0';
	snprintf(path, sizeof(path), "/proc/%u/comm", pid);
	f = fopen(path, "r");
	if (f && fgets(name, (int)name_cap, f))
		name[strcspn(name, "\n")] = '\0';
	if (f)
		fclose(f);
	frag_clean_text(name, strlen(name));
	snprintf(path, sizeof(path), "/proc/%u", pid);
	if (*name && !stat(path, &st) && !getpwuid_r(st.st_uid, &of, text, sizeof(text), &pw) && pw)
		snprintf(user, user_cap, "%s", pw->pw_name);
}

static double percent_of(const struct frag_nvml_card *c)
{
	return c->total_bytes ? 100.0 * (double)c->used_bytes / (double)c->total_bytes : 0;
}

/* ---- standard output -------------------------------------------------------------- */

static void print_card(const char *when, unsigned i, const struct frag_nvml_card *c)
{
	char used[32], total[32];

	if (!c->known) {
		printf("%s gpu %u: %s\n", when, i, c->fault);
		return;
	}
	printf("%s gpu %u %s: %s of %s used (%.0f %%)", when, i, c->name,
	       frag_format_bytes(c->used_bytes, used, sizeof(used)),
	       frag_format_bytes(c->total_bytes, total, sizeof(total)), percent_of(c));
	if (c->utilization_percent >= 0)
		printf(", busy %d %%", c->utilization_percent);
	for (unsigned k = 0; k < c->processes_count; k++) {
		const struct frag_nvml_process *p = &c->processes[k];
		char name[32], user[40], bytes[32] = "unknown";

		describe(p->pid, name, sizeof(name), user, sizeof(user));
		if (p->bytes != UINT64_MAX)
			frag_format_bytes(p->bytes, bytes, sizeof(bytes));
		printf("%s %u", k ? "," : "; pid", p->pid);
		if (*name)
			printf(" %s", name);
		if (*user)
			printf(" of %s", user);
		printf(" %s", bytes);
	}
	putchar('\n');
}

static void print_spread(const char *when, const struct frag_monitor_round *r)
{
	unsigned least = 0, most = 0, known = 0;
	char a[32], b[32];

	for (unsigned i = 0; i < r->count; i++) {
		if (!r->cards[i].known)
			continue;
		if (!known++)
			least = most = i;
		if (r->cards[i].used_bytes < r->cards[least].used_bytes)
			least = i;
		if (r->cards[i].used_bytes > r->cards[most].used_bytes)
			most = i;
	}
	if (known > 1)
		printf("%s from %s (gpu %u) to %s (gpu %u)\n", when,
		       frag_format_bytes(r->cards[least].used_bytes, a, sizeof(a)), least,
		       frag_format_bytes(r->cards[most].used_bytes, b, sizeof(b)), most);
}

static json_t *card_json(unsigned i, const struct frag_nvml_card *c)
{
	json_t *o = json_pack("{s:i}", "gpu", (int)i), *list;

	if (!c->known) {
		json_object_set_new(o, "fault", json_string(c->fault));
		return o;
	}
	json_object_set_new(o, "name", json_string(c->name));
	json_object_set_new(o, "total_bytes", json_integer((json_int_t)c->total_bytes));
	json_object_set_new(o, "used_bytes", json_integer((json_int_t)c->used_bytes));
	json_object_set_new(o, "free_bytes", json_integer((json_int_t)c->free_bytes));
	json_object_set_new(o, "utilization_percent",
			    c->utilization_percent < 0 ? json_null()
						       : json_integer(c->utilization_percent));
	list = c->processes_known ? json_array() : json_null();
	for (unsigned k = 0; k < c->processes_count; k++) {
		const struct frag_nvml_process *p = &c->processes[k];

		json_array_append_new(list,
				      json_pack("{s:i, s:o}", "pid", (int)p->pid, "used_bytes",
						p->bytes == UINT64_MAX
							? json_null()
							: json_integer((json_int_t)p->bytes)));
	}
	json_object_set_new(o, "processes", list);
	return o;
}

static void print_json(const char *when, const struct frag_monitor_round *r)
{
	json_t *cards = json_array(), *o = json_pack("{s:s, s:o}", "time", when, "cards", cards);

	for (unsigned i = 0; i < r->count; i++)
		json_array_append_new(cards, card_json(i, &r->cards[i]));
	json_dumpf(o, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(o);
}

int frag_monitor_print(const struct frag_monitor_round *r, bool json, struct frag_err *err)
{
	char when[40];
	int reason;

	stamp(r, when, sizeof(when));
	if (json)
		print_json(when, r);
	for (unsigned i = 0; !json && i < r->count; i++)
		print_card(when, i, &r->cards[i]);
	if (!json)
		print_spread(when, r);
	reason = frag_outfile_reason(stdout);
	return reason ? frag_fail(err, FRAG_EOUTPUT, "cannot write standard output: %s",
				  strerror(reason))
		      : 0;
}

/* ---- files ------------------------------------------------------------------------- */

/* FILE becomes FILE.1 when it is full. */
static FILE *open_csv(const struct frag_monitor_options *o)
{
	char *old = frag_host_alloc(strlen(o->csv) + 3);
	struct stat st;
	bool there = !stat(o->csv, &st) && st.st_size > 0;
	FILE *f;

	if (old && there && S_ISREG(st.st_mode) && (uint64_t)st.st_size >= o->rotate_bytes) {
		sprintf(old, "%s.1", o->csv);
		there = rename(o->csv, old) != 0;
	}
	frag_host_free(old);
	f = fopen(o->csv, "ae");
	if (f && !there)
		fputs("time,gpu,name,total_bytes,used_bytes,free_bytes,utilization_percent,"
		      "processes_count\n",
		      f);
	return f;
}

int frag_monitor_append_csv(const struct frag_monitor_options *o,
			    const struct frag_monitor_round *r, struct frag_err *err)
{
	FILE *f = open_csv(o);
	char when[40];
	int reason = 0;

	if (!f)
		return frag_fail(err, FRAG_EOUTPUT, "cannot write '%.200s': %s", o->csv,
				 strerror(errno));
	stamp(r, when, sizeof(when));
	for (unsigned i = 0; i < r->count; i++) {
		const struct frag_nvml_card *c = &r->cards[i];

		if (!c->known)
			continue;
		fprintf(f, "%s,%u,%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",", when, i, c->name,
			c->total_bytes, c->used_bytes, c->free_bytes);
		if (c->utilization_percent >= 0)
			fprintf(f, "%d", c->utilization_percent);
		fprintf(f, ",%u\n", c->processes_count);
	}
	reason = frag_outfile_reason(f);
	if (fclose(f) && !reason)
		reason = errno;
	return reason ? frag_fail(err, FRAG_EOUTPUT, "cannot write '%.200s': %s", o->csv,
				  strerror(reason))
		      : 0;
}

static void put_family(FILE *to, const struct frag_monitor_round *r, const char *name,
		       const char *help, uint64_t (*value)(const struct frag_nvml_card *c))
{
	fprintf(to, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name);
	for (unsigned i = 0; i < r->count; i++)
		if (r->cards[i].known)
			fprintf(to, "%s{gpu=\"%u\",name=\"%s\"} %" PRIu64 "\n", name, i,
				r->cards[i].name, value(&r->cards[i]));
}

static uint64_t total_of(const struct frag_nvml_card *c)
{
	return c->total_bytes;
}

static uint64_t used_of(const struct frag_nvml_card *c)
{
	return c->used_bytes;
}

static uint64_t free_of(const struct frag_nvml_card *c)
{
	return c->free_bytes;
}

int frag_monitor_write_textfile(const char *path, const struct frag_monitor_round *r,
				struct frag_err *err)
{
	struct frag_outfile out;

	FRAG_TRY(frag_outfile_open(&out, path, err));
	put_family(out.to, r, "cufrag_gpu_memory_total_bytes", "Memory of the card.", total_of);
	put_family(out.to, r, "cufrag_gpu_memory_used_bytes", "Memory in use.", used_of);
	put_family(out.to, r, "cufrag_gpu_memory_free_bytes", "Memory not in use.", free_of);
	fprintf(out.to, "# HELP cufrag_gpu_up 1 if the card answers.\n# TYPE cufrag_gpu_up "
			"gauge\n");
	for (unsigned i = 0; i < r->count; i++)
		fprintf(out.to, "cufrag_gpu_up{gpu=\"%u\"} %d\n", i, r->cards[i].known);
	return frag_outfile_commit(&out, err);
}
