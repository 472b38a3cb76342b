/* SPDX-License-Identifier: Apache-2.0 */
/* The program: a command from its command line to its exit status. */
#include "cmd.h"

#include <errno.h>
#include <malloc.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <frag/base.h>
#include <frag/opt.h>

#include "base/clean.h"
#include "common.h"
#include "plan/kvcache/kvcache.h"
#include "pretend/pretend.h"
#include "trace/input/input.h"

/* What one replay gives back the next one takes: the kernel would have to clear it in between. */
static void keep_memory(void)
{
#ifdef __GLIBC__
	mallopt(M_MMAP_THRESHOLD, 2 << 20); /* above the chunks of containers */
	mallopt(M_TRIM_THRESHOLD, 256 << 20);
#endif
}

#define OPERANDS_MOST 10000u

/* ---- one command ------------------------------------------------------------------- */

static unsigned processors(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) ? 1 : (unsigned)CPU_COUNT(&set);
}

static void count_operands(const struct frag_cmd *cmd, size_t *least, size_t *most)
{
	const char *word = cmd->operands ? cmd->operands : "";

	*most = cmd->operands_max ?: strstr(word, "...") ? OPERANDS_MOST : 0;
	*least = cmd->operands_min;
	for (size_t n = 1; *word; word += strcspn(word, " "), word += *word == ' ', n++) {
		*most = FRAG_MAX(*most, n);
		if (*word != '[' && !cmd->operands_min && !cmd->program)
			*least = n;
	}
}

/* A script stands where a recording should: it runs behind "--", or is recorded first. */
static int check_scripts(const struct frag_cli *cli, struct frag_err *err)
{
	const char *name = cli->cmd->name, *program = cli->cmd->program, *script = NULL;
	char first[300] = "";

	for (size_t i = 0; !script && i < cli->operands_count; i++)
		script = frag_ends_with(cli->operands[i], ".py") ? cli->operands[i] : NULL;
	if (!script)
		return 0;
	if (!program || *program == '[')
		snprintf(first, sizeof(first),
			 "cufrag record --no-gpu -o run.cft -- %.80s, then cufrag %s run.cft%s",
			 script, name, program ? "; or " : "");
	return FRAG_USAGE(err,
			  program ? "'%.80s' is a program: %scufrag %s -- %.80s"
				  : "'%.80s' is a program: %s",
			  script, first, name, script);
}

static int check_operands(const struct frag_cli *cli, struct frag_err *err)
{
	const struct frag_cmd *cmd = cli->cmd;
	size_t least, most;

	count_operands(cmd, &least, &most);
	if (cli->operands_count < least)
		return FRAG_USAGE(err, "missing operand: cufrag %s %s", cmd->name, cmd->operands);
	if (cli->operands_count > most && cmd->program && !cli->program)
		return FRAG_USAGE(err,
				  "unexpected operand '%.60s'; a program comes behind --: cufrag "
				  "%s -- %.60s",
				  cli->operands[most], cmd->name, cli->operands[most]);
	if (cli->operands_count > most)
		return FRAG_USAGE(err, "unexpected operand '%.60s'", cli->operands[most]);
	if (cmd->program && cmd->program[0] != '[' && !cli->program)
		return FRAG_USAGE(err, "no program: cufrag %s [OPTION...] -- %s [ARG...]",
				  cmd->name, cmd->program);
	return 0;
}

static int run_summary(struct frag_cli *cli, int rc)
{
	struct frag_err err;
	int other;

	if (rc != FRAG_EFORMAT || !cli->cmd->texts)
		return rc;
	cli->cmd = frag_commands_find("summary");
	other = cli->cmd->run(cli, NULL, &err);
	return other < 0 ? rc : other;
}

/* Defaults, options, operands. */
static int read_line(struct frag_cli *cli, const struct frag_arg_table *tables,
		     struct frag_err *err)
{
	int rest, rc;

	FRAG_TRY(frag_args_defaults(tables, err));
	rc = frag_args_parse(tables, cli->argc, cli->argv, cli->operands, &cli->operands_count,
			     &rest, &cli->help_, err);
	if (cli->help_)
		return rc;
	FRAG_TRY(check_scripts(cli, err) ?: rc);
	if (cli->cmd->program && rest < cli->argc)
		cli->program = &cli->argv[rest];
	for (; !cli->cmd->program && rest < cli->argc; rest++)
		cli->operands[cli->operands_count++] = cli->argv[rest];
	if (cli->quiet)
		frag_progress_silence();
	FRAG_TRY(frag_cli_describe_card(cli, err));
	FRAG_TRY(check_operands(cli, err));
	frag_trace_tell_apart(cli->operands, cli->operands_count);
	return frag_outputs_check(cli, tables, err);
}

static int run_command(const struct frag_cmd *cmd, int argc, char **argv)
{
	bool need_unknown = false;
	struct frag_cli cli = { .cmd = cmd,
				.argc = argc,
				.argv = argv,
				.need_unknown = &need_unknown,
				.threads = processors(),
				.target = { .tell = frag_cli_tell, .tell_ctx = &cli },
				.headroom = { .ratio = FRAG_HEADROOM_RATIO },
				.context_bytes_ = UINT64_MAX };
	FRAG_AUTO_FREE void *options = frag_host_calloc(1, cmd->options_size + 1);
	struct frag_arg_table tables[FRAG_ARG_TABLES_MAX];
	struct frag_err err = { 0 };
	int rc = 0;

	cli.operands = frag_host_calloc((size_t)argc + 1, sizeof(*cli.operands));
	if (!options || !cli.operands)
		rc = frag_fail_nomem(&err, "command line");
	if (!rc && cmd->init)
		cmd->init(options);
	frag_cli_tables(cmd, options, &cli, tables);
	if (!rc)
		rc = read_line(&cli, tables, &err);
	if (cmd->program)
		frag_held_watch();
	if (!rc && cli.help_)
		frag_cli_help(cmd, argc > 2 && !strcmp(argv[argc - 1], "all"), stdout);
	else if (!rc)
		rc = run_summary(&cli, cmd->run(&cli, options, &err));
	if (cmd->program)
		frag_held_say(frag_cli_note_text, &cli);
	rc = !rc && need_unknown ? FRAG_EXIT_UNKNOWN : rc;
	/* those that run a program may end with its status */
	if (rc < 0 || (rc > FRAG_EXIT_UNKNOWN && !cmd->program))
		rc = frag_cli_fail(&cli, &err);
	if (options && cmd->release)
		cmd->release(options);
	if (options)
		frag_args_release(tables);
	frag_host_free(cli.operands);
	return rc;
}

/* ---- the program ------------------------------------------------------------------- */

static int print_failure(const struct frag_err *err)
{
	char msg[sizeof(err->msg)];

	snprintf(msg, sizeof(msg), "%s", err->msg);
	fprintf(stderr, "cufrag: %s\n", frag_clean_text(msg, strlen(msg)));
	return frag_code_exit(err->code);
}

/* Another command in front of the words: cufrag train.py is cufrag fit --brief -- python3 train.py. */
#define WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })
static int run_instead(const char *const *words, int argc, char **argv)
{
	FRAG_AUTO_FREE char **line = frag_host_calloc((size_t)argc + 8, sizeof(*line));
	struct frag_err err = { 0 };
	int n = 0;

	if (!line)
		return print_failure((frag_fail_nomem(&err, "command line"), &err));
	for (; words[n]; n++)
		line[n] = (char *)words[n];
	memcpy(line + n, argv + 1, (size_t)(argc - 1) * sizeof(*line));
	return run_command(frag_commands_find(line[0]), n + argc - 1, line);
}

/* Is it the log of a serving engine that says the size of its cache? */
static bool is_engine_log(const char *path)
{
	struct frag_engine_log said;
	char begin[64] = "";
	FILE *f = fopen(path, "re");
	size_t n = f ? fread(begin, 1, sizeof(begin), f) : 0;
	bool text = n && !memchr(begin, 0, n) && begin[0] != '{' && !(begin[0] & 0x80);

	if (f)
		fclose(f);
	return text && !frag_engine_log_read(path, &said, NULL) && said.tokens;
}

/* What stands where a command should: a file, an option of the program, or a typing error. */
static int run_other(int argc, char **argv)
{
	const char *word = argv[1];
	struct frag_err err = { 0 };

	if (!strcmp(word, "--version") || !strcmp(word, "-V")) {
		printf("cufrag %s\n", FRAG_VERSION);
		return FRAG_EXIT_DONE;
	}
	if (!strcmp(word, "--help") || !strcmp(word, "-h"))
		return run_instead(WORDS("help"), 1, argv);
	if (!strcmp(word, "-") || (word[0] != '-' && !access(word, F_OK))) {
		if (frag_cli_hold(&word, &err))
			return print_failure(&err);
		argv[1] = (char *)word;
		if (frag_pretend_rows->name && frag_ends_with(word, ".py"))
			return run_instead(WORDS("fit", "--brief", "--", "python3"), argc, argv);
		if (is_engine_log(word))
			return run_instead(WORDS("kvcache", "--log"), argc, argv);
		return run_instead(WORDS("summary"), argc, argv);
	}
	if (word[0] == '-')
		frag_fail(&err, FRAG_EUSAGE,
			  "unknown option '%.60s' before the command (cufrag --help)", word);
	else if (strpbrk(word, "./"))
		frag_fail(&err, FRAG_EINPUT, "cannot open '%.200s': %s", word, strerror(errno));
	else
		frag_commands_fail_unknown(word, &err);
	return print_failure(&err);
}

int frag_cli_main(int argc, char **argv)
{
	const struct frag_cmd *cmd;
	int status, reason;

	frag_interrupt_begin();
	keep_memory();
	if (argc < 2) {
		fputs("cufrag: no command given; cufrag FILE explains a recording, cufrag train.py "
		      "runs a program without a GPU (cufrag --help)\n",
		      stderr);
		return FRAG_EXIT_USAGE;
	}
	cmd = frag_commands_find(argv[1]);
	status = cmd ? run_command(cmd, argc - 1, argv + 1) : run_other(argc, argv);
	/* what is still buffered may meet a full disk */
	reason = frag_outfile_reason(stdout);
	if (reason) {
		fprintf(stderr, "cufrag: cannot write standard output: %s\n", strerror(reason));
		return FRAG_EXIT_OUTPUT;
	}
	return status;
}
