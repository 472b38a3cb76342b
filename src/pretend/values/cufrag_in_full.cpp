// SPDX-License-Identifier: Apache-2.0
/*
 * --values computed: the CPU computes every operator of the program, of any size. This part, for
 * such runs only, has operators that the CPU lacks or has under another name. Included by
 * cufrag_values.cpp.
 */

/* ---- attention --------------------------------------------------------------------------------- */

/* Arguments of a scaled dot-product attention operator; shapes (batch, heads, length, width). */
struct Attention {
	Tensor q, k, v, bias, grad, out;
	double scale = 0;
	bool causal = false;
};

Attention attention_of(const c10::OperatorHandle &op, const Stack &args)
{
	Attention a;
	for (size_t i = 0; i < args.size(); i++) {
		const std::string &name = op.schema().arguments()[i].name();
		const IValue &v = args[i];
		Tensor *to = name == "query"			       ? &a.q :
			     name == "key"			       ? &a.k :
			     name == "value"			       ? &a.v :
			     name == "attn_bias"		       ? &a.bias :
			     name == "grad_out" || name == "grad_out_" ? &a.grad :
			     name == "out"			       ? &a.out :
								       nullptr;
		if (to && v.isTensor())
			*to = v.toTensor();
		else if (name == "scale" && !v.isNone())
			a.scale = v.toScalar().toDouble();
		else if (name == "is_causal")
			a.causal = v.toBool();
	}
	if (!a.scale && a.q.defined())
		a.scale = 1 / std::sqrt(double(a.q.size(-1)));
	return a;
}

/* One head of one batch row; several query heads may share a key head. */
struct Head {
	Tensor q, k, v, p; /* p: attention weights */
};

Head head_of(const Attention &a, int64_t b, int64_t h)
{
	auto pick = [&](const Tensor &t) {
		return t.select(0, t.size(0) > 1 ? b : 0).select(0, h * t.size(1) / a.q.size(1)).to(at::kFloat);
	};
	Head one{ pick(a.q), pick(a.k), pick(a.v), {} };
	auto s = at::mm(one.q, one.k.t()).mul_(a.scale);
	if (a.bias.defined())
		s.add_(pick(a.bias.expand({ a.q.size(0), a.q.size(1), s.size(0), s.size(1) })));
	if (a.causal)
		s.masked_fill_(at::ones_like(s, s.options().dtype(at::kBool)).triu_(1), -INFINITY);
	one.p = s.softmax(-1);
	return one;
}

/* Dropout's mask is left out: kernels draw it in an order of their own. */
std::vector<IValue> attend(const Attention &a)
{
	auto out = at::empty({ a.q.size(0), a.q.size(1), a.q.size(2), a.v.size(-1) }, a.q.options());
	for (int64_t b = 0; b < a.q.size(0); b++)
		for (int64_t h = 0; h < a.q.size(1); h++) {
			auto one = head_of(a, b, h);
			out.select(0, b).select(0, h).copy_(at::mm(one.p, one.v));
		}
	return { out };
}

std::vector<IValue> attend_backward(const Attention &a)
{
	auto floats = a.q.options().dtype(at::kFloat);
	auto dq = at::zeros(a.q.sizes(), floats), dk = at::zeros(a.k.sizes(), floats), dv = at::zeros(a.v.sizes(), floats);
	Tensor dbias;
	if (a.bias.defined())
		dbias = at::zeros(a.bias.sizes(), floats);
	for (int64_t b = 0; b < a.q.size(0); b++)
		for (int64_t h = 0; h < a.q.size(1); h++) {
			auto one = head_of(a, b, h);
			int64_t shared = h * a.k.size(1) / a.q.size(1);
			auto go = a.grad.select(0, b).select(0, h).to(at::kFloat);
			auto o = a.out.select(0, b).select(0, h).to(at::kFloat);
			auto ds = at::mm(go, one.v.t()).sub_((go * o).sum(-1, true)).mul_(one.p);
			dq.select(0, b).select(0, h).copy_(at::mm(ds, one.k).mul_(a.scale));
			dk.select(0, b).select(0, shared).add_(at::mm(ds.t(), one.q).mul_(a.scale));
			dv.select(0, b).select(0, shared).add_(at::mm(one.p.t(), go));
			if (dbias.defined())
				dbias.select(0, dbias.size(0) > 1 ? b : 0).select(0, dbias.size(1) > 1 ? h : 0).add_(ds);
		}
	auto back = [&](const Tensor &t) { return t.to(a.q.scalar_type()); };
	return { back(dq), back(dk), back(dv), dbias.defined() ? back(dbias) : Tensor() };
}

/* ---- operators whose CPU kernels support other types ----------------------------------------- */

IValue to_float(const IValue &v)
{
	auto half = [](const Tensor &t) { return t.defined() && (t.scalar_type() == at::kHalf || t.scalar_type() == at::kBFloat16); };
	if (v.isTensor())
		return half(v.toTensor()) ? IValue(v.toTensor().to(at::kFloat)) : v;
	if (!v.isTensorList())
		return v;
	c10::List<Tensor> list;
	for (const Tensor &t : v.toTensorVector())
		list.push_back(half(t) ? t.to(at::kFloat) : t);
	return list;
}

/* In single precision, as most of a card's kernels compute internally. False: that fails, too. */
bool compute_in_float(const c10::OperatorHandle &op, const Stack &args, std::vector<IValue> &results)
{
	Stack stack;
	for (const IValue &v : args)
		stack.push_back(to_float(v));
	const Stack kept = stack;
	try {
		op.callBoxed(&stack);
	} catch (const std::exception &) {
		return false;
	}
	results.assign(stack.begin(), stack.end());
	return true;
}

constexpr std::initializer_list<const char *> FUSED_ATTENTION = { "aten::_scaled_dot_product_flash", "aten::_scaled_dot_product_efficient",
							      "aten::_scaled_dot_product_cudnn" };

/* The operator synchronizes with the host, and gathers inside if its storage has gaps. */
bool goes_to_host(const Info &f, const std::vector<IValue> &args)
{
	return f.name == "aten::_to_copy" && args[0].toTensor().is_cuda() && args[3].isDevice() && args[3].toDevice().is_cpu();
}

/* Matrix product with an out_dtype of its own. */
bool is_typed_product(const c10::OperatorHandle &op, const Info &f)
{
	return op.schema().overload_name() == "dtype" && (f.name == "aten::mm" || f.name == "aten::bmm");
}

/* Can the CPU compute it as one operator? */
bool on_cpu(const c10::OperatorHandle &op, const Info &f)
{
	return op.hasComputedKernelForDispatchKey(c10::DispatchKey::CPU) || f.instead || begins(f.name, FUSED_ATTENTION) || is_typed_product(op, f);
}

#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 2
/* The same by the CPU's fused kernel, which is faster but does not support grouped query heads. */
std::vector<IValue> attend_fast(const Attention &a)
{
	auto all = [&](const Tensor &t) { return t.size(1) == a.q.size(1) ? t : t.repeat_interleave(a.q.size(1) / t.size(1), 1); };
	auto k = all(a.k), v = all(a.v);
	auto [out, logs] = at::_scaled_dot_product_flash_attention_for_cpu(a.q, k, v, 0, a.causal, {}, a.scale);
	if (!a.grad.defined())
		return { out };
	auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_for_cpu_backward(a.grad.to(a.q.scalar_type()), a.q, k, v, a.out, logs, 0, a.causal, {}, a.scale);
	auto few = [](const Tensor &d, const Tensor &t) {
		return d.sizes() == t.sizes() ? d : d.unflatten(1, { t.size(1), -1 }).sum(2, false, at::kFloat);
	};
	return { dq, few(dk, a.k), few(dv, a.v) };
}
#else
std::vector<IValue> attend_fast(const Attention &a) /* 2.1 has no such kernel */
{
	return a.grad.defined() ? attend_backward(a) : attend(a);
}
#endif

/* Warns once per operator. */
void tell_missed(const Info &f)
{
	static std::unordered_set<std::string> told;
	std::lock_guard<std::mutex> g(mutex);
	if (told.insert(f.name).second)
		fprintf(stderr, "cufrag record: %s is not computed: the CPU cannot do it\n", f.name.c_str());
}

/* Computes operators that the CPU lacks. False: it is not one of them. */
bool compute_instead(const c10::OperatorHandle &op, const Info &f, const Stack &args, std::vector<IValue> &results)
{
	if (is_typed_product(op, f))
		return results = { at::matmul(args[0].toTensor().to(args[2].toScalarType()), args[1].toTensor().to(args[2].toScalarType())) }, true;
	if (begins(f.name, { "aten::native_layer_norm", "aten::native_group_norm" })) /* else the mean is half */
		return compute_in_float(op, args, results);
	if (!begins(f.name, FUSED_ATTENTION))
		return false;
	auto a = attention_of(op, args);
	if (!a.q.defined() || !a.k.defined() || !a.v.defined() || a.q.dim() != 4)
		return false;
	if (!a.bias.defined() && a.q.size(-1) == a.v.size(-1))
		results = attend_fast(a);
	else
		results = a.grad.defined() ? attend_backward(a) : attend(a);
	return true;
}
