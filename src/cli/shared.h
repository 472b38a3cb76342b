/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one command has and others use: the options of replays and a session for them
 * (cmd_replay.c), the diagnosis of the operands (cmd_diagnose.c).
 */
#ifndef FRAG_CLI_SHARED_H
#define FRAG_CLI_SHARED_H

#include "cli/common.h"
#include "compare/session.h"
#include "explain/diagnose/diagnose.h"

/* ---- replays: compare, replay, bench ---------------------------------------------------- */

/* Options of both commands; their struct is a struct frag_session. */
extern const struct frag_arg frag_cli_replay_args[];

/* The device of the command line, for a session. */
void frag_cli_host(const struct frag_cli *cli, struct frag_session_host *out);
/* The rest of the session, once the command line is read. Errors: FRAG_ENOMEM. */
int frag_cli_replays_begin(struct frag_session *s, const struct frag_cli *cli,
			   struct frag_err *err);
/* Replays, writes the report, says what came out. Returns the exit status, or an error. */
int frag_cli_replays_run(struct frag_session *s, const struct frag_cli *cli,
			 void (*say)(const struct frag_report *r, struct frag_answer *a),
			 struct frag_err *err);

/* ---- diagnosis: diagnose, summary ------------------------------------------------------- */

/* policy: text of --policy, NULL = as recorded. Errors: of readers and replays, FRAG_ENOMEM. */
int frag_cli_diagnose(const struct frag_cli *cli, const char *policy, struct frag_findings *out,
		      struct frag_err *err);

#endif
