/* SPDX-License-Identifier: Apache-2.0 */
/* Options of vllm serve (vllm/engine/arg_utils.py). */
#include "preset.h"

const struct frag_preset frag_preset_vllm = {
	.name = "vllm",
	.summary = "vLLM 0.8 to 0.22",
	.options = {
		{ .name = "tp", .option = "--tensor-parallel-size", .also = "-tp" },
		{ .name = "pp", .option = "--pipeline-parallel-size", .also = "-pp" },
		{ .name = "dp", .option = "--data-parallel-size", .also = "-dp" },
		{ "seq", "--max-model-len", .rises = true },
		{ "users", "--max-num-seqs", .rises = true },
		{ "tokens", "--max-num-batched-tokens", .rises = true },
		{ .name = "memory", .option = "--gpu-memory-utilization" },
		{ .name = "cache", .option = "--kv-cache-dtype" },
		{ .name = "quantization", .option = "--quantization", .also = "-q" },
		{ "eager",
		  "--enforce-eager",
		  .values = { "off", "on" },
		  .words = { "", "--enforce-eager" } },
	},
};
