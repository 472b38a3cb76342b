/* SPDX-License-Identifier: Apache-2.0 */
/* One round as JSON and as CSV; see rows.h. */
#include "rows.h"

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

struct card_row {
	const char *time, *id, *fault, *name;
	uint64_t gpu, instance, total_bytes, used_bytes, free_bytes, utilization_percent;
	uint64_t processes_count, alarms_count;
	bool alarm;
	struct frag_rows processes;
};
#define CARD(type, member, name, help, ...) \
	FRAG_FIELD_AS(type, name, struct card_row, member, NULL, help, ##__VA_ARGS__)
static const struct frag_field card_fields[] = {
	CARD(TEXT, time, "time", "of the sample", .csv_only = true),
	CARD(TEXT, id, "gpu", "card, or card.instance", .csv_only = true),
	CARD(COUNT, gpu, "gpu", "number of the card", .no_csv = true),
	CARD(COUNT, instance, "instance", "of a card that is split (MIG)", .no_csv = true),
	CARD(TEXT, fault, "fault", "why the card does not answer", .no_csv = true),
	CARD(TEXT, name, "name", "of the card"),
	CARD(BYTES, total_bytes, "total_bytes", "its memory"),
	CARD(BYTES, used_bytes, "used_bytes", "memory in use"),
	CARD(BYTES, free_bytes, "free_bytes", "memory not in use"),
	CARD(COUNT, utilization_percent, "utilization_percent", "time with a kernel at work"),
	CARD(COUNT, processes_count, "processes_count", "processes on it; null = unknown"),
	CARD(COUNT, alarms_count, "alarm", "1 while the alarm is raised", .csv_only = true),
	CARD(BOOL, alarm, "alarm", "the alarm is raised", .no_csv = true),
	CARD(LIST, processes, "processes", "on it", .of = &process_row_shape),
	FRAG_FIELD_END
};
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
	struct card_row row = { .time = when,
				.id = card->id,
				.gpu = card->gpu,
				.instance =
					card->instance < 0 ? UINT64_MAX : (uint64_t)card->instance,
				.total_bytes = UINT64_MAX,
				.used_bytes = UINT64_MAX,
				.free_bytes = UINT64_MAX,
				.utilization_percent = UINT64_MAX,
				.processes_count = UINT64_MAX,
				.alarms_count = card->alarm,
				.alarm = card->alarm };

	if (!c->known) {
		row.fault = c->fault;
		return row;
	}
	row.name = c->name;
	row.total_bytes = c->total_bytes;
	row.used_bytes = c->used_bytes;
	row.free_bytes = c->free_bytes;
	if (c->utilization_percent >= 0)
		row.utilization_percent = (uint64_t)c->utilization_percent;
	if (c->processes_known)
		row.processes_count = c->processes_count;
	for (unsigned k = 0; list && k < c->processes_count; k++) {
		const struct frag_monitor_process *p = &card->processes[k];

		list[k] = FRAG_ROW_VALUES(process_row, PROCESS_ROW);
	}
	if (list)
		row.processes = (struct frag_rows){ list, c->processes_count };
	return row;
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
