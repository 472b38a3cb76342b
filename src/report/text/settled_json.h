/* SPDX-License-Identifier: Apache-2.0 */
/* What a recording turned out to be, as JSON. */
#ifndef FRAG_REPORT_SETTLED_JSON_H
#define FRAG_REPORT_SETTLED_JSON_H

#include <frag/trace.h>

#include <jansson.h>

/* New reference; null where there was nothing to compare with, NULL where memory is short. */
json_t *frag_settled_json(const struct frag_settled *s);
/* Only the limit, where it comes from and between which ones it lies, and the recorded peak. */
void frag_settled_members(json_t *o, const struct frag_settled *s);

#endif
