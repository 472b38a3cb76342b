// SPDX-License-Identifier: Apache-2.0
/*
 * Replacements for operators that the CPU lacks: cuDNN's norms and recurrent layers, and others. In
 * single precision, as a card's kernels compute internally; copy_results rounds.
 */
#include "values.h"

static Tensor tensor_or_none(const IValue &v)
{
	return v.isTensor() ? v.toTensor() : Tensor();
}

static Tensor floating(const IValue &v)
{
	auto t = tensor_or_none(v);
	return t.defined() ? t.to(at::kFloat) : t;
}

/* ---- norms ---- */

/* Backward of _fused_rms_norm(x, shape, weight): x * rstd * weight, one rstd per row. */
static Results rms_norm_backward(const Stack &args)
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
static Results batch_norm(const Stack &args)
{
	auto [y, mean, rstd] = at::native_batch_norm(
		args[0].toTensor(), tensor_or_none(args[1]), tensor_or_none(args[2]),
		tensor_or_none(args[3]), tensor_or_none(args[4]), args[5].toBool(),
		args[6].toDouble(), args[7].toDouble());
	return { y, mean, rstd };
}

static Results batch_norm_backward(const Stack &args)
{
	auto [dx, dw, db] = at::native_batch_norm_backward(
		args[1].toTensor(), args[0].toTensor(), tensor_or_none(args[2]),
		tensor_or_none(args[3]), tensor_or_none(args[4]), tensor_or_none(args[5]),
		tensor_or_none(args[6]), true, args[7].toDouble(), { true, true, true });
	return { dx, dw, db };
}

/* ---- recurrent layers ---- */

/* cuDNN's: output and last states, without dropout between layers. first: index of mode, before the
 * other options. */
static std::vector<Tensor> recurrent(const Tensor &x, const std::vector<Tensor> &weights,
				     int64_t stride, const std::vector<Tensor> &states,
				     const Stack &args, size_t first)
{
	using Packed =
		std::tuple<Tensor, Tensor> (*)(const Tensor &, const Tensor &, const Tensor &,
					       at::TensorList, bool, int64_t, double, bool, bool);
	using Padded =
		std::tuple<Tensor, Tensor> (*)(const Tensor &, const Tensor &, at::TensorList, bool,
					       int64_t, double, bool, bool, bool);
	static const Packed packed[] = { at::rnn_relu, at::rnn_tanh, nullptr, at::gru };
	static const Padded padded[] = { at::rnn_relu, at::rnn_tanh, nullptr, at::gru };
	int64_t mode = args[first].toInt(), layers = args[first + 3].toInt();
	bool biases = stride > 3, batch_first = args[first + 4].toBool(),
	     both_ways = args[first + 7].toBool();
	auto lengths = args[first + 8].toIntVector();
	auto sizes = at::tensor(lengths, at::kLong);
	if (mode == 2) {
		auto [y, h, c] = lengths.empty() ? at::lstm(x, states, weights, biases, layers, 0,
							    false, both_ways, batch_first)
						 : at::lstm(x, sizes, states, weights, biases,
							    layers, 0, false, both_ways);
		return { y, h, c };
	}
	auto [y, h] = lengths.empty() ? padded[mode](x, states[0], weights, biases, layers, 0,
						     false, both_ways, batch_first)
				      : packed[mode](x, sizes, states[0], weights, biases, layers,
						     0, false, both_ways);
	return { y, h };
}

struct Recurrent {
	Tensor x;
	std::vector<Tensor> weights, states;
};

static Recurrent recurrent_of(const Stack &args, size_t hx)
{
	Recurrent r{ floating(args[0]), {}, { floating(args[hx]) } };
	for (const Tensor &w : args[1].toTensorVector())
		r.weights.push_back(w.to(at::kFloat));
	if (tensor_or_none(args[hx + 1]).defined())
		r.states.push_back(floating(args[hx + 1]));
	return r;
}

static Results recurrent_forward(const Stack &args)
{
	auto r = recurrent_of(args, 4);
	Results results;
	for (const Tensor &t : recurrent(r.x, r.weights, args[2].toInt(), r.states, args, 6))
		results.push_back(t);
	return results;
}

/* By autograd of the CPU's operators. */
static Results recurrent_backward(const Stack &args)
{
	auto keys = c10::impl::tls_local_dispatch_key_set();
	keys.included_ = c10::default_included_set;
	keys.excluded_ = c10::default_excluded_set | c10::DispatchKeySet(c10::DispatchKey::Fake);
	c10::impl::ForceDispatchKeyGuard all(keys);
	c10::AutoGradMode gradients(true);
	auto r = recurrent_of(args, 4);
	torch::autograd::variable_list inputs{ r.x }, outputs, given;
	inputs.insert(inputs.end(), r.states.begin(), r.states.end());
	inputs.insert(inputs.end(), r.weights.begin(), r.weights.end());
	for (Tensor &t : inputs)
		t = t.detach().clone().requires_grad_();
	size_t states = r.states.size();
	auto made =
		recurrent(inputs[0], { inputs.begin() + 1 + states, inputs.end() }, args[2].toInt(),
			  { inputs.begin() + 1, inputs.begin() + 1 + states }, args, 10);
	for (size_t i = 0; i < made.size(); i++)
		if (auto g = floating(args[7 + i]); g.defined()) {
			outputs.push_back(made[i]);
			given.push_back(g);
		}
	auto found = torch::autograd::grad(outputs, inputs, given, false, false, true);
	c10::List<Tensor> weights;
	for (size_t i = 1 + states; i < found.size(); i++)
		weights.push_back(found[i]);
	return { found[0], found[1], states > 1 ? found[2] : Tensor(), weights };
}

static Results masked_scale(const Stack &args)
{
	return { floating(args[0]) * floating(args[1]) * args[2].toDouble() };
}

/* NULL: no replacement. */
static Results (*instead_of(const std::string &name))(const Stack &)
{
	static const std::unordered_map<std::string, Results (*)(const Stack &)> all = {
		{ "aten::_fused_rms_norm_backward", rms_norm_backward },
		{ "aten::cudnn_batch_norm", batch_norm },
		{ "aten::cudnn_batch_norm_backward", batch_norm_backward },
		{ "aten::_cudnn_rnn", recurrent_forward },
		{ "aten::_cudnn_rnn_backward", recurrent_backward },
		{ "aten::_masked_scale", masked_scale },
	};
	auto it = all.find(name);
	return it == all.end() ? nullptr : it->second;
}
