/* SPDX-License-Identifier: Apache-2.0 */
/* Diagnoses the operands of a command, recordings and logs; for diagnose and summary. */
#ifndef FRAG_CLI_CMD_DIAGNOSE_H
#define FRAG_CLI_CMD_DIAGNOSE_H

#include "cli/common.h"
#include "explain/diagnose/diagnose.h"

/* policy: text of --policy, NULL = as recorded. Errors: of readers and replays, FRAG_ENOMEM. */
int frag_cli_diagnose(const struct frag_cli *cli, const char *policy, struct frag_findings *out,
		      struct frag_err *err);

#endif
