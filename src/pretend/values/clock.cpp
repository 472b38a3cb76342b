// SPDX-License-Identifier: Apache-2.0
/* The modelled clock: how long each operator would take on the card. */
#include "values.h"

namespace torch::autograd
{
/* < 0: no backward pass; missing in some releases */
__attribute__((weak, visibility("default"))) int get_current_graph_task_id();
} // namespace torch::autograd

/* Pairs (host time in us, modelled ns), one per operator. */
struct Tick {
	int64_t host_us, model_ns;
};
static std::vector<Tick> ticks;
static double model_ns, bytes_per_ns, flops_per_ns, cycles_per_ns; /* of all multiprocessors */

/* Recomputation by checkpoints: operators within a backward pass with gradients enabled. Counted in
 * whole steps, from the first backward pass to the last. */
static struct {
	bool outside; /* an operator ran outside of backward passes since the last one inside */
	double ns;
	struct {
		double model_ns, ns;
	} first, last;
	bool begun;
} recomputed = { true, 0, { 0, 0 }, { 0, 0 }, false };

static bool in_backward()
{
	return torch::autograd::get_current_graph_task_id &&
	       torch::autograd::get_current_graph_task_id() >= 0;
}

/* pre: locked. */
static void count_recomputed(double ns)
{
	if (!in_backward()) {
		recomputed.outside = true;
		return;
	}
	if (recomputed.outside) {
		recomputed.last = { model_ns, recomputed.ns };
		if (!recomputed.begun)
			recomputed.first = recomputed.last;
		recomputed.begun = true;
	}
	recomputed.outside = false;
	if (at::GradMode::is_enabled())
		recomputed.ns += ns;
}

/* Of the tensors of a call that have strides. */
template <class F> static void each_strided(const Call &c, F f)
{
	for (const auto *some : { &c.outs, &c.args })
		each(*some, [&](const Tensor &t) {
			if (!wrapped(t) && !nested(t))
				f(t);
		});
}

static double flops_of(const Call &c)
{
	std::vector<Tensor> in, out;
	each(c.args, [&](const Tensor &t) { in.push_back(t); });
	each(c.outs, [&](const Tensor &t) { out.push_back(t); });
	bool backward = c.f.name.find("backward") != std::string::npos;
	if (in.size() < 2 || out.empty())
		return 0;
	if (c.f.flops == flops_product) { /* 2 m n k; addmm and baddbmm have the summand first */
		const Tensor &a = in[c.f.first_added ? 1 : 0];
		/* a group sums over its own rows: weight gradients of experts */
		bool whole = a.dim() < out[0].dim();
		return a.dim() ? 2.0 * double(out[0].numel()) * double(a.size(-1)) /
					 (whole ? std::max<double>(double(out[0].size(0)), 1) : 1)
			       : 0;
	}
	if (c.f.flops == flops_convolution) { /* each output meets a filter; backward twice */
		if (in.size() < (backward ? 3u : 2u) || !in[backward ? 2 : 1].dim())
			return 0;
		const Tensor &w = in[backward ? 2 : 1], &y = backward ? in[0] : out[0];
		return (backward ? 4.0 : 2.0) * double(y.numel()) * double(w.numel()) /
		       double(std::max<int64_t>(w.size(0), 1));
	}
	return in[0].dim() == 4 && in[1].dim() == 4
		       ? (backward ? 10.0 : 4.0) * double(in[0].numel()) * double(in[1].size(2))
		       : 0;
}

/* Alignment of rows in half precision, as kernels check it: all at multiples of 16 bytes, of 4, or
 * less. */
enum { ROWS_OF_16, ROWS_OF_4, ROWS_OF_2 };

static int rows_begin(const Tensor &t)
{
	if (!on_card(t) || t.dim() < 2 || t.element_size() != 2 || t.size(-1) == 1 ||
	    t.size(-2) == 1)
		return ROWS_OF_16;
	int64_t stride = t.stride(-1) == 1 ? t.stride(-2) : t.stride(-1);
	return stride % 8 == 0 ? ROWS_OF_16 : stride % 2 == 0 ? ROWS_OF_4 : ROWS_OF_2;
}

/*
 * Kernel times in ns, fitted to 13 programs on an H200 [results/pretend/durations.md]. Products
 * reach 0.7 of the tensor cores' peak; with unaligned rows, kernels of older cards run instead, and
 * padding moves single elements (Inductor measures both and chooses) [results/pretend/products.csv:
 * 731 of 778 choices of an H200]. Other kernels are limited by memory bandwidth, or by a rate per
 * cycle and multiprocessor.
 */
constexpr double PRODUCTS = 0.7, PRODUCT_NS = 2500;
constexpr double MEMORY = 0.87, KERNEL_NS = 1200, REDUCTION_NS = 6000;
/* of single-precision products, the second per cycle of all multiprocessors */
constexpr double WITH_TF32 = 0.35, FP32_FLOPS = 146;
constexpr double CAUSAL = 0.5, ATTENTIONS = 0.36;

static double product_of_halves(const Call &c, double bytes, double flops)
{
	constexpr double UNEVEN_FLOPS[] = { HUGE_VAL, 340e3, 170e3 }, OLDER_CARD = 1.6,
			 UNEVEN_BYTES = 1.6;
	int rows = ROWS_OF_16;

	each_strided(c, [&](const Tensor &x) { rows = std::max(rows, rows_begin(x)); });
	if (rows != ROWS_OF_16 && c.f.flops == flops_product)
		return flops / std::min(flops_per_ns / OLDER_CARD, UNEVEN_FLOPS[rows]) +
		       UNEVEN_BYTES * bytes / bytes_per_ns;
	return std::max(bytes / bytes_per_ns, flops / flops_per_ns);
}

/* For products and convolutions. */
static double product_ns(const Call &c, double bytes)
{
	double flops = flops_of(c), single = FP32_FLOPS * cycles_per_ns;
	bool halves = true;

	each(c.outs, [&](const Tensor &t) { halves &= t.element_size() <= 2; });
	if (halves)
		return PRODUCT_NS + product_of_halves(c, bytes, flops) / PRODUCTS;
	if (c.f.flops == flops_convolution ? at::globalContext().allowTF32CuDNN()
					   : at::globalContext().allowTF32CuBLAS())
		single = std::max(single, WITH_TF32 * PRODUCTS * flops_per_ns);
	return PRODUCT_NS + std::max(bytes / (PRODUCTS * bytes_per_ns), flops / single);
}

static double attention_ns(const Call &c, double bytes)
{
	double flops = flops_of(c), rate = ATTENTIONS * flops_per_ns;

	if (c.args[0].toTensor().element_size() > 2)
		rate = FP32_FLOPS * cycles_per_ns;
	if (c.f.causal && c.f.causal <= c.args.size() && c.args[c.f.causal - 1].toBool())
		flops *= CAUSAL;
	return PRODUCT_NS + std::max(bytes / (MEMORY * bytes_per_ns), flops / rate);
}

/* Same layout and no broadcasting, so that a kernel can vectorize? */
static bool alike(const Call &c)
{
	Tensor first;
	bool same = true;

	each_strided(c, [&](const Tensor &t) {
		if (t.numel() < 2 || t.layout() != at::kStrided)
			return;
		first = first.defined() ? first : t;
		same &= t.sizes() == first.sizes() && t.strides() == first.strides() &&
			t.is_non_overlapping_and_dense() &&
			(t.element_size() >= first.element_size() || t.scalar_type() == at::kBool);
	});
	return same;
}

static double time_of(const Call &c, double bytes)
{
	constexpr double ELEMENTS_OF_2 = 2.6, LARGER_ELEMENTS = 1.6, ACROSS_ROWS = 2.6,
			 ONE_BY_ONE = 1.25;
	double numbers = 0, per_cycle = c.f.per_cycle;

	if (c.f.pads) {
		const Tensor &x = c.args[0].toTensor();
		bool across = x.dim() > 1 && x.stride(-1) != 1 && x.size(-1) > 1;
		double units = bytes / bytes_per_ns *
			       (x.element_size() == 2 ? ELEMENTS_OF_2 : LARGER_ELEMENTS) *
			       (across ? ACROSS_ROWS : 1);
		return PRODUCT_NS + units / PRODUCTS;
	}
	if (c.f.flops)
		return c.f.flops == flops_attention ? attention_ns(c, bytes) : product_ns(c, bytes);
	if (c.f.reads_few)
		return KERNEL_NS;
	if (c.f.each && !alike(c))
		per_cycle = ONE_BY_ONE;
	double ns = bytes / (MEMORY * bytes_per_ns);
	each_strided(c, [&](const Tensor &t) { numbers = std::max(numbers, double(t.numel())); });
	if (per_cycle)
		ns = std::max(ns, numbers / (per_cycle * cycles_per_ns));
	return (c.f.reduces ? REDUCTION_NS : KERNEL_NS) + ns;
}

/* NULL, the default stream, if this PyTorch does not expose it. */
template <class Guard>
static auto native(const Guard &g, c10::Stream s, int) -> decltype(g.getStreamNativeHandle(s))
{
	return g.getStreamNativeHandle(s);
}
template <class Guard> void *native(const Guard &, c10::Stream, long)
{
	return nullptr;
}

static void *current_stream()
{
	c10::impl::VirtualGuardImpl guard(c10::DeviceType::CUDA);
	return native(guard, guard.getStream(guard.getDevice()), 0);
}

static void tick(const Call &c)
{
	double bytes = 0, ns;
	timespec t;
	if (bytes_per_ns <= 0)
		return;
	each_strided(c, [&](const Tensor &x) {
		bytes += x.is_cuda() ? double(x.numel()) * double(x.element_size()) : 0;
	});
	ns = time_of(c, bytes);
	clock_gettime(CLOCK_REALTIME, &t);
	std::lock_guard<std::mutex> g(mutex);
	count_recomputed(ns);
	model_ns += ns;
	ticks.push_back({ t.tv_sec * 1000000 + t.tv_nsec / 1000, int64_t(model_ns) });
	frag_pretend_work(*frag_pretend_streams() ? current_stream() : nullptr, uint64_t(ns),
			  uint64_t(model_ns), in_backward() && !at::GradMode::is_enabled());
}
