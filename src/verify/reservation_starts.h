/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds where the reservations of a history that began late begin. Their first pages may have been
 * returned before; pages mapped below the known part of a reservation show this.
 */
#ifndef FRAG_VERIFY_RESERVATION_STARTS_H
#define FRAG_VERIFY_RESERVATION_STARTS_H

#include "follow.h"

/* Pages were mapped outside of all reservations, although one had room: an initial reservation
 * above begins there, if possible. True: a base has been lowered. */
bool reservation_starts_explain(struct frag_trace_dev *td,
				const struct frag_trace_settings *settings, uint64_t range_bytes,
				const struct follow_report *rep);

#endif
