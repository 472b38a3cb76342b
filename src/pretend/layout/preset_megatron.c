/* SPDX-License-Identifier: Apache-2.0 */
/* Options of Megatron-LM's own argument parser (megatron/training/arguments.py). */
#include "preset.h"

const struct frag_preset frag_preset_megatron = {
	.name = "megatron",
	.summary = "Megatron-LM, core 0.9 to 0.17",
	.options = {
		{ .name = "tp", .option = "--tensor-model-parallel-size" },
		{ .name = "pp", .option = "--pipeline-model-parallel-size" },
		{ .name = "cp", .option = "--context-parallel-size" },
		{ .name = "ep", .option = "--expert-model-parallel-size" },
		{ .name = "etp", .option = "--expert-tensor-parallel-size" },
		{ .name = "vpp", .option = "--num-layers-per-virtual-pipeline-stage" },
		{ "mb", "--micro-batch-size", .rises = true },
		{ .name = "gb", .option = "--global-batch-size" },
		{ "seq", "--seq-length", .rises = true },
		{ "layers", "--num-layers", .rises = true },
		{ "ac",
		  "--recompute-granularity",
		  .values = { "none", "selective", "full" },
		  .words = { "", "--recompute-granularity selective",
			     "--recompute-granularity full --recompute-method uniform "
			     "--recompute-num-layers 1" },
		  .drop = "--recompute-method --recompute-num-layers --recompute-activations" },
		{ "sp", "--sequence-parallel", .values = { "off", "on" }, .words = { "", "--sequence-parallel" } },
		{ "zero",
		  "--use-distributed-optimizer",
		  .values = { "0", "1" },
		  .words = { "", "--use-distributed-optimizer" } },
	},
};
