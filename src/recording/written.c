/* SPDX-License-Identifier: Apache-2.0 */
/* A trace that was written, in a sentence and in figures; see written.h. */
#include "written.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include <frag/replay.h>

#include "answer/row.h"
#include "estimate.h"
#include "settled_shape.h"

#define DEVICE_ROW(F, P, S) \
	F(S, COUNT, device, NULL, "its number in the recording") \
	F(S, OBJECT, recording, NULL, "limit and releases that were found", \
	  .of = &frag_settled_shape)
FRAG_ROW(device_row, "written_device", DEVICE_ROW, "one device of a written trace");

#define BOUND(name) (w->bounds.name ? w->bounds.name : UINT64_MAX)
#define WRITTEN_ROW(F, P, S) \
	F(S, TEXT, file, strcmp(w->file, "-") != 0 ? w->file : NULL, "file", \
	  "that was written; null: standard output") \
	F(S, COUNT, devices_count, w->trace->devs_count, "devices", "devices of the trace") \
	F(S, COUNT, events_count, w->events_count, "events", "events of all devices") \
	F(S, COUNT, rounds_count, w->round ? w->rounds_count : UINT64_MAX, "rounds", \
	  "gen: rounds of the repeated part", .if_any = true) \
	F(S, TEXT, round, w->round, NULL, "gen: the part that a round repeats") \
	F(S, BYTES, file_bytes, UINT64_MAX, "size", "size of the file; null for a pipe") \
	F(S, REAL, bytes_per_event, NAN, "per event", "file_bytes over events_count", \
	  .precision = 2) \
	F(S, BYTES, lower_bound_bytes, BOUND(live), "lower bound", \
	  "gen: peak live, blocks rounded up to 512 B", .if_any = true) \
	F(S, BYTES, online_bound_bytes, BOUND(online), "bound online", \
	  "gen robson: Robson's bound for any policy that does not know the future", \
	  .if_any = true) \
	F(S, BYTES, placed_bytes, BOUND(placed), "best placement", \
	  "gen: height of the lowest placement found that knows all lives", .if_any = true) \
	F(S, LIST, devices, device_rows(a, w->trace), NULL, "devices of the trace", \
	  .of = &device_row_shape)
FRAG_ROW_STRUCT(written_row, WRITTEN_ROW);
FRAG_VALUED_SHAPE(, frag_written_shape, written_row, "written", WRITTEN_ROW,
		  "a trace that was written");

static struct frag_rows device_rows(struct frag_answer *a, const struct frag_trace *trace)
{
	struct device_row *rows = frag_answer_new(a, trace->devs_count, sizeof(*rows));

	for (uint32_t d = 0; rows && d < trace->devs_count; d++)
		rows[d] = (struct device_row){ .device = trace->devs[d].ordinal,
					       .recording = frag_settled_row(
						       a, &trace->devs[d].settled) };
	return (struct frag_rows){ rows, rows ? trace->devs_count : 0 };
}

/* "9 rounds of whole steps, 2 devices, 108446 events, 70000 bytes, 1.04 bytes per event" */
static void say(struct frag_answer *a, const struct written_row *row, bool sized, bool shared)
{
	struct frag_text t = { 0 };

	if (row->file)
		frag_text_addf(&t, "%s: ", row->file);
	if (row->round)
		frag_text_addf(&t, "%llu rounds of %s, ", (unsigned long long)row->rounds_count,
			       row->round);
	frag_text_addf(&t, "%llu %s, %llu events", (unsigned long long)row->devices_count,
		       row->devices_count == 1 ? "device"
		       : shared		       ? "processes"
					       : "devices",
		       (unsigned long long)row->events_count);
	if (sized && row->file_bytes != UINT64_MAX)
		frag_text_addf(&t, ", %llu bytes", (unsigned long long)row->file_bytes);
	if (sized && !isnan(row->bytes_per_event))
		frag_text_addf(&t, ", %.2f bytes per event", row->bytes_per_event);
	frag_answer_say(a, "%s%s", frag_answer_take(a, &t), a->estimated ? ", estimated" : "");
}

static void say_bounds(struct frag_answer *a, const struct frag_written_bounds *b)
{
	char text[3][32];

	if (!b->live)
		return;
	frag_answer_say(a, "lower bound %s (peak live); best known placement %s",
			frag_format_bytes(b->live, text[0], sizeof(text[0])),
			frag_format_bytes(b->placed, text[1], sizeof(text[1])));
	if (b->online)
		frag_answer_say(a, "Robson's bound without knowing the future %s",
				frag_format_bytes(b->online, text[2], sizeof(text[2])));
}

void frag_written_answer(struct frag_answer *a, const struct frag_written *w)
{
	struct written_row *row = frag_answer_new(a, 1, sizeof(*row));
	struct stat st;
	char text[600];

	if (!row)
		return;
	*row = FRAG_ROW_VALUES(written_row, WRITTEN_ROW);
	if (row->file && !stat(row->file, &st) && S_ISREG(st.st_mode)) {
		row->file_bytes = (uint64_t)st.st_size;
		if (w->events_count)
			row->bytes_per_event = (double)st.st_size / (double)w->events_count;
	}
	a->title = w->file;
	a->question = "What is in the file?";
	a->estimated = w->trace->estimate != NULL;
	frag_answer_data(a, &frag_written_shape, row);
	frag_answer_csv(a, &frag_written_shape, row, 1);
	say(a, row, !w->brief, frag_estimate_shared(w->trace).count);
	say_bounds(a, &w->bounds);
	for (uint32_t d = 0; !w->brief && d < w->trace->devs_count; d++) {
		const struct frag_settled *s = &w->trace->devs[d].settled;

		if (s->checked && (!s->identical || s->limit_source != FRAG_LIMIT_NONE))
			frag_answer_say(a, "device %u: %s", w->trace->devs[d].ordinal,
					frag_settled_text(s, text, sizeof(text)));
	}
}
