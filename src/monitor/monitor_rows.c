/* SPDX-License-Identifier: Apache-2.0 */
/* One round as JSON and as CSV. */
#include "monitor.h"

#include "answer/row.h"

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

int frag_monitor_print_json(const struct frag_monitor_round *r, const char *when,
			    struct frag_err *err)
{
	json_auto_t *line = frag_monitor_json(r, when);

	FRAG_CHECK_ALLOC(line, "JSON line", err);
	json_dumpf(line, stdout, JSON_COMPACT);
	putchar('\n');
	return 0;
}

void frag_monitor_csv_head(struct frag_text *out)
{
	frag_shape_csv_head(&card_shape, out);
}

void frag_monitor_csv_row(const struct frag_monitor_card *c, const char *when,
			  struct frag_text *out)
{
	const struct card_row row = card_row(c, when, NULL);

	frag_shape_csv_row(&card_shape, &row, out);
}
