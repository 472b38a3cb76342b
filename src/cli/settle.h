/* SPDX-License-Identifier: Apache-2.0 */
/* What a recording leaves open, settled for the card and limit of the command line. */
#ifndef FRAG_CLI_SETTLE_H
#define FRAG_CLI_SETTLE_H

#include <frag/trace.h>

#include "common.h"

/* frag_trace_read, with a line of progress. */
int frag_cli_read(const char *path, const char *option, struct frag_trace **out,
		  struct frag_err *err);
/*
 * A trace whose recorded settings are these (--conf; NULL: as the file has them). They reach the import: what
 * releases were is decided there. FRAG_EUSAGE: settings of no release.
 */
int frag_cli_read_conf(const char *path, const char *conf, struct frag_trace **out,
		       struct frag_err *err);
/*
 * Resolves every device of a trace (frag_resolve). Card and limit asked for may be a
 * what-if: where the recording did not fit into them, they cannot be those of the recording.
 * limit_bytes: UINT64_MAX = none.
 */
int frag_cli_settle(const struct frag_cli *cli, uint64_t limit_bytes, struct frag_trace *trace,
		    struct frag_err *err);
/* The same where card and limit are those of the recording: --limit, else what the file says. */
int frag_cli_settle_recorded(const struct frag_cli *cli, struct frag_trace *trace,
			     struct frag_err *err);
/* What both do: settles, with a line of progress and what --verbose says. Card and limit as frag_settle has them. */
int frag_cli_settle_as(const struct frag_cli *cli, struct frag_trace *trace,
		       const struct frag_sim_config *card, uint64_t limit_bytes, bool given,
		       struct frag_err *err);
/* What the process held beside its allocator and the context of its card; 0 = not known. */
uint64_t frag_cli_outside(const struct frag_trace_dev *dev);
/* A line for each device that had a limit or is not identical, on `to`. */
void frag_cli_settle_say(const struct frag_trace *trace, FILE *to);
/* With --verbose: what the file says of itself, and what was found. */
void frag_cli_settle_tell(const struct frag_cli *cli, const struct frag_trace *trace);

#endif
