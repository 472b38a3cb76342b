/* SPDX-License-Identifier: Apache-2.0 */
/* The cards that a trace was recorded on, as the text that a .cft holds: a line for each device, in their order, "-" where
 * nothing is known, else
 *
 *	TOTAL CONTEXT BESIDE FRACTION NAME
 *
 * bytes of the card, of the CUDA context and of all that was held outside of the allocator (0 = unknown), the part
 * of the card that the process was allowed, and the card's name ("?" for what is not ASCII).
 */
#ifndef FRAG_TRACE_CFT_CARDS_H
#define FRAG_TRACE_CFT_CARDS_H

#include <frag/trace.h>

/* Is something known of a card? Then .cft has version 5. */
bool frag_cft_has_cards(const struct frag_trace *t);
/* In new memory (free); NULL: memory is short. */
char *frag_cft_cards_text(const struct frag_trace *t);
/* NULL, or what is wrong with the text. */
const char *frag_cft_cards_read(const char *text, struct frag_trace *t);

#endif
