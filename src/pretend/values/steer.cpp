// SPDX-License-Identifier: Apache-2.0
/* Values of the card that the program reads, and that a file of values may replace. */
#include "values.h"

static Steer steer;

/* Reports a decision by values of the card that a file of values cannot override. */
static void tell_choice(const char *what, bool invented)
{
	double ignored;
	if (steer)
		steer(what, invented, &ignored);
}

static void write_scalar(const Tensor &t, double value)
{
	if (on_card(t) && t.numel() == 1)
		cpu_view(t).fill_(value);
}

/* Reports values that the program reads. */
static void tell(const Info &f, const Stack &args)
{
	const Tensor &t = args[f.copies ? 1 : 0].toTensor();
	bool invented = origin_of(t) != COMPUTED ||
			(f.name == "aten::equal" && origin_of(args[1].toTensor()) != COMPUTED);
	double value = 0;
	if (on_card(t) && origin_of(t) == NOTHING && span(t) <= SMALL &&
	    !is_foreign(t)) /* its memory may be stale */
		invent(t);
	if (steer && steer(f.name.c_str() + 6, invented, &value))
		write_scalar(t, value);
}

/* For equal(): unknown tensors are replaced by a constant, so that a tensor is equal to itself. */
static std::vector<IValue> stand_ins(const Stack &args)
{
	std::vector<IValue> seen;
	for (const auto &a : args) {
		const Tensor &t = a.toTensor();
		if (on_card(t) && origin_of(t) == NOTHING) {
			Tensor one = at::detail::empty_strided_cpu({}, {}, t.scalar_type());
			holds_zeros(t) ? (void)one.zero_() : invent_all(one);
			seen.push_back(one.expand(t.sizes()));
		} else {
			seen.push_back(a);
		}
	}
	return seen;
}

/* A tensor was copied to the host: replaces unknown values, whose memory may be stale. Large
 * tensors in pinned memory are mostly offloaded, so they stay zeros, which take no memory. */
static void arrived(const Info &f, const Tensor &from, const Tensor &to)
{
	if (to.is_cpu() && span(from) > READ && to.is_pinned())
		return;
	if (to.is_cpu() && on_card(from) && origin_of(from) == NOTHING && !is_foreign(from) &&
	    !(f.mutates && span(from) <= SMALL))
		invent_all(cpu_view(to));
}
