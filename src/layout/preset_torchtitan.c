/* SPDX-License-Identifier: Apache-2.0 */
/* Options of torchtitan's job configuration (torchtitan/config). */
#include "preset.h"

const struct frag_preset frag_preset_torchtitan = {
	.name = "torchtitan",
	.summary = "torchtitan 0.2",
	.options = {
		{ "tp", "--parallelism.tensor_parallel_degree" },
		{ "pp", "--parallelism.pipeline_parallel_degree" },
		{ "cp", "--parallelism.context_parallel_degree" },
		{ "ep", "--parallelism.expert_parallel_degree" },
		{ "shard", "--parallelism.data_parallel_shard_degree" },
		{ "replicate", "--parallelism.data_parallel_replicate_degree" },
		{ "mb", "--training.local_batch_size", .rises = true },
		{ "seq", "--training.seq_len", .rises = true },
		{ "ac", "--activation_checkpoint.mode" },
		{ "flavor", "--model.flavor" },
		{ "steps", "--training.steps" },
	},
};
