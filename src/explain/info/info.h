/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is in recordings: the answer of `cufrag info`.
 *
 * Ownership: init/release; a scan borrows the header of its device.
 */
#ifndef FRAG_EXPLAIN_INFO_H
#define FRAG_EXPLAIN_INFO_H

#include <frag/metrics.h>
#include <frag/trace.h>

#include "answer/answer.h"
#include "answer/row.h"
#include "recording/ending.h"
#include "recording/recording.h"

/* ---- one device, gathered event by event -------------------------------------------------- */

#define FRAG_INFO_CLASSES 10

#define FRAG_INFO_PEAK(F, P, S) \
	F(S, BYTES, live_bytes, NULL, "largest sum of live requests, each rounded up to 512 B") \
	F(S, BYTES, requested_bytes, NULL, "as requested") \
	F(S, COUNT, blocks_count, NULL, "live then") \
	F(S, COUNT, event, NULL, "that reached it") \
	F(S, US, time_us, NULL, "of that event") \
	F(S, COUNT, steps_done_count, NULL, "before it")
FRAG_ROW_STRUCT(frag_info_peak, FRAG_INFO_PEAK);

struct frag_info_slot {
	uint64_t event, time_us; /* of the alloc */
	bool let_go;		 /* still waiting for a stream */
};

struct frag_info {
	const struct frag_trace_dev *dev;
	struct frag_ending_scan ending;
	uint64_t events, first_us, duration_us;
	uint64_t kinds[FRAG_EV_COUNT];
	uint64_t initial_blocks_count, initial_bytes; /* live before the history */
	uint64_t unsure_count;			      /* trims that may have been retries */
	/* calls of empty_cache: trims of several pools are one; event, time and pool of the last */
	uint64_t emptied_count, emptied_first_us, emptied_event, emptied_us, emptied_pool;
	uint64_t steps_count;
	uint64_t class_count[FRAG_INFO_CLASSES], class_bytes[FRAG_INFO_CLASSES];
	uint64_t requests_bytes;
	struct frag_hist life_events, life_us; /* until the program let go */
	uint64_t kept_count;		       /* never let go */
	struct frag_info_peak live, peak;      /* live: now, event and time unused */
	struct frag_info_slot *slots;
	size_t slots_cap;
	uint32_t *marks; /* [marks_cap]: how often each name began */
	size_t marks_cap;
};

void frag_info_init(struct frag_info *info, const struct frag_trace_dev *dev);
int frag_info_add(struct frag_info *info, const struct frag_event *events, size_t count,
		  struct frag_err *err);
void frag_info_release(struct frag_info *info);

/* ---- facts, requests by size, lifetimes of a device --------------------------------------- */

/* The facts that people read come first, then those of JSON. */
#define FRAG_INFO_DEVICE_ROW(F, P, S) \
	P(S, TEXT, card_text, card_text(a, &dev->card), "card", "that it was recorded on") \
	P(S, TEXT, events_text, events_text(a, info), "events", "by kind") \
	P(S, TEXT, emptied_text, \
	  info->emptied_count ? frag_answer_count(a, info->emptied_count, "call", "calls") : NULL, \
	  "empty_cache", "calls") \
	P(S, TEXT, streams_text, \
	  lacks(t, "streams") ? "not recorded" : frag_answer_print(a, "%u", dev->streams_count), \
	  "streams", "CUDA streams") \
	P(S, TEXT, private_pools, \
	  dev->pools_count > 1 ? frag_answer_print(a, "%u", dev->pools_count - 1) : NULL, \
	  "private pools", "of CUDA graphs and MemPools") \
	P(S, COUNT, marked_steps, state ? UINT64_MAX : info->steps_count, "marked steps", \
	  "marked in the recording") \
	P(S, TEXT, marks_text, marks_text(a, info, t), "marks", "the most frequent ones") \
	P(S, TEXT, history, history_text(a, info, t), "history", "does it begin with the program") \
	P(S, TEXT, evidence, evidence_text(a, dev, counts), "evidence", \
	  "what verify can compare with") \
	P(S, TEXT, peak_text, state ? NULL : peak_text(a, info, t), "peak live", \
	  "most live memory") \
	F(S, BYTES, peak_reserved_bytes, \
	  state ? UINT64_MAX : frag_recorded_peak(dev) ?: UINT64_MAX, "peak reserved", \
	  "most that was reserved when it was recorded; null = the file does not say", \
	  .if_any = true) \
	P(S, TEXT, never_freed, \
	  state || !info->peak.blocks_count \
		  ? NULL \
		  : frag_answer_count(a, info->kept_count, "request", "requests"), \
	  "never freed", "requests that live to the end") \
	F(S, COUNT, allocs_count, kinds[FRAG_EV_ALLOC], NULL, "allocations") \
	F(S, COUNT, frees_count, kinds[FRAG_EV_FREE], NULL, "frees that take effect at once") \
	F(S, COUNT, frees_requested_count, kinds[FRAG_EV_FREE_REQUESTED], NULL, \
	  "frees that wait for a stream") \
	F(S, COUNT, frees_completed_count, kinds[FRAG_EV_FREE_COMPLETED], NULL, \
	  "of these, completed") \
	F(S, COUNT, trims_count, kinds[FRAG_EV_TRIM], NULL, "empty_cache, by pool") \
	F(S, COUNT, empty_cache_count, info->emptied_count, NULL, "calls of empty_cache") \
	F(S, US, empty_cache_first_us, info->emptied_first_us, NULL, "time of the first call") \
	F(S, US, empty_cache_last_us, info->emptied_us, NULL, "time of the last call") \
	F(S, COUNT, refused_count, kinds[FRAG_EV_REFUSED], NULL, "requests that were refused") \
	F(S, COUNT, marks_count, kinds[FRAG_EV_MARK], NULL, "marks of steps and phases") \
	F(S, COUNT, device, dev->ordinal, NULL, "its number in the recording") \
	F(S, OBJECT, card, card_of(a, &dev->card), NULL, "the card of the recording", \
	  .of = &card_row_shape) \
	F(S, COUNT, events_count, info->events, NULL, "all events") \
	F(S, COUNT, recorded_count, dev->recorded_count, NULL, \
	  "entries of the file that they come from") \
	F(S, COUNT, streams_count, dev->streams_count, NULL, "CUDA streams") \
	F(S, COUNT, pools_count, dev->pools_count, NULL, "memory pools, the common one included") \
	F(S, COUNT, slots_count, dev->slots_count, NULL, "most blocks live at once") \
	F(S, COUNT, steps_count, info->steps_count, NULL, "steps") \
	F(S, US, duration_us, info->duration_us, NULL, "from the first event to the last") \
	F(S, BOOL, began_late, info->initial_blocks_count, NULL, \
	  "blocks were live before the first event") \
	F(S, COUNT, initial_blocks_count, info->initial_blocks_count, NULL, "these blocks") \
	F(S, BYTES, initial_bytes, info->initial_bytes, NULL, "their bytes") \
	F(S, BOOL, truncated, dev->truncated, NULL, "the recorder lost its oldest entries") \
	F(S, COUNT, uncertain_count, dev->uncertain_blocks, NULL, \
	  "initial blocks whose size the file does not determine") \
	F(S, COUNT, unsure_trims_count, info->unsure_count, NULL, \
	  "empty_caches that may have been the retry of a malloc") \
	F(S, BOOL, has_evidence, dev->has_evidence, NULL, "verify has something to compare with") \
	F(S, COUNT, evidence_count, counts->seen_count, NULL, \
	  "segment events and refusals of the recorded allocator") \
	F(S, COUNT, final_segments_count, counts->final_segments_count, NULL, \
	  "segments at the end") \
	F(S, COUNT, final_blocks_count, counts->final_blocks_count, NULL, "blocks in them") \
	F(S, OBJECT, peak, state ? NULL : FRAG_ANSWER_KEEP(a, info->peak), NULL, \
	  "the moment with most live memory; null: a state without a history", .of = &peak_shape) \
	F(S, COUNT, never_freed_count, info->kept_count, NULL, "requests that live to the end") \
	F(S, LIST, requests, classes_of(a, info), NULL, "requests by size", \
	  .of = &class_row_shape) \
	F(S, OBJECT, lifetime_events, &lives[0], NULL, "lifetimes in events", \
	  .of = &life_row_shape) \
	F(S, OBJECT, lifetime_us, lacks(t, "times") ? NULL : &lives[1], NULL, \
	  "lifetimes in microseconds; null = times are not recorded", .of = &life_row_shape) \
	F(S, OBJECT, recording, frag_settled_row(a, &dev->settled), NULL, "result of its replay", \
	  .of = &frag_settled_shape) \
	F(S, OBJECT, ended_out_of_memory, frag_ending_row(a, u->label, &u->dev->ending), NULL, \
	  "so that its need is unknown; null: it did not", .of = &frag_ending_shape)
FRAG_ROW_STRUCT(frag_info_device_row, FRAG_INFO_DEVICE_ROW);
extern const struct frag_shape frag_info_device_shape;

/* Rows of all devices; infos[r->trace->devs_count]. None where memory is short (a->failed). */
struct frag_rows frag_info_devices(struct frag_answer *a, const struct frag_recording *r,
				   const struct frag_info *infos);
/* Its heading, facts and tables. */
void frag_info_device_parts(struct frag_answer *a, const struct frag_info_device_row *row);

/* ---- all recordings ------------------------------------------------------------------------ */

struct frag_info_trace;
/* Zeroed to begin with; `a` owns what it points to. */
struct frag_infos {
	struct frag_answer *a;
	struct frag_info_trace *list;
	size_t count, cap;
};

/*
 * One recording, scanned and settled. r: opened by FRAG_OPEN_SOURCE; infos[r->trace->devs_count].
 * Both may be freed afterwards. Errors: FRAG_ENOMEM.
 */
int frag_infos_add(struct frag_infos *all, const struct frag_recording *r,
		   const struct frag_info *infos, struct frag_err *err);
/* All of one, a line for each device of several. Errors: FRAG_ENOMEM. */
extern const struct frag_shape frag_infos_shape;
int frag_infos_answer(struct frag_infos *all, struct frag_err *err);
void frag_infos_release(struct frag_infos *all);

#endif
