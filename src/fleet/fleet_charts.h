/* SPDX-License-Identifier: Apache-2.0 */
/* The charts of a capacity plan. */
#ifndef FRAG_FLEET_CHARTS_H
#define FRAG_FLEET_CHARTS_H

#include "fleet.h"

/* Need of every rank, cards of each kind, one setting for all. Errors: FRAG_ENOMEM. */
int frag_fleet_charts(const struct frag_fleet *f, struct frag_answer *a, struct frag_err *err);

#endif
