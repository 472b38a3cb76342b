/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recordings as an interactive page: for every lane (a device of a recording under a policy) the
 * single events in pieces, each with the state at its beginning, and above them extremes over
 * buckets of events, so that any span is drawn from a few thousand numbers and no peak is lost.
 * script/ reads it.
 *
 *	FRAG_TRY(frag_view_open(&view, err));
 *	FRAG_TRY(frag_view_add(&view, &recording, &unit, &policies, &target, err));      for each
 *	FRAG_TRY(frag_view_put(&view, max_bytes, csp, section, err));
 *
 * Ownership: a view owns its store and its answer, which owns the rows; recordings are borrowed
 * until the add returns.
 */
#ifndef FRAG_VIEW_VIEW_H
#define FRAG_VIEW_VIEW_H

#include "answer/answer.h"
#include "answer/row.h"
#include "columns.h"
#include "trace/writers/export.h"

/* Largest page: pieces beyond it are left out, those with the most live stay. */
#define FRAG_VIEW_PAGE_MAX (20ull << 20)

#define FRAG_VIEW_POINTS 200u

#define FRAG_LANE_ROW(F, P, S) \
	F(S, TEXT, trace, "trace", "name of the recording") \
	F(S, COUNT, device, "device", "number") \
	F(S, TEXT, policy, "policy", "the replayed policy") \
	F(S, COUNT, events_count, "events", "of the recording", .grouped = true) \
	F(S, US, duration_us, NULL, "of the recording") \
	F(S, BYTES, peak_reserved_bytes, "most reserved", \
	  "that was recorded, where this is the recorded policy; else of the replay") \
	F(S, BYTES, replayed_peak_bytes, NULL, "reserved by the replay") \
	F(S, BYTES, peak_allocated_bytes, "most allocated", "of the replay") \
	F(S, BYTES, peak_requested_bytes, NULL, "of the replay") \
	F(S, COUNT, peak_event, NULL, "after which most was live, as granted: the first") \
	F(S, COUNT, peak_reserved_event, NULL, "after which most was reserved, the first") \
	F(S, COUNT, refused_count, "refused", "requests of this replay") \
	F(S, COUNT, marks_left_out, NULL, "marks of a kind that has too many") \
	F(S, BYTES, card_bytes, NULL, "that the card of the replay has") \
	F(S, BYTES, limit_bytes, NULL, "that the process may reserve; null: no limit") \
	F(S, COUNT, file, NULL, "place of its recording in files") \
	F(S, COUNT, program, NULL, "index of the lane that holds its requests") \
	F(S, COUNT, bucket_events, NULL, "of a bucket of the pyramid") \
	F(S, COUNT, piece_events, NULL, "of a piece") \
	F(S, COUNT, pyramid, NULL, "blob of the extremes") \
	F(S, COUNT, losses, NULL, "blob of the free bytes by cause, sampled") \
	F(S, COUNT, marks, NULL, "blob of steps, refusals and releases") \
	F(S, COUNTS, pieces, NULL, \
	  "blobs of each piece: requests at its beginning, requests, places at its beginning, " \
	  "places")
struct frag_lane {
	FRAG_ROW_MEMBERS(FRAG_LANE_ROW)
	uint64_t *peaks;		    /* [pieces.count / 4] most allocated in each */
	uint64_t most[2][FRAG_VIEW_POINTS]; /* allocated, reserved: in even parts of the run */
};

#define FRAG_VIEW_FILE_ROW(F, P, S) \
	F(S, TEXT, trace, NULL, "name of the recording") \
	F(S, COUNT, strings, NULL, "blob of the names of marks, each ended by 0") \
	F(S, COUNT, frames, NULL, "blob of the names of frames, each ended by 0") \
	F(S, COUNT, stacks, NULL, "blob of the stacks: call sites, and frames of each") \
	F(S, COUNT, sites, NULL, "blob of the names of call sites, each ended by 0")
FRAG_ROW_STRUCT(frag_view_file, FRAG_VIEW_FILE_ROW);

#define FRAG_NOTE_ROW(F, P, S) \
	F(S, COUNT, lane, "lane", "place in lanes") \
	F(S, COUNT, event, "event", "the event to which it refers") \
	F(S, TEXT, text, "note", "one sentence")
FRAG_ROW_STRUCT(frag_view_note, FRAG_NOTE_ROW);

#define FRAG_VIEW_CARD_ROW(F, P, S) \
	F(S, TEXT, name, NULL, "of the card") \
	F(S, BYTES, room_bytes, NULL, "that a process may reserve on it")
FRAG_ROW_STRUCT(frag_view_card, FRAG_VIEW_CARD_ROW);

#define FRAG_VIEW_ROW(F, P, S) \
	F(S, LIST, lanes, NULL, "a device of a recording under a policy", .of = &frag_lane_shape) \
	F(S, LIST, files, NULL, "recordings", .of = &frag_view_file_shape) \
	F(S, LIST, notes, NULL, "findings of diagnose and explain", .of = &frag_view_note_shape) \
	F(S, LIST, cards, NULL, "that could be had instead", .of = &frag_view_card_shape)
extern const struct frag_shape frag_lane_shape, frag_view_file_shape, frag_view_note_shape,
	frag_view_card_shape, frag_view_shape;

struct frag_view {
	FRAG_ROW_MEMBERS(FRAG_VIEW_ROW)
	struct frag_answer answer; /* owns the rows */
	struct frag_blob_store store;
	struct frag_lane *lane_list;
	struct frag_view_file *file_list;
	struct frag_view_note *note_list;
	size_t lanes_cap, files_cap, notes_cap;
};

/* catalog: cards whose sizes are shown beside the lanes; read here only. */
int frag_view_open(struct frag_view *v, const struct frag_catalog *catalog, struct frag_err *err);
void frag_view_release(struct frag_view *v);
/* A recording, whose lanes are added next. */
int frag_view_add_file(struct frag_view *v, const struct frag_trace *trace, struct frag_err *err);
/* The lane of a device under the policy of the job; job->to is not used. */
int frag_view_add(struct frag_view *v, const struct frag_export_job *job, uint32_t dev,
		  struct frag_err *err);
/* A note; text is copied. */
int frag_view_note(struct frag_view *v, size_t lane, uint64_t event, const char *text,
		   struct frag_err *err);

/* tape.c: fills the lane of a replay. shared: the lane that has the requests; SIZE_MAX = none. */
int frag_tape_write(struct frag_view *v, const struct frag_export_job *job, uint32_t dev,
		    struct frag_lane *lane, bool shared, struct frag_err *err);

/* page.c: what a page needs for it (frag_answer.live). max_bytes: 0 = the blobs are served. */
int frag_view_put(struct frag_view *v, uint64_t max_bytes, struct frag_answer *page,
		  struct frag_err *err);

/* The same as charts for paper, and for browsers without scripts. */
int frag_view_charts(const struct frag_view *v, struct frag_answer *a, struct frag_err *err);

/* serve.c: serves `html` and the blobs on 127.0.0.1 until interrupted. tell: gets the address. */
int frag_view_serve(const struct frag_view *v, const char *html, unsigned port,
		    void (*tell)(void *ctx, const char *address), void *ctx, struct frag_err *err);

#endif
