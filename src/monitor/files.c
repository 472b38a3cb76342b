/* SPDX-License-Identifier: Apache-2.0 */
/* One round into files: CSV that is rotated, and OpenMetrics. */
#include "monitor.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/outfile.h"

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

/* Its instances are in the rows, and a card is not to be weighed against its own parts. */
static bool is_in_parts(const struct frag_monitor_round *r, const struct frag_monitor_card *c)
{
	for (unsigned i = 0; c->nvml.is_split && i < r->count; i++)
		if (r->cards[i].gpu == c->gpu && r->cards[i].instance >= 0 &&
		    r->cards[i].nvml.known)
			return true;
	return false;
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
		return frag_fail(err, FRAG_EOUTPUT, "cannot write '%.200s': %s", o->csv,
				 strerror(errno));
	frag_monitor_stamp(r, when, sizeof(when));
	if (empty)
		frag_monitor_csv_head(&rows);
	for (unsigned i = 0; i < r->count; i++)
		if (r->cards[i].nvml.known && !is_in_parts(r, &r->cards[i]))
			frag_monitor_csv_row(&r->cards[i], when, &rows);
	fputs(frag_text_str(&rows), f);
	reason = rows.failed ? ENOMEM : frag_outfile_reason(f);
	if (fclose(f) && !reason)
		reason = errno;
	return reason ? frag_fail(err, FRAG_EOUTPUT, "cannot write '%.200s': %s", o->csv,
				  strerror(reason))
		      : 0;
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

static void put_process(FILE *to, const char *name, const struct frag_monitor_card *c,
			const struct frag_monitor_process *p, uint64_t value)
{
	if (value == UINT64_MAX)
		return;
	fprintf(to, "%s{gpu=\"%s\",pid=\"%u\",process=\"", name, c->id, p->pid);
	put_label(to, p->name);
	fputs("\",user=\"", to);
	put_label(to, p->user);
	fprintf(to, "\"} %" PRIu64 "\n", value);
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
		for (unsigned i = 0; i < r->count; i++)
			for (unsigned k = 0; k < r->cards[i].nvml.processes_count; k++)
				put_process(to, processes[v].name, &r->cards[i],
					    &r->cards[i].processes[k],
					    frag_monitor_value(&r->cards[i].processes[k],
							       (enum frag_monitor_value)v));
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
