// SPDX-License-Identifier: Apache-2.0
/*
 * --values computed: every operator of the program runs on the CPU too, of any size. This part, for
 * such runs only, has operators that the CPU lacks or has under another name.
 */
#include "values.h"

/* Arguments of a fused attention operator; shapes (batch, heads, length, width). */
struct Attention {
	Tensor q, k, v, bias, grad, out;
	double scale = 0;
	bool causal = false;
};

static Attention attention_of(const c10::OperatorHandle &op, const Stack &args)
{
	Attention a;
	const std::unordered_map<std::string, Tensor *> tensors = {
		{ "query", &a.q },	  { "key", &a.k },	   { "value", &a.v },
		{ "attn_bias", &a.bias }, { "grad_out", &a.grad }, { "grad_out_", &a.grad },
		{ "out", &a.out },
	};
	for (size_t i = 0; i < args.size(); i++) {
		const std::string &name = op.schema().arguments()[i].name();
		auto to = tensors.find(name);
		if (to != tensors.end() && args[i].isTensor())
			*to->second = args[i].toTensor();
		else if (name == "scale" && !args[i].isNone())
			a.scale = args[i].toScalar().toDouble();
		else if (name == "is_causal")
			a.causal = args[i].toBool();
	}
	if (!a.scale && a.q.defined() && a.q.dim())
		a.scale = 1 / std::sqrt(double(a.q.size(-1)));
	return a;
}

/* Without dropout, whose mask kernels draw in an order of their own. Several heads of queries may
 * share a head of keys. */
static Results attend(const Attention &a)
{
	auto all = [&](const Tensor &t) {
		return at::repeat_interleave(t.to(at::kFloat), a.q.size(1) / t.size(1), 1);
	};
	auto few = [](const Tensor &d, const Tensor &t) {
		return d.reshape({ t.size(0), t.size(1), -1, t.size(2), t.size(3) }).sum(2);
	};
	auto q = a.q.to(at::kFloat), k = all(a.k), v = all(a.v);
	auto weights = q.matmul(k.transpose(-2, -1)).mul_(a.scale);
	if (a.bias.defined())
		weights.add_(a.bias);
	if (a.causal)
		weights.masked_fill_(at::ones_like(weights, at::kBool).triu_(1), -INFINITY);
	weights = weights.softmax(-1);
	if (!a.grad.defined())
		return { weights.matmul(v) };
	auto g = a.grad.to(at::kFloat);
	auto d = g.matmul(v.transpose(-2, -1)).sub_((g * a.out).sum(-1, true)).mul_(weights);
	auto dq = d.matmul(k).mul_(a.scale), dk = d.transpose(-2, -1).matmul(q).mul_(a.scale);
	auto dv = weights.transpose(-2, -1).matmul(g);
	return { dq, few(dk, a.k), few(dv, a.v),
		 a.bias.defined() ? d.sum_to_size(a.bias.sizes()) : Tensor() };
}

static Tensor to_float(const Tensor &t)
{
	bool half =
		t.defined() && (t.scalar_type() == at::kHalf || t.scalar_type() == at::kBFloat16);
	return half ? t.to(at::kFloat) : t;
}

/* In single precision, as most of a card's kernels compute internally. False: that fails, too. */
static bool compute_in_float(Call &c, const Stack &args)
{
	Stack stack;
	for (const IValue &v : args)
		stack.push_back(mapped(v, to_float));
	const Stack kept = stack;
	try {
		c.op.callBoxed(&stack);
	} catch (const std::exception &) {
		return false;
	}
	c.results.assign(stack.begin(), stack.end());
	return true;
}

/* The operator synchronizes with the host, and gathers inside if its storage has gaps. */
static bool goes_to_host(const Call &c)
{
	return c.f.name == "aten::_to_copy" && c.args[0].toTensor().is_cuda() &&
	       c.args[3].isDevice() && c.args[3].toDevice().is_cpu();
}

/* Matrix product with an out_dtype of its own. */
static bool is_typed_product(const Call &c)
{
	return c.op.schema().overload_name() == "dtype" &&
	       (c.f.name == "aten::mm" || c.f.name == "aten::bmm");
}

/* Can the CPU compute it as one operator? */
static bool on_cpu(const Call &c)
{
	return c.op.hasComputedKernelForDispatchKey(c10::DispatchKey::CPU) || c.f.instead ||
	       c.f.attends || is_typed_product(c);
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

/* Computes operators that the CPU lacks. False: it is not one of them. */
static bool compute_instead(Call &c, const Stack &args)
{
	if (is_typed_product(c))
		return c.results = { at::matmul(args[0].toTensor().to(args[2].toScalarType()),
						args[1].toTensor().to(args[2].toScalarType())) },
		       true;
	if (c.f.in_float)
		return compute_in_float(c, args);
	if (!c.f.attends)
		return false;
	auto a = attention_of(c.op, args);
	if (!a.q.defined() || !a.k.defined() || !a.v.defined() || a.q.dim() != 4)
		return false;
	return c.results = attend(a), true;
}
