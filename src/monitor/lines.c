/* SPDX-License-Identifier: Apache-2.0 */
/* One round as lines of text, or as one of JSON. */
#include "monitor.h"

#include <string.h>
#include <time.h>

#include <frag/opt.h>

#include "base/outfile.h"

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

int frag_monitor_print(const struct frag_monitor_round *r, bool json, struct frag_err *err)
{
	char when[40];
	int reason;

	frag_monitor_stamp(r, when, sizeof(when));
	if (json)
		FRAG_TRY(frag_monitor_print_json(r, when, err));
	for (unsigned i = 0; !json && i < r->count; i++)
		print_card(when, &r->cards[i]);
	if (!json)
		print_spread(when, r);
	reason = frag_outfile_reason(stdout);
	return reason ? frag_fail(err, FRAG_EOUTPUT, "cannot write standard output: %s",
				  strerror(reason))
		      : 0;
}
