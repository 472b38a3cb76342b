/* SPDX-License-Identifier: Apache-2.0 */
/* Options of DeepSpeed-Chat's scripts; others read a file, in which braces do. */
#include "preset.h"

const struct frag_preset frag_preset_deepspeed = {
	.name = "deepspeed",
	.summary = "DeepSpeed-Chat; of other scripts the file of --deepspeed_config",
	.options = {
		{ .name = "zero", .option = "--zero_stage" },
		{ "mb", "--per_device_train_batch_size", .rises = true },
		{ .name = "accumulate", .option = "--gradient_accumulation_steps" },
		{ "seq", "--max_seq_len", .rises = true },
		{ .name = "config", .option = "--deepspeed_config" },
		{ "ac",
		  "--gradient_checkpointing",
		  .values = { "none", "full" },
		  .words = { "", "--gradient_checkpointing" } },
		{ "offload", "--offload", .values = { "off", "on" }, .words = { "", "--offload" } },
	},
};
