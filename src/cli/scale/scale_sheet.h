/* SPDX-License-Identifier: Apache-2.0 */
/* cufrag scale: recordings by value, predictions, the greatest value that a card takes. */
#ifndef FRAG_CLI_SCALE_SHEET_H
#define FRAG_CLI_SCALE_SHEET_H

#include <frag/policy.h>

#include "cli/common.h"
#include "recording/policy_texts.h"
#include "cli/recordings.h"
#include "launch/vary.h"
#include "plan/scale/scale.h"
#include "answer/textbuf.h"

#define FRAG_SHEET_VALUES 256u

struct frag_sheet_part { /* one recording */
	uint64_t value;
	struct frag_recording recording;
};

struct frag_sheet_cell { /* one policy at one value; of several devices the largest */
	bool completed;
	uint64_t peak_requested_bytes, low_bytes, high_bytes; /* low, high: peak reserved */
};

enum frag_sheet_source {
	FRAG_SHEET_RECORDED,
	FRAG_SHEET_SAME, /* the recordings around it make the same requests, and each size has its law */
	FRAG_SHEET_BEYOND, /* all recordings do, but it lies outside of them */
	FRAG_SHEET_ESTIMATED,
};

struct frag_sheet {
	const struct frag_cli *cli;
	char name[FRAG_VARY_NAME]; /* of what varies: "{batch}" or "value" */
	struct frag_sheet_part parts[FRAG_SCALING_PARTS];
	size_t parts_count;
	/* scalings[base * devices + device], made when first needed: count 0 = not yet */
	struct frag_scaling *scalings;
	uint32_t devices;
	struct frag_policy_spec **specs; /* NULL-terminated; of the largest recording */
	size_t specs_count;
	uint64_t values[FRAG_SHEET_VALUES]; /* ascending, recorded ones among them */
	size_t values_count;
	struct frag_sheet_cell *cells; /* [values_count][specs_count] */
	/* the last recording as the others predict it, under specs[0]; parts_count > 2 */
	bool checked;
	struct frag_sheet_cell check_predicted, check_recorded;
	/* greatest value by policy, 0 = none; UINT64_MAX = no end was found */
	uint64_t *largest_low, *largest_high; /* if unknown sizes grow, if they do not */
	/* found by recording at it and beside it (only specs[0]) */
	bool confirmed;
	uint64_t confirmed_value;
	unsigned confirm_runs;
};

/* parts: given, values too. Reads nothing. Errors: FRAG_EINPUT (the parts do not go together). */
int frag_sheet_fill(struct frag_sheet *s, const struct frag_policy_texts *policies, uint64_t most,
		    struct frag_err *err);
/* The match behind a value, of one device. */
int frag_sheet_scaling(struct frag_sheet *s, uint64_t value, uint32_t dev,
		       const struct frag_scaling **out, struct frag_err *err);
enum frag_sheet_source frag_sheet_source(struct frag_sheet *s, uint64_t value);
/* The trace at a value, as .cft. */
int frag_sheet_write(struct frag_sheet *s, uint64_t value, const char *path, struct frag_err *err);
void frag_sheet_release(struct frag_sheet *s);

int frag_sheet_print(struct frag_sheet *s, struct frag_err *err);
/* The tables as text; the curve as a page with a chart (scale_page.c). */
int frag_sheet_page(struct frag_sheet *s, const char *text, struct frag_err *err);
/* One sentence or two: how far this can be trusted. */
void frag_sheet_trust(struct frag_sheet *s, struct frag_text *out);
/* Which value fits the card. */
void frag_sheet_answer(const struct frag_sheet *s, struct frag_text *out);

#endif
