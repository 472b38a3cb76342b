// SPDX-License-Identifier: Apache-2.0
/*
 * Random integers and uniform numbers as a card draws them; without them, the rows that tokens send
 * to each expert move the peak of a job by 1.5 % (experts_all_to_all of results/programs).
 *
 * PyTorch draws with Philox 4x32-10, by its generator's seed and offset: as many threads as the
 * card has room for each draw four words at a time, for elements one grid apart (two of 64 bits for
 * integers with a wide range; ATen/native/cuda/DistributionTemplates.h). The generator here is
 * PyTorch's own. Other distributions are the CPU's (compute.cpp).
 */
#include "values.h"

static bool is_wide(const Draw &d)
{
	constexpr int bits = TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR < 7 ? 32 : 28;

	return d.kind == draws_integers && d.range >> bits;
}

static uint64_t attribute_of_card(int which)
{
	int value = 0;

	return frag_pretend_cudaDeviceGetAttribute(&value, which, 0) ? 0 : uint64_t(value);
}

static uint64_t threads_of_draw(uint64_t n)
{
	constexpr int MULTIPROCESSORS = 16, THREADS_OF_EACH = 39; /* cudart's attributes */
	constexpr uint64_t BLOCK = 256;
	uint64_t blocks = attribute_of_card(THREADS_OF_EACH) / BLOCK;

	return BLOCK *
	       std::min((n + BLOCK - 1) / BLOCK, attribute_of_card(MULTIPROCESSORS) * blocks);
}

static at::Generator generator_of(const Call &c)
{
	auto own = argument(c, c.args, "generator"), device = argument(c, c.args, "device");
	auto out = argument(c, c.args, "out"); /* fills a given tensor */

	if (!own.isNone())
		return own.toGenerator();
	if (!device.isNone())
		return at::globalContext().defaultGenerator(device.toDevice());
	return at::globalContext().defaultGenerator(
		(out.isNone() ? c.args[0] : out).toTensor().device());
}

static void take_bounds(const Call &c, Draw &d)
{
	bool in_place = c.f.name == "aten::random_";
	auto low = argument(c, c.args, in_place ? "from" : "low"),
	     high = argument(c, c.args, in_place ? "to" : "high");
	auto from = argument(c, c.args, "from"), to = argument(c, c.args, "to");

	if (c.f.draws == draws_integers) {
		d.low = low.isNone() ? 0 : low.toInt();
		if (!high.isNone() && high.toInt() > d.low)
			d.range = uint64_t(high.toInt()) - uint64_t(d.low);
	} else {
		d.from = from.isNone() ? 0 : from.toScalar().toDouble();
		d.to = to.isNone() ? 1 : to.toScalar().toDouble();
	}
}

static Draw draw_of(const Call &c)
{
	Draw d;

	if (!c.f.draws || mode == Values::random)
		return d;
	take_bounds(c, d);
	if (c.f.draws == draws_integers && !d.range)
		return d;
	try { /* fails during graph capture */
		d.generator = generator_of(c);
		std::lock_guard<std::mutex> g(d.generator.mutex());
		d.seed = d.generator.current_seed();
		d.offset = d.generator.get_offset();
		d.kind = c.f.draws;
	} catch (const std::exception &) {
	}
	return d;
}

static void philox(uint64_t seed, uint64_t thread, uint64_t turn, uint32_t (&c)[4])
{
	uint32_t key[] = { uint32_t(seed), uint32_t(seed >> 32) };

	c[0] = uint32_t(turn);
	c[1] = uint32_t(turn >> 32);
	c[2] = uint32_t(thread);
	c[3] = uint32_t(thread >> 32);
	for (int round = 0; round < 10; round++) {
		uint64_t a = uint64_t(0xD2511F53) * c[0], b = uint64_t(0xCD9E8D57) * c[2];
		c[0] = uint32_t(b >> 32) ^ c[1] ^ key[0];
		c[1] = uint32_t(b);
		c[2] = uint32_t(a >> 32) ^ c[3] ^ key[1];
		c[3] = uint32_t(a);
		key[0] += 0x9E3779B9;
		key[1] += 0xBB67AE85;
	}
}

/* put(element, its random word) */
template <class F> static void each_drawn(const Draw &d, uint64_t n, F put)
{
	bool wide = is_wide(d);
	uint64_t threads = threads_of_draw(n), at_a_time = wide ? 2 : 4, turn = d.offset / 4;
	uint32_t w[4];

	for (uint64_t begin = 0; begin < n; begin += threads * at_a_time, turn++)
		for (uint64_t thread = 0; thread < threads && begin + thread < n; thread++) {
			philox(d.seed, thread, turn, w);
			for (uint64_t k = 0; k < at_a_time; k++) {
				uint64_t at = begin + k * threads + thread;
				if (at < n)
					put(at,
					    wide ? uint64_t(w[2 * k]) << 32 | w[2 * k + 1] : w[k]);
			}
		}
}

/* out: contiguous, of the CPU */
static void draw_integers(const Draw &d, const Tensor &out)
{
	auto all = at::empty(out.sizes(), at::kLong);
	auto *p = all.data_ptr<int64_t>();

	each_drawn(d, uint64_t(out.numel()),
		   [&](uint64_t at, uint64_t word) { p[at] = int64_t(word % d.range) + d.low; });
	out.copy_(all);
}

/* A word is a number in (0, 1]; the upper bound becomes the lower one. */
static void draw_reals(const Draw &d, const Tensor &out)
{
	auto rounded = [&](double x) {
		return at::scalar_tensor(x, out.options()).item().toFloat();
	};
	auto all = at::empty(out.sizes(), at::kFloat);
	auto *p = all.data_ptr<float>();
	float from = rounded(d.from), to = rounded(d.to), range = rounded(to - from);

	each_drawn(d, uint64_t(out.numel()), [&](uint64_t at, uint64_t word) {
		p[at] = std::fma(float(uint32_t(word)) * 0x1p-32f + 0x1p-33f, range, from);
	});
	out.copy_(all);
	out.masked_fill_(out.eq(to), from);
}

static bool drawn(const Call &c)
{
	const Draw &d = c.draw;
	const Tensor &t = c.result();
	uint64_t n = t.defined() ? uint64_t(t.numel()) : 0, threads = threads_of_draw(n);

	if (!n || !threads || !on_card(t) || !t.is_non_overlapping_and_dense())
		return false;
	uint64_t of_each = is_wide(d) && TORCH_VERSION_MINOR >= 5 ? 2 : 4;
	uint64_t turns = (n - 1) / (threads * of_each) + 1;
	if (d.generator.get_offset() - d.offset != 4 * turns || d.offset % 4)
		return false;
	auto type = t.scalar_type();
	auto out = cpu_view(t).as_strided({ int64_t(n) }, { 1 });
	if (d.kind == draws_integers && integers(t) && type != at::kBool && type != at::kChar)
		return draw_integers(d, out), true;
	if (d.kind == draws_evenly && t.is_floating_point() && type != at::kDouble)
		return draw_reals(d, out), true;
	return false;
}
