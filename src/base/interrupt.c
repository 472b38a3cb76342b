/* SPDX-License-Identifier: Apache-2.0 */
/* Signals that end the program; see interrupt.h. */
#include "interrupt.h"

#include <frag/base.h>

static volatile sig_atomic_t came;

const volatile sig_atomic_t *const frag_interrupt_flag = &came;

static volatile sig_atomic_t times, held;

static void note(int sig)
{
	came = sig;
	times = FRAG_MIN(times + 1, 2);
	if (times < 2 || held)
		return;
	/* nobody is about to clean up: the second one ends the program */
	signal(sig, SIG_DFL);
	raise(sig);
}

void frag_interrupt_catch(void)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction act = { .sa_handler = note }, old;

	if (came)
		return;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(signals); i++) {
		/* what was to be ignored (nohup) stays so */
		if (!sigaction(signals[i], NULL, &old) && old.sa_handler != SIG_IGN)
			sigaction(signals[i], &act, NULL);
	}
}

bool frag_interrupted(void)
{
	return came != 0;
}

bool frag_interrupted_twice(void)
{
	return times > 1;
}

void frag_interrupt_hold(bool on)
{
	held = on;
}
