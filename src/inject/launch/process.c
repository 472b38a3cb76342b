/* SPDX-License-Identifier: Apache-2.0 */
/* The process of a program that is recorded, and the signals that are for it. */
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/interrupt.h"
#include "base/outfile.h"
#include "inject/launch/family.h"
#include "inject/launch/inject_files.h"

/* ---- signals ------------------------------------------------------------------------ */

/*
 * They are for the program, which then writes what it has. A terminal, timeout and kill -- -GROUP
 * send to the whole process group, hence to the program, too, and must not reach it twice; but a
 * signal does not tell. So a process of the same group does nothing but wait: what ends it was sent
 * to all.
 */
static const int for_program[] = { SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 };
static bool ended;
/* Programs that wait for ever: when it says so, they have done what they are for. */
static bool (*program_is_done)(void *ctx);
static void *done_ctx;
static unsigned done_ticks;
#define TICK_NS 250000000
/* from asking a program to end to asking all its processes, and to killing it */
#define ALL_TICKS 40u
#define KILL_TICKS 120u

struct signals {
	struct sigaction child, old[FRAG_ARRAY_LEN(for_program)];
	sigset_t before, awaited; /* the latter: those, unless ignored, and SIGCHLD */
};

bool frag_launch_interrupted(void)
{
	return ended || frag_interrupted();
}

void frag_launch_end_when(bool (*done)(void *ctx), void *ctx)
{
	program_is_done = done;
	done_ctx = ctx;
}

bool frag_launch_was_done(void)
{
	return done_ticks != 0;
}

/* Once a tick: its first process ends the others, in the order that it knows, unless that waits for
 * a request that does not end, as SGLang's. */
static void end_if_done(pid_t pid)
{
	if (!done_ticks && !program_is_done(done_ctx))
		return;
	done_ticks++;
	if (done_ticks == 1)
		kill(pid, SIGTERM);
	if (done_ticks == ALL_TICKS)
		frag_launch_family_ask(pid);
	if (done_ticks == KILL_TICKS)
		kill(pid, SIGKILL);
}

static void nothing(int number)
{
	(void)number;
}

void frag_launch_outlive_readers(void)
{
	/* not SIG_IGN, which the program would inherit */
	if (signal(SIGPIPE, nothing) == SIG_IGN)
		signal(SIGPIPE, SIG_IGN);
}

/* All are held back from here on, but Ctrl-Z, which stops us as it does the program: none is lost.
 * Ignored, SIGCHLD would take away how the program ended. */
static void hold_signals(struct signals *s)
{
	const struct sigaction plain = { .sa_handler = SIG_DFL };
	sigset_t all;

	sigfillset(&all);
	sigdelset(&all, SIGTSTP);
	sigprocmask(SIG_BLOCK, &all, &s->before);
	sigaction(SIGCHLD, &plain, &s->child);
	sigemptyset(&s->awaited);
	sigaddset(&s->awaited, SIGCHLD);
	for (size_t i = 0; i < FRAG_ARRAY_LEN(for_program); i++) {
		sigaction(for_program[i], NULL, &s->old[i]);
		if (s->old[i].sa_handler != SIG_IGN)
			sigaddset(&s->awaited, for_program[i]);
	}
}

/* In a child: what was ignored stays so, nothing is cleaned up from here. */
static void release_signals(const struct signals *s)
{
	for (size_t i = 0; i < FRAG_ARRAY_LEN(for_program); i++)
		if (s->old[i].sa_handler != SIG_IGN)
			signal(for_program[i], SIG_DFL);
	signal(SIGCHLD, s->child.sa_handler);
	sigprocmask(SIG_SETMASK, &s->before, NULL);
}

static pid_t begin_witness(const struct signals *s)
{
	const pid_t parent = getpid(), pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	release_signals(s);
	while (getppid() == parent)
		pause();
	_exit(0);
}

/* The signal and what else has come: bit n of the result is signal n. */
static unsigned take(const struct signals *s, int number)
{
	const struct timespec now = { 0 };
	unsigned all = 0;

	for (; number > 0; number = sigtimedwait(&s->awaited, NULL, &now))
		all |= 1u << number;
	ended |= (all & (1u << SIGINT | 1u << SIGTERM | 1u << SIGHUP)) != 0;
	return all;
}

static void pass_on(const struct signals *s, int number, pid_t pid, pid_t *witness)
{
	unsigned all;

	usleep(50000); /* until all of the group have it, also where it is sent to one and then to all */
	all = take(s, number);
	if (*witness > 0 && waitpid(*witness, NULL, WNOHANG) == *witness) {
		*witness = begin_witness(s);
		return;
	}
	for (size_t i = 0; i < FRAG_ARRAY_LEN(for_program); i++)
		if (all & 1u << for_program[i])
			kill(pid, for_program[i]);
}

/* Until the program ends; *state as of waitpid. */
static void await(const struct signals *s, pid_t pid, int *state)
{
	pid_t witness = begin_witness(s);

	while (!waitpid(pid, state, WNOHANG)) {
		const struct timespec tick = { .tv_nsec = TICK_NS };
		const int number = program_is_done ? sigtimedwait(&s->awaited, NULL, &tick)
						   : sigwaitinfo(&s->awaited, NULL);

		if (number > 0 && number != SIGCHLD)
			pass_on(s, number, pid, &witness);
		if (number < 0 && program_is_done)
			end_if_done(pid);
	}
	take(s, SIGCHLD);
	if (witness > 0) {
		kill(witness, SIGKILL);
		waitpid(witness, NULL, 0);
	}
}

/* ---- the program's process ------------------------------------------------------------ */

/* train.py, as it lies in this folder, is no program of the shell's: python3 runs it. */
static bool is_plain_script(const char *path)
{
	const char *dot = strrchr(path, '.');

	return dot && !strcmp(dot, ".py") && !access(path, R_OK) &&
	       (!strchr(path, '/') || access(path, X_OK));
}

void frag_launch_become(char **program)
{
	size_t count = 1;
	char **all;

	while (program[count - 1])
		count++;
	all = is_plain_script(program[0]) ? calloc(count + 1, sizeof(*all)) : NULL;
	if (all) {
		all[0] = (char *)"python3";
		memcpy(all + 1, program, count * sizeof(*all));
	}
	execvp(all ? all[0] : program[0], all ? all : program);
	free(all);
}

/* In the child. `failed` takes why the program cannot be run, and closes if it does. */
static void __attribute__((noreturn)) become(char **program, void (*prepare)(const void *ctx),
					     const void *ctx, const struct signals *s, int failed)
{
	int reason;

	prctl(PR_SET_PDEATHSIG, SIGTERM); /* ends with its recorder */
	release_signals(s);
	prepare(ctx);
	frag_launch_become(program);
	reason = errno;
	_exit(write(failed, &reason, sizeof(reason)) == sizeof(reason) ? 0 : 127);
}

int frag_launch_run(char **program, void (*prepare)(const void *ctx), const void *ctx, int *status,
		    struct frag_err *err)
{
	struct signals s;
	int state = 0, failed[2], reason = 0;
	bool in_time;
	pid_t pid;

	if (pipe2(failed, O_CLOEXEC))
		return frag_fail(err, FRAG_EDEVICE, "cannot start the program: %s",
				 strerror(errno));
	fflush(NULL);
	hold_signals(&s);
	in_time = !frag_launch_interrupted();
	pid = in_time ? fork() : -1;
	if (!pid)
		become(program, prepare, ctx, &s, failed[1]);
	close(failed[1]);
	if (pid > 0 && read(failed[0], &reason, sizeof(reason)) < 0)
		reason = errno;
	if (pid > 0)
		await(&s, pid, &state);
	close(failed[0]);
	sigaction(SIGCHLD, &s.child, NULL);
	sigprocmask(SIG_SETMASK, &s.before, NULL);
	if (!in_time)
		return frag_fail(err, FRAG_EINTR, "interrupted before the program was started");
	if (pid < 0)
		return frag_fail(err, FRAG_EDEVICE, "cannot start the program: %s",
				 strerror(errno));
	if (reason)
		return frag_fail(err, FRAG_EUSAGE, "cannot run '%.200s': %s", program[0],
				 strerror(reason));
	if (!*status)
		*status = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
	return 0;
}

void frag_launch_prepend(const char *name, const char *front)
{
	const char *others = getenv(name);
	FRAG_AUTO_FREE char *all = NULL;

	if (asprintf(&all, "%s%s%s", front, others && *others ? ":" : "", others ? others : "") < 0)
		return;
	setenv(name, all, 1);
}

/* The loader takes blanks and colons for the ends of names. */
bool frag_launch_can_preload(const char *library)
{
	return !strpbrk(library, " :");
}

void frag_launch_preload(const char *library)
{
	if (!frag_launch_can_preload(library))
		return;
	frag_launch_prepend("LD_PRELOAD", library);
	/* else AddressSanitizer ends a program in which it is not the first */
	frag_launch_prepend("ASAN_OPTIONS", "verify_asan_link_order=0");
}

void frag_launch_put_number(const char *variable, unsigned long long n)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", n);
	setenv(variable, text, 1);
}

void frag_launch_put_path(const char *variable, const char *folder, const char *name)
{
	char path[4300];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	setenv(variable, path, 1);
}

void frag_launch_python(const struct frag_inject_files *files)
{
	FRAG_AUTO_FREE char *library = frag_path_join(files->folder, "libcufrag_start.so");

	frag_launch_prepend("PYTHONPATH", files->folder);
	if (library)
		frag_launch_preload(library);
	setenv(CUFRAG_PRETEND_HOME, files->folder, 1);
}
