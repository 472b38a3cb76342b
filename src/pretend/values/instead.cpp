// SPDX-License-Identifier: Apache-2.0
/*
 * Replacements for operators that the CPU lacks or has under another name: norms of cuDNN and of
 * PyTorch's fused kernels, and with --values computed attention and products. In single precision,
 * as a card's kernels compute internally; copy_results rounds. They return nothing where they
 * cannot compute it either.
 */
#include "values.h"

/* Backward of _fused_rms_norm(x, shape, weight): x * rstd * weight, one rstd per row. */
static Results rms_norm_backward(const Call &, const Stack &args)
{
	auto grad = args[0].toTensor(), x = args[1].toTensor(), rstd = args[3].toTensor();
	auto normal = x.to(at::kFloat) * rstd, g = grad.to(at::kFloat);
	std::vector<int64_t> last, rows;
	int64_t row_dims = x.dim() - int64_t(args[2].toIntVector().size());
	for (int64_t d = 0; d < x.dim(); d++)
		(d < row_dims ? rows : last).push_back(d);
	auto weighted =
		args[4].isTensor() && args[4].toTensor().defined() ? g * args[4].toTensor() : g;
	auto dx = (weighted - normal * (weighted * normal).mean(last, true)) * rstd;
	return { dx, rows.empty() ? g * normal : (g * normal).sum(rows) };
}

/* Updates running statistics in place. */
static Results batch_norm(const Call &, const Stack &args)
{
	auto [y, mean, rstd] = at::native_batch_norm(
		args[0].toTensor(), tensor_or_none(args[1]), tensor_or_none(args[2]),
		tensor_or_none(args[3]), tensor_or_none(args[4]), args[5].toBool(),
		args[6].toDouble(), args[7].toDouble());
	return { y, mean, rstd };
}

static Results batch_norm_backward(const Call &, const Stack &args)
{
	auto [dx, dw, db] = at::native_batch_norm_backward(
		args[1].toTensor(), args[0].toTensor(), tensor_or_none(args[2]),
		tensor_or_none(args[3]), tensor_or_none(args[4]), tensor_or_none(args[5]),
		tensor_or_none(args[6]), true, args[7].toDouble(), { true, true, true });
	return { dx, dw, db };
}

static Results masked_scale(const Call &, const Stack &args)
{
	return { args[0].toTensor().to(at::kFloat) * args[1].toTensor().to(at::kFloat) *
		 args[2].toDouble() };
}

/* Without dropout, whose mask kernels draw in an order of their own. Several heads of queries may
 * share a head of keys. */
static Results attend(const Call &c, const Stack &args)
{
	auto given = [&](const char *name) { return tensor_or_none(argument(c, args, name)); };
	auto query = given("query"), key = given("key"), value = given("value");
	auto bias = given("attn_bias"), grad = given("grad_out");
	auto scale = argument(c, args, "scale");
	if (!query.defined() || !key.defined() || !value.defined() || query.dim() != 4)
		return {};
	auto all = [&](const Tensor &t) {
		return at::repeat_interleave(t.to(at::kFloat), query.size(1) / t.size(1), 1);
	};
	auto few = [](const Tensor &d, const Tensor &t) {
		return d.reshape({ t.size(0), t.size(1), -1, t.size(2), t.size(3) }).sum(2);
	};
	double by = scale.isNone() ? 0 : scale.toScalar().toDouble();
	by = by ? by : 1 / std::sqrt(double(query.size(-1)));
	auto q = query.to(at::kFloat), k = all(key), v = all(value);
	auto weights = q.matmul(k.transpose(-2, -1)).mul_(by);
	if (bias.defined())
		weights.add_(bias);
	if (c.f.causal && args[c.f.causal - 1].toBool())
		weights.masked_fill_(at::ones_like(weights, at::kBool).triu_(1), -INFINITY);
	weights = weights.softmax(-1);
	grad = grad.defined() ? grad : given("grad_out_");
	if (!grad.defined())
		return { weights.matmul(v) };
	auto g = grad.to(at::kFloat);
	auto d = g.matmul(v.transpose(-2, -1)).sub_((g * given("out")).sum(-1, true)).mul_(weights);
	auto dq = d.matmul(k).mul_(by), dk = d.transpose(-2, -1).matmul(q).mul_(by);
	auto dv = weights.transpose(-2, -1).matmul(g);
	return { dq, few(dk, key), few(dv, value),
		 bias.defined() ? d.sum_to_size(bias.sizes()) : Tensor() };
}

static Tensor to_float(const Tensor &t)
{
	bool half =
		t.defined() && (t.scalar_type() == at::kHalf || t.scalar_type() == at::kBFloat16);
	return half ? t.to(at::kFloat) : t;
}

static Results in_float(const Call &c, const Stack &args)
{
	Stack stack;
	for (const IValue &v : args)
		stack.push_back(mapped(v, to_float));
	const Stack kept = stack;
	try {
		c.op.callBoxed(&stack);
	} catch (const std::exception &) {
		return {};
	}
	return { stack.begin(), stack.end() };
}

/* A matrix product with an out_dtype of its own. */
static Results typed_product(const Call &, const Stack &args)
{
	return { at::matmul(args[0].toTensor().to(args[2].toScalarType()),
			    args[1].toTensor().to(args[2].toScalarType())) };
}

/* NULL: no replacement. */
static Instead *instead_of(const Info &f, const std::string &overload)
{
	static const std::unordered_map<std::string, Instead *> all = {
		{ "aten::_fused_rms_norm_backward", rms_norm_backward },
		{ "aten::cudnn_batch_norm", batch_norm },
		{ "aten::cudnn_batch_norm_backward", batch_norm_backward },
		{ "aten::_masked_scale", masked_scale },
	};
	auto it = all.find(f.name);
	if (it != all.end() || !in_full)
		return it == all.end() ? nullptr : it->second;
	if (overload == "dtype" && (f.name == "aten::mm" || f.name == "aten::bmm"))
		return typed_product;
	return f.attends ? attend : f.in_float ? in_float : nullptr;
}

/* The operator synchronizes with the host, and gathers inside if its storage has gaps. */
static bool goes_to_host(const Call &c)
{
	return c.f.name == "aten::_to_copy" && c.args[0].toTensor().is_cuda() &&
	       c.args[3].isDevice() && c.args[3].toDevice().is_cpu();
}

/* Warns once per operator. */
static void tell_missed(const Info &f)
{
	static std::unordered_set<std::string> told;
	std::lock_guard<std::mutex> g(mutex);
	if (told.insert(f.name).second)
		fprintf(stderr, "cufrag record: %s is not computed: the CPU cannot do it\n",
			f.name.c_str());
}
