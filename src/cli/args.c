/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command lines. argp parses and lays out the help; a look over argv before it
 * finds all misuse (unknown, ambiguous and incomplete options), so that the
 * message is one line of ours with the nearest known word, never argp's. What
 * the shared options mean: args_values.c.
 */
#include "args.h"

#include <sched.h>
#include <string.h>

#include <frag/opt.h>

/* a shared option and the set it belongs to; 0 = every command */
static const struct shared {
	unsigned set;
	struct argp_option option;
} shared_options[] = {
	{ FRAG_CLI_DEVICE,
	  { "device", FRAG_ARGS_DEVICE, "NAME", 0, "sim, cuda, cuda:N or null (default: sim)",
	    1 } },
	{ FRAG_CLI_DEVICE,
	  { "managed-max", FRAG_ARGS_MANAGED_MAX, "SIZE", 0,
	    "on cuda: managed memory out at a time (default: a quarter of what is free)", 1 } },
	{ FRAG_CLI_CARD,
	  { "cost", FRAG_ARGS_COST, "FILE", 0,
	    "what driver calls cost on the simulated card: a profile of cufrag bench "
	    "(default: an H200's)",
	    1 } },
	{ FRAG_CLI_CARD,
	  { "gpu", FRAG_ARGS_GPU, "NAME", 0, "simulate this card (default: h200; cufrag list gpus)",
	    1 } },
	{ FRAG_CLI_CARD,
	  { "capacity", FRAG_ARGS_CAPACITY, "SIZE", 0, "memory of the simulated card, as 24G",
	    1 } },
	{ FRAG_CLI_CARD,
	  { "context", FRAG_ARGS_CONTEXT, "SIZE", 0, "of it, what the CUDA context takes", 1 } },
	{ FRAG_CLI_CARD,
	  { "work", FRAG_ARGS_WORK, "idle|lag[=US]", 0,
	    "when the simulated card has done what is queued: idle = at once, lag = after so many "
	    "microseconds of recorded time (default: lag, as long as the policy says)",
	    1 } },
	{ FRAG_CLI_CARD,
	  { "limit", FRAG_ARGS_LIMIT, "SIZE|FRACTION", 0,
	    "most a process may reserve, as 8G or 0.9 of the card (default: none)", 1 } },
	{ FRAG_CLI_JSON,
	  { "json", FRAG_ARGS_JSON, "FILE", 0, "write the results as JSON; - is standard output",
	    2 } },
	{ FRAG_CLI_CSV,
	  { "csv", FRAG_ARGS_CSV, "FILE", 0, "write the results as CSV; - is standard output",
	    2 } },
	{ FRAG_CLI_OUT,
	  { "out", FRAG_ARGS_OUT, "DIR", 0, "folder for tables, charts and report", 2 } },
	{ FRAG_CLI_SEED,
	  { "seed", FRAG_ARGS_SEED, "N", 0, "seed of all random choices (default: 0)", 3 } },
	{ FRAG_CLI_THREADS,
	  { "threads", FRAG_ARGS_THREADS, "N", 0, "threads to use (default: one per processor)",
	    3 } },
	{ 0, { "color", FRAG_ARGS_COLOR, "WHEN", 0, "always, never or auto (default: auto)", 4 } },
	{ 0, { "help", 'h', NULL, 0, "print this help", 4 } },
};

/* own options, the shared ones, the end */
#define OPTIONS_MAX 64

struct parse {
	struct frag_cli *cli;
	void *ctx;
	struct argp_option options[OPTIONS_MAX];
	size_t count;
	struct frag_err err;
	bool failed;
};

static void collect_options(struct parse *p)
{
	const struct frag_cmd *cmd = p->cli->cmd;

	for (const struct argp_option *o = cmd->options; o && (o->name || o->key || o->doc); o++) {
		FRAG_ASSERT(p->count < OPTIONS_MAX - 1);
		p->options[p->count++] = *o;
	}
	for (size_t i = 0; i < FRAG_ARRAY_LEN(shared_options); i++) {
		const struct shared *s = &shared_options[i];

		if (s->set && !(s->set & cmd->shared))
			continue;
		FRAG_ASSERT(p->count < OPTIONS_MAX - 1);
		p->options[p->count++] = s->option;
	}
}

/* ---- the look over argv -------------------------------------------------------- */

static int fail_unknown(struct parse *p, const char *typed)
{
	const char *names[OPTIONS_MAX + 1];
	const char *near;
	size_t n = 0;

	for (size_t i = 0; i < p->count; i++)
		if (p->options[i].name && !(p->options[i].flags & OPTION_HIDDEN))
			names[n++] = p->options[i].name;
	names[n] = NULL;
	near = frag_nearest(typed, names);
	if (near)
		return frag_fail(&p->err, FRAG_EUSAGE,
				 "unknown option '--%.60s'; did you mean '--%s'?", typed, near);
	return frag_fail(&p->err, FRAG_EUSAGE, "unknown option '--%.60s'", typed);
}

/* The long option of which `typed` is the name or the only beginning. */
static int find_long(struct parse *p, const char *typed, const struct argp_option **out)
{
	const struct argp_option *found = NULL;
	size_t n = strlen(typed);

	for (size_t i = 0; i < p->count; i++) {
		const struct argp_option *o = &p->options[i];

		if (!o->name || strncmp(o->name, typed, n) != 0)
			continue;
		if (!o->name[n]) {
			*out = o;
			return 0;
		}
		if (found)
			return frag_fail(&p->err, FRAG_EUSAGE,
					 "option '--%s' is ambiguous: '--%s' or '--%s'", typed,
					 found->name, o->name);
		found = o;
	}
	*out = found;
	return found ? 0 : fail_unknown(p, typed);
}

/* "--name" or "--name=value"; *takes_next: the value is the next word. */
static int check_long(struct parse *p, const char *word, bool *takes_next)
{
	char name[64];
	size_t n = strcspn(word, "=");
	const struct argp_option *o;

	if (n >= sizeof(name))
		return fail_unknown(p, word);
	memcpy(name, word, n);
	name[n] = '\0';
	FRAG_TRY(find_long(p, name, &o));
	if (word[n] && !o->arg)
		return frag_fail(&p->err, FRAG_EUSAGE, "option '--%s' takes no value", o->name);
	*takes_next = o->arg && !(o->flags & OPTION_ARG_OPTIONAL) && !word[n];
	return 0;
}

/* "-abc": letters, the last of which may want a value. */
static int check_short(struct parse *p, const char *letters, bool *takes_next)
{
	*takes_next = false;
	for (; *letters; letters++) {
		const struct argp_option *o = NULL;

		for (size_t i = 0; i < p->count && !o; i++)
			if (p->options[i].key == (unsigned char)*letters)
				o = &p->options[i];
		if (!o)
			return frag_fail(&p->err, FRAG_EUSAGE, "unknown option '-%c'", *letters);
		if (o->arg) {
			*takes_next = !letters[1];
			return 0;
		}
	}
	return 0;
}

static int check_argv(struct parse *p, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const char *word = argv[i];
		bool takes_next = false;

		if (!strcmp(word, "--"))
			return 0;
		if (word[0] != '-' || !word[1])
			continue;
		FRAG_TRY(word[1] == '-' ? check_long(p, word + 2, &takes_next)
					: check_short(p, word + 1, &takes_next));
		if (takes_next && ++i >= argc)
			return frag_fail(&p->err, FRAG_EUSAGE, "option '%s' needs a value", word);
	}
	return 0;
}

/* ---- argp ---------------------------------------------------------------------- */

static error_t on_key(int key, char *arg, struct argp_state *state)
{
	struct parse *p = state->input;
	struct frag_cli *cli = p->cli;
	int rc = 0;

	if (key == 'h') {
		cli->exit_status = -1; /* help is wanted; nothing after it matters */
		return 0;
	}
	if (key == ARGP_KEY_ARG) {
		cli->operands[cli->operands_count++] = arg;
		return 0;
	}
	if (key > FRAG_CLI_KEY_LAST && key < FRAG_ARGS_END)
		rc = frag_args_shared(cli, key, arg, &p->err);
	else if (key > 0 && key <= FRAG_CLI_KEY_LAST)
		rc = cli->cmd->option(p->ctx, key, arg, &p->err);
	else
		return ARGP_ERR_UNKNOWN;
	if (!rc)
		return 0;
	p->failed = true;
	return EINVAL;
}

static int check_operands(const struct frag_cli *cli, struct frag_err *err)
{
	const struct frag_cmd *cmd = cli->cmd;

	if (cli->operands_count < cmd->operands_min)
		return frag_fail(err, FRAG_EUSAGE, "missing operand: cufrag %s %s", cmd->name,
				 cmd->operands);
	if (cli->operands_count > cmd->operands_max)
		return frag_fail(err, FRAG_EUSAGE, "unexpected operand '%.60s'",
				 cli->operands[cmd->operands_max]);
	return 0;
}

static unsigned processors(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) ? 1 : (unsigned)CPU_COUNT(&set);
}

static int parse_all(struct parse *p, int argc, char **argv)
{
	struct argp argp = { .options = p->options, .parser = on_key };
	struct frag_cli *cli = p->cli;

	FRAG_TRY(check_argv(p, argc, argv));
	if (argp_parse(&argp, argc, argv, ARGP_NO_HELP | ARGP_NO_EXIT | ARGP_NO_ERRS, NULL, p) &&
	    !p->failed)
		return frag_fail(&p->err, FRAG_EUSAGE, "cannot make sense of the options");
	if (cli->exit_status == -1)
		return 0;
	if (p->failed)
		return p->err.code;
	if (cli->cmd->shared & FRAG_CLI_CARD)
		FRAG_TRY(frag_args_card(cli, &p->err));
	return check_operands(cli, &p->err);
}

int frag_cli_parse(struct frag_cli *cli, const struct frag_cmd *cmd, void *ctx, int argc,
		   char **argv)
{
	struct parse p = { .cli = cli, .ctx = ctx };

	*cli = (struct frag_cli){ .cmd = cmd, .threads = processors(), .operands = argv };
	collect_options(&p);
	/* operands are moved to the front of argv, which argp has read by then */
	if (parse_all(&p, argc, argv)) {
		cli->exit_status = frag_cli_fail(cli, &p.err);
		return 1;
	}
	if (cli->exit_status == -1) {
		frag_cli_help(cmd, stdout);
		cli->exit_status = FRAG_EXIT_DONE;
		return 1;
	}
	return 0;
}

void frag_cli_help(const struct frag_cmd *cmd, FILE *to)
{
	struct frag_cli cli = { .cmd = cmd };
	struct parse p = { .cli = &cli };
	char doc[4096], name[64];
	struct argp argp = { .options = p.options, .args_doc = cmd->operands, .doc = doc };

	collect_options(&p);
	snprintf(doc, sizeof(doc), "\n%s\vExamples:\n%s", cmd->about, cmd->examples);
	snprintf(name, sizeof(name), "cufrag %s", cmd->name);
	argp_help(&argp, to, ARGP_HELP_STD_HELP & ~ARGP_HELP_EXIT_OK, name);
}
