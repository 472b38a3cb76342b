/* SPDX-License-Identifier: Apache-2.0 */
/* Options of scripts on transformers' TrainingArguments (Trainer, TRL), also below accelerate launch. */
#include "preset.h"

const struct frag_preset frag_preset_huggingface = {
	.name = "huggingface",
	.summary = "transformers Trainer, TRL, Accelerate",
	.options = {
		{ "mb", "--per_device_train_batch_size", .rises = true },
		{ "eval", "--per_device_eval_batch_size", .rises = true },
		{ .name = "accumulate", .option = "--gradient_accumulation_steps" },
		{ "seq",
		  "--max_length",
		  .rises = true,
		  .also = "--max_seq_length --block_size --model_max_length" },
		{ .name = "optim", .option = "--optim" },
		{ .name = "fsdp", .option = "--fsdp" },
		{ .name = "deepspeed", .option = "--deepspeed" },
		{ .name = "zero",
		  .json = "zero_optimization.stage",
		  .yaml = "deepspeed_config.zero_stage" },
		{ .name = "offload",
		  .json = "zero_optimization.offload_optimizer.device",
		  .yaml = "deepspeed_config.offload_optimizer_device" },
		{ .name = "precision", .yaml = "mixed_precision" },
		{ .name = "sharding", .yaml = "fsdp_config.fsdp_sharding_strategy" },
		{ .name = "reshard", .yaml = "fsdp_config.fsdp_reshard_after_forward" },
		{ .name = "bf16", .option = "--bf16" },
		{ .name = "model", .option = "--model_name_or_path" },
		{ "ac",
		  "--gradient_checkpointing",
		  .values = { "none", "full" },
		  .words = { "--gradient_checkpointing False", "--gradient_checkpointing True" } },
	},
};
