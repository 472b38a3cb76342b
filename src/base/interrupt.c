/* SPDX-License-Identifier: Apache-2.0 */
/* Signals that end the program; see interrupt.h. */
#include "interrupt.h"

#include <frag/base.h>

static volatile sig_atomic_t came;

const volatile sig_atomic_t *const frag_interrupt_flag = &came;

static void note(int sig)
{
	came = sig;
}

void frag_interrupt_catch(void)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	/* the default comes back with the first signal: a second one ends the program */
	struct sigaction act = { .sa_handler = note, .sa_flags = (int)SA_RESETHAND }, old;

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
