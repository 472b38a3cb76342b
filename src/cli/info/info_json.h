/* SPDX-License-Identifier: Apache-2.0 */
/* What cmd_info.c says as JSON. All results are new references, NULL if memory is short. */
#ifndef FRAG_CLI_INFO_JSON_H
#define FRAG_CLI_INFO_JSON_H

#include <jansson.h>

#include "trace/source.h"
#include "info_scan.h"

#define FRAG_INFO_QUANTILES 4
extern const double frag_info_quantiles[FRAG_INFO_QUANTILES]; /* of lifetimes: p50, p90, p99, max */

json_t *frag_info_settings_json(const struct frag_trace_settings *s);
json_t *frag_info_json(const struct frag_info *info, const struct frag_source_counts *counts);

#endif
