/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recordings made without a GPU: every command that uses one says that it is an estimate, and
 * how much hangs on values that no kernel computed. The note is frag_trace.estimate.
 */
#ifndef FRAG_CLI_ESTIMATE_H
#define FRAG_CLI_ESTIMATE_H

#include <frag/trace.h>

#include "common.h"

/* One line on stderr; nothing for a recording of a card. */
void frag_cli_note_estimate(const struct frag_cli *cli, const struct frag_trace *trace);
/* For info: the card, how values were made, and the places where one reached the program. */
void frag_cli_print_estimate(const struct frag_trace *trace, unsigned label_width);
/* The same as an object; null for a recording of a card. */
json_t *frag_cli_json_estimate(const struct frag_trace *trace);

#endif
