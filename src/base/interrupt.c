/* SPDX-License-Identifier: Apache-2.0 */
/* Signals that end the program; see interrupt.h. */
#include "interrupt.h"

#include <frag/base.h>

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define REPEATED_NS 100000000

static volatile sig_atomic_t came;

const volatile sig_atomic_t *const frag_interrupt_flag = &came;

static volatile sig_atomic_t caught, times, held, late;
static void (*clean[2])(void);
static int deferred; /* atomic: any thread may be creating something */

/* Removes unfinished files first. */
static void end_by(int sig)
{
	for (size_t i = 0; i < FRAG_ARRAY_LEN(clean); i++)
		if (clean[i])
			clean[i]();
	signal(sig, SIG_DFL);
	raise(sig);
}

/* timeout(1) and batch systems end a process and its group: it comes twice. Ctrl-C does not. */
static bool is_repeated(const siginfo_t *info)
{
	static int64_t asked_ns;
	struct timespec now;
	int64_t before = asked_ns;

	if ((info->si_signo != SIGTERM && info->si_code != SI_USER) ||
	    clock_gettime(CLOCK_MONOTONIC, &now))
		return false;
	asked_ns = now.tv_sec * 1000000000ll + now.tv_nsec;
	return before && asked_ns - before < REPEATED_NS;
}

static void note(int sig, siginfo_t *info, void *context)
{
	(void)context;
	if (caught) {
		if (is_repeated(info))
			return;
		came = sig;
		times = FRAG_MIN(times + 1, 2);
		if (times < 2 || held)
			return;
		/* no cleanup is running: the second signal ends the program */
	}
	late = sig;
	if (!__atomic_load_n(&deferred, __ATOMIC_SEQ_CST))
		end_by(sig);
}

void frag_interrupt_clean(void (*with)(void))
{
	size_t i = 0;

	while (i < FRAG_ARRAY_LEN(clean) - 1 && clean[i] && clean[i] != with)
		i++;
	clean[i] = with;
}

void frag_interrupt_defer(bool on)
{
	if (!__atomic_add_fetch(&deferred, on ? 1 : -1, __ATOMIC_SEQ_CST) && late)
		end_by(late);
}

/* Not SIG_IGN, which child programs would inherit. */
static void nothing(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)info;
	(void)context;
}

void frag_interrupt_begin(void)
{
	static const struct {
		int sig;
		void (*handler)(int, siginfo_t *, void *);
	} signals[] = {
		{ SIGINT, note },
		{ SIGTERM, note },
		{ SIGHUP, note },
		/* a file beyond the size limit is then an error of that file, which is removed */
		{ SIGXFSZ, nothing }
	};
	struct sigaction old;

	for (size_t i = 0; i < FRAG_ARRAY_LEN(signals); i++) {
		const struct sigaction act = { .sa_sigaction = signals[i].handler,
					       .sa_flags = SA_RESTART | SA_SIGINFO };

		/* signals that were ignored (nohup) stay ignored */
		if (!sigaction(signals[i].sig, NULL, &old) && old.sa_handler != SIG_IGN)
			sigaction(signals[i].sig, &act, NULL);
	}
}

void frag_interrupt_catch(void)
{
	if (!caught)
		frag_interrupt_begin();
	caught = 1;
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
