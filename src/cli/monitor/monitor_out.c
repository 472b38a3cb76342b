/* SPDX-License-Identifier: Apache-2.0 */
/* monitor: one round as lines and as JSON. */
#include "monitor.h"

#include <string.h>
#include <time.h>

#include <frag/opt.h>

#include "answer/json.h"

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

static void print_spread(const char *when, const struct frag_monitor_round *r)
{
	unsigned least, most;

	if (frag_monitor_spread(r, &least, &most))
		printf("%s from %s (gpu %s) to %s (gpu %s)\n", when,
		       FRAG_BYTES(r->cards[least].nvml.used_bytes), r->cards[least].id,
		       FRAG_BYTES(r->cards[most].nvml.used_bytes), r->cards[most].id);
}

/* ---- JSON ------------------------------------------------------------------------------ */

static json_t *process_json(const struct frag_monitor_process *p)
{
	const struct frag_live_device *h = &p->held;
	json_t *o = json_pack("{s:i, s:s, s:s, s:o}", "pid", (int)p->pid, "name", p->name, "user",
			      p->user, "used_bytes", frag_json_number(p->bytes));

	if (p->held_known)
		json_object_set_new(
			o, "held",
			json_pack("{s:o, s:o, s:o, s:o, s:o}", "requested_bytes",
				  frag_json_number(h->requested_bytes), "allocated_bytes",
				  frag_json_number(h->allocated_bytes), "reserved_bytes",
				  frag_json_number(h->reserved_bytes), "nonreleasable_bytes",
				  frag_json_number(h->nonreleasable_bytes), "largest_hole_bytes",
				  frag_json_number(h->largest_hole_bytes)));
	return o;
}

static json_t *card_json(const struct frag_monitor_card *card)
{
	const struct frag_nvml_card *c = &card->nvml;
	json_t *o = json_pack("{s:i}", "gpu", (int)card->gpu), *list;

	if (card->instance >= 0)
		json_object_set_new(o, "instance", json_integer(card->instance));
	if (!c->known) {
		json_object_set_new(o, "fault", json_string(c->fault));
		return o;
	}
	json_object_set_new(o, "name", json_string(c->name));
	json_object_set_new(o, "total_bytes", frag_json_number(c->total_bytes));
	json_object_set_new(o, "used_bytes", frag_json_number(c->used_bytes));
	json_object_set_new(o, "free_bytes", frag_json_number(c->free_bytes));
	json_object_set_new(o, "utilization_percent",
			    c->utilization_percent < 0 ? json_null()
						       : json_integer(c->utilization_percent));
	json_object_set_new(o, "alarm", json_boolean(card->alarm));
	list = c->processes_known ? json_array() : json_null();
	for (unsigned k = 0; k < c->processes_count; k++)
		json_array_append_new(list, process_json(&card->processes[k]));
	json_object_set_new(o, "processes", list);
	return o;
}

static void print_json(const char *when, const struct frag_monitor_round *r)
{
	json_t *cards = json_array(), *o = json_pack("{s:s, s:o}", "time", when, "cards", cards);

	for (unsigned i = 0; i < r->count; i++)
		json_array_append_new(cards, card_json(&r->cards[i]));
	json_dumpf(o, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(o);
}

int frag_monitor_print(const struct frag_monitor_round *r, bool json, struct frag_err *err)
{
	char when[40];
	int reason;

	frag_monitor_stamp(r, when, sizeof(when));
	if (json)
		print_json(when, r);
	for (unsigned i = 0; !json && i < r->count; i++)
		print_card(when, &r->cards[i]);
	if (!json)
		print_spread(when, r);
	reason = frag_outfile_reason(stdout);
	return reason ? frag_fail(err, FRAG_EOUTPUT, "cannot write standard output: %s",
				  strerror(reason))
		      : 0;
}
