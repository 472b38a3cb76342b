/* SPDX-License-Identifier: Apache-2.0 */
/* What the shared options mean: devices, cards, limits, numbers. */
#include "args.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include <frag/opt.h>

#define GPUS_MAX 64 /* for "did you mean" */

static int parse_device(struct frag_cli *cli, const char *arg, struct frag_err *err)
{
	static const char *const names[] = { "sim", "cuda", "null", NULL };
	const char *near;
	char *end;

	cli->ordinal = 0;
	if (!strncmp(arg, "cuda", 4) &&
	    (!arg[4] || (arg[4] == ':' && isdigit((unsigned char)arg[5])))) {
		cli->device = FRAG_CLI_DEVICE_CUDA;
		cli->ordinal_given = arg[4] == ':';
		if (!arg[4])
			return 0;
		cli->ordinal = (int)strtoul(arg + 5, &end, 10);
		if (!*end && end - arg <= 8)
			return 0;
	}
	for (unsigned i = 0; names[i]; i++) {
		static const enum frag_cli_device kinds[] = { FRAG_CLI_DEVICE_SIM,
							      FRAG_CLI_DEVICE_CUDA,
							      FRAG_CLI_DEVICE_NULL };

		if (!strcmp(arg, names[i])) {
			cli->device = kinds[i];
			return 0;
		}
	}
	near = frag_nearest(arg, names);
	if (near)
		return frag_fail(err, FRAG_EUSAGE, "unknown device '%.60s'; did you mean '%s'?",
				 arg, near);
	return frag_fail(err, FRAG_EUSAGE,
			 "unknown device '%.60s'; known are sim, cuda, cuda:N and null", arg);
}

static int parse_number(const char *name, const char *arg, uint64_t min, uint64_t max,
			uint64_t *out, struct frag_err *err)
{
	uint64_t value = 0;
	struct frag_opt o[2] = { { .type = FRAG_OPT_T_UINT, .key = name, .min = min, .max = max } };

	FRAG_TRY(frag_opt_set(o, &value, name, arg, err));
	*out = value;
	return 0;
}

/* 1: a fraction, 0: a size, <0: neither. */
static int limit_kind(const char *text, double *fraction, uint64_t *bytes, struct frag_err *err)
{
	char *end;

	*fraction = strtod(text, &end);
	if (strchr(text, '.') && !text[strspn(text, "0123456789.")] && end != text && !*end) {
		if (*fraction <= 1.0)
			return 1;
		return frag_fail(err, FRAG_EUSAGE,
				 "limit '%.40s' is above the whole card; write a fraction up to "
				 "1.0, "
				 "or a size with its unit",
				 text);
	}
	if (frag_parse_bytes(text, bytes, err))
		return frag_err_prefix(err, "option '--limit'");
	return 0;
}

static int parse_color(struct frag_cli *cli, const char *arg, struct frag_err *err)
{
	static const char *const words[] = { "auto", "always", "never", NULL };

	for (unsigned i = 0; words[i]; i++) {
		if (!strcmp(words[i], arg)) {
			cli->color = (enum frag_color)i;
			return 0;
		}
	}
	return frag_fail(err, FRAG_EUSAGE,
			 "unknown value '%.40s' of '--color'; known are always, "
			 "never and auto",
			 arg);
}

/* idle, lag or lag=US */
static int parse_work(const char *arg, struct frag_sim_config *card, struct frag_err *err)
{
	uint64_t us = 0;

	card->work_idle = !strcmp(arg, "idle");
	card->work_lag_ns = 0;
	if (card->work_idle || !strcmp(arg, "lag"))
		return 0;
	if (strncmp(arg, "lag=", 4) != 0)
		return frag_fail(err, FRAG_EUSAGE,
				 "unknown value '%.40s' of '--work'; known are idle, lag and "
				 "lag=US",
				 arg);
	FRAG_TRY(parse_number("work", arg + 4, 1, 1000000000, &us, err));
	card->work_lag_ns = us * 1000;
	return 0;
}

/* The profile of --cost; for the life of the program, as the options themselves. */
static struct frag_cost *cost;

static int load_cost(const char *path, struct frag_err *err)
{
	frag_cost_destroy(cost);
	cost = NULL;
	return frag_cost_load(path, &cost, err);
}

int frag_args_shared(struct frag_cli *cli, int key, const char *arg, struct frag_err *err)
{
	uint64_t number;
	double fraction;

	switch (key) {
	case FRAG_ARGS_DEVICE:
		return parse_device(cli, arg, err);
	case FRAG_ARGS_MANAGED_MAX:
		if (frag_parse_bytes(arg, &cli->managed_max_bytes, err))
			return frag_err_prefix(err, "option '--managed-max'");
		return 0;
	case FRAG_ARGS_COST:
		return load_cost(arg, err);
	case FRAG_ARGS_GPU:
		cli->gpu_ = arg;
		return 0;
	case FRAG_ARGS_CAPACITY:
		cli->capacity_ = arg;
		return 0;
	case FRAG_ARGS_CONTEXT:
		cli->context_ = arg;
		return 0;
	case FRAG_ARGS_WORK:
		cli->work_ = arg;
		cli->work_given = true;
		return parse_work(arg, &cli->card, err);
	case FRAG_ARGS_LIMIT:
		cli->limit = arg;
		return FRAG_MIN(limit_kind(arg, &fraction, &number, err), 0);
	case FRAG_ARGS_JSON:
		cli->json = arg;
		return 0;
	case FRAG_ARGS_CSV:
		cli->csv = arg;
		return 0;
	case FRAG_ARGS_OUT:
		cli->out = arg;
		return 0;
	case FRAG_ARGS_SEED:
		return parse_number("seed", arg, 0, UINT64_MAX, &cli->seed, err);
	case FRAG_ARGS_THREADS:
		FRAG_TRY(parse_number("threads", arg, 1, 1024, &number, err));
		cli->threads = (unsigned)number;
		return 0;
	case FRAG_ARGS_COLOR:
		return parse_color(cli, arg, err);
	}
	FRAG_BUG("shared option");
}

uint64_t frag_cli_limit(const struct frag_cli *cli, uint64_t total_bytes)
{
	double fraction;
	uint64_t bytes = UINT64_MAX;

	if (cli->limit && limit_kind(cli->limit, &fraction, &bytes, NULL) == 1)
		bytes = fraction < 1.0 ? (uint64_t)(fraction * (double)total_bytes) : UINT64_MAX;
	return bytes;
}

static int find_gpu(const char *name, const struct frag_gpu **out, struct frag_err *err)
{
	const char *names[GPUS_MAX + 1];
	const struct frag_gpu *gpus;
	const char *near;
	size_t n;

	*out = frag_gpu_find(name);
	if (*out)
		return 0;
	gpus = frag_gpu_list(&n);
	n = FRAG_MIN(n, (size_t)GPUS_MAX);
	for (size_t i = 0; i < n; i++)
		names[i] = gpus[i].name;
	names[n] = NULL;
	near = frag_nearest(name, names);
	if (near)
		return frag_fail(err, FRAG_EUSAGE,
				 "unknown gpu '%.60s'; did you mean '%s'? (cufrag list gpus)", name,
				 near);
	return frag_fail(err, FRAG_EUSAGE, "unknown gpu '%.60s' (cufrag list gpus)", name);
}

int frag_args_card(struct frag_cli *cli, struct frag_err *err)
{
	const struct frag_gpu *gpu;

	FRAG_TRY(find_gpu(cli->gpu_ ? cli->gpu_ : "h200", &gpu, err));
	cli->card_given = cli->gpu_ || cli->capacity_ || cli->context_;
	cli->card = (struct frag_sim_config){ .name = gpu->name,
					      .cost = cost,
					      .total_bytes = gpu->total_bytes,
					      .context_bytes = gpu->context_bytes };
	if (cli->work_)
		FRAG_TRY(parse_work(cli->work_, &cli->card, err));
	if (cli->capacity_ && frag_parse_bytes(cli->capacity_, &cli->card.total_bytes, err))
		return frag_err_prefix(err, "option '--capacity'");
	if (cli->context_ && frag_parse_bytes(cli->context_, &cli->card.context_bytes, err))
		return frag_err_prefix(err, "option '--context'");
	if (cli->card.total_bytes < cli->card.context_bytes)
		return frag_fail(err, FRAG_EUSAGE,
				 "the card has less memory than its CUDA context takes: %llu of "
				 "%llu "
				 "bytes; set --context, too",
				 (unsigned long long)cli->card.total_bytes,
				 (unsigned long long)cli->card.context_bytes);
	if (cli->capacity_)
		cli->card.name = "sim";
	return 0;
}
