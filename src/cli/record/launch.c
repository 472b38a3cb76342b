/* SPDX-License-Identifier: Apache-2.0 */
/* A recorded program's run: its temporary folder, its process, and what it left there. */
#include "record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/aside.h"
#include "base/growing.h"
#include "base/live_page.h"
#include "cli/settle.h"
#include "trace/merge.h"

#define PARTS_MAX 4096

/* What ends a job ends the program, which then writes what it has; so do we. Ctrl-C reaches it from
 * the terminal. */
static volatile sig_atomic_t running, ended;
static const int passed_on[] = { SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 },
		 ends[] = { SIGINT, SIGTERM, SIGHUP };

static void pass_on(int number)
{
	for (size_t i = 0; i < FRAG_ARRAY_LEN(ends); i++)
		ended |= number == ends[i];
	if (running > 0 && number != SIGINT)
		kill(running, number);
}

bool frag_record_ended(void)
{
	return ended || frag_interrupted();
}

static void listen_to(struct sigaction *old)
{
	const struct sigaction act = { .sa_handler = pass_on };

	sigaction(SIGINT, &act, &old[0]);
	for (size_t i = 0; i < FRAG_ARRAY_LEN(passed_on); i++)
		sigaction(passed_on[i], &act, &old[1 + i]);
}

static void listen_no_more(const struct sigaction *old)
{
	sigaction(SIGINT, &old[0], NULL);
	for (size_t i = 0; i < FRAG_ARRAY_LEN(passed_on); i++)
		sigaction(passed_on[i], &old[1 + i], NULL);
}

/* In the child. `failed` takes why the program cannot be run, and closes if it does. */
static void __attribute__((noreturn))
become(char **program, void (*prepare)(const void *ctx), const void *ctx,
       const struct sigaction *old, const sigset_t *mask, int failed)
{
	int reason;

	/* what was ignored stays so; nothing is cleaned up from here */
	signal(SIGINT, old[0].sa_handler == SIG_IGN ? SIG_IGN : SIG_DFL);
	for (size_t i = 0; i < FRAG_ARRAY_LEN(passed_on); i++)
		signal(passed_on[i], old[1 + i].sa_handler == SIG_IGN ? SIG_IGN : SIG_DFL);
	sigprocmask(SIG_SETMASK, mask, NULL);
	prepare(ctx);
	execvp(program[0], program);
	reason = errno;
	_exit(write(failed, &reason, sizeof(reason)) == sizeof(reason) ? 0 : 127);
}

/* Until the program ends. Why it could not be run, 0: it was; *state as of waitpid. */
static int await(pid_t pid, int failed, int *state)
{
	int reason = 0;

	while (read(failed, &reason, sizeof(reason)) < 0 && errno == EINTR)
		;
	while (waitpid(pid, state, 0) < 0 && errno == EINTR)
		;
	return reason;
}

int frag_record_launch(char **program, void (*prepare)(const void *ctx), const void *ctx,
		       int *status, struct frag_err *err)
{
	struct sigaction old[1 + FRAG_ARRAY_LEN(passed_on)];
	sigset_t all, mask;
	int state = 0, failed[2], reason = 0;
	bool in_time;
	pid_t pid;

	if (pipe2(failed, O_CLOEXEC))
		return frag_fail(err, FRAG_EDEVICE, "cannot start the program: %s",
				 strerror(errno));
	fflush(NULL);
	listen_to(old);
	/* none is lost between here and the program */
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &mask);
	in_time = !frag_record_ended();
	pid = in_time ? fork() : -1;
	if (!pid)
		become(program, prepare, ctx, old, &mask, failed[1]);
	running = pid;
	sigprocmask(SIG_SETMASK, &mask, NULL);
	close(failed[1]);
	if (pid > 0)
		reason = await(pid, failed[0], &state);
	close(failed[0]);
	running = 0;
	listen_no_more(old);
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

int frag_record_folder(char *folder, size_t cap, struct frag_err *err)
{
	const char *dir = getenv("TMPDIR");
	int reason;

	snprintf(folder, cap, "%s/cufrag-record-XXXXXX", dir && *dir ? dir : "/tmp");
	reason = frag_aside_adopt(folder);
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

	frag_aside_remove(folder);
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
		return !stat(path, &st) && st.st_size <= FRAG_GROWING_PREAMBLE;
	return is_empty_csv(path);
}

static int read_all(const struct frag_cli *cli, const char *folder, struct dirent **names,
		    int count, struct frag_trace **parts, size_t *parts_count, struct frag_err *err)
{
	for (int i = 0; i < count; i++) {
		char *path = frag_path_join(folder, names[i]->d_name);
		int rc = 0;

		FRAG_HAVE(path, "path", err);
		if (!is_log(names[i]) || !is_empty(names[i], path)) {
			rc = frag_record_read(path, &parts[*parts_count], err);
			*parts_count += !rc;
		}
		if (!rc && is_pickle(names[i]))
			rc = frag_cli_settle_recorded(cli, parts[*parts_count - 1], err);
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
	FRAG_FREED struct frag_trace **parts = NULL;
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
