// SPDX-License-Identifier: Apache-2.0
/* May an operator be computed: are its inputs known, small enough, and its indices valid? */
#include "values.h"

/* Limits in bytes: of inputs and results without gradients and products (distances, masks); of
 * numbers selected by booleans, as many as of the booleans; of all large computed floats on the
 * card, so that large nets are not computed; the same for results of such data (masks of a large
 * net); of one-byte integers from invented ones, as larger ones are weights. */
constexpr int64_t DATA = 16 << 20, MASKS = 128 << 20, HELD = 64 << 20, HELD_DATA = 1 << 30;
constexpr int64_t CODES = 1 << 20;
constexpr int64_t CHECKED = 1 << 20; /* number of indices to check */

/*
 * Invalid indices end a program on a card later, without a line; here they raise an error: rows of
 * a table, entries along a dimension, classes of scores. Only computed indices are checked.
 */
static void check_places(const Info &f, const Tensor &index, int64_t least, int64_t places,
			 const IValue *ignored = nullptr)
{
	if (!on_card(index) || !index.numel() || index.numel() > CHECKED || !integers(index) ||
	    origin_of(index) != COMPUTED)
		return;
	auto at = cpu_view(index).to(at::kLong);
	auto wrong = at.lt(least).logical_or_(at.ge(places));
	if (ignored)
		wrong.logical_and_(at.ne(ignored->toInt()));
	if (wrong.any().item<bool>()) {
		/* no stream: it crashes if libstdc++ is linked statically */
		std::string first = std::to_string(at.masked_select(wrong)[0].item<int64_t>());
		TORCH_CHECK_INDEX(false,
				  f.name + ": index " + first + " is out of range, there are " +
					  std::to_string(places) +
					  " (on a card: CUDA error: device-side assert triggered)");
	}
}

static void check_places(const Call &c)
{
	const Tensor &table = c.args[0].toTensor();
	if (!table.dim())
		return;
	if (c.f.places == places_classes) /* ignore_index */
		return check_places(c.f, c.args[1].toTensor(), 0,
				    table.size(table.dim() > 1 ? 1 : 0), &c.args[4]);
	if (c.f.places != places_listed)
		return check_places(c.f, c.args[c.f.places].toTensor(), 0,
				    table.size(c.f.places == places_along ? c.args[1].toInt() : 0));
	int64_t d = 0;
	for (const IValue &v : c.args[1].toListRef()) {
		/* may be negative; a mask covers its own dimensions */
		bool index = v.isTensor() && v.toTensor().defined();
		bool mask = index && at::isIntegralType(v.toTensor().scalar_type(), true) &&
			    v.toTensor().element_size() == 1;
		if (index && !mask)
			check_places(c.f, v.toTensor(), -table.size(d), table.size(d));
		d += mask ? v.toTensor().dim() : 1;
	}
}

/* Do all inputs fit the limits, and what is their origin? Unknown indices do not fit: some CPU
 * kernels use them unchecked. */
static void look_at_inputs(Call &c)
{
	const Info &f = c.f;
	/* argument 0 is not read, unless it accumulates */
	bool over = f.over && !(f.places == places_listed && c.args[3].toBool());
	bool unread = over || (f.beta && c.args[f.beta - 1].toScalar().toDouble() == 0);
	bool data = !f.mutates && !f.flops, known = true, made = true, takes = false;
	int64_t bytes = 0, data_most = f.masks ? MASKS : DATA;

	auto take = [&](const Tensor &t, size_t i) {
		takes = true;
		if (!on_card(t)) {
			c.fits = made = false;
			c.origin = NOTHING;
			return;
		}
		bytes += integers(t) ? 0 : volume(t);
		known &= small(t) || volume(t) <= READ;
		data &= !t.requires_grad() && (small(t) || volume(t) <= data_most);
		if (!small(t) && (f.writes[i] || volume(t) > READ))
			c.fits = false;
		if (f.given[i] || (unread && i == 0))
			return;
		Origin from = origin_of(t);
		c.origin = std::min(c.origin, from);
		bool codes = integers(t) && t.scalar_type() != at::kBool;
		bool large = t.element_size() == 1 && volume(t) > CODES;
		if (codes && ((!f.pointwise && from <= LIKELY) || (large && from <= INVENTED)))
			c.fits = made = false;
	};
	for (size_t i = 0; i < c.args.size(); i++)
		each(c.args[i], [&](const Tensor &t) {
			if (t.is_cuda() && !(f.like && i == 0))
				take(t, i);
		});
	made &= c.origin == COMPUTED;
	if (in_full && made) {
		c.fits = true;
		c.most = INT64_MAX;
		return;
	}
	c.fits &= bytes <= 4 * READ;
	made &= bytes <= 2 * data_most;
	made &= held.bytes <= (data && takes ? HELD_DATA : HELD);
	c.most = made && data ? data_most : made && known ? READ : 0;
	c.fits |= c.most > 0;
}

static void judge(Call &c)
{
	Info &f = c.f;

	if (f.places && depth == 1) { /* only calls of the program */
		Below below_this;
		check_places(c);
	}
	look_at_inputs(c);
	if (!in_full && (f.table || f.name == "aten::nonzero"))
		c.table = table_of(c.first());
	if (f.shape && c.table && c.table->places.numel())
		c.listed = find_places(c.first(), *c.table);
	c.upload = f.copies && !c.args[f.mutates ? 1 : 0].toTensor().is_cuda();
	c.inside_only = in_full && !f.instead &&
			!c.op.hasComputedKernelForDispatchKey(c10::DispatchKey::CPU);
}
