// SPDX-License-Identifier: Apache-2.0
/* Non-zero elements of large tensors: one_hot of a router's choices takes gigabytes. */
#include "values.h"

/* places: unsorted, with duplicates */
static void note_table(const Tensor &t, const Tensor &places, int64_t stride, int64_t classes,
		       Origin origin, bool ones)
{
	int64_t end = places.numel() ? places.max().item<int64_t>() + 1 : 1;
	auto keys = places.div(stride, "floor").remainder(classes).mul_(end).add_(places);
	keys = std::get<0>(at::_unique(keys));
	auto begin = at::searchsorted(keys, at::arange(classes + 1, at::kLong).mul_(end));
	auto *p = begin.data_ptr<int64_t>();
	Table table{ t.storage().getWeakStorageImpl(),
		     origin,
		     ones,
		     stride,
		     classes,
		     { p, p + begin.numel() },
		     keys.remainder(end) };
	std::lock_guard<std::mutex> g(mutex);
	storages[base_of(t)].table = std::make_shared<const Table>(std::move(table));
}

/* Notes a large tensor of zeros, if it is a whole storage. */
static void note_zeros(const Tensor &t)
{
	if (t.data_ptr() == base_of(t) &&
	    span(t) >= int64_t(whole_of(t.storage().unsafeGetStorageImpl()).nbytes()))
		note_table(t, at::empty({ 0 }, at::kLong), 1, 1, COMPUTED, true);
}

/* The sum of (index * weight) over the dimensions of t, for each table entry inside the view t.
 * Undefined: its strides are ambiguous. */
static Tensor places_inside(const Table &table, const Tensor &t, at::IntArrayRef weights)
{
	struct Step {
		int64_t size, stride, weight;
	};
	std::vector<Step> steps;
	bool same_class = table.stride == 1;
	for (int64_t d = 0; d < t.dim(); d++)
		if (t.size(d) != 1) {
			steps.push_back({ t.size(d), t.stride(d), weights[size_t(d)] });
			same_class &= t.stride(d) % table.classes == 0;
		}
	std::sort(steps.begin(), steps.end(),
		  [](const Step &a, const Step &b) { return a.stride > b.stride; });
	int64_t inner = 0, first = t.storage_offset();
	for (size_t i = steps.size(); i-- > 0; inner += (steps[i].size - 1) * steps[i].stride)
		if (steps[i].stride <= inner)
			return {};
	same_class |= first / table.stride == (first + inner) / table.stride;
	size_t c = same_class ? size_t(first / table.stride % table.classes) : 0;
	int64_t begin = table.begin[c], end = table.begin[same_class ? c + 1 : table.classes];
	auto rest = table.places.narrow(0, begin, end - begin) - first;
	auto inside = rest.ge(0), sums = at::zeros_like(rest);
	for (const Step &step : steps) {
		auto at = rest.div(step.stride, "floor");
		inside.logical_and_(at.lt(step.size));
		rest.sub_(at, step.stride);
		sums.add_(at, step.weight);
	}
	return sums.masked_select(inside.logical_and_(rest.eq(0)));
}

/* A router's choice of few experts for each token: uniform, except that the first expert gets
 * `skew` times as many. */
static void route_rows(const Tensor &rows, int64_t n, int64_t k)
{
	auto *p = rows.data_ptr<int64_t>();
	double share = std::min(1.0, skew * double(k) / double(n));
	int64_t next = 0;
	for (int64_t r = 0; r < rows.numel() / k; r++)
		for (int64_t i = 0; i < k; i++) {
			bool hot = skew > 1 && i == 0 &&
				   int64_t(double(r + 1) * share) > int64_t(double(r) * share);
			bool worst = skew >= double(n);
			p[r * k + i] = worst	  ? i
				       : hot	  ? 0
				       : skew > 1 ? 1 + next++ % (n - 1)
						  : next++ % n;
		}
}

/* Indices into the storage at which scatter writes. Undefined: unknown. Unknown choices are taken
 * from a router. */
static Tensor scattered(const Tensor &t, const Stack &args, Origin *origin)
{
	const Tensor &index = args[2].toTensor();
	int64_t d = wrap(args[1].toInt(), t), n = t.size(d);
	if (t.dim() != index.dim() || !index.numel() || index.numel() > MOST_CHOICES ||
	    (args[3].isScalar() && args[3].toScalar().toDouble() == 0))
		return {};
	*origin = on_card(index) ? origin_of(index) : NOTHING;
	Tensor at;
	if (*origin > LIKELY) {
		at = cpu_view(index).to(at::kLong, false, true, at::MemoryFormat::Contiguous);
	} else {
		at = at::empty(index.sizes(), at::kLong);
		auto rows = at::empty(at.transpose(d, -1).sizes(), at::kLong);
		route_rows(rows, n, index.size(d));
		at.copy_(rows.transpose(d, -1));
		*origin = INVENTED;
	}
	if (at.min().item<int64_t>() < 0 || at.max().item<int64_t>() >= n)
		return {};
	at.mul_(t.stride(d)).add_(t.storage_offset());
	for (int64_t k = 0; k < t.dim(); k++)
		if (k != d) {
			std::vector<int64_t> shape(size_t(t.dim()), 1);
			shape[size_t(k)] = at.size(k);
			at.add_(at::arange(at.size(k), at.options()).mul_(t.stride(k)).view(shape));
		}
	return at;
}

/* The same for x[rows, classes] = v, with an index per dimension. */
static Tensor listed_one_by_one(const Tensor &t, const Stack &args, Origin *origin)
{
	auto list = args[1].toListRef();
	const Tensor &value = args[2].toTensor();
	if (int64_t(list.size()) != t.dim() || args[3].toBool() || value.numel() != 1 ||
	    origin_of(value) != COMPUTED || cpu_view(value).item().toDouble() == 0)
		return {};
	Tensor at = at::full({}, t.storage_offset(), at::kLong);
	for (int64_t d = 0; d < t.dim(); d++) {
		Tensor index = list[size_t(d)].isTensor() ? list[size_t(d)].toTensor() : Tensor();
		if (!index.defined() || wrapped(index) || !integers(index) ||
		    index.element_size() < 4 || index.numel() > MOST_CHOICES ||
		    origin_of(index) <= LIKELY)
			return {};
		*origin = std::min(*origin, origin_of(index));
		auto i = (on_card(index) ? cpu_view(index) : index).to(at::kLong);
		at = at + i.remainder(t.size(d)).mul(t.stride(d)); /* negative indices */
	}
	return at;
}

static void scatter_into(const Call &c)
{
	const Tensor &t = c.result();
	const Table &before = *c.table; /* of t before the write */

	if (!on_card(t) || !t.is_non_overlapping_and_dense())
		return;
	Origin origin = before.origin;
	bool listed = c.f.table == table_puts;
	Tensor at = listed ? listed_one_by_one(t, c.args, &origin) : scattered(t, c.args, &origin);
	if (!at.defined() || !at.numel() || at.numel() > MOST_CHOICES - before.places.numel())
		return;
	bool one = listed ? cpu_view(c.args[2].toTensor()).item().toDouble() == 1
			  : c.args[3].isScalar() && c.args[3].toScalar().toDouble() == 1;
	int64_t d = listed ? t.dim() - 1 : wrap(c.args[1].toInt(), t);
	note_table(t, at::cat({ at.flatten(), before.places }), t.stride(d), t.size(d),
		   std::min(origin, before.origin), before.ones && one);
}

/* For each dimension of x, the step of its index in out. Empty: not one of these operators. */
static std::vector<int64_t> weights_of(const Call &c)
{
	const Tensor &x = c.first(), &out = c.result();
	std::vector<int64_t> weights;
	if (c.f.table == table_counts) {
		std::vector<int64_t> dims; /* empty: all */
		if (c.args.size() > 2 && c.args[1].isInt())
			dims = { c.args[1].toInt() };
		else if (c.args.size() > 2 && c.args[1].isIntList())
			dims = c.args[1].toIntVector();
		std::vector<bool> gone(size_t(x.dim()), dims.empty());
		for (int64_t d : dims)
			gone[size_t(wrap(d, x))] = true;
		bool kept = out.dim() == x.dim();
		for (int64_t d = 0, k = 0; d < x.dim(); d++)
			weights.push_back(gone[size_t(d)] ? 0 : out.stride(kept ? d : k++));
		return c.table->ones || c.f.name == "aten::any" ? weights : std::vector<int64_t>();
	}
	if (c.f.table == table_compares) {
		double with = c.args[1].isScalar() ? c.args[1].toScalar().toDouble() : -1;
		if (with != (c.f.name == "aten::eq" ? 1 : 0) ||
		    (c.f.name == "aten::eq" && !c.table->ones))
			return {};
	}
	for (int64_t d = 0; d < x.dim(); d++)
		weights.push_back(out.stride(d));
	return weights;
}

/* Takes slices along a dimension: their indices in out, else undefined. */
static Tensor take_slices(const Call &c)
{
	const Tensor &x = c.first(), &out = c.result();
	bool select = c.args[1].isInt();
	auto list = select ? std::vector<IValue>() : c.args[1].toListRef().vec();
	if (!select && (list.size() != 1 || !list[0].isTensor()))
		return {};
	const Tensor &index = select ? c.args[2].toTensor() : list[0].toTensor();
	int64_t d = select ? wrap(c.args[1].toInt(), x) : 0;
	if (!on_card(index) || !integers(index) || index.element_size() < 4 || index.dim() != 1 ||
	    origin_of(index) <= LIKELY)
		return {};
	auto at = cpu_view(index).to(at::kLong).contiguous();
	auto weights = out.strides().vec();
	weights.erase(weights.begin() + d);
	std::vector<Tensor> parts{ at::empty({ 0 }, at::kLong) };
	for (int64_t i = 0; i < index.numel(); i++) {
		auto slice = x.select(d, at.data_ptr<int64_t>()[i]);
		parts.push_back(places_inside(*c.table, slice, weights));
		if (!parts.back().defined())
			return {};
		parts.back().add_(i * out.stride(d));
	}
	return at::cat(parts);
}

/* The result of an operator on a table: computed if small, else a table. False: the operator is not
 * supported. */
static bool from_table(const Call &c)
{
	const Table &table = *c.table;
	const Tensor &out = c.result();
	Tensor places;
	if (!on_card(out) || !out.is_non_overlapping_and_dense())
		return false;
	if (c.f.table == table_takes)
		places = take_slices(c);
	else if (auto weights = weights_of(c); !weights.empty())
		places = places_inside(table, c.first(), weights);
	if (!places.defined())
		return false;
	bool ones = table.ones || c.f.table == table_compares || out.scalar_type() == at::kBool;
	if (out.numel() && ones && small(out)) {
		cpu_view(out)
			.as_strided({ out.numel() }, { 1 })
			.copy_(at::bincount(places, {}, out.numel()));
		set_origin(out, table.origin);
		return true;
	}
	set_origin(out, NOTHING);
	if (!out.numel() || places.numel() > MOST_CHOICES)
		return true;
	note_table(out, places, 1, out.dim() && out.stride(-1) == 1 ? out.size(-1) : 1,
		   table.origin, ones);
	if (c.f.table == table_counts &&
	    table_of(out)->places.numel() != places.numel()) /* some counts exceed one */
		note_table(out, places, 1, out.size(-1), table.origin, false);
	return true;
}

/* Indices of non-zero elements, in nonzero's order; undefined: unknown. */
static Tensor find_places(const Tensor &x, const Table &table)
{
	Below below_this;
	std::vector<int64_t> weights(size_t(x.dim()));
	for (int64_t d = x.dim() - 1, weight = 1; d >= 0; weight *= x.size(d--))
		weights[size_t(d)] = weight;
	auto places = places_inside(table, x, weights);
	return places.defined() ? std::get<0>(places.sort()) : places;
}

/* at: places in x, each of which becomes a row of indices. */
static void write_places(const Tensor &x, const Tensor &index, Tensor at, Origin origin)
{
	auto c = cpu_view(index);
	for (int64_t d = x.dim() - 1; d >= 0; d--) {
		c.select(1, d).copy_(at.remainder(x.size(d)));
		at = at.div(x.size(d), "floor");
	}
	set_origin(index, origin);
}
