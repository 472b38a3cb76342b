// SPDX-License-Identifier: Apache-2.0
/*
 * Replacements for operators that the CPU lacks: cuDNN's norms and recurrent layers, fused cells,
 * parts of synchronized norms, and others. In single precision, as a card's kernels compute
 * internally; copy_results rounds. Included by cufrag_values.cpp.
 */

using Results = std::vector<IValue>;

Tensor tensor_or_none(const IValue &v)
{
	return v.isTensor() ? v.toTensor() : Tensor();
}

Tensor floating(const IValue &v)
{
	auto t = tensor_or_none(v);
	return t.defined() ? t.to(at::kFloat) : t;
}

/* ---- norms ------------------------------------------------------------------------------------- */

/* Backward of _fused_rms_norm(x, shape, weight): x * rstd * weight, one rstd per row. */
Results rms_norm_backward(const Stack &args)
{
	auto grad = args[0].toTensor(), x = args[1].toTensor(), rstd = args[3].toTensor();
	auto normal = x.to(at::kFloat) * rstd, g = grad.to(at::kFloat);
	std::vector<int64_t> last, rows;
	int64_t row_dims = x.dim() - int64_t(args[2].toIntVector().size());
	for (int64_t d = 0; d < x.dim(); d++)
		(d < row_dims ? rows : last).push_back(d);
	auto weighted = args[4].isTensor() && args[4].toTensor().defined() ? g * args[4].toTensor() : g;
	auto dx = (weighted - normal * (weighted * normal).mean(last, true)) * rstd;
	return { dx, rows.empty() ? g * normal : (g * normal).sum(rows) };
}

/* Updates running statistics in place. */
Results batch_norm(const Stack &args)
{
	auto [y, mean, rstd] = at::native_batch_norm(args[0].toTensor(), tensor_or_none(args[1]), tensor_or_none(args[2]), tensor_or_none(args[3]),
						     tensor_or_none(args[4]), args[5].toBool(), args[6].toDouble(), args[7].toDouble());
	return { y, mean, rstd };
}

Results batch_norm_backward(const Stack &args)
{
	auto [dx, dw, db] = at::native_batch_norm_backward(args[1].toTensor(), args[0].toTensor(), tensor_or_none(args[2]), tensor_or_none(args[3]),
							   tensor_or_none(args[4]), tensor_or_none(args[5]), tensor_or_none(args[6]), true,
							   args[7].toDouble(), { true, true, true });
	return { dx, dw, db };
}

/* Reshapes per-channel values to broadcast with x. */
Tensor by_channel(const Tensor &t, const Tensor &x)
{
	std::vector<int64_t> shape(x.dim(), 1);
	shape[1] = x.size(1);
	return t.to(at::kFloat).view(shape);
}

Tensor over_channel(const Tensor &x)
{
	return x.transpose(0, 1).flatten(1).sum(1);
}

Results batch_stats(const Stack &args)
{
	auto x = floating(args[0]);
	auto mean = over_channel(x) * x.size(1) / x.numel();
	auto centred = x - by_channel(mean, x);
	auto variance = over_channel(centred * centred) * x.size(1) / x.numel();
	return { mean, (variance + args[1].toDouble()).rsqrt() };
}

Results batch_norm_of_stats(const Stack &args)
{
	auto x = floating(args[0]);
	auto y = (x - by_channel(args[3].toTensor(), x)) * by_channel(args[4].toTensor(), x);
	for (int i : { 1, 2 })
		if (tensor_or_none(args[i]).defined())
			y = i == 1 ? y * by_channel(args[i].toTensor(), x) : y + by_channel(args[i].toTensor(), x);
	return { y };
}

/* Each rank's mean, 1 / deviation, and count. */
Results gathered_stats(const Stack &args)
{
	auto means = floating(args[1]), rstds = floating(args[2]), counts = floating(args[7]).view({ -1, 1 });
	double momentum = args[5].toDouble(), eps = args[6].toDouble(), all = counts.sum().item<double>();
	auto mean = (means * counts).sum(0) / all;
	auto squares = ((rstds.pow(-2) - eps + (means - mean).pow(2)) * counts).sum(0);
	auto follow = [&](const IValue &running, const Tensor &now) {
		auto t = tensor_or_none(running);
		if (t.defined())
			t.copy_(t * (1 - momentum) + now * momentum);
	};
	follow(args[3], mean);
	follow(args[4], squares / (all - 1));
	return { mean, (squares / all + eps).rsqrt() };
}

Results batch_norm_sums(const Stack &args)
{
	auto g = floating(args[0]), x = floating(args[1]);
	auto sum = over_channel(g), with_x = over_channel(g * (x - by_channel(args[2].toTensor(), x)));
	return { sum, with_x, with_x * args[3].toTensor(), sum };
}

Results batch_norm_of_sums(const Stack &args)
{
	auto g = floating(args[0]), x = floating(args[1]), weight = tensor_or_none(args[4]);
	double all = floating(args[7]).sum().item<double>();
	auto rstd = by_channel(args[3].toTensor(), x), mean = by_channel(args[2].toTensor(), x);
	auto dx = (g - by_channel(args[5].toTensor(), x) / all - (x - mean) * rstd * rstd * by_channel(args[6].toTensor(), x) / all) * rstd;
	return { weight.defined() ? dx * by_channel(weight, x) : dx };
}

/* ---- recurrent layers ------------------------------------------------------------------------ */

Tensor gates_of(const Stack &args)
{
	auto gates = floating(args[0]) + floating(args[1]);
	for (int i : { 3, 4 })
		if (tensor_or_none(args[i]).defined())
			gates = gates + floating(args[i]);
	return gates;
}

Results lstm_cell(const Stack &args)
{
	auto parts = gates_of(args).chunk(4, 1);
	auto in = parts[0].sigmoid(), keep = parts[1].sigmoid(), cell = parts[2].tanh(), out = parts[3].sigmoid();
	auto cy = keep * floating(args[2]) + in * cell;
	return { out * cy.tanh(), cy, at::cat({ in, keep, cell, out }, 1) };
}

Results lstm_cell_backward(const Stack &args)
{
	auto gh = floating(args[0]), gc = floating(args[1]), cx = floating(args[2]), tanh = floating(args[3]).tanh();
	auto p = floating(args[4]).chunk(4, 1);
	auto zero = at::zeros_like(cx);
	gh = gh.defined() ? gh : zero;
	auto g = (gc.defined() ? gc : zero) + gh * p[3] * (1 - tanh * tanh);
	auto gates = at::cat({ g * p[2] * p[0] * (1 - p[0]), g * cx * p[1] * (1 - p[1]), g * p[0] * (1 - p[2] * p[2]), gh * tanh * p[3] * (1 - p[3]) }, 1);
	return { gates, g * p[1], args[5].toBool() ? gates.sum(0) : Tensor() };
}

/* The workspace: both gates, the new state, the previous state, the hidden part's product. */
Results gru_cell(const Stack &args)
{
	auto in = floating(args[0]), hidden = floating(args[1]), h = floating(args[2]);
	if (tensor_or_none(args[3]).defined()) {
		in = in + floating(args[3]);
		hidden = hidden + floating(args[4]);
	}
	auto a = in.chunk(3, 1), b = hidden.chunk(3, 1);
	auto reset = (a[0] + b[0]).sigmoid(), update = (a[1] + b[1]).sigmoid(), fresh = (a[2] + reset * b[2]).tanh();
	return { fresh + update * (h - fresh), at::cat({ reset, update, fresh, h, b[2] }, 1) };
}

Results gru_cell_backward(const Stack &args)
{
	auto g = floating(args[0]);
	auto p = floating(args[1]).chunk(5, 1);
	auto fresh = g * (1 - p[1]) * (1 - p[2] * p[2]), reset = fresh * p[4] * p[0] * (1 - p[0]), update = g * (p[3] - p[2]) * p[1] * (1 - p[1]);
	auto in = at::cat({ reset, update, fresh }, 1), hidden = at::cat({ reset, update, fresh * p[0] }, 1);
	bool bias = args[2].toBool();
	return { in, hidden, g * p[1], bias ? in.sum(0) : Tensor(), bias ? hidden.sum(0) : Tensor() };
}

/* cuDNN's: output and last states, without dropout between layers. first: index of mode, before the
 * other options. */
std::vector<Tensor> recurrent(const Tensor &x, const std::vector<Tensor> &weights, int64_t stride, const std::vector<Tensor> &states, const Stack &args, size_t first)
{
	int64_t mode = args[first].toInt(), layers = args[first + 3].toInt();
	bool biases = stride > 3, batch_first = args[first + 4].toBool(), both_ways = args[first + 7].toBool();
	auto lengths = args[first + 8].toIntVector();
	if (!lengths.empty()) {
		auto sizes = at::tensor(lengths, at::kLong);
		if (mode == 2) {
			auto [y, h, c] = at::lstm(x, sizes, states, weights, biases, layers, 0, false, both_ways);
			return { y, h, c };
		}
		auto [y, h] = mode == 3 ? at::gru(x, sizes, states[0], weights, biases, layers, 0, false, both_ways) :
			      mode == 1 ? at::rnn_tanh(x, sizes, states[0], weights, biases, layers, 0, false, both_ways) :
					  at::rnn_relu(x, sizes, states[0], weights, biases, layers, 0, false, both_ways);
		return { y, h };
	}
	if (mode == 2) {
		auto [y, h, c] = at::lstm(x, states, weights, biases, layers, 0, false, both_ways, batch_first);
		return { y, h, c };
	}
	auto [y, h] = mode == 3 ? at::gru(x, states[0], weights, biases, layers, 0, false, both_ways, batch_first) :
		      mode == 1 ? at::rnn_tanh(x, states[0], weights, biases, layers, 0, false, both_ways, batch_first) :
				  at::rnn_relu(x, states[0], weights, biases, layers, 0, false, both_ways, batch_first);
	return { y, h };
}

struct Recurrent {
	Tensor x;
	std::vector<Tensor> weights, states;
};

Recurrent recurrent_of(const Stack &args, size_t hx)
{
	Recurrent r{ floating(args[0]), {}, { floating(args[hx]) } };
	for (const Tensor &w : args[1].toTensorVector())
		r.weights.push_back(w.to(at::kFloat));
	if (tensor_or_none(args[hx + 1]).defined())
		r.states.push_back(floating(args[hx + 1]));
	return r;
}

Results recurrent_forward(const Stack &args)
{
	auto r = recurrent_of(args, 4);
	Results results;
	for (const Tensor &t : recurrent(r.x, r.weights, args[2].toInt(), r.states, args, 6))
		results.push_back(t);
	return results;
}

/* By autograd of the CPU's operators. */
Results recurrent_backward(const Stack &args)
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
	auto made = recurrent(inputs[0], { inputs.begin() + 1 + states, inputs.end() }, args[2].toInt(), { inputs.begin() + 1, inputs.begin() + 1 + states }, args, 10);
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

/* ---- grids and others ------------------------------------------------------------------------------------- */

Results sampled(const Stack &args)
{
	return { at::grid_sampler_2d(args[0].toTensor(), args[1].toTensor(), 0, 0, true) };
}

Results sampled_backward(const Stack &args)
{
	auto [dx, dgrid] = at::grid_sampler_2d_backward(args[2].toTensor(), args[0].toTensor(), args[1].toTensor(), 0, 0, true, { true, true });
	return { dx, dgrid };
}

std::vector<int64_t> grid_of(const Stack &args)
{
	return { args[1].toInt(), args[2].toInt(), args[3].toInt(), args[4].toInt() };
}

Results affine_grid(const Stack &args)
{
	return { at::affine_grid_generator(args[0].toTensor(), grid_of(args), true) };
}

Results affine_grid_backward(const Stack &args)
{
	return { at::affine_grid_generator_backward(args[0].toTensor(), grid_of(args), true) };
}

Results masked_scale(const Stack &args)
{
	return { floating(args[0]) * floating(args[1]) * args[2].toDouble() };
}

/* NULL: no replacement. */
Results (*instead_of(const std::string &name))(const Stack &)
{
	static const std::unordered_map<std::string, Results (*)(const Stack &)> all = {
		{ "aten::_fused_rms_norm_backward", rms_norm_backward },
		{ "aten::cudnn_batch_norm", batch_norm },
		{ "aten::cudnn_batch_norm_backward", batch_norm_backward },
		{ "aten::batch_norm_stats", batch_stats },
		{ "aten::batch_norm_elemt", batch_norm_of_stats },
		{ "aten::batch_norm_gather_stats_with_counts", gathered_stats },
		{ "aten::batch_norm_backward_reduce", batch_norm_sums },
		{ "aten::batch_norm_backward_elemt", batch_norm_of_sums },
		{ "aten::_thnn_fused_lstm_cell", lstm_cell },
		{ "aten::_thnn_fused_lstm_cell_backward_impl", lstm_cell_backward },
		{ "aten::_thnn_fused_gru_cell", gru_cell },
		{ "aten::_thnn_fused_gru_cell_backward", gru_cell_backward },
		{ "aten::_cudnn_rnn", recurrent_forward },
		{ "aten::_cudnn_rnn_backward", recurrent_backward },
		{ "aten::cudnn_grid_sampler", sampled },
		{ "aten::cudnn_grid_sampler_backward", sampled_backward },
		{ "aten::cudnn_affine_grid_generator", affine_grid },
		{ "aten::cudnn_affine_grid_generator_backward", affine_grid_backward },
		{ "aten::_masked_scale", masked_scale },
	};
	auto it = all.find(name);
	return it == all.end() ? nullptr : it->second;
}
