// SPDX-License-Identifier: Apache-2.0
/* Invented values, by fixed rules (docs/pretend.md, "Values"): finite numbers, random valid
 * indices, balanced routers. */
#include "values.h"

/* Along dim: k different values of [0, n). */
static void invent_indices(const Tensor &t, int64_t n, int64_t k, int64_t dim)
{
	auto c = cpu_view(t);
	if (n < 1)
		return;
	std::lock_guard<std::mutex> g(mutex);
	auto rows = at::empty(t.dim() ? c.transpose(dim, -1).sizes() : c.sizes(), c.options());
	auto *p = rows.data_ptr<int64_t>();
	std::vector<int64_t> order(k > 1 ? n : 0);
	for (size_t i = 0; i < order.size(); i++)
		order[i] = i;
	for (int64_t r = 0; r < rows.numel() / std::max<int64_t>(k, 1); r++)
		for (int64_t i = 0; i < k; i++) {
			if (k > 1)
				std::swap(order[i], order[i + generator() % (n - i)]);
			p[r * k + i] = mode == Values::zeros ? i
				       : k > 1		     ? order[i]
							     : generator() % n;
		}
	c.copy_(t.dim() ? rows.transpose(dim, -1) : rows);
}

constexpr int64_t EXPERTS = 1024; /* more are no router's */

static bool routes(const Tensor &x, int64_t k, int64_t dim)
{
	int64_t n = x.dim() > 1 ? x.size(-1) : 0;
	return dim == x.dim() - 1 && n > 1 && n <= EXPERTS && k < n && x.is_floating_point() &&
	       x.numel() / n >= 4 * n;
}

static void route(const Tensor &index, int64_t n, int64_t k)
{
	auto rows = at::empty(index.sizes(), cpu_view(index).options());
	route_rows(rows, n, k);
	cpu_view(index).copy_(rows);
	tell_choice("router", true);
}

static void invent_order(const Call &c, const Tensor &index)
{
	const Tensor &x = c.first();
	int64_t d = x.dim() - 1;

	for (const auto &a : c.args)
		if (a.isInt()) {
			d = wrap(a.toInt(), x);
			break;
		}
	std::vector<int64_t> shape(size_t(x.dim()), 1);
	shape[size_t(d)] = x.size(d);
	auto view = cpu_view(index);
	view.copy_(at::arange(x.size(d), view.options()).view(shape).expand(view.sizes()));
}

/* Indices that an operator returns: the experts of a router, else random ones; sorted is already
 * sorted. */
static void invent_index(const Call &c, const Tensor &index)
{
	const Tensor &x = c.first();
	bool top = c.f.name == "aten::topk" && x.dim(), fits = span(index) <= INDICES;

	if (top && mode == Values::rules && routes(x, index.size(-1), wrap(c.args[2].toInt(), x))) {
		route(index, x.size(-1), index.size(-1));
	} else if (!fits) {
		return;
	} else if (top) {
		int64_t d = wrap(c.args[2].toInt(), x);
		invent_indices(index, x.size(d), index.size(d), d);
	} else if (c.f.name == "aten::multinomial") {
		invent_indices(index, x.size(-1), c.args[2].toBool() ? 1 : c.args[1].toInt(),
			       index.dim() - 1);
	} else if (c.f.name == "aten::argmax" || c.f.name == "aten::argmin") {
		bool along = !c.args[1].isNone();
		int64_t d = along && x.dim() ? wrap(c.args[1].toInt(), x) : 0;
		int64_t n = !along ? x.numel() : x.dim() ? x.size(d) : 1;
		if (mode == Values::rules && along && routes(x, 1, wrap(c.args[1].toInt(), x)))
			route(index, n, 1);
		else
			invent_indices(index, n, 1, 0);
	} else if (c.f.name == "aten::max" || c.f.name == "aten::min") {
		invent_indices(index, x.dim() ? x.size(wrap(c.args[1].toInt(), x)) : 1, 1, 0);
	} else if (x.dim()) {
		invent_order(c, index);
	}
}

/* The results of an operator that returns indices. */
static void invent_for(const Call &c)
{
	const Tensor &index = c.outs.back().toTensor();

	each(c.outs, [](const Tensor &t) { invent(t); });
	if (on_card(index) && index.numel() && index.scalar_type() == at::kLong &&
	    span(index) <= WIDE_INTEGERS)
		invent_index(c, index);
	each(c.outs, [](const Tensor &t) {
		if (on_card(t))
			set_origin(t, t.scalar_type() == at::kLong ? INVENTED
				      : small(t)		   ? GUESSED
								   : NOTHING);
	});
}

/* Non-zero elements of an unknown mask: evenly spread and distinct. */
static void invent_places(const Tensor &x, const Tensor &index)
{
	if (!on_card(index) || index.dim() != 2 || !index.numel() || span(index) > INDICES ||
	    !x.numel())
		return;
	int64_t count = index.size(0);
	auto at = at::arange(count, at::kLong).mul(x.numel()).div(count, "floor");
	write_places(x, index, at, INVENTED);
}

/* Are all results scalar floats on the device? */
static bool one_number(const Stack &outs)
{
	size_t count = 0;
	bool all = true;
	each(outs, [&](const Tensor &t) {
		count++;
		all &= on_card(t) && t.numel() == 1 && t.is_floating_point();
	});
	return count && all;
}

/* Are all results integers or booleans? */
static bool decides(const Stack &outs)
{
	bool all = true;
	each(outs, [&](const Tensor &t) { all &= integers(t); });
	return all;
}

/* The results of an operator whose inputs are unknown, where they are more than a fixed number. */
static bool invent_special(Call &c)
{
	if (c.f.rule && !(c.known() && c.outs_fit))
		return invent_for(c), true;
	if (!c.f.mutates && c.origin <= LIKELY && one_number(c.outs)) { /* a loss or norm */
		each(c.outs, [](const Tensor &t) {
			invent(t);
			set_origin(t, INVENTED);
		});
		return true;
	}
	if (c.f.finite && !c.known()) {
		each(c.args[1], [](const Tensor &t) {
			if (overflows)
				write_scalar(t, 1);
			set_origin(t, INVENTED);
		});
		return true;
	}
	return false;
}

constexpr double FLOPS = 3e8; /* of a large result, if it is computed: small nets */

static void judge_results(Call &c)
{
	bool large = c.f.flops && c.most && c.most != INT64_MAX;

	c.outs_fit = !large || flops_of(c) <= FLOPS;
	each(c.outs, [&](const Tensor &t) {
		c.outs_fit &= !t.is_cuda() || (on_card(t) && (small(t) || volume(t) <= c.most));
	});
}

static bool invent(Call &c)
{
	Info &f = c.f;

	if (f.copies)
		arrived(f, c.args[f.mutates ? 1 : 0].toTensor(), c.result());
	if (c.table && c.table->places.numel() && f.table != table_scatters &&
	    f.table != table_puts && from_table(c))
		return false;
	judge_results(c);
	if (invent_special(c))
		return false;
	/* not from stale memory */
	if (c.origin == NOTHING && c.fits && c.outs_fit && !f.mutates && decides(c.outs))
		each(c.args, [](const Tensor &t) {
			if (origin_of(t) == NOTHING && t.is_floating_point() && !holds_zeros(t))
				invent(t, READ);
		});
	if (f.stays)
		overflows = false;
	c.cleared = f.zeros && drop(c.result());
	if (c.cleared && volume(c.result()) <= READ &&
	    int64_t(c.result().storage().nbytes()) == span(c.result()))
		c.outs_fit = true; /* takes no host memory, so any size; tables start so */
	return true;
}
