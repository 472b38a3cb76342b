// SPDX-License-Identifier: Apache-2.0
/* Writes the results of an operator, and marks where their values come from. */
#include "values.h"

/* Does nearly every element satisfy the comparison? isfinite(x) is (x == x) * (|x| != inf);
 * isclose(x, y) is x == y or another condition, and two unknown tensors hold the same numbers. Few
 * elements equal a given number (labels != -100), except those that masks hold: for any() and
 * all(), as for nonzero(), no weight is zero unless the program made it so. */
static bool nearly_all_meet(const Call &c)
{
	if (c.f.asks_zero)
		return mode != Values::zeros && c.first().is_floating_point() &&
		       !holds_zeros(c.first());
	if (c.f.bound || !c.f.compares || !c.first().is_floating_point())
		return c.f.bound;
	return c.args[1].isTensor()
		       ? c.f.name == "aten::eq" && c.args[1].toTensor().sizes() == c.first().sizes()
		       : c.f.name == "aten::ne" && std::abs(c.args[1].toScalar().toDouble()) > 1;
}

/* Is nearly every element of an unknown result true? Also of a logical or with such an input. */
static bool likely_true(Call &c)
{
	bool all = c.origin == LIKELY && (c.f.both || c.f.name == "aten::all") && decides(c.outs);
	bool one = c.f.either && c.args[1].isTensor() &&
		   std::max(origin_of(c.first()), origin_of(c.args[1].toTensor())) == LIKELY;

	return nearly_all_meet(c) || (!c.done && (one || all));
}

static void mark_booleans(Call &c, bool likely)
{
	if (!c.done && likely) {
		each(c.outs, [](const Tensor &t) {
			if (on_card(t) && t.numel() && small(t))
				cpu_view(t).fill_(1);
		});
		c.origin = c.f.either || c.f.asks_zero ? LIKELY : std::min(c.origin, LIKELY);
	}
	if (!c.f.compares || c.origin > GUESSED)
		return;
	if (integers(c.first())) /* unknown ones are zeros */
		c.origin = c.done ? INVENTED : GUESSED;
	else if (likely)
		c.origin = LIKELY;
}

/* The large tensors of which the card keeps a note. */
static void mark_notes(Call &c)
{
	bool copied = c.f.table == table_copies && c.table && !c.table->places.numel();
	if (c.cleared || (copied && on_card(c.result())))
		note_zeros(c.result());
	if (c.steep)
		note_slope(c);
	if (c.table && (c.f.table == table_scatters || c.f.table == table_puts))
		scatter_into(c);
}

static void mark(Call &c)
{
	std::vector<Tensor> others;

	if (c.done && !c.f.mutates)
		others = copy_results(c.outs, c.results);
	if (!c.done && !c.f.mutates)
		each(c.outs, [](const Tensor &t) { invent(t); });
	if (!c.done && (c.upload || c.f.stays))
		return; /* an upload: the copy has already set its origin */
	if (c.done && c.origin == NOTHING)
		c.origin = GUESSED;
	bool likely = likely_true(c);
	mark_booleans(c, likely);
	auto set = [&](const Tensor &t) {
		if (!on_card(t)) /* a sparse one has no strides to look at */
			return;
		Origin now = c.done || likely		? c.origin
			     : !c.f.mutates && small(t) ? GUESSED
							: NOTHING;
		if (now == NOTHING && t.is_floating_point())
			drop(t);
		set_origin(t, now);
	};
	each(c.outs, set);
	for (const auto &t : others) { /* stale memory could be an invalid index */
		invent(t);
		set_origin(t, small(t) ? GUESSED : NOTHING);
	}
	for (size_t i = 0; c.f.mutates && i < c.count; i++)
		if (c.f.writes[i])
			each(c.args[i], set);
	mark_notes(c);
}
