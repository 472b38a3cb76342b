/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the reservations of a history that began late begin. Their first pages may have been given back
 * before: pages that are mapped below what is known of a reservation show it.
 */
#ifndef FRAG_VERIFY_RESERVATION_STARTS_H
#define FRAG_VERIFY_RESERVATION_STARTS_H

#include "follow.h"

/* Pages were mapped where there was no reservation, though one had room: it begins there, if one of
 * the initial ones above may. True: a base has become lower. */
bool reservation_starts_explain(struct frag_trace_dev *td,
				const struct frag_trace_settings *settings, uint64_t range_bytes,
				const struct follow_report *rep);

#endif
