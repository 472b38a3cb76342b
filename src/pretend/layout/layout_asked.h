/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a layout command as given, and the plan that they ask for. Texts are borrowed. */
#ifndef FRAG_LAYOUT_ASKED_H
#define FRAG_LAYOUT_ASKED_H

#include "pretend/layout/layouts.h"

struct frag_layout_asked {
	struct frag_layouts all; /* the plan; some options are stored here directly */
	const char *gpus, *world, *rising, *falling, *preset, *price;
	const char *vary[FRAG_AXES_MAX];
	size_t vary_count;
	bool fresh; /* record again, whatever earlier calls recorded */
	char *const *program;
	struct frag_headroom headroom;
	/* made */
	char degrees[3][32]; /* of a serving command: "pp=2" */
	char **words;	     /* the command with the options of the preset */
};

/* Adds one --vary, one --where. Errors: FRAG_EUSAGE. */
int frag_layout_vary(struct frag_layout_asked *o, const char *text, struct frag_err *err);
int frag_layout_where(struct frag_layouts *x, const char *text, struct frag_err *err);
/* Completes o->all, up to frag_layouts_open. The catalog: for --gpu. Errors: FRAG_EUSAGE. */
int frag_layout_asked_open(struct frag_layout_asked *o, const struct frag_catalog *catalog,
			   struct frag_err *err);
void frag_layout_asked_release(struct frag_layout_asked *o);

#endif
