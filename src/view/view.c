/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes, files and notes of a view; see view.h. */
#include "view.h"

#include <string.h>

#include "base/clean.h"
#include "explain/curve_point.h"
#include "lib/grow.h"
#include "recording/recording.h"
#include "recording/sites.h"
#include "trace/strings.h"

FRAG_ROW_SHAPE(, frag_lane_shape, frag_lane, "lane", FRAG_LANE_ROW,
	       "a device of a recording under a policy");
FRAG_ROW_SHAPE(, frag_view_file_shape, frag_view_file, "view_file", FRAG_VIEW_FILE_ROW,
	       "a recording of the page");
FRAG_ROW_SHAPE(, frag_view_note_shape, frag_view_note, "view_note", FRAG_NOTE_ROW,
	       "what was found, and where");
FRAG_ROW_SHAPE(, frag_view_card_shape, frag_view_card, "view_card", FRAG_VIEW_CARD_ROW,
	       "a card that could be had instead");
FRAG_ROW_SHAPE(, frag_view_shape, frag_view, "view", FRAG_VIEW_ROW, "what a page shows");

int frag_view_open(struct frag_view *v, const struct frag_catalog *catalog, struct frag_err *err)
{
	struct frag_view_card *cards;

	*v = (struct frag_view){ 0 };
	cards = frag_answer_new(&v->answer, catalog->count, sizeof(*cards));
	FRAG_CHECK_ALLOC(cards, "page", err);
	for (size_t i = 0; i < catalog->count; i++)
		cards[i] = (struct frag_view_card){
			.name = frag_answer_print(&v->answer, "%s", catalog->cards[i]->name),
			.room_bytes = frag_gpu_room(catalog->cards[i], NULL),
		};
	v->cards.rows = cards;
	v->cards.count = catalog->count;
	return frag_blob_store_open(&v->store, err);
}

void frag_view_release(struct frag_view *v)
{
	frag_blob_store_release(&v->store);
	frag_answer_release(&v->answer);
	FRAG_FREE(v->lane_list, v->file_list, v->note_list);
	*v = (struct frag_view){ 0 };
}

/* ---- names and stacks of a recording ---- */

/* Names are for reading: of a long one its beginning, less where names take much in all. */
#define NAME_BYTES 200u
#define NAMES_BYTES (8u << 20)
#define SHORT_NAME_BYTES 24u

/* At most `most` bytes of a text, cleaned of what is no character for people. */
static void put_text(struct frag_column *c, const char *text, size_t most)
{
	size_t left = strnlen(text, most);

	for (const char *p = text; left;) {
		size_t n = frag_clean_length(p, left);

		for (size_t i = 0; i < n; i++)
			frag_column_byte(c, (uint8_t)p[i]);
		if (!n)
			frag_column_byte(c, '?');
		p += FRAG_MAX(n, (size_t)1);
		left -= FRAG_MAX(n, (size_t)1);
	}
}

static size_t room_of(const struct frag_column *c)
{
	return c->count < NAMES_BYTES ? NAME_BYTES : SHORT_NAME_BYTES;
}

static void put_name(struct frag_column *c, const char *name)
{
	put_text(c, name, room_of(c));
	frag_column_byte(c, 0);
}

/* "torch/nn/modules/linear.py:125 forward"; of a long path its end. */
static void put_frame(struct frag_column *c, const struct frag_trace *t, uint32_t i)
{
	const struct frag_frame *f = &t->stacks.frames[i];
	const char *file = frag_trace_string(t, f->file), *name = frag_trace_string(t, f->name);
	size_t room = room_of(c), len = frag_strings_len(t->strings, f->file);
	char line[16];

	put_text(c, !*file ? "?" : len > room ? file + len - room : file, room);
	snprintf(line, sizeof(line), ":%u%s", f->line, *name ? " " : "");
	put_text(c, line, sizeof(line));
	put_name(c, name);
}

static int put_names(struct frag_view *v, const struct frag_sites *sites,
		     struct frag_view_file *file, struct frag_err *err)
{
	const struct frag_trace *t = sites->trace;
	uint64_t *blobs[] = { &file->strings, &file->frames, &file->sites };
	struct frag_column names[3] = { { 0 } };
	int rc = 0;

	for (uint32_t i = 0; t->strings && i < frag_strings_count(t->strings); i++)
		put_name(&names[0], frag_trace_string(t, i));
	for (uint32_t i = 0; i < t->stacks.frames_count; i++)
		put_frame(&names[1], t, i);
	for (size_t i = 0; i < sites->count; i++)
		put_name(&names[2], sites->names[i] ? sites->names[i] : "?");
	for (unsigned i = 0; i < 3; i++) {
		if (!rc)
			rc = frag_blob_store_pack(&v->store, &names[i], 1, blobs[i], err);
		frag_host_free(names[i].bytes);
	}
	return rc;
}

static int put_stacks(struct frag_view *v, const struct frag_sites *sites, uint64_t *blob,
		      struct frag_err *err)
{
	struct frag_column c[2] = { { 0 } };
	int rc;

	for (uint32_t i = 0; i < sites->stacks_count; i++) {
		size_t n = 0;
		const uint32_t *frames = frag_sites_frames(sites, i, &n);

		frag_column_put(&c[0], frag_site_of(sites, i));
		frag_column_put(&c[1], n);
		for (size_t k = 0; k < n; k++)
			frag_column_put(&c[1], frames[k]);
	}
	rc = frag_blob_store_pack(&v->store, c, 2, blob, err);
	FRAG_FREE(c[0].bytes, c[1].bytes);
	return rc;
}

int frag_view_add_file(struct frag_view *v, const struct frag_trace *trace, struct frag_err *err)
{
	FRAG_AUTO(frag_sites_release) struct frag_sites sites = { 0 };
	struct frag_view_file file = { .trace = frag_answer_print(&v->answer, "%s",
								  trace->name ? trace->name : "") };

	FRAG_TRY(frag_sites_init(&sites, trace, FRAG_BY_LINE, NULL, err));
	FRAG_TRY(put_names(v, &sites, &file, err));
	FRAG_TRY(put_stacks(v, &sites, &file.stacks, err));
	FRAG_TRY(FRAG_GROW(v->file_list, v->files.count, v->files_cap, "page", err));
	v->file_list[v->files.count++] = file;
	return 0;
}

/* ---- lanes and notes ---- */

int frag_view_add(struct frag_view *v, const struct frag_export_job *job, uint32_t dev,
		  struct frag_err *err)
{
	const struct frag_trace_dev *td = &job->trace->devs[dev];
	uint64_t file = v->files.count - 1, limit = frag_target_limit_for(&job->target, td);
	size_t program = 0;
	struct frag_lane lane;

	/* the lane of the same device that was written first has its requests */
	while (program < v->lanes.count &&
	       (v->lane_list[program].file != file || v->lane_list[program].device != td->ordinal))
		program++;
	lane = (struct frag_lane){
		.trace = frag_answer_print(&v->answer, "%s", job->name),
		.policy = frag_answer_print(&v->answer, "%s", job->policy),
		.device = td->ordinal,
		.peak_reserved_bytes =
			job->as_recorded ? frag_target_recorded_peak(&job->target, td) : 0,
		.card_bytes = job->target.card.total_bytes,
		.limit_bytes = limit,
		.file = file,
		.program = program,
	};
	FRAG_TRY(FRAG_GROW(v->lane_list, v->lanes.count, v->lanes_cap, "page", err));
	FRAG_TRY(frag_tape_write(v, job, dev, &lane, program < v->lanes.count, err));
	if (!lane.peak_reserved_bytes)
		lane.peak_reserved_bytes = lane.replayed_peak_bytes;
	v->lane_list[v->lanes.count++] = lane;
	return 0;
}

int frag_view_note(struct frag_view *v, size_t lane, uint64_t event, const char *text,
		   struct frag_err *err)
{
	FRAG_TRY(FRAG_GROW(v->note_list, v->notes.count, v->notes_cap, "page", err));
	v->note_list[v->notes.count++] = (struct frag_view_note){
		.lane = lane, .event = event, .text = frag_answer_print(&v->answer, "%s", text)
	};
	return 0;
}

/* ---- charts ---- */

#define DRAWN_MAX 24u /* lanes: each takes gnuplot half a second, and the page shows all */

int frag_view_charts(const struct frag_view *v, struct frag_answer *a, struct frag_err *err)
{
	static const char *const names[] = { "allocated", "reserved" };

	if (v->lanes.count > DRAWN_MAX)
		frag_answer_remark(a, "drawn: the first %u of %zu lanes", DRAWN_MAX,
				   v->lanes.count);
	for (size_t i = 0; i < FRAG_MIN(v->lanes.count, (size_t)DRAWN_MAX); i++) {
		const struct frag_lane *lane = &v->lane_list[i];
		uint64_t count = FRAG_MIN(lane->events_count, (uint64_t)FRAG_VIEW_POINTS);
		struct frag_curve_point *points =
			frag_answer_new(a, 2 * (size_t)count, sizeof(*points));
		struct frag_answer_chart chart = {
			.script = "sites",
			.base = frag_answer_print(a, "view-%zu", i + 1),
			.extra = "lines",
			.title = frag_answer_print(a, "%s needs %s", lane->trace,
						   FRAG_BYTES(lane->peak_reserved_bytes)),
			.subtitle = frag_answer_print(a, "under %s", lane->policy),
			.caption = "Allocated and reserved memory over the run: the most in each "
				   "200th part of the events.",
			.shape = &frag_curve_by_run,
			.rows = { points, 2 * count },
		};

		FRAG_CHECK_ALLOC(points, "page", err);
		for (unsigned k = 0; k < 2 * count; k++)
			points[k] = (struct frag_curve_point){
				.line = k / count,
				.name = names[k / count],
				.x = 100.0 * (double)(k % count) / (double)count,
				.bytes = lane->most[k / count][k % count],
			};
		frag_answer_chart(a, &chart);
	}
	return 0;
}
