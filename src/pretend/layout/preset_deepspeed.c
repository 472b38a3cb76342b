/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of DeepSpeed's configuration, and options of DeepSpeed-Chat's scripts. */
#include "preset.h"

const struct frag_preset frag_preset_deepspeed = {
	.name = "deepspeed",
	.summary = "DeepSpeed: the file of --deepspeed_config; DeepSpeed-Chat",
	.options = {
		{ .name = "zero", .option = "--zero_stage", .json = "zero_optimization.stage" },
		{ "mb",
		  "--per_device_train_batch_size",
		  .rises = true,
		  .json = "train_micro_batch_size_per_gpu" },
		{ .name = "accumulate",
		  .option = "--gradient_accumulation_steps",
		  .json = "gradient_accumulation_steps" },
		{ "seq", "--max_seq_len", .rises = true },
		{ .name = "config", .option = "--deepspeed_config" },
		{ "ac",
		  "--gradient_checkpointing",
		  .values = { "none", "full" },
		  .words = { "", "--gradient_checkpointing" } },
		{ "offload",
		  "--offload",
		  .values = { "off", "on" },
		  .words = { "", "--offload" },
		  .json = "zero_optimization.offload_optimizer.device" },
	},
};
