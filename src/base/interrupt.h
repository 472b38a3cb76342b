/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ctrl-C and its like (INT, TERM, HUP), for the whole program: the first one asks work to end
 * where its results are whole, the second one ends the program as if nobody had asked.
 */
#ifndef FRAG_BASE_INTERRUPT_H
#define FRAG_BASE_INTERRUPT_H

#include <signal.h>
#include <stdbool.h>

/* At the start: a signal that is not caught cleans up and ends the program. */
void frag_interrupt_begin(void);
/* What then cleans up: only calls that a handler may make. */
void frag_interrupt_clean(void (*with)(void));
/* Between defer(true) and defer(false) it waits. Any thread, also one in the other. */
void frag_interrupt_defer(bool on);
/* From now on signals are taken. Work that begins here looks at the flag. */
void frag_interrupt_catch(void);
bool frag_interrupted(void);
/* Between hold(true) and hold(false) a second signal does not end the program either: there it is
 * asked for by frag_interrupted_twice, and what has begun is cleaned up. One thread. */
void frag_interrupt_hold(bool on);
bool frag_interrupted_twice(void);
/* The signal that came, 0 = none. For frag_watch.stop and frag_run_options.stop. */
extern const volatile sig_atomic_t *const frag_interrupt_flag;

#endif
