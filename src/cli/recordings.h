/* SPDX-License-Identifier: Apache-2.0 */
/* What commands print about the recordings that they open (recording/recording.h). */
#ifndef FRAG_CLI_RECORDINGS_H
#define FRAG_CLI_RECORDINGS_H

#include "common.h"
#include "recording/recording.h"
#include "recording/written.h"

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
/* What was written: printed, or as notes where the trace itself goes to standard output. */
int frag_cli_show_written(const struct frag_cli *cli, const struct frag_written *w,
			  struct frag_err *err);

#endif
