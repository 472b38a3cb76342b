/* SPDX-License-Identifier: Apache-2.0 */
/* cufrag kvcache: what the cache of a serving engine holds, and when it is full. */

#include "cli/common.h"
#include "plan/kvcache/kvcache.h"

#define USUAL_TOKENS 8192u /* of a request, where only a log is given */

struct options {
	struct frag_kvcache cache;
	const char *log, *model, *arrivals, *lengths;
	const char *gpu;
	uint64_t memory, weights;
	double rate, window_ratio;
	uint64_t count;
};

static int check_groups(const struct options *o, const struct frag_engine_log *said,
			struct frag_err *err)
{
	const struct frag_kvcache *k = &o->cache;
	const bool hybrid = k->groups_count > 1;

	if (hybrid && said->tokens && !said->hundredths &&
	    (o->arrivals || o->lengths || !(said->full_tokens || said->slots)))
		return FRAG_USAGE(err, "the log lacks 'Maximum concurrency for N tokens per "
				       "request', which the size of groups of layers follows from");
	for (size_t i = 0; i < k->groups_count; i++)
		if (k->prefix && !k->groups[i].window)
			return FRAG_USAGE(err, "--prefix: vLLM caches no prefix of a model with a "
					       "state");
		else if (!k->groups[i].window && !k->block && !said->block && !k->state_block)
			return FRAG_USAGE(err, "a model with a state needs --block N: the engine "
					       "prints 'Setting attention block size to N tokens'");
	return 0;
}

/* What vLLM leaves for the cache of a card, before the engine has said it. */
static int take_card(struct options *o, struct frag_err *err)
{
	const struct frag_gpu *gpu;
	double left;

	if (!o->gpu)
		return 0;
	FRAG_TRY(frag_gpu_named(o->gpu, &gpu, err));
	left = 0.9 * (double)gpu->total_bytes - ((double)o->weights + 1.5 * (double)FRAG_GIB);
	if (!o->model || !o->weights || o->memory || left < 1)
		return FRAG_USAGE(err, "--gpu: 0.9 of the card less weights and 1.5 GiB of "
				       "activations is the cache; give --model, and --weights that "
				       "leave something");
	o->memory = (uint64_t)left;
	return 0;
}

/* Its size: a number, or what the engine printed. */
static int set_size(struct options *o, struct frag_err *err)
{
	struct frag_kvcache *k = &o->cache;
	struct frag_engine_log said = { 0 };

	FRAG_TRY(take_card(o, err));
	if (o->window_ratio > 0 && (!o->model || !o->memory || o->arrivals || o->lengths))
		return FRAG_USAGE(err, "--swa-full-tokens-ratio goes with --model, its memory and "
				       "--tokens");
	if (o->model && !o->log && !k->tokens && !o->memory)
		return FRAG_USAGE(err, "give --cache-memory: what vLLM's log calls 'Available KV "
				       "cache memory', or card x utilization - weights (2 bytes x "
				       "parameters) - about 1-2 GiB");
	if ((o->log != NULL) + (k->tokens != 0) + (o->memory != 0) != 1 ||
	    (o->memory && !o->model) || (o->model && k->groups_count))
		return FRAG_USAGE(err, "give the size of the cache: --cache-tokens N, --log FILE, "
				       "or --model and --cache-memory SIZE; groups by --model or "
				       "--block");
	if (o->model)
		FRAG_TRY(frag_kvcache_model(k, o->model, err));
	if (o->log)
		FRAG_TRY(frag_engine_log_read(o->log, &said, err));
	if (said.too_small && !said.listens)
		return FRAG_INPUT(err, "'%.200s': the engine ended: %s", o->log, said.ended);
	FRAG_TRY(check_groups(o, &said, err));
	if (o->log && !o->arrivals && !o->lengths && !k->request_tokens && !k->requests)
		k->request_tokens = said.hundredths ? said.request_tokens : USUAL_TOKENS;
	if (o->memory)
		k->tokens = o->memory / k->token_bytes;
	if (o->window_ratio > 0) { /* as SGLang divides it */
		said.tokens = said.full_tokens =
			(uint64_t)((double)o->memory / ((double)k->full_bytes +
							o->window_ratio * (double)k->window_bytes));
		said.window_tokens = (uint64_t)((double)said.full_tokens * o->window_ratio);
	}
	frag_kvcache_take(k, &said);
	if (o->log && !k->tokens)
		return FRAG_INPUT(err,
				  "'%.200s' has no line with the size of a cache ('GPU KV cache "
				  "size: N tokens' of vLLM, 'max_total_num_tokens=N' of SGLang)",
				  o->log);
	if (k->tokens < k->block)
		return FRAG_USAGE(err, "the cache is smaller than a block");
	return 0;
}

static int run(struct frag_cli *cli, void *values, struct frag_err *err)
{
	FRAG_AUTO(frag_answer_release) struct frag_answer a = { 0 };
	struct options *o = values;
	struct frag_kvcache *k = &o->cache;

	const bool replays = o->arrivals || o->lengths;

	if ((!k->request_tokens && (k->requests || (!replays && !o->log))) ||
	    replays != (k->step_us != 0) || (o->arrivals && o->lengths) ||
	    !o->lengths != !(o->rate > 0))
		return FRAG_USAGE(err, "give --tokens (and --requests), or --step with --arrivals "
				       "or --lengths and --rate, or both");
	FRAG_TRY(set_size(o, err));
	a.estimated = o->gpu != NULL;
	if (o->arrivals)
		FRAG_TRY(frag_kvcache_read(k, o->arrivals, err));
	if (o->lengths)
		FRAG_TRY(frag_kvcache_generate(k, o->lengths, o->rate, o->count, cli->target.seed,
					       err));
	if (replays)
		FRAG_TRY(frag_kvcache_replay(k, err));
	FRAG_TRY(frag_kvcache_answer(k, &a, err));
	if (o->gpu)
		frag_answer_remark(&a, "an estimate: the engine's log has its own figure");
	FRAG_TRY(frag_cli_show_answer(cli, &a, err));
	return k->held < k->requests ? FRAG_EXIT_CONDITION : FRAG_EXIT_DONE;
}

#define AT(field) FRAG_ARG_AT(struct options, field)

static const struct frag_arg options[] = {
	{ FRAG_ARG_UINT, "cache-tokens", AT(cache.tokens), .value = "N", .min = 1,
	  .max = FRAG_KVCACHE_TOKENS_MAX, .help = "size of the cache" },
	{ FRAG_ARG_BYTES, "cache-memory", AT(memory), .value = "SIZE", .min = 1, .max = 1ull << 60,
	  .help = "with --model: of one card, for the cache" },
	{ FRAG_ARG_TEXT, "gpu", AT(gpu), .value = "GPU",
	  .help = "with --model and --weights, in place of --cache-memory: 0.9 of this card less "
		  "the weights and 1.5 GiB of activations, about what vLLM finds" },
	{ FRAG_ARG_BYTES, "weights", AT(weights), .value = "SIZE", .min = 1, .max = 1ull << 50,
	  .help = "with --gpu: of one card: 2 bytes x parameters, or as they are quantized" },
	{ FRAG_ARG_REAL, "swa-full-tokens-ratio", AT(window_ratio), .value = "N", .fmin = 1e-3,
	  .fmax = 1e3, .rare = true,
	  .help = "with --model and its memory: two pools as SGLang makes them, tokens of a window "
		  "to those of full attention" },
	{ FRAG_ARG_TEXT, "model", AT(model), .value = "MODEL[,tp=N][,pp=N][,fp8]",
	  .help = "its layers, by a name as gemma-3-27b or its config.json; tp, pp: cards that "
		  "share its heads, its layers; fp8: of the cache" },
	{ FRAG_ARG_TEXT, "log", AT(log), .value = "FILE",
	  .help = "read the size from the engine's log: 'GPU KV cache size: N tokens' of vLLM, "
		  "'max_total_num_tokens=N' of SGLang; the smallest of several" },
	{ FRAG_ARG_OWN, "block", AT(cache), .set = frag_kvcache_layers, .value = "N[,GROUP...]",
	  .help = "tokens of a block (default: the log's, or 16); of a hybrid, its groups of "
		  "layers, too: 16,full,window=1024*5 (Gemma 3 12B), 544,full,state*3 "
		  "(Qwen3-Next); draft=2: speculative tokens" },
	{ FRAG_ARG_UINT, "prefix", AT(cache.prefix), .value = "N", .min = 1,
	  .max = FRAG_KVCACHE_REQUEST_MAX,
	  .help = "first tokens that all prompts share; the engine keeps and finds full blocks" },
	{ FRAG_ARG_UINT, "requests", AT(cache.requests), .value = "N", .min = 1,
	  .max = FRAG_KVCACHE_TOKENS_MAX,
	  .help = "exit with 1 unless it holds N requests of --tokens at a time" },
	{ FRAG_ARG_UINT, "tokens", AT(cache.request_tokens), .value = "N", .min = 1,
	  .max = FRAG_KVCACHE_TOKENS_MAX,
	  .help = "of a request, prompt and output (default: the log's longest, or 8192)" },
	{ FRAG_ARG_TEXT, "arrivals", AT(arrivals), .value = "FILE",
	  .help = "replay these requests over time: lines of seconds, prompt tokens, output "
		  "tokens, or columns of these by the names in the first line (Azure's, BurstGPT's "
		  "and Vidur's traces)" },
	{ FRAG_ARG_TEXT, "lengths", AT(lengths), .value = "LENGTHS",
	  .help = "replay requests that arrive at random, with lengths as ShareGPT's (sharegpt) or "
		  "Alpaca's (alpaca) in the paper on vLLM, or of these means of prompt and output: "
		  "512,128" },
	{ FRAG_ARG_REAL, "rate", AT(rate), .value = "N", .fmin = 1e-3, .fmax = 1e6,
	  .help = "with --lengths: requests a second" },
	{ FRAG_ARG_UINT, "count", AT(count), .value = "N", .min = 1, .max = 1u << 24, .def = "2000",
	  .rare = true, .help = "with --lengths: requests" },
	{ FRAG_ARG_UINT, "batched-tokens", AT(cache.batched_tokens), .value = "N", .min = 1,
	  .max = 1u << 26, .rare = true,
	  .help = "most tokens that a step processes; longer prompts are processed in parts "
		  "(vLLM's --max-num-batched-tokens; default: the log's, or 8192 with --model or "
		  "groups, else any number)" },
	{ FRAG_ARG_UINT, "step", AT(cache.step_us), .value = "MICROSECONDS", .min = 1,
	  .max = 1000000000, .rare = true,
	  .help = "with --arrivals or --lengths: time of a step, as 25000" },
	{ FRAG_ARG_UINT, "max-seqs", AT(cache.max_running), .value = "N", .min = 1, .max = 1u << 24,
	  .def = "256", .help = "requests that run at a time, at most (vLLM's --max-num-seqs)" },
	{ 0 },
};

static void release(void *values)
{
	frag_kvcache_release(&((struct options *)values)->cache);
}

const struct frag_cmd frag_cmd_kvcache = {
	.name = "kvcache",
	.summary = "what the cache of a serving engine holds, and when it is full",
	.group = FRAG_GROUP_CHOOSE,
	.rank = 4,
	.about = "Computes how many requests of a length the paged cache of keys and values holds, "
		 "and replays given requests over time: how full it gets, how many run at a time, "
		 "when preemption begins. The model is the scheduler of vLLM's V1 engine with "
		 "recomputation: each step makes one token for each running request; a request has "
		 "whole blocks; if none is free, the request that began last is preempted and "
		 "waits in front of all others. A step processes at most --batched-tokens, and "
		 "longer prompts in parts. Groups of layers share the blocks; every step takes "
		 "--step.",
	.examples =
		"  cufrag kvcache --log vllm.log --requests 256 --tokens 8192\n"
		"  cufrag kvcache --model gemma-3-27b,tp=2 --cache-memory 40G --tokens 8192\n"
		"  cufrag kvcache --cache-tokens 444864 --arrivals requests.csv --step 25000\n"
		"  cufrag kvcache --cache-tokens 60000 --lengths sharegpt --rate 4 --step 25000\n",
	.answer = &frag_kvcache_shape,
	FRAG_CMD_OPTIONS(struct options, options),
	.shared = FRAG_CLI_PAGE,
	.run = run,
	.release = release,
};
