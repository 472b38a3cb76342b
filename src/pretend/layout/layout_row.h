/* SPDX-License-Identifier: Apache-2.0 */
/* A layout on a card as a row of the answer, which layout_answer.c makes. */
#ifndef FRAG_LAYOUT_ROW_H
#define FRAG_LAYOUT_ROW_H

#include "layouts.h"

#define FRAG_LAYOUT_ROW(F, P, S) \
	F(S, TEXT, card, x->cards[c]->name, "card", "its name in `list gpus`") \
	F(S, COUNT, gpus_count, gpus, "GPUs", "ranks of the job, one on each") \
	F(S, TEXT, layout, layout_text(x, layout, a), "layout", \
	  "name=value for each name of --vary") \
	F(S, TEXT, answer, answer_of(x, i, c, r), "answer", \
	  "fits: nothing is refused and the margin stays free; tight: nothing is refused; does " \
	  "not fit; failed: for another reason than memory; no end: within --time-limit; " \
	  "unknown: interrupted") \
	F(S, TEXT, basis, basis_of(x, i, c, r), "basis", \
	  "recorded; card: on the card itself, too; assumed: more of a name that rises fits, or " \
	  "less does not", \
	  .spare = 2) \
	F(S, BYTES, peak_reserved_bytes, if_ran(r, on->peak_reserved_bytes), "peak", \
	  "of the rank that needs most, with enough memory; null: not " \
	  "recorded") \
	F(S, BYTES, smallest_card_bytes, if_ran(r, r->min_bytes), NULL, \
	  "total memory of the smallest card that refuses nothing, with the best setting") \
	F(S, BYTES, room_bytes, if_ran(r, on->room_bytes), NULL, \
	  "of the card, without context and margin") \
	F(S, BYTES, headroom_bytes, if_ran(r, above(on->room_bytes, on->peak_reserved_bytes)), \
	  "left", "memory of the room left at the peak; null: too little") \
	F(S, BYTES, missing_bytes, \
	  if_ran(r, on->room_bytes == on->peak_reserved_bytes \
			    ? UINT64_MAX \
			    : above(on->peak_reserved_bytes, on->room_bytes)), \
	  "short by", "by how much the peak exceeds the room; null: it does not", .if_any = true) \
	F(S, COUNT, rank, if_ran(r, on->rank), "rank", \
	  "the one that needs most; null: the program has no ranks", .spare = 4) \
	F(S, COUNT, recorded_ranks_count, if_ran(r, r->ranks), NULL, \
	  "ranks that ran; each stands for the identical ones") \
	F(S, TEXT, bound_by, ran ? bound_by(r) : NULL, "mostly", \
	  "use of most of its memory at the peak", .spare = 3) \
	F(S, BYTES, permanent_bytes, if_ran(r, r->kinds[FRAG_KIND_PERMANENT]), NULL, \
	  "live at the peak of live memory of that rank: from before the first optimizer step " \
	  "on, as weights") \
	F(S, BYTES, optimizer_bytes, if_ran(r, r->kinds[FRAG_KIND_OPTIMIZER]), NULL, \
	  "the same: made by the first optimizer step, its state") \
	F(S, BYTES, gradient_bytes, if_ran(r, r->kinds[FRAG_KIND_GRADIENT]), NULL, \
	  "the same: freed after each optimizer step") \
	F(S, BYTES, activation_bytes, if_ran(r, activations(r)), NULL, \
	  "the same: made and freed within a step") \
	F(S, BYTES, temporary_bytes, if_ran(r, r->kinds[FRAG_KIND_TEMPORARY]), NULL, \
	  "the same: soon freed, as workspaces") \
	F(S, BYTES, other_bytes, if_ran(r, others(r)), NULL, "the same: of other or unknown use") \
	F(S, BYTES, free_bytes, if_ran(r, r->free_bytes), NULL, \
	  "the rest of its peak of reserved memory, fragmentation") \
	F(S, US, step_us, if_ran(r, r->step_us), NULL, \
	  "a step of the worst rank by a roofline, without waiting for others; null: unknown") \
	F(S, REAL, recomputed_share, ran ? r->recomputed : NAN, "recomputed", \
	  "of the time of a step by a roofline: operators that checkpoints run again; null: " \
	  "unknown", \
	  .precision = 2, .if_any = true, .spare = 5) \
	F(S, TEXT, setting, ran ? frag_answer_print(a, "%s", on->setting) : NULL, "setting", \
	  "the policy that serves it best", .spare = 1) \
	F(S, REAL, price_per_hour, price_of(x, c, gpus), "per hour", "of all its cards", \
	  .precision = 2, .if_any = true) \
	F(S, REAL, price_per_step, \
	  if_ran(r, r->step_us) == UINT64_MAX ? NAN \
					      : price_of(x, c, gpus) / 3.6e9 * (double)r->step_us, \
	  "per step", "of all its cards for step_us: by a roofline; null: that is unknown", \
	  .precision = 6, .if_any = true) \
	F(S, COUNT, cache_tokens_count, served ? r->engines * r->engine.tokens : UINT64_MAX, \
	  "cache tokens", \
	  "that the serving engine printed, of all data-parallel ones; null: not asked, or not " \
	  "recorded", \
	  .if_any = true, .grouped = true) \
	F(S, COUNT, held_requests_count, served ? frag_layout_held(x, r) : UINT64_MAX, "requests", \
	  "of --tokens that this cache holds; null: as before", .if_any = true, .grouped = true) \
	F(S, BYTES, weight_bytes, served ? known(r->engine.weights_bytes) : UINT64_MAX, "weights", \
	  "of a serving engine on one card, as it printed them; null: not " \
	  "printed", \
	  .if_any = true) \
	F(S, BYTES, profile_bytes, served ? known(r->engine.profile_bytes) : UINT64_MAX, \
	  "profile run", \
	  "most that was requested beside weights before the cache was made; null: not known", \
	  .if_any = true) \
	F(S, BYTES, graph_bytes, served ? known(r->engine.graphs_bytes) : UINT64_MAX, "graphs", \
	  "of captured graphs, as the engine printed it; null: none", .if_any = true) \
	F(S, BYTES, cache_bytes, served ? known(r->engine.cache_bytes) : UINT64_MAX, \
	  "for the cache", "as the engine printed it; null: not printed", .if_any = true) \
	F(S, TEXT, message, !ran && *r->message ? frag_answer_print(a, "%s", r->message) : NULL, \
	  NULL, "why it failed") \
	F(S, TEXT, line, line_of(x, layout, on->setting, a), NULL, "the command, with the setting")
FRAG_ROW_STRUCT(frag_layout_row, FRAG_LAYOUT_ROW);

/* Adds the chart of card c. rows: of all layouts, each on all its cards. */
void frag_layout_map(const struct frag_layouts *x, size_t c, const struct frag_layout_row *rows,
		     struct frag_answer *a);

#endif
