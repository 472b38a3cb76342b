// SPDX-License-Identifier: Apache-2.0
/* The card's own operator runs, for its allocations and shapes; before, it gets the counts that
 * it reads. */
#include "values.h"

/* The distinct indices of a sparse tensor, sorted, each flattened to one number. Undefined:
 * unknown. */
static Tensor different_places(const Tensor &x)
{
	Below below_this;
	auto indices = x._indices();
	if (indices.size(0) == 0 || !on_card(indices) || !small(indices) ||
	    origin_of(indices) != COMPUTED)
		return {};
	auto places = cpu_view(indices)[0].clone();
	for (int64_t d = 1; d < indices.size(0); d++)
		places.mul_(x.size(d)).add_(cpu_view(indices)[d]);
	auto sorted = std::get<0>(places.sort());
	auto *p = sorted.data_ptr<int64_t>();
	return sorted.narrow(0, 0, std::unique(p, p + sorted.numel()) - p);
}

/* Writes what a card's sort produces; here the kernels left the indices unsorted. */
static void write_different(const Tensor &x, const Tensor &out)
{
	auto places = different_places(x);
	Below below_this;
	auto indices = out._indices();
	if (!places.defined() || !on_card(indices) || indices.size(1) != places.numel())
		return;
	auto into = cpu_view(indices);
	for (int64_t d = indices.size(0); d-- > 0; places = places.div(x.size(d), "floor"))
		into[d].copy_(places.remainder(x.size(d)));
	set_origin(indices, COMPUTED);
}

/* The dimension along which unique compares slices; -1: single elements. */
static int64_t along_dim(const Call &c)
{
	const IValue none, &dim = c.f.name == "aten::unique_dim"	   ? c.args[1]
				  : c.f.name == "aten::unique_consecutive" ? c.args[3]
									   : none;
	return dim.isInt() ? c10::maybe_wrap_dim(dim.toInt(), c.first().dim()) : -1;
}

/* The count that nonzero and similar operators read from the card. *known is set if it is more
 * reliable than the inputs. */
static uint64_t expected_count(const Call &c, bool *known)
{
	const Tensor &x = c.first();
	int64_t along = along_dim(c);
	if (c.done)
		return uint64_t(c.results[0].toTensor().size(std::max(along, int64_t(0))));
	if (c.f.name == "aten::_coalesce") {
		auto places = different_places(x);
		*known = places.defined();
		return uint64_t(*known ? places.numel() : x._nnz());
	}
	if (mode == Values::zeros)
		return 0;
	if (along >= 0)
		return uint64_t(x.size(along));
	return uint64_t(c.f.name == "aten::nonzero" && x.scalar_type() == at::kBool &&
					origin_of(x) != LIKELY && !suppression
				? (x.numel() + 1) / 2
				: x.numel());
}

/* The operator asks the card how many elements there are. */
static void answer_count(Call &c)
{
	c.done = !c.listed.defined() && !suppression && c.known() && compute(c);
	bool known =
		c.listed.defined() ? c.table->origin == COMPUTED : c.done && c.origin == COMPUTED;
	uint64_t count =
		c.listed.defined() ? uint64_t(c.listed.numel()) : expected_count(c, &known);
	if (depth == 1 || !outer->shape) /* x[mask] calls nonzero */
		tell_choice(outer->name.c_str() + outer->name.find("::") + 2, !known);
	frag_pretend_answer(true, count);
}

/* Before the operator runs: what its kernels will read, and what it is about to change. */
static void prepare(Call &c)
{
	Info &f = c.f;

	if (f.shape)
		answer_count(c);
	if (f.asks)
		frag_pretend_answer(true, 0);
	if (f.part && origin_of(c.first()) == NOTHING)
		invent(c.first());
	if (f.sums && !f.mutates && !c.table && c.known()) { /* of integers: before it runs */
		c.done = integers(c.first()) && compute(c);
		each(c.results,
		     [&](const Tensor &t) { c.done &= small(t) || volume(t) <= c.most; });
	}
	c.draw = draw_of(c);
	c.steep = f.slope && !in_full && mode == Values::rules && slope_of(c);
}

static void run_operator(Call &c)
{
	bool whole = in_full && c.fits && !c.inside_only && !c.f.decides;

	try {
		Restored<bool> before{ foreseen };
		foreseen |= c.done || (whole && !goes_to_host(c));
		c.redispatch();
	} catch (...) {
		frag_pretend_answer(false, 0);
		throw;
	}
	if (c.f.shape || c.f.asks)
		frag_pretend_answer(false, 0);
}

/* Which elements an unknown or listed mask selects. */
static void write_selected(Call &c)
{
	Below below_this;
	const Tensor &index = c.stack->back().toTensor();

	if (!c.listed.defined())
		invent_places(c.first(), index);
	else if (on_card(index) && index.numel())
		write_places(c.first(), index, c.listed, c.table->origin);
}

static bool run(Call &c)
{
	Info &f = c.f;

	prepare(c);
	run_operator(c);
	c.outs.assign(c.stack->end() - int64_t(c.op.schema().returns().size()), c.stack->end());
	if (f.name == "aten::_coalesce" && !c.done)
		write_different(c.first(), c.result());
	bool selects = f.name == "aten::nonzero" && !c.done;
	if (!f.mutates && !selects)
		each(c.outs, forget_awaited);
	if (depth == 1)
		tick(c);
	if (selects)
		return write_selected(c), false;
	if (depth == 1 && f.copies && !f.mutates && c.result().is_cpu())
		tell_choice("copy_", c.origin != COMPUTED);
	if (c.inside_only && c.origin == COMPUTED)
		each(c.outs, [&](const Tensor &t) {
			if (on_card(t) && t.numel() && origin_of(t) == NOTHING)
				tell_missed(f);
		});
	return !c.inside_only;
}
