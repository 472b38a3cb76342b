/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recording as explain, diagnose, diff and export want it: in memory and settled, or, if it
 * is a .cft with very many events, only its head, and the events are read as often as they are
 * needed. Its policy, and its events device by device.
 */
#ifndef FRAG_CLI_OPENED_H
#define FRAG_CLI_OPENED_H

#include <frag/policy.h>

#include "common.h"
#include "explain/events.h"

struct frag_opened {
	struct frag_trace *trace;
	struct frag_source *source; /* owns the trace where it is only a head */
	const char *path;
};

int frag_opened_read(struct frag_opened *o, const struct frag_cli *cli, const char *path,
		     struct frag_err *err);
void frag_opened_release(struct frag_opened *o);
struct frag_events frag_opened_events(const struct frag_opened *o, uint32_t dev);
/* "gnn.default", or "job device 1" where there are several; in new memory, NULL when it is short. */
char *frag_opened_label(const struct frag_opened *o, uint32_t dev);

/* What `text` stands for: NULL or "recorded" the recorded settings, and PyTorch's defaults where
 * the file does not say (noted once). */
int frag_opened_spec(const struct frag_opened *o, const struct frag_cli *cli, const char *text,
		     struct frag_policy_spec **out, struct frag_err *err);
/* --device N of the trace: its index. Errors: FRAG_EUSAGE naming what there is. */
int frag_opened_device(const struct frag_opened *o, uint64_t ordinal, uint32_t *dev,
		       struct frag_err *err);

#endif
