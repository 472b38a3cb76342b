/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the commands share: their options, the card these describe, messages, files.
 *
 * Ownership: strings in struct frag_cli point into argv. Nothing needs a release.
 */
#ifndef FRAG_CLI_COMMON_H
#define FRAG_CLI_COMMON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <frag/device.h>
#include <frag/error.h>

#include "answer/answer.h"
#include "base/interrupt.h"
#include "base/outfile.h"
#include "base/term.h"
#include "cmd.h"
#include "recording/policy_texts.h"
#include "recording/recording.h"
#include "recording/target.h"
#include "recording/written.h"

enum frag_cli_device { FRAG_CLI_DEVICE_SIM, FRAG_CLI_DEVICE_CUDA, FRAG_CLI_DEVICE_NULL };

/* fields by what they are about: there is one of these */
struct frag_cli { /* NOLINT(clang-analyzer-optin.performance.Padding) */
	const struct frag_cmd *cmd;
	int argc; /* the command line as given, argv[0] is the command */
	char **argv;
	char **operands; /* in the order given */
	size_t operands_count;
	char **program; /* what follows "--", NULL-terminated; NULL = nothing (frag_cmd.program) */

	/* FRAG_CLI_DEVICE */
	enum frag_cli_device device;
	int ordinal; /* of cuda:N */
	bool ordinal_given;
	uint64_t managed_max_bytes; /* 0 = the device's own rule */
	/* FRAG_CLI_CARD: complete, whatever was given */
	struct frag_target target; /* and --limit, --torch, --seed */
	const char *work;	   /* text of --work, NULL = not given */
	uint64_t capacity_bytes;   /* of --capacity, 0 = not given */
	/* FRAG_CLI_CARDS; NULL = not given. headroom: the default unless --margin was given */
	const char *cards, *vendor;
	struct frag_headroom headroom;
	/* the others; NULL = not given, "-" = standard output */
	const char *json, *csv, *out;
	unsigned threads;
	enum frag_color color;
	bool quiet, verbose, brief;
	bool estimated; /* a recording that it opened was made without a GPU (frag_cli_tell) */
	char other_kernels
		[160]; /* that one was recorded on a card of another capability than --gpu; "" = none */
	bool *need_unknown; /* becomes true with such an answer: exit status 6, if there is no other */
	/* raw, used inside of the parse */
	const char *gpu_, *cost_;
	uint64_t context_bytes_;
	bool help_;
};

/* The shared options that a command takes, as tables for args.h. tables[FRAG_ARG_TABLES_MAX].
 * cli NULL: only to look at. */
void frag_cli_tables(const struct frag_cmd *cmd, void *options, struct frag_cli *cli,
		     struct frag_arg_table *tables);
/* After the parse: the card that --gpu, --capacity and the others describe. */
int frag_cli_describe_card(struct frag_cli *cli, struct frag_err *err);
/* The table that all commands have, and its heading: `cufrag help options` prints it, once. */
extern const struct frag_arg frag_cli_every_args[];
#define FRAG_CLI_EVERY "Options of every command"
/* --help of a command, on `to`: a screen, or all: every option and example. */
void frag_cli_help(const struct frag_cmd *cmd, bool all, FILE *to);
/* The options of every command. */
void frag_cli_help_every(FILE *to);
/* A manual page in roff: of a command, or of the program (NULL). */
void frag_help_man(const struct frag_cmd *cmd, FILE *to);
/* Completion of the whole program: functions of shells, and what they ask for: one in a line,
 * behind a tab what it is. Commands (cmd NULL), values of the option `before`, options where
 * `typed` begins one, or operands; nothing: files. */
extern const char frag_help_bash[], frag_help_zsh[], frag_help_fish[];
void frag_help_words(const struct frag_cmd *cmd, const char *before, const char *typed, FILE *to);
/* Before anything runs. Errors: FRAG_EUSAGE if a file to be written is one that is read, is a
 * recording already, or is to be written twice (standard output as well). */
int frag_outputs_check(const struct frag_cli *cli, const struct frag_arg_table *tables,
		       struct frag_err *err);

/* Prints "cufrag CMD: message" on stderr. Returns the exit status of the error. */
int frag_cli_fail(const struct frag_cli *cli, const struct frag_err *err);
/* "cufrag CMD: text" on stderr, for what is worth knowing but no failure; not with --quiet. */
void frag_cli_note(const struct frag_cli *cli, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* "reading run.pickle" as a line of progress, until frag_progress_end. name may be NULL. */
void frag_cli_show(struct frag_progress *p, const char *what, const char *name);

/* What --device and the card options say, for device `dev` of a trace: with several cards, and none
 * named, one each; where there are fewer cards, they take turns. Of a real card, --capacity is the
 * usable part. cli: a struct frag_cli, here and below, as sessions call them. */
int frag_cli_open_nth(const void *cli, uint32_t dev, struct frag_device **out,
		      struct frag_err *err);
void frag_cli_note_text(const void *cli, const char *text);
/* For lanes of a page (compare/lanes.h): the card and the cards of the command line. */
#define FRAG_CLI_LANES(cli) ((struct frag_lanes){ &(cli)->target, (cli)->cards, (cli)->vendor })
/* The day that a page names: that of SOURCE_DATE_EPOCH, as in reproducible builds; else, where
 * clock may be asked, today (UTC). In new memory; NULL where neither is, or memory is short. */
char *frag_cli_day(bool clock);

/* Options that fill a struct frag_policy_texts; it is released after the command. */
#define FRAG_CLI_POLICIES(name_, type, field, help_) \
	{ \
		FRAG_ARG_OWN, name_, FRAG_ARG_AT(type, field), \
			.set = frag_policy_texts_list, .release = frag_policy_texts_release, \
			.value = "POLICIES", .help = help_ \
	}
/* Its old name, for one policy. */
#define FRAG_CLI_POLICY(type, field) \
	{ \
		FRAG_ARG_OWN, "policy", FRAG_ARG_AT(type, field), \
			.set = frag_policy_texts_add, .release = frag_policy_texts_release, \
			.value = "POLICY", .silent = true, .help = "the same as --policies" \
	}

/* For FRAG_ARG_OWN: a text of settings that some release of PyTorch takes. */
int frag_cli_set_conf(void *field, const char *arg, struct frag_err *err);

/* ---- recordings ---------------------------------------------------------------------- */

/* frag_target.tell of every command: a line of progress; a note if it is an estimate; with
 * --verbose what settling found. ctx: struct frag_cli. */
void frag_cli_tell(void *ctx, enum frag_recording_stage stage, const char *path,
		   const struct frag_trace *trace);
/* frag_trace_read, with a line of progress. */
int frag_cli_read(const char *path, const char *option, struct frag_trace **out,
		  struct frag_err *err);
/* frag_recording_spec; PyTorch's defaults, with a note, if the file does not say. */
int frag_cli_spec(const struct frag_cli *cli, const struct frag_recording *r, const char *text,
		  struct frag_policy_spec **out, struct frag_err *err);

/* With --verbose: what the file says about itself, and what settling found. */
void frag_cli_settle_tell(const struct frag_cli *cli, const struct frag_trace *trace);

/* ---- where the command line wants an answer -------------------------------------------- */

/*
 * Writes --json, --csv and --out DIR (DIR/COMMAND.html), then prints the text, unless one of them
 * goes to standard output. Each is complete or absent; one that cannot be written takes nothing
 * from the others. Errors: FRAG_EOUTPUT, FRAG_ENOMEM.
 */
int frag_cli_show_answer(const struct frag_cli *cli, struct frag_answer *a, struct frag_err *err);

/* The same without --out, for a command that writes pages of its own. */
int frag_cli_print_answer(const struct frag_cli *cli, struct frag_answer *a, struct frag_err *err);

/* What was written: printed, or as notes where the trace itself goes to standard output. */
int frag_cli_show_written(const struct frag_cli *cli, const struct frag_written *w,
			  struct frag_err *err);

/* The command line as a shell takes it: "cufrag fit run.cft". Errors: out->failed. */
void frag_cli_add_command_line(const struct frag_cli *cli, struct frag_text *out);

/* What is in a pipe, to be read several times: it becomes a file in memory, which is standard
 * input then, and *path. Files stay as they are. Errors: FRAG_EINPUT, also beyond 256 MiB. */
int frag_cli_hold(const char **path, struct frag_err *err);

#endif
