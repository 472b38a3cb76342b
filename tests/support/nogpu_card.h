/* SPDX-License-Identifier: Apache-2.0 */
/* The pretended card, as tests of src/pretend/card ask it. */
#ifndef NOGPU_CARD_H
#define NOGPU_CARD_H

#include "test.h"

#include "pretend/card/entries.h"

/* The pretended card gives addresses that AddressSanitizer keeps for itself: first in a test, before anything takes them. */
#ifdef __SANITIZE_ADDRESS__
#define NEEDS_ADDRESSES() skip()
#else
#define NEEDS_ADDRESSES() (void)0
#endif

#endif
