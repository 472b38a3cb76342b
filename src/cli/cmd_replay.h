/* SPDX-License-Identifier: Apache-2.0 */
/* What compare and replay share of the command line: options, a session for them, and its end. */
#ifndef FRAG_CLI_CMD_REPLAY_H
#define FRAG_CLI_CMD_REPLAY_H

#include "common.h"
#include "compare/session.h"
#include "show_answer.h"

/* Options of both commands; their struct is a struct frag_session. */
extern const struct frag_arg frag_cli_replay_args[];
/* frag_cmd.init and .release of both. */
void frag_cli_replays_init(void *session);
void frag_cli_replays_release(void *session);

/* The device of the command line, for a session. */
void frag_cli_host(const struct frag_cli *cli, struct frag_session_host *out);
/* The rest of the session, once the command line is read. Errors: FRAG_ENOMEM. */
int frag_cli_replays_begin(struct frag_session *s, const struct frag_cli *cli,
			   struct frag_err *err);
/* Replays, writes the report, says what came out. Returns the exit status, or an error. */
int frag_cli_replays_run(struct frag_session *s, const struct frag_cli *cli,
			 void (*say)(const struct frag_report *r, struct frag_answer *a),
			 struct frag_err *err);

#endif
