/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings under policies as an interactive page: for `view`, and for --out of other commands. */
#ifndef FRAG_COMPARE_LANES_H
#define FRAG_COMPARE_LANES_H

#include "recording/recording.h"
#include "view/view.h"

/* What lanes are made for: the card, its limit, and cards to name (as frag_catalog_init). */
struct frag_lanes {
	const struct frag_target *target;
	const char *cards, *vendor;
};

/* Opens a view with the sizes of the cards that may be named. */
int frag_lanes_open(const struct frag_lanes *l, struct frag_view *v, struct frag_err *err);
/* Adds the devices of a recording under each policy. recorded: its own settings; SIZE_MAX: none. */
int frag_lanes_add(const struct frag_lanes *l, const struct frag_recording *in,
		   struct frag_policy_spec *const *specs, size_t count, size_t recorded,
		   struct frag_view *v, struct frag_err *err);
/*
 * All of it for a page of another command (frag_answer.live). Nothing where the events cannot be
 * read again (a pipe), or where they are too many: the page of a report is not the place for long
 * ones, `view` is. note: at `event` of the first device, or NULL.
 */
int frag_lanes_page(const struct frag_lanes *l, const struct frag_recording *in,
		    struct frag_policy_spec *const *specs, size_t count, size_t recorded,
		    uint64_t event, const char *note, struct frag_answer *page,
		    struct frag_err *err);

#endif
