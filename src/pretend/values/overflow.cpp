// SPDX-License-Identifier: Apache-2.0
/*
 * Do gradients of half precision overflow? Most gradients are unknown, but not those near the loss:
 * the scaler's factor, the number of rows in the mean, and how often each class is right are known.
 * This follows the bound of the loss gradient back to the last layer with a bias, which sums over
 * rows. If that already exceeds half precision, a card skips the step (sums over frames, as in
 * CTC). Overflow further down is not seen.
 */
#include "values.h"

static std::atomic<bool> overflows; /* since the scaler last changed its scale */
constexpr double HALF_MOST = 65520; /* from here on, half precision rounds to infinity */

/* The largest of known numbers, else 0. */
static double known_most(const IValue &v)
{
	if (v.isScalar())
		return std::abs(v.toScalar().toDouble());
	if (!v.isTensor() || !v.toTensor().defined())
		return 0;
	const Tensor &t = v.toTensor();
	if (!t.numel() || !small(t) || origin_of(t) < INVENTED) /* the scale itself is INVENTED */
		return 0;
	return (t.is_cpu() ? t : cpu_view(t)).abs().max().item().toDouble();
}

/* Initially all classes are equally likely, so a class's sum is the rows where it is right minus
 * its share of all rows. */
static Slope slope_of_classes(const Stack &args)
{
	const Tensor &x = args[1].toTensor(), &target = args[2].toTensor();
	double rows = double(target.numel()), classes = double(x.size(x.dim() > 1 ? 1 : 0)),
	       most = 1;
	if (args[3].isTensor() && args[3].toTensor().defined()) /* classes are weighted */
		return {};
	if (target.numel() && small(target) && origin_of(target) == COMPUTED) {
		Tensor right = (target.is_cpu() ? target : cpu_view(target)).flatten();
		right = right.masked_select(right.ne(args[5].toInt()));
		rows = double(right.numel());
		most = rows ? double(right.bincount().max().item<int64_t>()) : 0;
	}
	double each = known_most(args[0]) /
		      (args[4].toInt() == at::Reduction::Mean ? std::max(rows, 1.0) : 1);
	return { each * (1 - 1 / classes),
		 each * std::max(1 - 1 / classes, most - rows / classes) };
}

/* With CTC, nearly all frames are blank. */
static Slope slope_of_frames(const Stack &args)
{
	const Tensor &x = args[1].toTensor();
	double each = known_most(args[0]), frames = 0, classes = double(x.size(2));
	auto length = [](const IValue &v, int64_t i, int64_t otherwise) {
		return double(v.isIntList() ? v.toIntVector()[size_t(i)] : otherwise);
	};
	for (int64_t i = 0; i < x.size(1); i++)
		frames += length(args[3], i, x.size(0)) * (1 - 1 / classes) - length(args[4], i, 0);
	return { each, each * std::max(frames, 0.0) };
}

static bool slope_at(const IValue &v, Slope *s)
{
	if (!v.isTensor() || !on_card(v.toTensor()) || !v.toTensor().numel())
		return false;
	std::lock_guard<std::mutex> g(mutex);
	auto it = storages.find(base_of(v.toTensor()));
	if (it == storages.end() || !it->second.slope.most)
		return false;
	*s = it->second.slope;
	return true;
}

/* The gradient bound of the result; read before the operator runs, because it may work in place.
 * pre: the operator has a slope. */
static bool slope_of(Call &c)
{
	Below below_this;
	if (c.f.slope == slope_classes_begin || c.f.slope == slope_frames_begin) {
		c.slope = c.f.slope == slope_frames_begin ? slope_of_frames(c.args)
							  : slope_of_classes(c.args);
		return c.slope.most > 0;
	}
	if (!slope_at(c.args[0], &c.slope))
		return false;
	double by = c.f.slope == slope_multiplied || c.f.slope == slope_divided
			    ? known_most(c.args[1])
			    : 1;
	by = c.f.slope == slope_divided && by ? 1 / by : by;
	c.slope.most *= by;
	c.slope.column *= by;
	if (c.f.slope == slope_added_up)
		c.slope.most = c.slope.column;
	return c.slope.most > 0;
}

static void note_slope(const Call &c)
{
	const Tensor &t = c.result();

	if (!on_card(t) || !t.numel())
		return;
	if (t.scalar_type() == at::kHalf && c.slope.most >= HALF_MOST)
		overflows = true;
	std::lock_guard<std::mutex> g(mutex);
	storages[base_of(t)].slope = c.slope;
}
