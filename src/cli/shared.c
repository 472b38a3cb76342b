/* SPDX-License-Identifier: Apache-2.0 */
/* The options that commands share, and what they mean: devices, cards, limits, outputs. */
#include "common.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <frag/opt.h>
#include <frag/torch.h>
#include <frag/trace.h>

#include "trace/input/input.h"

/* ---- values that have a syntax of their own ---------------------------------------- */

static int set_device(void *whole, const char *arg, struct frag_err *err)
{
	static const char *const names[] = { "sim", "cuda", "null", NULL }; /* as the enum */
	struct frag_cli *cli = whole;
	char *end;

	cli->device = FRAG_CLI_DEVICE_CUDA;
	cli->ordinal = 0;
	cli->ordinal_given = false;
	if (!strncmp(arg, "cuda:", 5) && isdigit((unsigned char)arg[5])) {
		cli->ordinal_given = true;
		cli->ordinal = (int)strtoul(arg + 5, &end, 10);
		if (!*end && end - arg <= 8)
			return 0;
	}
	for (unsigned i = 0; names[i]; i++) {
		if (!strcmp(arg, names[i])) {
			cli->device = (enum frag_cli_device)i;
			return 0;
		}
	}
	return frag_fail_unknown(err, "unknown device", arg, names,
				 "; known are sim, cuda, cuda:N and null");
}

static int set_limit(void *limit, const char *arg, struct frag_err *err)
{
	return frag_limit_parse(arg, limit, err);
}

/* idle, lag or lag=US */
static int parse_work(const char *arg, struct frag_sim_config *card, struct frag_err *err)
{
	struct frag_opt lag[2] = {
		{ .type = FRAG_OPT_T_UINT, .key = "--work lag", .min = 1, .max = 1000000000 }
	};
	uint64_t us = 0;

	card->work_idle = !strcmp(arg, "idle");
	card->work_lag_ns = 0;
	if (card->work_idle || !strcmp(arg, "lag"))
		return 0;
	if (strncmp(arg, "lag=", 4) != 0)
		return FRAG_USAGE(
			err, "unknown value '%.40s' of '--work'; known are idle, lag and lag=US",
			arg);
	FRAG_TRY(frag_opt_set(lag, &us, lag->key, arg + 4, err));
	card->work_lag_ns = us * 1000;
	return 0;
}

static int set_unpack_max(void *whole, const char *arg, struct frag_err *err)
{
	uint64_t bytes = 0;

	(void)whole;
	FRAG_TRY(frag_parse_bytes(arg, &bytes, err));
	frag_input_set_unpack_max(FRAG_MAX(bytes, (uint64_t)1));
	return 0;
}

static int set_torch(void *field, const char *arg, struct frag_err *err)
{
	return frag_torch_parse(arg, field, err);
}

int frag_cli_set_conf(void *field, const char *arg, struct frag_err *err)
{
	struct frag_trace_settings unused;

	*(const char **)field = arg;
	return frag_torch_settings(arg, FRAG_TORCH_NEWEST, &unused, err);
}

/* The name of a vendor, or of a file. */
static int set_cards(void *whole, const char *arg, struct frag_err *err)
{
	struct frag_cli *cli = whole;
	const struct frag_gpu *gpus;
	bool vendor = !strcasecmp(arg, "all");
	size_t n;

	(void)err;
	gpus = frag_gpu_list(&n);
	for (size_t i = 0; i < n && !vendor; i++)
		vendor = !strcasecmp(arg, gpus[i].vendor);
	if (vendor)
		cli->vendor = arg;
	else
		cli->cards = arg;
	return 0;
}

/* "1G", or "10%" of the card. */
static int set_margin(void *field, const char *arg, struct frag_err *err)
{
	struct frag_headroom *h = field;
	char *end;
	double percent = strtod(arg, &end);

	*h = (struct frag_headroom){ 0 };
	if (end != arg && !strcmp(end, "%")) {
		if (!(percent >= 0 && percent <= 90))
			return FRAG_USAGE(err, "a margin of '%.40s' is not between 0%% and 90%%",
					  arg);
		h->ratio = percent / 100;
		return 0;
	}
	FRAG_TRY(frag_parse_memory(arg, &h->bytes, err));
	if (h->bytes > FRAG_GIB << 20)
		return FRAG_USAGE(err, "a margin of '%.40s' is above any card", arg);
	return 0;
}

/* The profile of --cost; for the life of the program, as the options themselves. */
static struct frag_cost *cost;

int frag_cli_describe_card(struct frag_cli *cli, struct frag_err *err)
{
	struct frag_sim_config *card = &cli->target.card;
	const struct frag_gpu *gpu;

	if (!(cli->cmd->shared & (FRAG_CLI_CARD | FRAG_CLI_COST)))
		return 0;
	FRAG_TRY(frag_gpu_named(cli->gpu_ ? cli->gpu_ : "h200", &gpu, err));
	if (cli->cost_ && !cost)
		FRAG_TRY(frag_cost_load(cli->cost_, &cost, err));
	*card = (struct frag_sim_config){ .name = gpu->name,
					  .cost = cost ? cost : frag_cost_of(gpu->profile),
					  .total_bytes = gpu->total_bytes,
					  .context_bytes = gpu->context_bytes };
	if (cli->work)
		FRAG_TRY(parse_work(cli->work, card, err));
	if (cli->capacity_bytes) {
		card->name = "sim";
		card->total_bytes = cli->capacity_bytes;
	}
	if (cli->context_bytes_ != UINT64_MAX)
		card->context_bytes = cli->context_bytes_;
	cli->target.card_given =
		cli->gpu_ || cli->capacity_bytes || cli->context_bytes_ != UINT64_MAX;
	if (card->total_bytes < card->context_bytes)
		return FRAG_USAGE(err,
				  "the card has less memory than its CUDA context takes: %llu of "
				  "%llu bytes; set --context, too",
				  (unsigned long long)card->total_bytes,
				  (unsigned long long)card->context_bytes);
	return 0;
}

/* ---- the tables -------------------------------------------------------------------- */

#define AT(field) FRAG_ARG_AT(struct frag_cli, field)

static const struct frag_arg device_args[] = {
	{ FRAG_ARG_OWN, "device", .set = set_device, .value = "NAME", .def = "sim",
	  .help = "sim, cuda, cuda:N or null" },
	{ 0 },
};

static const struct frag_arg managed_args[] = {
	{ FRAG_ARG_BYTES, "managed-max", AT(managed_max_bytes), .value = "SIZE", .rare = true,
	  .help = "on cuda: managed memory in use at a time (default: a quarter of what is free)" },
	{ 0 },
};

static const struct frag_arg card_args[] = {
	{ FRAG_ARG_TEXT, "gpu", AT(gpu_), .value = "GPU",
	  .help = "simulate this card (default: h200; cufrag list gpus)" },
	{ 0 },
};

static const struct frag_arg memory_args[] = {
	{ FRAG_ARG_BYTES, "capacity", AT(capacity_bytes), .value = "SIZE", .min = 1,
	  .max = 1ull << 50, /* 1 PiB: above any card, and no sum overflows */
	  .help = "memory of the simulated card, as 24G (default: that of --gpu)" },
	{ FRAG_ARG_BYTES, "context", AT(context_bytes_), .value = "SIZE", .rare = true,
	  .max = 1ull << 50,
	  .help = "the part of the card that the CUDA context takes (default: that of --gpu)" },
	{ 0 },
};

static const struct frag_arg limit_args[] = {
	{ FRAG_ARG_OWN, "limit", AT(target.limit), .set = set_limit, .value = "SIZE|FRACTION",
	  .help = "most that a process may reserve, as 8G or 0.9 of the card (default: none)" },
	{ 0 },
};

static const struct frag_arg cost_args[] = {
	{ FRAG_ARG_TEXT, "cost", AT(cost_), .value = "FILE", .rare = true,
	  .help = "what driver calls cost on the simulated card: a profile of cufrag bench "
		  "(default: that of --gpu)" },
	{ FRAG_ARG_TEXT, "work", AT(work), .value = "idle|lag[=US]", .rare = true,
	  .help = "when the simulated card finishes queued work: idle = at once, lag = after "
		  "this many microseconds of recorded time (default: lag, with the policy's "
		  "own figure)" },
	{ 0 },
};

static const struct frag_arg torch_args[] = {
	{ FRAG_ARG_OWN, "torch", AT(target.torch), .set = set_torch, .value = "RELEASE",
	  .help = "follow the rules of this PyTorch release, as 2.13 (default: the recording's, "
		  "else the newest known)" },
	{ 0 },
};

static const struct frag_arg cards_args[] = {
	{ FRAG_ARG_OWN, "cards", .set = set_cards, .value = "FILE|VENDOR|all",
	  .help = "cards to choose from: a CSV of name, memory and, where wanted, context, "
		  "price_per_hour, vendor; or all known ones of a vendor, as amd, or of every "
		  "vendor (default: the usual ones of NVIDIA)" },
	{ FRAG_ARG_TEXT, "vendor", AT(vendor), .value = "NAME", .silent = true,
	  .help = "those of --cards that this vendor makes" },
	{ FRAG_ARG_OWN, "margin", AT(headroom), .set = set_margin, .value = "SIZE|PERCENT%",
	  .def = "10%",
	  .help = "memory of a card to keep free, for libraries and for inputs longer than those "
		  "recorded: a size, or a part of the card" },
	{ 0 },
};

static const struct frag_arg answer_args[] = {
	{ FRAG_ARG_TEXT, "json", AT(json), .value = "FILE", .file = FRAG_ARG_WRITES,
	  .help = "write the results as JSON; - is standard output" },
	{ FRAG_ARG_TEXT, "csv", AT(csv), .value = "FILE", .file = FRAG_ARG_WRITES, .rare = true,
	  .help = "write the results as CSV; - is standard output" },
	{ 0 },
};

static const struct frag_arg page_args[] = {
	{ FRAG_ARG_TEXT, "out", AT(out), .value = "DIR",
	  .help = "folder for tables, charts and report" },
	{ FRAG_ARG_FLAG, "brief", AT(brief), .rare = true,
	  .help = "print only the answer, without tables" },
	{ 0 },
};

static const char *const color_words[] = { "auto", "always", "never", NULL };

const struct frag_arg frag_cli_every_args[] = {
	{ FRAG_ARG_UINT, "seed", AT(target.seed), .value = "N", .def = "0",
	  .help = "seed of all random choices" },
	{ FRAG_ARG_UINT, "threads", AT(threads), .value = "N", .min = 1, .max = 1024,
	  .help = "threads to use (default: one per processor)" },
	{ FRAG_ARG_WORD, "color", AT(color), .words = color_words, .def = "auto",
	  .help = "colour and bold letters; auto: on a terminal, unless NO_COLOR is set" },
	{ FRAG_ARG_OWN, "unpack-max", .set = set_unpack_max, .value = "SIZE",
	  .help = "most that a compressed file may unpack to (default: 64M and 500 times its "
		  "size)" },
	{ FRAG_ARG_FLAG, "quiet", 'q', AT(quiet),
	  .help = "on standard error only errors: no notes, no progress" },
	{ FRAG_ARG_FLAG, "verbose", 'v', AT(verbose),
	  .help = "also say on standard error what was detected or assumed" },
	{ FRAG_ARG_FLAG, "help", 'h', AT(help_),
	  .help = "print the help of a command; --help all: with all its options" },
	{ 0 },
};

static const struct {
	unsigned set; /* any of these; 0 = every command */
	const struct frag_arg *rows;
	const char *heading;
} shared[] = {
	{ FRAG_CLI_DEVICE, device_args, "Device and card" },
	{ FRAG_CLI_MANAGED, managed_args, "Device and card" },
	{ FRAG_CLI_CARD, card_args, "Device and card" },
	{ FRAG_CLI_CARD | FRAG_CLI_MEMORY, memory_args, "Device and card" },
	{ FRAG_CLI_CARD, limit_args, "Device and card" },
	{ FRAG_CLI_COST, cost_args, "Device and card" },
	{ FRAG_CLI_TORCH, torch_args, "Device and card" },
	{ FRAG_CLI_CARDS, cards_args, "Device and card" },
	{ FRAG_CLI_ANSWER, answer_args, "Output" },
	{ FRAG_CLI_PAGE, page_args, "Output" },
	{ 0, frag_cli_every_args, FRAG_CLI_EVERY },
};

void frag_cli_tables(const struct frag_cmd *cmd, void *options, struct frag_cli *cli,
		     struct frag_arg_table *tables)
{
	unsigned taken = cmd->shared | (cmd->answer ? FRAG_CLI_ANSWER : 0);
	size_t n = 0;

	for (size_t i = 0; cmd->options && cmd->options[i]; i++)
		tables[n++] = (struct frag_arg_table){ cmd->options[i], options, "Options" };
	n += cmd->more_options ? cmd->more_options(options, tables + n) : 0;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(shared); i++) {
		FRAG_ASSERT(n + 1 < FRAG_ARG_TABLES_MAX);
		if (!shared[i].set || (shared[i].set & taken))
			tables[n++] =
				(struct frag_arg_table){ shared[i].rows, cli, shared[i].heading };
	}
	tables[n] = (struct frag_arg_table){ 0 };
}
