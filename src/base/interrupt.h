/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ctrl-C and similar signals (INT, TERM, HUP), for the whole program. The first one asks work to
 * stop with complete results; the second one ends the program at once.
 */
#ifndef FRAG_BASE_INTERRUPT_H
#define FRAG_BASE_INTERRUPT_H

#include <signal.h>
#include <stdbool.h>

/* Call at the start: a signal that is not caught cleans up and ends the program. */
void frag_interrupt_begin(void);
/* A cleanup function, one of two at most; it may only make calls that are allowed in a handler. */
void frag_interrupt_clean(void (*with)(void));
/* The cleanup waits between defer(true) and defer(false). Any thread; may be nested. */
void frag_interrupt_defer(bool on);
/* From now on signals are caught, and work checks the flag. */
void frag_interrupt_catch(void);
bool frag_interrupted(void);
/* Between hold(true) and hold(false), a second signal does not end the program either: the code
 * asks frag_interrupted_twice and cleans up itself. One thread. */
void frag_interrupt_hold(bool on);
bool frag_interrupted_twice(void);
/* The signal received, 0 = none. For frag_watch.stop and frag_run_options.stop. */
extern const volatile sig_atomic_t *const frag_interrupt_flag;

#endif
