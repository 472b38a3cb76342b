/* SPDX-License-Identifier: Apache-2.0 */
/* A layout on a card as a row of the answer. */
#ifndef FRAG_LAYOUT_ROW_H
#define FRAG_LAYOUT_ROW_H

#include "layouts.h"

#define FRAG_LAYOUT_ROW(F, P, S) \
	F(S, TEXT, card, "card", "its name in `list gpus`") \
	F(S, COUNT, gpus_count, "GPUs", "ranks of the job, one on each") \
	F(S, TEXT, layout, "layout", "name=value for each name of --vary") \
	F(S, TEXT, answer, "answer", \
	  "fits: nothing is refused and the margin stays free; tight: nothing is refused; does " \
	  "not fit; failed: for another reason than memory; no end: within --time-limit; " \
	  "unknown: interrupted") \
	F(S, TEXT, basis, "basis", \
	  "recorded; card: on the card itself, too; assumed: more of a name that rises fits, or " \
	  "less does not", \
	  .spare = 2) \
	F(S, BYTES, peak_reserved_bytes, "peak", \
	  "of the rank that needs most, with enough memory; null: not " \
	  "recorded") \
	F(S, BYTES, smallest_card_bytes, NULL, \
	  "total memory of the smallest card that refuses nothing, with the best setting") \
	F(S, BYTES, room_bytes, NULL, "of the card, without context and margin") \
	F(S, BYTES, headroom_bytes, "left", \
	  "memory of the room left at the peak; null: too little") \
	F(S, BYTES, missing_bytes, "short by", \
	  "by how much the peak exceeds the room; null: it does not", .if_any = true) \
	F(S, COUNT, rank, "rank", "the one that needs most; null: the program has no ranks", \
	  .spare = 4) \
	F(S, COUNT, recorded_ranks_count, NULL, \
	  "ranks that ran; each stands for the identical ones") \
	F(S, TEXT, bound_by, "mostly", "use of most of its memory at the peak", .spare = 3) \
	F(S, BYTES, permanent_bytes, NULL, \
	  "live at the peak of that rank: from before the first optimizer step on, as weights") \
	F(S, BYTES, optimizer_bytes, NULL, \
	  "the same: made by the first optimizer step, its state") \
	F(S, BYTES, gradient_bytes, NULL, "the same: freed after each optimizer step") \
	F(S, BYTES, activation_bytes, NULL, "the same: made and freed within a step") \
	F(S, BYTES, temporary_bytes, NULL, "the same: soon freed, as workspaces") \
	F(S, BYTES, other_bytes, NULL, "the same: of other or unknown use") \
	F(S, BYTES, free_bytes, NULL, "the same: reserved and not live, fragmentation") \
	F(S, US, step_us, NULL, \
	  "a step of the worst rank by a roofline, without waiting for others; null: unknown") \
	F(S, REAL, recomputed_share, "recomputed", \
	  "of the time of a step by a roofline: operators that checkpoints run again; null: " \
	  "unknown", \
	  .precision = 2, .if_any = true, .spare = 5) \
	F(S, TEXT, setting, "setting", "the policy that serves it best", .spare = 1) \
	F(S, REAL, price_per_hour, "per hour", "of all its cards", .precision = 2, .if_any = true) \
	F(S, COUNT, cache_tokens_count, "cache tokens", \
	  "that the serving engine printed; null: not asked, or not recorded", .if_any = true, \
	  .grouped = true) \
	F(S, COUNT, held_requests_count, "requests", \
	  "of --tokens that this cache holds; null: as before", .if_any = true, .grouped = true) \
	F(S, BYTES, weight_bytes, "weights", \
	  "of a serving engine on one card, as it printed them; null: not " \
	  "printed", \
	  .if_any = true) \
	F(S, BYTES, profile_bytes, "profile run", \
	  "most that was requested beside weights before the cache was made; null: not known", \
	  .if_any = true) \
	F(S, BYTES, graph_bytes, "graphs", \
	  "of captured graphs, as the engine printed it; null: none", .if_any = true) \
	F(S, BYTES, cache_bytes, "for the cache", "as the engine printed it; null: not printed", \
	  .if_any = true) \
	F(S, TEXT, message, NULL, "why it failed") \
	F(S, TEXT, line, NULL, "the command, with the setting")
struct frag_layout_row {
	FRAG_ROW_MEMBERS(FRAG_LAYOUT_ROW)
};

/* Adds the chart of card c. rows: of all layouts, each on all its cards. */
void frag_layout_map(const struct frag_layouts *x, size_t c, const struct frag_layout_row *rows,
		     struct frag_answer *a);

#endif
