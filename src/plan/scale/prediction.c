/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings by value, and replays of what is scaled from them; see prediction.h. */
#include "prediction.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <frag/plan.h>

#include "plan/probe.h"

#define DOUBLINGS 4u
#define LARGE (1ull << 40) /* of the card that refuses nothing, as that of fit */

/* ---- what a value is made from ----------------------------------------------------------- */

/* The recording that a value is scaled from. */
static size_t base_of(const struct frag_prediction *s, uint64_t value)
{
	for (size_t i = 0; i < s->parts_count; i++)
		if (s->parts[i].value >= value)
			return i;
	return s->parts_count - 1;
}

int frag_prediction_scaling(struct frag_prediction *s, uint64_t value, uint32_t dev,
			    const struct frag_scaling **out, struct frag_err *err)
{
	size_t base = base_of(s, value);
	struct frag_scaling *at = &s->scalings[base * s->devices + dev];
	struct frag_scaling_part parts[FRAG_SCALING_PARTS];

	*out = at;
	if (at->count)
		return 0;
	for (size_t i = 0; i < s->parts_count; i++)
		parts[i] = (struct frag_scaling_part){ &s->parts[i].recording.trace->devs[dev],
						       s->parts[i].value };
	return frag_scaling_make(parts, s->parts_count, base, at, err);
}

static bool is_recorded(const struct frag_prediction *s, uint64_t value)
{
	return s->parts[base_of(s, value)].value == value;
}

enum frag_prediction_source frag_prediction_source(struct frag_prediction *s, uint64_t value)
{
	const struct frag_scaling *sc;
	bool exact = true;

	if (is_recorded(s, value))
		return FRAG_PREDICTION_RECORDED;
	for (uint32_t d = 0; d < s->devices; d++)
		exact &= !frag_prediction_scaling(s, value, d, &sc, NULL) &&
			 frag_scaling_exact(sc, value);
	if (!exact)
		return FRAG_PREDICTION_ESTIMATED;
	return value < s->parts[0].value || value > s->parts[s->parts_count - 1].value
		       ? FRAG_PREDICTION_BEYOND
		       : FRAG_PREDICTION_SAME;
}

/* ---- replays -------------------------------------------------------------------------------- */

static uint64_t peak_requested(const struct frag_trace_dev *dev)
{
	uint64_t live = 0, peak = 0;

	for (size_t i = 0; i < dev->events_count; i++) {
		const struct frag_event *e = &dev->events[i];

		if (e->kind == FRAG_EV_ALLOC)
			live += e->bytes;
		else if (e->kind == FRAG_EV_FREE || e->kind == FRAG_EV_FREE_COMPLETED)
			live -= e->bytes;
		peak = FRAG_MAX(peak, live);
	}
	return peak;
}

/* Of all devices. */
struct measured {
	bool completed;
	uint64_t requested, reserved;
};

/* One value under one policy. */
static int measure(struct frag_prediction *s, uint64_t value, const struct frag_policy_spec *spec,
		   enum frag_scaling_bound bound, bool on_card, struct measured *m,
		   struct frag_err *err)
{
	struct frag_sim_config card = s->target->card;
	struct frag_plan_env env;

	*m = (struct measured){ .completed = true };
	frag_plan_env_init(&env, s->target, 1);
	if (!on_card) {
		card.total_bytes = LARGE + card.context_bytes;
		env.run.limit_bytes = UINT64_MAX;
	}
	for (uint32_t d = 0; d < s->devices; d++) {
		const struct frag_scaling *sc;
		struct frag_trace_dev dev;
		struct frag_err why = { 0 };
		struct frag_probe probe;
		int rc;

		FRAG_TRY(frag_prediction_scaling(s, value, d, &sc, err));
		rc = frag_scaling_dev(sc, value, bound, &dev, &why);
		if (rc == FRAG_EINPUT) { /* no card has so much */
			m->completed = false;
			return 0;
		}
		if (!rc)
			rc = frag_probe_run(&env, spec, &card, &dev, &probe, &why);
		if (!rc) {
			m->completed &= probe.completed;
			m->reserved = FRAG_MAX(m->reserved, probe.peak_reserved_bytes);
			m->requested = FRAG_MAX(m->requested, peak_requested(&dev));
		}
		frag_scaling_dev_release(&dev);
		if (rc) {
			*err = why;
			return rc;
		}
	}
	return 0;
}

static bool bounds_differ(struct frag_prediction *s, uint64_t value)
{
	const struct frag_scaling *sc;
	bool differ = false;

	for (uint32_t d = 0; d < s->devices; d++)
		differ |= !frag_prediction_scaling(s, value, d, &sc, NULL) &&
			  sc->laws[FRAG_SCALING_UNKNOWN] + sc->laws[FRAG_SCALING_ONCE];
	return differ;
}

/* Both bounds on a card that refuses nothing. */
static int measure_both(struct frag_prediction *s, uint64_t value,
			const struct frag_policy_spec *spec, struct frag_prediction_cell *c,
			struct frag_err *err)
{
	struct measured low, high;

	FRAG_TRY(measure(s, value, spec, FRAG_SCALING_LOW, false, &low, err));
	high = low;
	if (!is_recorded(s, value) && bounds_differ(s, value))
		FRAG_TRY(measure(s, value, spec, FRAG_SCALING_HIGH, false, &high, err));
	*c = (struct frag_prediction_cell){ high.completed, false,
					    FRAG_MAX(low.requested, high.requested), low.reserved,
					    high.reserved };
	return 0;
}

/* And does it complete on the card? With more room than it reserves, it does. */
static int fill_cell(struct frag_prediction *s, uint64_t value, const struct frag_policy_spec *spec,
		     struct frag_prediction_cell *c, struct frag_err *err)
{
	const struct frag_sim_config *card = &s->target->card;
	uint64_t room =
		FRAG_MIN(frag_target_limit(s->target),
			 card->total_bytes - FRAG_MIN(card->context_bytes, card->total_bytes));
	struct measured on;

	FRAG_TRY(measure_both(s, value, spec, c, err));
	on.completed = c->completed && c->high_bytes <= room;
	if (c->completed && !on.completed)
		FRAG_TRY(
			measure(s, value, spec,
				c->high_bytes > c->low_bytes ? FRAG_SCALING_HIGH : FRAG_SCALING_LOW,
				true, &on, err));
	c->on_card = on.completed;
	return 0;
}

/* ---- the greatest value --------------------------------------------------------------------- */

/* Doubling from the largest recording, then bisection: what completes with a value is taken to
 * complete with all smaller ones. *out 0: nothing does, UINT64_MAX: all up to `most` do. */
static int find_largest(struct frag_prediction *s, size_t p, enum frag_scaling_bound bound,
			uint64_t *out, struct frag_err *err)
{
	uint64_t low = 0, high = 0, most = s->most;
	uint64_t at = FRAG_MIN(s->parts[s->parts_count - 1].value, most);
	struct measured m;

	while (!high || high - low > 1) {
		FRAG_TRY(measure(s, at, s->specs[p], bound, true, &m, err));
		if (!m.completed) {
			high = at;
		} else if (at >= most) {
			*out = UINT64_MAX;
			return 0;
		} else {
			low = at;
		}
		at = high ? low + (high - low) / 2 : FRAG_MIN(2 * low, most);
	}
	*out = low;
	return 0;
}

static int fill_largest(struct frag_prediction *s, struct frag_err *err)
{
	FRAG_TRY_CALLOC(s->largest_low, s->specs_count + 1, "table", err);
	FRAG_TRY_CALLOC(s->largest_high, s->specs_count + 1, "table", err);
	for (size_t p = 0; p < s->specs_count; p++) {
		FRAG_TRY(find_largest(s, p, FRAG_SCALING_LOW, &s->largest_high[p], err));
		s->largest_low[p] = s->largest_high[p];
		if (bounds_differ(s, UINT32_MAX))
			FRAG_TRY(find_largest(s, p, FRAG_SCALING_HIGH, &s->largest_low[p], err));
	}
	return 0;
}

/* ---- the test: what the others say of the last recording ------------------------------------- */

static int check_last(struct frag_prediction *s, struct frag_err *err)
{
	struct frag_prediction less = *s;
	size_t last = s->parts_count - 1;
	int rc;

	if (s->parts_count < 3)
		return 0;
	less.parts_count = last;
	FRAG_TRY_CALLOC(less.scalings, last * s->devices, "test", err);
	rc = measure_both(&less, s->parts[last].value, s->specs[0], &s->check_predicted, err)
		     ?: measure_both(s, s->parts[last].value, s->specs[0], &s->check_recorded, err);
	s->checked = !rc;
	for (size_t i = 0; i < last * s->devices; i++)
		frag_scaling_release(&less.scalings[i]);
	frag_host_free(less.scalings);
	return rc;
}

/* ---- values ------------------------------------------------------------------------------- */

FRAG_COMPARE(by_value, struct frag_prediction_part, FRAG_ORDER(x->value, y->value))

static void add_value(struct frag_prediction *s, uint64_t n)
{
	size_t at = s->values_count;

	while (at > 0 && s->values[at - 1] > n)
		at--;
	if ((at > 0 && s->values[at - 1] == n) || s->values_count == FRAG_PREDICTION_VALUES)
		return;
	memmove(&s->values[at + 1], &s->values[at], (s->values_count - at) * sizeof(s->values[0]));
	s->values[at] = n;
	s->values_count++;
}

static void choose_values(struct frag_prediction *s, const uint64_t *to, size_t to_count)
{
	uint64_t last = s->parts[s->parts_count - 1].value, most = 0;

	/* of any policy; an open end counts as none */
	for (size_t p = 0; p < s->specs_count; p++)
		most = FRAG_MAX(most, FRAG_MIN(s->largest_low[p], s->most));
	for (size_t i = 0; i < s->parts_count; i++)
		add_value(s, s->parts[i].value);
	for (size_t i = 0; i < to_count; i++)
		add_value(s, to[i]);
	if (to_count)
		return;
	/* the first that is too much is among them, nothing beyond */
	for (unsigned i = 0; i < DOUBLINGS && last << i <= most; i++)
		add_value(s, FRAG_MIN(last << (i + 1), FRAG_SCALING_MAX));
	for (size_t p = 0; p < s->specs_count; p++)
		if (s->largest_low[p] && s->largest_low[p] != UINT64_MAX)
			add_value(s, s->largest_low[p]);
}

/* ---- all of it ---------------------------------------------------------------------------- */

static int check_parts(const struct frag_prediction *s, struct frag_err *err)
{
	const struct frag_trace *first = s->parts[0].recording.trace;

	for (size_t i = 0; i < s->parts_count; i++) {
		const struct frag_trace *t = s->parts[i].recording.trace;

		if (i && s->parts[i].value == s->parts[i - 1].value)
			return FRAG_USAGE(err, "two recordings have the value %" PRIu64,
					  s->parts[i].value);
		if (t->devs_count != first->devs_count)
			return FRAG_INPUT(err,
					  "the recording at %" PRIu64
					  " has %u devices, the one at %" PRIu64 " has %u",
					  s->parts[i].value, t->devs_count, s->parts[0].value,
					  first->devs_count);
		for (uint32_t d = 0; d < t->devs_count; d++)
			if (t->devs[d].ordinal != first->devs[d].ordinal)
				return FRAG_INPUT(err,
						  "the recordings at %" PRIu64 " and %" PRIu64
						  " are of different devices",
						  s->parts[0].value, s->parts[i].value);
	}
	return 0;
}

int frag_prediction_make(struct frag_prediction *s, const struct frag_policy_texts *policies,
			 const uint64_t *to, size_t to_count, uint64_t most, struct frag_err *err)
{
	size_t recorded;

	qsort(s->parts, s->parts_count, sizeof(s->parts[0]), by_value);
	FRAG_TRY(check_parts(s, err));
	s->devices = s->parts[0].recording.trace->devs_count;
	FRAG_TRY_CALLOC(s->scalings, s->parts_count * s->devices, "recordings", err);
	FRAG_TRY(frag_policy_texts_specs(policies, s->parts[s->parts_count - 1].recording.trace,
					 &s->specs, &recorded, err));
	while (s->specs[s->specs_count])
		s->specs_count++;
	s->most = most;
	FRAG_TRY(fill_largest(s, err));
	choose_values(s, to, to_count);
	FRAG_TRY_CALLOC(s->cells, s->values_count * s->specs_count + 1, "table", err);
	for (size_t i = 0; i < s->values_count * s->specs_count; i++)
		FRAG_TRY(fill_cell(s, s->values[i / s->specs_count], s->specs[i % s->specs_count],
				   &s->cells[i], err));
	return check_last(s, err);
}

/* From the prediction in doubling steps to the first that does the opposite, then bisection: mostly
 * two recordings. What completes need not do so with every smaller value: this one and the
 * next are what was tried. */
int frag_prediction_confirm(struct frag_prediction *s, frag_prediction_try_fn record, void *ctx,
			    struct frag_err *err)
{
	uint64_t known = s->parts[s->parts_count - 1].value, low = known, high = s->most + 1;
	uint64_t at = FRAG_MIN(s->largest_low[0], s->most), step = 1;

	while (low + 1 < high) {
		bool completes;

		at = FRAG_MIN(FRAG_MAX(at, low + 1), high - 1);
		FRAG_TRY(record(ctx, at, &completes, err));
		s->confirm_runs++;
		if (completes)
			low = at;
		else
			high = at;
		if (low > known && high <= s->most)
			at = low + (high - low) / 2;
		else
			at = completes ? low + step : high - FRAG_MIN(step, high);
		step *= 2;
	}
	s->confirmed = true;
	s->confirmed_value = low;
	return 0;
}

int frag_prediction_write(struct frag_prediction *s, uint64_t value, const char *path,
			  struct frag_err *err)
{
	const struct frag_trace *from = s->parts[base_of(s, value)].recording.trace;
	struct frag_trace made = *from;
	FRAG_AUTO(frag_text_release) struct frag_text note = { 0 };
	uint32_t d = 0;
	int rc = 0;

	frag_text_add(&note, from->estimate ? from->estimate : "");
	frag_text_add(&note, "scaled");
	for (size_t i = 0; i < s->parts_count; i++)
		frag_text_addf(&note, " %" PRIu64, s->parts[i].value);
	frag_text_addf(&note, " to %" PRIu64 "\n", value);
	made.estimate = (char *)frag_text_str(&note);
	made.devs = frag_host_calloc(s->devices, sizeof(*made.devs));
	if (!made.devs)
		rc = frag_fail_nomem(err, "scaled trace");
	for (; !rc && d < s->devices; d++) {
		const struct frag_scaling *sc;

		rc = frag_prediction_scaling(s, value, d, &sc, err);
		if (!rc)
			rc = frag_scaling_dev(sc, value, FRAG_SCALING_LOW, &made.devs[d], err);
		if (rc)
			break;
	}
	if (!rc)
		rc = frag_text_check(&note, err) ?: frag_trace_write_cft(&made, path, err);
	while (made.devs && d > 0)
		frag_scaling_dev_release(&made.devs[--d]);
	frag_host_free(made.devs);
	return rc;
}

void frag_prediction_release(struct frag_prediction *s)
{
	for (size_t i = 0; s->scalings && i < s->parts_count * s->devices; i++)
		frag_scaling_release(&s->scalings[i]);
	for (size_t i = 0; i < s->specs_count; i++)
		frag_policy_spec_destroy(s->specs[i]);
	for (size_t i = 0; i < s->parts_count; i++)
		frag_recording_release(&s->parts[i].recording);
	FRAG_FREE(s->scalings, s->specs, s->cells, s->largest_low, s->largest_high);
}
