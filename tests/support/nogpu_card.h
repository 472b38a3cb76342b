/* SPDX-License-Identifier: Apache-2.0 */
/* The pretended card, as tests of src/pretend/card ask it. */
#ifndef NOGPU_CARD_H
#define NOGPU_CARD_H

#include "test.h"

#include "pretend/card/nogpu.h"

/* The pretended card gives addresses that AddressSanitizer keeps for itself: first in a test, before anything takes them. */
#ifdef __SANITIZE_ADDRESS__
#define NEEDS_ADDRESSES() skip()
#else
#define NEEDS_ADDRESSES() (void)0
#endif

#define OK(call) assert_int_equal(frag_nogpu_##call, 0)

/* Sets up a test: the second of three visible cards of 4 GiB and capability 8.9. */
__attribute__((unused)) static int small_card(void **state)
{
	(void)state;
	setenv("CUFRAG_NOGPU",
	       "name=Small card;total=4294967296;context=536870912;"
	       "libraries=0;count=3;cc=8.9;sms=58",
	       1);
	return setenv("CUDA_VISIBLE_DEVICES", "1,0,5", 1);
}

#endif
