// SPDX-License-Identifier: Apache-2.0
/*
 * Replacements for operators that the CPU lacks: norms of cuDNN and of PyTorch's own fused kernels. In single precision, as a
 * card's kernels compute internally; copy_results rounds.
 */
#include "values.h"

static Tensor tensor_or_none(const IValue &v)
{
	return v.isTensor() ? v.toTensor() : Tensor();
}

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

static Results masked_scale(const Stack &args)
{
	return { args[0].toTensor().to(at::kFloat) * args[1].toTensor().to(at::kFloat) *
		 args[2].toDouble() };
}

/* NULL: no replacement. */
static Results (*instead_of(const std::string &name))(const Stack &)
{
	static const std::unordered_map<std::string, Results (*)(const Stack &)> all = {
		{ "aten::_fused_rms_norm_backward", rms_norm_backward },
		{ "aten::cudnn_batch_norm", batch_norm },
		{ "aten::cudnn_batch_norm_backward", batch_norm_backward },
		{ "aten::_masked_scale", masked_scale },
	};
	auto it = all.find(name);
	return it == all.end() ? nullptr : it->second;
}
