/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What to change in a program, with what it saves: tried on a pretended card, or estimated by an edited recording.
 *
 * Ownership: an advice owns its texts (what, where, numerics, left_out); frag_advice_free. Bytes everywhere.
 */
#ifndef FRAG_ADVISE_ADVICE_H
#define FRAG_ADVISE_ADVICE_H

#include <stdbool.h>
#include <stdint.h>

#include <frag/base.h>

/* Peaks of one run: requested, reserved under `pytorch`, reserved with expandable segments. */
struct frag_advice_peaks {
	uint64_t requested, reserved, expandable;
};

/* Costs of a change; 0: none. */
struct frag_advice_cost {
	uint64_t moved; /* bytes over PCIe in the whole run */
	uint64_t calls; /* more calls of kernels or of the allocator */
	double seconds; /* roofline time of all of these on the chosen card */
};

/* Memory over time of one run, thinned so that no peak is lost (curve.c). */
#define FRAG_CURVE_POINTS 256u
struct frag_curve_sample {
	uint64_t time_us, requested, active, reserved;
};
struct frag_curve {
	unsigned count; /* 0: there is none */
	struct frag_curve_sample points[FRAG_CURVE_POINTS];
};
struct frag_series;
void frag_curve_take(struct frag_curve *c, const struct frag_series *s);

struct frag_advice {
	const char *change; /* name of the plug-in; static */
	char *what;	    /* a sentence: what to change */
	char *where;	    /* "train.py:41", or "" */
	char *numerics;	    /* what becomes numerically different; "" where nothing does */
	char *left_out;	    /* why it could not be tried; "" where it was */
	bool tried;	    /* else estimated, or */
	bool replayed;	    /* the recording as it is, with other settings of the allocator */
	bool untimed;	    /* its run takes another time than the program would */
	struct frag_advice_peaks before, after;
	struct frag_advice_cost cost;
	const char *card; /* the smallest that holds it; NULL: none of the list */
	struct frag_curve
		curve; /* with the change, in its better setting; for an edited recording only that of the best */
};

/* Bytes reserved in the better of both settings. */
static inline uint64_t frag_advice_need(const struct frag_advice_peaks *p)
{
	return FRAG_MIN(p->reserved, p->expandable);
}

/* first - second, or 0 if negative. */
static inline uint64_t frag_advice_above(uint64_t first, uint64_t second)
{
	return first > second ? first - second : 0;
}

#endif
