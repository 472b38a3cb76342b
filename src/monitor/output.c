/* SPDX-License-Identifier: Apache-2.0 */
/* One round as lines of text, JSON, CSV that is rotated, and OpenMetrics. */
#include "monitor.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <frag/opt.h>

#include "answer/row.h"
#include "base/outfile.h"

/* ---- rows of JSON and CSV ------------------------------------------------------------------ */

#define HELD_ROW(F, P, S) \
	F(S, BYTES, requested_bytes, NULL, "asked for by live requests") \
	F(S, BYTES, allocated_bytes, NULL, "in live blocks") \
	F(S, BYTES, reserved_bytes, NULL, "taken from the card") \
	F(S, BYTES, nonreleasable_bytes, NULL, "free, but cannot be returned") \
	F(S, BYTES, largest_hole_bytes, NULL, "largest free piece")
FRAG_ROW_SHAPE(static, held_shape, frag_live_device, "held", HELD_ROW,
	       "what a process says it holds");

#define PROCESS_ROW(F, P, S) \
	F(S, COUNT, pid, p->pid, NULL, "its number") \
	F(S, TEXT, name, p->name, NULL, "of the program; empty where unknown") \
	F(S, TEXT, user, p->user, NULL, "who runs it; empty where unknown") \
	F(S, TEXT, command, p->command, NULL, "its command line, cut; empty where unknown") \
	F(S, BYTES, used_bytes, p->bytes, NULL, "as the driver says") \
	F(S, OBJECT, held, p->held_known ? &p->held : NULL, NULL, "what it says itself", \
	  .of = &held_shape)
FRAG_VALUED_ROW(process_row, "process", PROCESS_ROW, "a process on a card");

#define CARD_ROW(X) \
	X(TEXT, time, when, "time", "of the sample", .csv_only = true) \
	X(TEXT, id, card->id, "gpu", "card, or card.instance", .csv_only = true) \
	X(COUNT, gpu, card->gpu, "gpu", "number of the card", .no_csv = true) \
	X(COUNT, instance, card->instance < 0 ? UINT64_MAX : (uint64_t)card->instance, "instance", \
	  "of a card that is split (MIG)", .no_csv = true) \
	X(TEXT, fault, c->known ? NULL : c->fault, "fault", "why the card does not answer", \
	  .no_csv = true) \
	X(TEXT, name, c->known ? c->name : NULL, "name", "of the card") \
	X(BYTES, total_bytes, c->known ? c->total_bytes : UINT64_MAX, "total_bytes", "its memory") \
	X(BYTES, used_bytes, c->known ? c->used_bytes : UINT64_MAX, "used_bytes", "memory in use") \
	X(BYTES, free_bytes, c->known ? c->free_bytes : UINT64_MAX, "free_bytes", \
	  "memory not in use") \
	X(COUNT, utilization_percent, \
	  c->known && c->utilization_percent >= 0 ? (uint64_t)c->utilization_percent : UINT64_MAX, \
	  "utilization_percent", "time with a kernel at work") \
	X(COUNT, processes_count, \
	  c->known && c->processes_known ? c->processes_count : UINT64_MAX, "processes_count", \
	  "processes on it; null = unknown") \
	X(COUNT, alarms_count, card->alarm, "alarm", "1 while the alarm is raised", \
	  .csv_only = true) \
	X(BOOL, alarm, card->alarm, "alarm", "the alarm is raised", .no_csv = true) \
	X(LIST, processes, FRAG_ROWS(list, list && c->known ? c->processes_count : 0), \
	  "processes", "on it", .of = &process_row_shape)
#define CARD_MEMBER(type, member, ...) frag_ctype_##type member;
#define CARD_FIELD(type, member, value, name, help, ...) \
	FRAG_FIELD_AS(type, name, struct card_row, member, NULL, help, ##__VA_ARGS__),
#define CARD_VALUE(type, member, value, ...) .member = value,
struct card_row {
	CARD_ROW(CARD_MEMBER)
};
static const struct frag_field card_fields[] = { CARD_ROW(CARD_FIELD) FRAG_FIELD_END };
static const struct frag_shape card_shape =
	FRAG_SHAPE("monitored_card", struct card_row, card_fields, "a card in one sample");

#define ROUND_ROW(F, P, S) \
	F(S, TEXT, time, NULL, "of the sample") \
	F(S, LIST, cards, NULL, "all cards and instances", .of = &card_shape)
FRAG_ROW(round_row, "round", ROUND_ROW, "one sample of all cards");

/* list: room for the processes; NULL = they are left out. */
static struct card_row card_row(const struct frag_monitor_card *card, const char *when,
				struct process_row *list)
{
	const struct frag_nvml_card *c = &card->nvml;

	for (unsigned k = 0; list && c->known && k < c->processes_count; k++) {
		const struct frag_monitor_process *p = &card->processes[k];

		list[k] = FRAG_ROW_VALUES(process_row, PROCESS_ROW);
	}
	return (struct card_row){ CARD_ROW(CARD_VALUE) };
}

json_t *frag_monitor_json(const struct frag_monitor_round *r, const char *when)
{
	struct card_row cards[FRAG_MONITOR_CARDS];
	struct round_row round = { .time = when, .cards = { cards, r->count } };
	FRAG_AUTO_FREE struct process_row *list = frag_host_calloc(
		(size_t)FRAG_MAX(r->count, 1u) * FRAG_NVML_PROCESSES, sizeof(*list));

	for (unsigned i = 0; list && i < r->count; i++)
		cards[i] = card_row(&r->cards[i], when, list + (size_t)i * FRAG_NVML_PROCESSES);
	return list ? frag_shape_json(&round_row_shape, &round) : NULL;
}

/* ---- lines --------------------------------------------------------------------------------- */

void frag_monitor_stamp(const struct frag_monitor_round *r, char *buf, size_t cap)
{
	time_t s = (time_t)(r->unix_ms / 1000);
	struct tm tm;
	size_t n = gmtime_r(&s, &tm) ? strftime(buf, cap, "%FT%T", &tm) : 0;

	snprintf(buf + n, cap - n, ".%03dZ", (int)(r->unix_ms % 1000));
}

static void print_process(const struct frag_monitor_process *p, bool first)
{
	static const char *const before[] = { " (holds ", " of ", ", non-releasable ",
					      ", largest hole " };
	const uint64_t held[] = { p->held.allocated_bytes, p->held.reserved_bytes,
				  p->held.nonreleasable_bytes, p->held.largest_hole_bytes };
	char bytes[32] = "unknown";

	if (p->bytes != UINT64_MAX)
		frag_format_bytes(p->bytes, bytes, sizeof(bytes));
	printf("%s %u", first ? "; pid" : ",", p->pid);
	if (*p->name)
		printf(" %s", p->name);
	if (*p->user)
		printf(" of %s", p->user);
	printf(" %s", bytes);
	for (size_t i = 0; p->held_known && i < FRAG_ARRAY_LEN(before); i++)
		if (held[i] != UINT64_MAX)
			printf("%s%s%s", before[i], FRAG_BYTES(held[i]), i == 1 ? " reserved" : "");
	if (p->held_known)
		putchar(')');
}

static void print_card(const char *when, const struct frag_monitor_card *card)
{
	const struct frag_nvml_card *c = &card->nvml;

	if (!c->known) {
		printf("%s gpu %s: %s\n", when, card->id, c->fault);
		return;
	}
	printf("%s gpu %s %s: %s of %s used (%.0f %%)", when, card->id, c->name,
	       FRAG_BYTES(c->used_bytes), FRAG_BYTES(c->total_bytes), frag_monitor_percent(card));
	if (c->utilization_percent >= 0)
		printf(", busy %d %%", c->utilization_percent);
	for (unsigned k = 0; k < c->processes_count; k++)
		print_process(&card->processes[k], !k);
	putchar('\n');
}

int frag_monitor_print(const struct frag_monitor_round *r, bool json, struct frag_err *err)
{
	char when[40];
	int reason;

	frag_monitor_stamp(r, when, sizeof(when));
	if (json) {
		json_auto_t *line = frag_monitor_json(r, when);

		FRAG_CHECK_ALLOC(line, "JSON line", err);
		json_dumpf(line, stdout, JSON_COMPACT);
		putchar('\n');
	}
	for (unsigned i = 0; !json && i < r->count; i++)
		print_card(when, &r->cards[i]);
	reason = frag_outfile_reason(stdout);
	return reason ? FRAG_OUTPUT(err, "cannot write standard output: %s", strerror(reason)) : 0;
}

/* ---- files ---------------------------------------------------------------------------------- */

/* FILE becomes FILE.1 when it is full. *empty: it has no rows so far. */
static FILE *open_csv(const struct frag_monitor_options *o, bool *empty)
{
	FRAG_AUTO_FREE char *old = frag_host_alloc(strlen(o->csv) + 3);
	struct stat st;
	int fd;
	bool there = !stat(o->csv, &st) && st.st_size > 0;

	if (old && there && S_ISREG(st.st_mode) && (uint64_t)st.st_size >= o->rotate_bytes) {
		sprintf(old, "%s.1", o->csv);
		there = rename(o->csv, old) != 0;
	}
	*empty = !there;
	/* a pipe without a reader must not stop the watch */
	fd = open(o->csv, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0666);
	return fd < 0 ? NULL : fdopen(fd, "a");
}

int frag_monitor_append_csv(const struct frag_monitor_options *o,
			    const struct frag_monitor_round *r, struct frag_err *err)
{
	FRAG_AUTO(frag_text_release) struct frag_text rows = { 0 };
	bool empty;
	FILE *f = open_csv(o, &empty);
	char when[40];
	int reason = 0;

	if (!f)
		return FRAG_OUTPUT(err, "cannot write '%.200s': %s", o->csv, strerror(errno));
	frag_monitor_stamp(r, when, sizeof(when));
	if (empty)
		frag_shape_csv_head(&card_shape, &rows);
	for (unsigned i = 0; i < r->count; i++) {
		const struct card_row row = card_row(&r->cards[i], when, NULL);
		bool in_parts = false;

		/* its instances are in the rows: it is not to be weighed against its parts */
		for (unsigned k = 0; r->cards[i].nvml.is_split && k < r->count; k++)
			in_parts |= r->cards[k].gpu == r->cards[i].gpu &&
				    r->cards[k].instance >= 0 && r->cards[k].nvml.known;
		if (r->cards[i].nvml.known && !in_parts)
			frag_shape_csv_row(&card_shape, &row, &rows);
	}
	fputs(frag_text_str(&rows), f);
	reason = rows.failed ? ENOMEM : frag_outfile_reason(f);
	if (fclose(f) && !reason)
		reason = errno;
	return reason ? FRAG_OUTPUT(err, "cannot write '%.200s': %s", o->csv, strerror(reason)) : 0;
}

/* ---- OpenMetrics -------------------------------------------------------------------------- */

enum card_value { TOTAL, USED, FREE, BUSY, ALARM, UP };

/* UINT64_MAX: not known. */
static uint64_t of_card(const struct frag_monitor_card *c, enum card_value value)
{
	const struct frag_nvml_card *n = &c->nvml;

	if (value == UP)
		return n->known;
	if (!n->known)
		return UINT64_MAX;
	return value == TOTAL  ? n->total_bytes
	       : value == USED ? n->used_bytes
	       : value == FREE ? n->free_bytes
	       : value == BUSY ? (n->utilization_percent < 0 ? UINT64_MAX
							     : (uint64_t)n->utilization_percent)
			       : c->alarm;
}

uint64_t frag_monitor_value(const struct frag_monitor_process *p, enum frag_monitor_value value)
{
	if (value == FRAG_MONITOR_DRIVER)
		return p->bytes;
	if (!p->held_known)
		return UINT64_MAX;
	return value == FRAG_MONITOR_ALLOCATED	     ? p->held.allocated_bytes
	       : value == FRAG_MONITOR_RESERVED	     ? p->held.reserved_bytes
	       : value == FRAG_MONITOR_NONRELEASABLE ? p->held.nonreleasable_bytes
						     : p->held.largest_hole_bytes;
}

/* Of a label's value, between quotes. */
static void put_label(FILE *to, const char *text)
{
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			putc('\\', to);
		putc(*text, to);
	}
}

static void put_head(FILE *to, const char *name, const char *help)
{
	fprintf(to, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name);
}

void frag_monitor_put_metrics(FILE *to, const struct frag_monitor_round *r)
{
	static const struct {
		const char *name, *help;
	} cards[] = {
		[TOTAL] = { "cufrag_gpu_memory_total_bytes", "Memory of the card." },
		[USED] = { "cufrag_gpu_memory_used_bytes", "Memory in use." },
		[FREE] = { "cufrag_gpu_memory_free_bytes", "Memory not in use." },
		[BUSY] = { "cufrag_gpu_utilization_percent", "Time with a kernel at work." },
		[ALARM] = { "cufrag_gpu_alarm", "1 while the alarm of this watch is raised." },
		[UP] = { "cufrag_gpu_up", "1 if the card answers." },
	}, processes[] = {
		[FRAG_MONITOR_DRIVER] = { "cufrag_process_memory_used_bytes", "As the driver says." },
		[FRAG_MONITOR_ALLOCATED] = { "cufrag_process_memory_allocated_bytes",
				"In live blocks, as the process says." },
		[FRAG_MONITOR_RESERVED] = { "cufrag_process_memory_reserved_bytes",
			       "Taken from the card for them." },
		[FRAG_MONITOR_NONRELEASABLE] = { "cufrag_process_memory_nonreleasable_bytes",
				    "Free, but not to be given back." },
		[FRAG_MONITOR_HOLE] = { "cufrag_process_memory_largest_hole_bytes", "Largest free piece." },
	};

	for (unsigned v = 0; v < FRAG_ARRAY_LEN(cards); v++) {
		put_head(to, cards[v].name, cards[v].help);
		for (unsigned i = 0; i < r->count; i++) {
			uint64_t value = of_card(&r->cards[i], (enum card_value)v);

			if (value == UINT64_MAX)
				continue;
			fprintf(to, "%s{gpu=\"%s\"", cards[v].name, r->cards[i].id);
			if (v != UP) /* a lost card has no name, and is the same one */
				fprintf(to, ",name=\"%s\"", r->cards[i].nvml.name);
			fprintf(to, "} %" PRIu64 "\n", value);
		}
	}
	for (unsigned v = 0; v < FRAG_ARRAY_LEN(processes); v++) {
		put_head(to, processes[v].name, processes[v].help);
		for (const struct frag_monitor_card *c = r->cards; c < r->cards + r->count; c++)
			for (unsigned k = 0; k < c->nvml.processes_count; k++) {
				const struct frag_monitor_process *p = &c->processes[k];
				uint64_t value = frag_monitor_value(p, (enum frag_monitor_value)v);

				if (value == UINT64_MAX)
					continue;
				fprintf(to, "%s{gpu=\"%s\",pid=\"%u\",process=\"",
					processes[v].name, c->id, p->pid);
				put_label(to, p->name);
				fputs("\",user=\"", to);
				put_label(to, p->user);
				fprintf(to, "\"} %" PRIu64 "\n", value);
			}
	}
}

int frag_monitor_write_textfile(const char *path, const struct frag_monitor_round *r,
				struct frag_err *err)
{
	struct frag_outfile out;

	FRAG_TRY(frag_outfile_open(&out, path, err));
	frag_monitor_put_metrics(out.to, r);
	return frag_outfile_commit(&out, err);
}
