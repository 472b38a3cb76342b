/* SPDX-License-Identifier: Apache-2.0 */
/* One round as JSON and as CSV, by one list of fields. */
#ifndef FRAG_MONITOR_ROWS_H
#define FRAG_MONITOR_ROWS_H

#include <jansson.h>

#include "answer/textbuf.h"
#include "monitor.h"

/* A new reference; NULL: memory is short. */
json_t *frag_monitor_json(const struct frag_monitor_round *r, const char *when);
/* One line on standard output. when: of frag_monitor_stamp. Errors: FRAG_ENOMEM. */
int frag_monitor_print_json(const struct frag_monitor_round *r, const char *when,
			    struct frag_err *err);
void frag_monitor_csv_head(struct frag_text *out);
void frag_monitor_csv_row(const struct frag_monitor_card *c, const char *when,
			  struct frag_text *out);

#endif
