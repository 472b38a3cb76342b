/* SPDX-License-Identifier: Apache-2.0 */
/* Options of torchtitan's job configuration (torchtitan/config). */
#include "preset.h"

const struct frag_preset frag_preset_torchtitan = {
	.name = "torchtitan",
	.summary = "torchtitan 0.2",
	.options = {
		{ .name = "tp", .option = "--parallelism.tensor_parallel_degree" },
		{ .name = "pp", .option = "--parallelism.pipeline_parallel_degree" },
		{ .name = "cp", .option = "--parallelism.context_parallel_degree" },
		{ .name = "ep", .option = "--parallelism.expert_parallel_degree" },
		{ .name = "shard", .option = "--parallelism.data_parallel_shard_degree" },
		{ .name = "replicate", .option = "--parallelism.data_parallel_replicate_degree" },
		{ "mb", "--training.local_batch_size", .rises = true },
		{ "seq", "--training.seq_len", .rises = true },
		{ .name = "ac", .option = "--activation_checkpoint.mode" },
		{ .name = "flavor", .option = "--model.flavor" },
		{ .name = "steps", .option = "--training.steps" },
	},
};
