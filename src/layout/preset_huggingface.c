/* SPDX-License-Identifier: Apache-2.0 */
/* Options of scripts on transformers' TrainingArguments (Trainer, TRL), also below accelerate launch. */
#include "preset.h"

const struct frag_preset frag_preset_huggingface = {
	.name = "huggingface",
	.summary = "transformers Trainer, TRL, Accelerate",
	.options = {
		{ "mb", "--per_device_train_batch_size", .rises = true },
		{ "eval", "--per_device_eval_batch_size", .rises = true },
		{ "accumulate", "--gradient_accumulation_steps" },
		{ "seq", "--max_length", .rises = true },
		{ "optim", "--optim" },
		{ "fsdp", "--fsdp" },
		{ "deepspeed", "--deepspeed" },
		{ "bf16", "--bf16" },
		{ "model", "--model_name_or_path" },
		{ "ac",
		  "--gradient_checkpointing",
		  .values = { "none", "full" },
		  .words = { "--gradient_checkpointing False", "--gradient_checkpointing True" } },
	},
};
