/* SPDX-License-Identifier: Apache-2.0 */
/* The columns of a sweep's results, for its tables and for `cufrag list metrics`. */
#ifndef FRAG_FLEET_RESULTS_COLUMNS_H
#define FRAG_FLEET_RESULTS_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>

struct frag_column {
	const char *name, *type; /* type: SQL's */
	const char *unit, *help;
	bool metric; /* one of frag_metric_list */
};

/* Column i of table `traces`, and of `items`: texts of its own, the metrics but for those of host
 * time, the curve. NULL name behind the last. */
struct frag_column frag_results_trace_column(size_t i);
struct frag_column frag_results_item_column(size_t i);

#endif
