/* SPDX-License-Identifier: Apache-2.0 */
/* Options of sglang.launch_server (sglang/srt/server_args.py). */
#include "preset.h"

const struct frag_preset frag_preset_sglang = {
	.name = "sglang",
	.summary = "SGLang 0.4 to 0.5",
	.options = {
		{ .name = "tp", .option = "--tp-size", .also = "--tp --tensor-parallel-size" },
		{ .name = "pp", .option = "--pp-size", .also = "--pipeline-parallel-size" },
		{ .name = "dp", .option = "--dp-size", .also = "--dp --data-parallel-size" },
		{ .name = "ep", .option = "--ep-size", .also = "--ep --expert-parallel-size" },
		{ "seq", "--context-length", .rises = true },
		{ "users", "--max-running-requests", .rises = true },
		{ "tokens", "--chunked-prefill-size", .rises = true },
		{ .name = "memory", .option = "--mem-fraction-static" },
		{ .name = "cache", .option = "--kv-cache-dtype" },
		{ .name = "quantization", .option = "--quantization" },
	},
};
