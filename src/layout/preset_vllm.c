/* SPDX-License-Identifier: Apache-2.0 */
/* Options of vllm serve (vllm/engine/arg_utils.py). */
#include "preset.h"

const struct frag_preset frag_preset_vllm = {
	.name = "vllm",
	.summary = "vLLM 0.8 to 0.22",
	.options = {
		{ "tp", "--tensor-parallel-size" },
		{ "pp", "--pipeline-parallel-size" },
		{ "dp", "--data-parallel-size" },
		{ "seq", "--max-model-len", .rises = true },
		{ "users", "--max-num-seqs", .rises = true },
		{ "tokens", "--max-num-batched-tokens", .rises = true },
		{ "memory", "--gpu-memory-utilization" },
		{ "cache", "--kv-cache-dtype" },
		{ "quantization", "--quantization" },
		{ "eager",
		  "--enforce-eager",
		  .values = { "off", "on" },
		  .words = { "", "--enforce-eager" } },
	},
};
