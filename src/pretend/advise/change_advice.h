/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What to change in a program, with what it saves: tried on a pretended card, or estimated from a
 * recording. Bytes. The answer owns the texts (trial_measure.c).
 */
#ifndef FRAG_ADVISE_CHANGE_ADVICE_H
#define FRAG_ADVISE_CHANGE_ADVICE_H

#include <stdbool.h>
#include <stdint.h>

#include <frag/base.h>
#include <frag/error.h>

/* Peaks of one run: requested, reserved under the recorded settings (of a program, `pytorch`), and
 * with expandable segments (UINT64_MAX: not PyTorch's allocator). */
struct frag_advice_peaks {
	uint64_t requested, reserved, expandable;
	bool recorded; /* the recorded settings are compared; else the better */
};

/* The cost of a change. */
struct frag_advice_cost {
	uint64_t moved; /* bytes over PCIe in the whole run */
	uint64_t calls; /* more calls of kernels or of the allocator */
	double seconds; /* modelled time of both, by a roofline of the card */
};

/* Memory over time of one run, downsampled to the maxima of windows. */
#define FRAG_CURVE_POINTS 256u
struct frag_curve_sample {
	uint64_t time_us, requested, active, reserved;
};
struct frag_curve {
	unsigned count; /* 0: no curve */
	struct frag_curve_sample points[FRAG_CURVE_POINTS];
};
struct frag_series;
void frag_curve_take(struct frag_curve *c, const struct frag_series *s);

struct frag_answer;
struct frag_advice {
	const char *change;   /* name of the plug-in */
	const char *what;     /* a sentence: what to change */
	const char *where;    /* "train.py:41", or "" */
	const char *numerics; /* numerical differences, or "" */
	const char *left_out; /* why it could not be tried, or "" */
	const char *group;    /* of changes that exclude each other; "": none */
	const char *pattern;  /* of a tried one: its sentence, with {n} for its number */
	bool compiled;	      /* it acts within the graph of torch.compile */
	unsigned most;	      /* largest number; 0: it has no number, or one that was asked for */
	bool tried;	      /* neither tried nor replayed: estimated */
	bool replayed;	      /* the unchanged recording, with other allocator settings */
	bool untimed;	      /* the time of its run cannot be compared */
	struct frag_advice_peaks before, after;
	struct frag_advice_cost cost;
	const char *card;	 /* the smallest that fits, or NULL */
	struct frag_curve curve; /* with the better setting; edited: only for the best */
};

/* A copy that is safe to show, and that the answer owns; NULL: "". */
const char *frag_advice_text(struct frag_answer *texts, const char *text);
/* The same for all its texts. */
void frag_advice_keep(struct frag_advice *x, struct frag_answer *texts);

/* The reserved bytes that are compared. */
static inline uint64_t frag_advice_need(const struct frag_advice_peaks *p)
{
	return p->recorded ? p->reserved : FRAG_MIN(p->reserved, p->expandable);
}

/* max(first - second, 0) */
static inline uint64_t frag_advice_above(uint64_t first, uint64_t second)
{
	return first > second ? first - second : 0;
}

#endif
