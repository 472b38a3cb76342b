/* SPDX-License-Identifier: Apache-2.0 */
/* What settling found of recordings; see settled_shape.h. */
#include "settled_shape.h"

#include <frag/replay.h>
#include <frag/torch.h>

#include "answer/row.h"
#include "ending.h"

#define SETTLED_ROW(F, P, S) \
	F(S, BOOL, identical, NULL, "the replay repeats every decision of the recorded allocator") \
	F(S, BOOL, undetermined, NULL, \
	  "the file does not hold enough of the state that its history began with") \
	F(S, TEXT, first_difference, NULL, "where replay and recording differ; null: identical") \
	F(S, COUNT, first_difference_event, NULL, "its event") \
	F(S, BYTES, limit_bytes, NULL, "memory limit that the recording was made with") \
	F(S, TEXT, limit_source, NULL, "none, recorded, given or inferred") \
	F(S, BYTES, limit_low_bytes, NULL, "an inferred limit is at least this") \
	F(S, BYTES, limit_high_bytes, NULL, "and at most this") \
	F(S, BYTES, limit_refuted_bytes, NULL, "limit in the file that the events contradict") \
	F(S, COUNT, assumed_trims_count, NULL, "releases that are taken for an empty_cache") \
	F(S, BYTES, recorded_peak_bytes, NULL, "peak reserved when it was recorded") \
	F(S, COUNT, refused_count, NULL, "requests that were refused when it was recorded")
FRAG_ROW_AS(, frag_settled_shape, settled_row, "recording", SETTLED_ROW,
	    "what a replay of the recorded settings shows; null where the file has no evidence");

const void *frag_settled_row(struct frag_answer *a, const struct frag_settled *s)
{
	static const char *const sources[] = { [FRAG_LIMIT_NONE] = "none",
					       [FRAG_LIMIT_RECORDED] = "recorded",
					       [FRAG_LIMIT_GIVEN] = "given",
					       [FRAG_LIMIT_INFERRED] = "inferred" };
	bool inferred = s->limit_source == FRAG_LIMIT_INFERRED;
	struct settled_row *row = s->checked ? frag_answer_new(a, 1, sizeof(*row)) : NULL;

	if (!row)
		return NULL;
	*row = (struct settled_row){
		.identical = s->identical,
		.undetermined = s->undetermined,
		.first_difference = s->identical ? NULL : frag_answer_print(a, "%s", s->difference),
		.first_difference_event = s->identical ? UINT64_MAX : s->event,
		.limit_bytes = s->limit_bytes,
		.limit_source = sources[s->limit_source],
		.limit_low_bytes = inferred ? s->limit_low_bytes : UINT64_MAX,
		.limit_high_bytes = inferred ? s->limit_high_bytes : UINT64_MAX,
		.limit_refuted_bytes = s->limit_refuted_bytes ?: UINT64_MAX,
		.assumed_trims_count = s->assumed_trims_count,
		.recorded_peak_bytes = s->peak_bytes,
		.refused_count = s->refused_count,
	};
	return row;
}

/* ---- all units -------------------------------------------------------------------------- */

#define UNIT_ROW(F, P, S) \
	F(S, TEXT, trace, NULL, "its name, with the device if it has several") \
	F(S, OBJECT, recording, NULL, "results of the recording", .of = &frag_settled_shape) \
	F(S, OBJECT, ended_out_of_memory, NULL, "so that its need is unknown; null: it did not", \
	  .of = &frag_ending_shape)
FRAG_ROW_AS(, frag_recorded_unit_shape, unit_row, "recorded", UNIT_ROW,
	    "one device of a recording");

struct frag_rows frag_recorded_unit_rows(struct frag_answer *a, const struct frag_recordings *all)
{
	struct unit_row *rows = frag_answer_new(a, all->units_count, sizeof(*rows));

	for (size_t i = 0; rows && i < all->units_count; i++)
		rows[i] = (struct unit_row){
			all->units[i].label, frag_settled_row(a, &all->units[i].dev->settled),
			frag_ending_row(a, all->units[i].label, &all->units[i].dev->ending)
		};
	return (struct frag_rows){ rows, rows ? all->units_count : 0 };
}

struct frag_rows frag_release_rows(struct frag_answer *a, unsigned first, unsigned last)
{
	const char **rows = frag_answer_new(a, 2, sizeof(*rows));
	char text[16];

	if (!rows || !last)
		return (struct frag_rows){ 0 };
	rows[0] = frag_answer_print(a, "%s", frag_torch_format(first, text, sizeof(text)));
	rows[1] = frag_answer_print(a, "%s", frag_torch_format(last, text, sizeof(text)));
	return (struct frag_rows){ rows, 2 };
}

struct frag_rows frag_unit_labels(struct frag_answer *a, const struct frag_recordings *all)
{
	const char **rows = frag_answer_new(a, all->units_count, sizeof(*rows));

	for (size_t i = 0; rows && i < all->units_count; i++)
		rows[i] = all->units[i].label;
	return (struct frag_rows){ rows, rows ? all->units_count : 0 };
}

void frag_recordings_head(struct frag_answer *a, const char *command,
			  const struct frag_recordings *all)
{
	FRAG_AUTO(frag_text_release) struct frag_text labels = { 0 };

	for (size_t i = 0; i < all->units_count; i++)
		frag_text_addf(&labels, "%s %s", i ? "," : "", all->units[i].label);
	a->failed |= labels.failed;
	frag_answer_remark(a, "cufrag %s %s:%s%s", FRAG_VERSION, command, frag_text_str(&labels),
			   a->estimated ? ", an estimate" : "");
}

void frag_recordings_warn(struct frag_answer *a, const struct frag_recordings *all)
{
	for (size_t i = 0; i < all->units_count; i++)
		frag_ending_warn(
			a, frag_ending_row(a, all->units[i].label, &all->units[i].dev->ending));
}

void frag_recordings_remark(struct frag_answer *a, const struct frag_recordings *all,
			    const struct frag_target *t, const char *what)
{
	for (size_t i = 0; i < all->units_count; i++) {
		const struct frag_unit *u = &all->units[i];
		const struct frag_settled *s = &u->dev->settled;
		const char *more = !s->identical ? "the results for its settings are simulated"
				   : frag_target_keeps_limit(t, u->dev) ? what
									: NULL;
		char text[600];

		if (s->checked && (!s->identical || s->limit_source != FRAG_LIMIT_NONE))
			frag_answer_remark(a, "recording %s: %s%s%s", u->label,
					   frag_settled_text(s, text, sizeof(text)),
					   more ? "; " : "", more ? more : "");
	}
}

const char *frag_not_reproduced_text(struct frag_answer *a, uint64_t recorded_bytes,
				     uint64_t replayed_bytes)
{
	return frag_answer_print(a,
				 "a replay of the recorded settings reserves %s, not the %s that "
				 "were recorded, so what another setting saves is not known "
				 "(cufrag verify)",
				 FRAG_BYTES(replayed_bytes), FRAG_BYTES(recorded_bytes));
}

/* ---- counters ---- */

#define COUNTER(F, P, S) \
	F(S, TEXT, name, "counter of the policy", "its name") \
	F(S, INT, value, "value", "at the end")
FRAG_ROW_AS(, frag_counter_shape, counter_row, "counter", COUNTER,
	    "statistics of the policy's own, by name");

struct frag_rows frag_counter_rows(struct frag_answer *a, const struct frag_counter *counters)
{
	struct counter_row *rows;
	size_t count = 0;

	while (counters && counters[count].name)
		count++;
	rows = frag_answer_new(a, count, sizeof(*rows));
	for (size_t i = 0; rows && i < count; i++)
		rows[i] = (struct counter_row){ frag_answer_print(a, "%s", counters[i].name),
						counters[i].value };
	return (struct frag_rows){ rows, rows ? count : 0 };
}
