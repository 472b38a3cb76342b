/* SPDX-License-Identifier: Apache-2.0 */
/* A recorded program's run: its temporary folder, its process, and what it left there. */
#include "record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/scratch.h"
#include "base/appended_cft.h"
#include "base/live_page.h"
#include "cli/recordings.h"
#include "trace/merge.h"

#define PARTS_MAX 4096

/* ---- signals ------------------------------------------------------------------------ */

/*
 * They are for the program, which then writes what it has. A terminal, timeout and kill -- -GROUP send to the
 * whole process group, hence to the program, too, and must not reach it twice; but a signal does not tell. So
 * a process of the same group does nothing but wait: what ends it was sent to all.
 */
static const int for_program[] = { SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 };
static bool ended;

struct signals {
	struct sigaction child, old[FRAG_ARRAY_LEN(for_program)];
	sigset_t before, awaited; /* the latter: those, unless ignored, and SIGCHLD */
};

bool frag_record_ended(void)
{
	return ended || frag_interrupted();
}

static void nothing(int number)
{
	(void)number;
}

void frag_record_outlive_readers(void)
{
	/* not SIG_IGN, which the program would inherit */
	if (signal(SIGPIPE, nothing) == SIG_IGN)
		signal(SIGPIPE, SIG_IGN);
}

/* All are held back from here on, but Ctrl-Z, which stops us as it does the program: none is lost. Ignored, SIGCHLD would
 * take away how the program ended. */
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
		const int number = sigwaitinfo(&s->awaited, NULL);

		if (number > 0 && number != SIGCHLD)
			pass_on(s, number, pid, &witness);
	}
	take(s, SIGCHLD);
	if (witness > 0) {
		kill(witness, SIGKILL);
		waitpid(witness, NULL, 0);
	}
}

/* ---- the program's process ------------------------------------------------------------ */

/* In the child. `failed` takes why the program cannot be run, and closes if it does. */
static void __attribute__((noreturn)) become(char **program, void (*prepare)(const void *ctx),
					     const void *ctx, const struct signals *s, int failed)
{
	int reason;

	release_signals(s);
	prepare(ctx);
	execvp(program[0], program);
	reason = errno;
	_exit(write(failed, &reason, sizeof(reason)) == sizeof(reason) ? 0 : 127);
}

int frag_record_launch(char **program, void (*prepare)(const void *ctx), const void *ctx,
		       int *status, struct frag_err *err)
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
	in_time = !frag_record_ended();
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

void frag_record_put_front(const char *name, const char *front)
{
	const char *others = getenv(name);
	char *all = NULL;

	if (asprintf(&all, "%s%s%s", front, others && *others ? ":" : "", others ? others : "") < 0)
		return;
	setenv(name, all, 1);
	free(all);
}

/* The loader takes blanks and colons for the ends of names. */
bool frag_record_can_preload(const char *library)
{
	return !strpbrk(library, " :");
}

void frag_record_preload(const char *library)
{
	if (!frag_record_can_preload(library))
		return;
	frag_record_put_front("LD_PRELOAD", library);
	/* else AddressSanitizer ends a program in which it is not the first; the library has nothing that it needs */
	frag_record_put_front("ASAN_OPTIONS", "verify_asan_link_order=0");
}

/* ---- its folder ------------------------------------------------------------------------ */

int frag_record_folder(char *folder, size_t cap, struct frag_err *err)
{
	const char *dir = getenv("TMPDIR");
	int reason;

	snprintf(folder, cap, "%s/cufrag-record-XXXXXX", dir && *dir ? dir : "/tmp");
	reason = frag_scratch_adopt(folder);
	if (!reason)
		return 0;
	folder[0] = '\0';
	return frag_fail(err, FRAG_EOUTPUT,
			 "cannot create a temporary folder: %s; set TMPDIR to one that can be "
			 "written",
			 strerror(reason));
}

void frag_record_folder_remove(const char *folder)
{
	DIR *dir;
	const struct dirent *entry;

	frag_scratch_remove(folder);
	dir = *folder ? opendir(folder) : NULL; /* one of the user's */
	while (dir && (entry = readdir(dir)))
		unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
	if (*folder)
		rmdir(folder);
}

/* ---- what processes left ------------------------------------------------------------- */

static int has_ending(const struct dirent *entry, const char *ending)
{
	size_t n = strlen(entry->d_name), e = strlen(ending);

	return n > e && !strcmp(entry->d_name + n - e, ending);
}

/* Of cufrag record, of cufrag run. */
static int is_log(const struct dirent *entry)
{
	return has_ending(entry, ".csv") || has_ending(entry, ".cft");
}

static int is_pickle(const struct dirent *entry)
{
	return has_ending(entry, ".pickle");
}

/* A process that asked for nothing is no part: its CSV has only the header, and perhaps remarks, … */
static bool is_empty_csv(const char *path)
{
	FILE *f = fopen(path, "r");
	char *line = NULL;
	size_t room = 0;
	int lines = 0;

	while (f && lines < 2 && getline(&line, &room, f) > 0)
		lines += *line != '#' && *line != '\n';
	free(line);
	if (f)
		fclose(f);
	return lines < 2;
}

/* … its .cft, which grows, no block. */
static bool is_empty(const struct dirent *entry, const char *path)
{
	struct stat st;

	if (has_ending(entry, ".cft"))
		return !stat(path, &st) && st.st_size <= FRAG_APPENDED_PREAMBLE;
	return is_empty_csv(path);
}

static int read_all(const struct frag_cli *cli, const char *folder, struct dirent **names,
		    int count, struct frag_trace **parts, size_t *parts_count, struct frag_err *err)
{
	for (int i = 0; i < count; i++) {
		char *path = frag_path_join(folder, names[i]->d_name);
		int rc = 0;

		FRAG_CHECK_ALLOC(path, "path", err);
		if (!is_log(names[i]) || !is_empty(names[i], path)) {
			rc = frag_record_read(path, &parts[*parts_count], err);
			*parts_count += !rc;
		}
		if (!rc && is_pickle(names[i]))
			rc = frag_trace_settle(parts[*parts_count - 1], &cli->target,
					       FRAG_OPEN_AS_RECORDED, err);
		frag_host_free(path);
		FRAG_TRY(rc);
	}
	return 0;
}

bool frag_record_forget(const char *folder)
{
	struct dirent **names = NULL;
	int count = scandir(folder, &names, is_log, alphasort);
	bool any = false;

	for (int i = 0; i < count; i++) {
		const char *pid = strchr(names[i]->d_name, '.');
		char *path = frag_path_join(folder, names[i]->d_name);

		if (pid)
			frag_live_page_forget(strtoull(pid + 1, NULL, 10));
		any |= path && !is_empty(names[i], path);
		frag_host_free(path);
		free(names[i]);
	}
	free(names);
	return any;
}

int frag_record_gather(const struct frag_cli *cli, const char *folder, bool pickles,
		       struct frag_trace **out, struct frag_err *err)
{
	struct dirent **names = NULL;
	int count = scandir(folder, &names, pickles ? is_pickle : is_log, versionsort);
	FRAG_AUTO_FREE struct frag_trace **parts = NULL;
	size_t parts_count = 0;
	int rc = 0;

	if (count > PARTS_MAX)
		rc = frag_fail(err, FRAG_EINPUT, "%d processes were recorded, too many", count);
	parts = rc || count <= 0 ? NULL : frag_host_calloc((size_t)count, sizeof(*parts));
	if (!rc && count > 0 && !parts)
		rc = frag_fail_nomem(err, "recordings");
	if (!rc)
		rc = read_all(cli, folder, names, count, parts, &parts_count, err);
	if (!rc && !parts_count)
		rc = frag_fail(err, FRAG_EINPUT,
			       "nothing was recorded: no process of the program asked for memory "
			       "of a CUDA device%s",
			       pickles ? " through torch"
				       : " (one that is started with other rights, or without its "
					 "environment, is not seen)");
	if (!rc && parts_count == 1) {
		*out = parts[0];
		parts_count = 0;
	} else if (!rc) {
		rc = frag_trace_merge(parts, parts_count, out, err);
	}
	for (size_t i = 0; i < parts_count; i++)
		frag_trace_destroy(parts[i]);
	for (int i = 0; i < count; i++)
		free(names[i]);
	free(names);
	return rc;
}
