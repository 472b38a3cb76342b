// SPDX-License-Identifier: Apache-2.0
/* The CPU runs an operator over the bytes of the card. */
#include "values.h"

static IValue to_cpu(const IValue &v)
{
	if (v.isDevice() && v.toDevice().is_cuda())
		return IValue(c10::Device(c10::kCPU));
	return mapped(v, [](const Tensor &t) { return on_card(t) ? cpu_view(t) : t; });
}

/* A seed for the CPU where a card draws: the same for the same seed and offset of its generator. */
static uint64_t seed_of_draw(const IValue &own)
{
	constexpr uint64_t SPREAD = 0x9E3779B97F4A7C15;
	try { /* fails during graph capture */
		c10::impl::VirtualGuardImpl guard(c10::DeviceType::CUDA);
		at::Generator g = own.isNone()
					  ? at::globalContext().defaultGenerator(guard.getDevice())
					  : own.toGenerator();
		std::lock_guard<std::mutex> lock(g.mutex());
		uint64_t mixed = (g.current_seed() ^ (g.get_offset() * SPREAD)) * SPREAD;
		return mode == Values::random ? generator()
					      : mixed ^ mixed >> 32; /* the CPU takes 32 bits */
	} catch (const std::exception &) {
		return generator();
	}
}

/* Preserves the program's random state on the host. */
struct KeepSeed {
	at::Generator cpu;
	Tensor state;
	KeepSeed(bool on, const IValue &own)
	{
		if (!on)
			return;
		cpu = at::detail::getDefaultCPUGenerator();
		uint64_t seed = seed_of_draw(own);
		std::lock_guard<std::mutex> g(cpu.mutex());
		state = cpu.get_state();
		cpu.set_current_seed(seed);
	}
	~KeepSeed()
	{
		if (!state.defined())
			return;
		std::lock_guard<std::mutex> g(cpu.mutex());
		cpu.set_state(state);
	}
};

static bool compute(Call &c)
{
	Stack stack;
	const IValue &own = argument(c, c.args, "generator");
	uint64_t type = 1;
	each(c.args.empty() ? IValue() : c.args[0],
	     [&](const Tensor &t) { type = uint64_t(1) << (int(t.scalar_type()) & 63); });
	if (c.f.dead & type)
		return false;
	for (size_t i = 0; i < c.args.size(); i++) {
		const auto &name = c.op.schema().arguments()[i].name();
		stack.push_back(name == "generator" || name == "pin_memory" ? IValue()
									    : to_cpu(c.args[i]));
	}
	if (c.f.counts && integers(c.args[0].toTensor()))
		stack[0] = stack[0].toTensor().to(at::kDouble);
	/* with several out= arguments, the results refer to these, which the call pops */
	const Stack kept = stack;
	Below below_this;
	KeepSeed seed(c.f.seeded, own);
	try {
		if (c.f.instead && !(c.results = c.f.instead(c, kept)).empty())
			return true;
		c.op.callBoxed(&stack);
	} catch (const std::exception &wrong) { /* the real operator reports real errors */
		if (in_full && !c.f.mutates && !(c.results = in_float(c, kept)).empty())
			return true;
		if (dynamic_cast<const c10::NotImplementedError *>(&wrong))
			c.f.dead |= type;
		return false;
	}
	c.results.assign(stack.begin(), stack.end());
	return true;
}

/* Skips results that have another shape on the CPU (internals of the card's backward pass), and
 * returns their tensors. */
static std::vector<Tensor> copy_results(const Stack &outs, const Stack &results)
{
	std::vector<std::pair<Tensor, Tensor>> pairs; /* to, from */
	std::vector<Tensor> others;
	for (size_t i = 0; i < outs.size() && i < results.size(); i++) {
		std::vector<Tensor> to, from;
		each(outs[i], [&](const Tensor &t) { to.push_back(t); });
		each(results[i], [&](const Tensor &t) { from.push_back(t); });
		for (size_t k = 0; k < to.size() && k < from.size(); k++)
			if (on_card(to[k]) && to[k].numel())
				pairs.emplace_back(to[k], from[k]);
	}
	for (const auto &[to, from] : pairs)
		if (to.sizes() != from.sizes())
			others.push_back(to);
		else
			cpu_view(to).copy_(from);
	return others;
}
