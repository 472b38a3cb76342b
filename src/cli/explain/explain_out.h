/* SPDX-License-Identifier: Apache-2.0 */
/* What `cufrag explain` writes: text, JSON, stacks for other viewers. */
#ifndef FRAG_CLI_EXPLAIN_OUT_H
#define FRAG_CLI_EXPLAIN_OUT_H

#include <jansson.h>

#include "explain/moment/explain.h"
#include "answer/textbuf.h"

/* One paragraph: the moment, who holds what, why. */
void frag_explain_paragraph(const struct frag_explained *x, struct frag_text *out);
/* The paragraph, then tables of `top` rows. title: the trace; policy: as asked for. */
int frag_explain_text(const struct frag_explained *x, const char *title, const char *policy,
		      size_t top, struct frag_text *out, struct frag_err *err);
/* New reference, NULL when memory is short. All rows. */
json_t *frag_explain_json(const struct frag_explained *x, const char *title, const char *policy);

/* explain.html with its charts into --out. */
struct frag_cli;
int frag_explain_page(const struct frag_cli *cli, const struct frag_explained *x, const char *title,
		      const char *policy, size_t top, struct frag_err *err);

/* Live blocks by whole stack. folded: "outermost;…;innermost bytes" as flamegraph.pl reads it. */
int frag_explain_folded(const struct frag_explained *x, struct frag_text *out,
			struct frag_err *err);
/* A file of speedscope.app. */
json_t *frag_explain_speedscope(const struct frag_explained *x, const char *title);
/* A profile that pprof reads (live bytes, one type); *out in new memory, the caller's. */
int frag_explain_pprof(const struct frag_explained *x, unsigned char **out, size_t *len,
		       struct frag_err *err);

/* Bytes live per stack: [stacks_count], the caller's (frag_host_free). NULL: memory is short. */
uint64_t *frag_explain_by_stack(const struct frag_explained *x);

#endif
