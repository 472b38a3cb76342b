/* SPDX-License-Identifier: Apache-2.0 */
/* Options of sglang.launch_server (sglang/srt/server_args.py). */
#include "preset.h"

const struct frag_preset frag_preset_sglang = {
	.name = "sglang",
	.summary = "SGLang 0.4 to 0.5",
	.options = {
		{ "tp", "--tp-size" },
		{ "pp", "--pp-size" },
		{ "dp", "--dp-size" },
		{ "ep", "--ep-size" },
		{ "seq", "--context-length", .rises = true },
		{ "users", "--max-running-requests", .rises = true },
		{ "tokens", "--chunked-prefill-size", .rises = true },
		{ "memory", "--mem-fraction-static" },
		{ "cache", "--kv-cache-dtype" },
		{ "quantization", "--quantization" },
	},
};
