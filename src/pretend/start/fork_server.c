/* SPDX-License-Identifier: Apache-2.0 */
/* See fork_server.h. */
#include "fork_server.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <frag/base.h>

#include "base/outfile.h"
#include "inject/launch/family.h"
#include "inject/launch/launch.h"
#include "pretend/start/held_runs.h"

#define FILE_MAX_BYTES (4u << 20)
#define WORDS_MAX 64u	  /* of Python and its options */
#define PATIENCE_MS 60000 /* for an answer of a server that still loads */

extern char **environ;

static char noted[4096], used[4096]; /* folders; "" = none */

/* ---- the command ---------------------------------------------------------------------------- */

/* Words in front of -m or of the script, where these are all of Python and its options; 0: it is started anew. */
static size_t python_words(char *const *program)
{
	const char *slash = strrchr(program[0], '/'), *file = slash ? slash + 1 : program[0];
	struct stat st;
	size_t n = 1;

	if (strncmp(file, "python", 6) != 0)
		return 0;
	for (; program[n] && program[n][0] == '-' && strcmp(program[n], "-m") != 0; n++) {
		const char *letters = program[n] + 1;

		if ((*letters == 'X' || *letters == 'W') && !letters[1] && program[n + 1])
			n++;
		else if (*letters != 'X' && *letters != 'W' &&
			 (!*letters || letters[strspn(letters, "uBObdq")]))
			return 0;
	}
	if (n >= WORDS_MAX || !program[n])
		return 0;
	if (!strcmp(program[n], "-m"))
		return program[n + 1] ? n : 0;
	return !stat(program[n], &st) && S_ISREG(st.st_mode) ? n : 0;
}

/* What the server reads: a line of numbers, then texts that end with a zero byte each. */
static char *describe(char *const *words, size_t python, size_t *bytes)
{
	FRAG_AUTO_FREE char *text = NULL, *whole = NULL, *here = realpath(".", NULL);
	size_t len, all, count = 0;
	mode_t mask = umask(0);
	FILE *to = open_memstream(&text, &len);

	umask(mask);
	for (; to && words[count]; count++)
		fwrite(words[count], 1, strlen(words[count]) + 1, to);
	for (char **at = environ; to && *at; at++)
		fwrite(*at, 1, strlen(*at) + 1, to);
	if (to && here)
		fwrite(here, 1, strlen(here) + 1, to);
	if (to && !fclose(to) && here && (to = open_memstream(&whole, &all))) {
		fprintf(to, "%zu %zu %zu %d %u\n", len, python, count, (int)getpgrp(),
			(unsigned)mask);
		fwrite(text, 1, len, to);
		if (fclose(to))
			return NULL;
		*bytes = all;
	}
	return FRAG_GIVE(whole);
}

/* The first of a run, for the server: words of Python itself, the rest is of no use to it. */
static void write_first(char *const *program, size_t python)
{
	char *words[WORDS_MAX + 1] = { NULL }, path[sizeof(noted) + 16];
	FRAG_AUTO_FREE char *text = NULL;
	struct frag_err err;
	size_t bytes;

	memcpy(words, program, python * sizeof(*words));
	snprintf(path, sizeof(path), "%s/first", noted);
	text = access(path, F_OK) ? describe(words, python, &bytes) : NULL;
	if (text && !frag_outfile_put(path, text, bytes, &err))
		frag_launch_put_path(CUFRAG_NOGPU_MODULES, noted, "modules");
}

/* ---- the server -------------------------------------------------------------------------------- */

struct first {
	char *text, *words[WORDS_MAX + 4], **environment, *folder;
	size_t words_count;
};

/* As written above. */
static bool read_first(const char *folder, struct first *f)
{
	char path[4200], *at, *end;
	size_t bytes, words, count = 0;
	FRAG_AUTO_FILE FILE *from = NULL;

	snprintf(path, sizeof(path), "%s/first", folder);
	from = fopen(path, "re");
	f->text = from ? calloc(1, FILE_MAX_BYTES) : NULL;
	bytes = f->text ? fread(f->text, 1, FILE_MAX_BYTES - 1, from) : 0;
	at = f->text ? strchr(f->text, '\n') : NULL;
	if (!at || sscanf(f->text, "%*u %zu", &words) != 1 || words > WORDS_MAX)
		return false;
	end = f->text + bytes;
	f->environment = calloc(bytes, sizeof(*f->environment));
	for (at++; f->environment && at < end; at += strlen(at) + 1)
		if (f->words_count < words)
			f->words[f->words_count++] = at;
		else
			f->environment[count++] = at;
	if (!f->environment || !count)
		return false;
	f->folder = f->environment[--count];
	f->environment[count] = NULL;
	return f->words_count == words;
}

/* A socket that listens at FOLDER/ask or is connected to it, by a path that is short enough for any folder; -1: none. */
static int socket_at(const char *folder, bool listens)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0),
	    dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool good = fd >= 0 && dir >= 0;

	snprintf(at.sun_path, sizeof(at.sun_path), "/proc/self/fd/%d/ask", dir);
	if (good && listens) {
		unlink(at.sun_path); /* of a server that was ended */
		good = !bind(fd, (struct sockaddr *)&at, sizeof(at)) && !listen(fd, 64);
	} else if (good) {
		good = !connect(fd, (struct sockaddr *)&at, sizeof(at));
	}
	if (dir >= 0)
		close(dir);
	if (!good && fd >= 0)
		close(fd);
	return good ? fd : -1;
}

static void __attribute__((noreturn)) serve(const char *folder, struct first *f, int fd)
{
	char path[4200], script[4200], modules[4200], number[16];
	struct frag_err err;
	const char *home;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), log;

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_CHILD_SUBREAPER, 1); /* of what forks leave behind: frag_forks_end */
	snprintf(path, sizeof(path), "%s/server.log", folder);
	log = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	dup2(log, STDERR_FILENO);
	fcntl(fd, F_SETFD, 0);
	environ = f->environment;
	home = getenv(CUFRAG_NOGPU_HOME);
	if (!home || chdir(f->folder))
		_exit(127);
	if (getenv(CUFRAG_READ_FILES))
		frag_launch_put_path(CUFRAG_READ_FILES, folder, "read");
	if (getenv(CUFRAG_HELD)) { /* what modules write as they are loaded */
		if (frag_held_make(folder, FRAG_GIB, &err))
			_exit(127);
		frag_launch_put_path(CUFRAG_HELD, folder, "held");
	}
	snprintf(script, sizeof(script), "%s/cufrag_fork_server.py", home);
	snprintf(modules, sizeof(modules), "%s/modules", folder);
	snprintf(number, sizeof(number), "%d", fd);
	f->words[f->words_count++] = script;
	f->words[f->words_count++] = number;
	f->words[f->words_count++] = modules;
	f->words[f->words_count] = NULL;
	execvp(f->words[0], f->words);
	_exit(127);
}

pid_t frag_forks_begin(const char *folder)
{
	struct first f = { 0 };
	char modules[4200];
	pid_t pid = 0;
	int fd = -1;

	snprintf(modules, sizeof(modules), "%s/modules", folder);
	if (!access(modules, R_OK) && read_first(folder, &f))
		fd = socket_at(folder, true);
	if (fd >= 0) {
		fflush(NULL);
		pid = fork();
		if (!pid)
			serve(folder, &f, fd);
		close(fd);
	}
	free(f.text);
	free(f.environment);
	return FRAG_MAX(pid, 0);
}

void frag_forks_end(pid_t server)
{
	if (server <= 0)
		return;
	kill(server, SIGSTOP);
	frag_launch_family_kill(server);
	kill(server, SIGKILL);
	while (waitpid(server, NULL, 0) < 0 && errno == EINTR)
		;
}

/* ---- in place of the process ----------------------------------------------------------------------- */

/* With the standard files. */
static bool ask(int fd, const char *text, size_t bytes)
{
	const int files[] = { STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO };
	union {
		char room[CMSG_SPACE(sizeof(files))];
		struct cmsghdr align;
	} control = { { 0 } };
	struct iovec part = { (void *)(uintptr_t)text, FRAG_MIN(bytes, 16384u) };
	struct msghdr m = { .msg_iov = &part,
			    .msg_iovlen = 1,
			    .msg_control = control.room,
			    .msg_controllen = sizeof(control.room) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	ssize_t n;

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(files));
	memcpy(CMSG_DATA(c), files, sizeof(files));
	n = sendmsg(fd, &m, MSG_NOSIGNAL);
	for (size_t at = n > 0 ? (size_t)n : 0; n > 0 && at < bytes; at += (size_t)n)
		n = send(fd, text + at, bytes - at, MSG_NOSIGNAL);
	return n > 0;
}

/* A line of the server, without its end; false: it is gone, or silent for too long. */
static bool read_line(int fd, char *line, size_t room, int patience_ms)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };

	for (size_t n = 0; n + 1 < room; n++) {
		if (poll(&ready, 1, patience_ms) <= 0 || read(fd, &line[n], 1) != 1)
			return false;
		if (line[n] == '\n') {
			line[n] = '\0';
			return true;
		}
	}
	return false;
}

static void close_all_but(int a, int b)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		int fd = (int)strtol(entry->d_name, NULL, 10);

		if (fd > STDERR_FILENO && fd != a && fd != b && fd != dirfd(dir))
			close(fd);
	}
	if (dir)
		closedir(dir);
}

static void __attribute__((noreturn)) end_as(int status)
{
	const struct rlimit none = { 0, 0 };
	sigset_t all;

	if (!WIFSIGNALED(status))
		_exit(WEXITSTATUS(status));
	setrlimit(RLIMIT_CORE, &none);
	signal(WTERMSIG(status), SIG_DFL);
	sigfillset(&all);
	sigprocmask(SIG_UNBLOCK, &all, NULL);
	kill(getpid(), WTERMSIG(status));
	_exit(128 + WTERMSIG(status));
}

/* Signals for the group reach the other process anyway; those for this one alone are passed on. */
static void __attribute__((noreturn)) stand_for(pid_t pid, int fd)
{
	struct pollfd ready[2] = { { .fd = fd, .events = POLLIN }, { .events = POLLIN } };
	struct signalfd_siginfo info;
	char line[64];
	sigset_t signals;
	int status;

	sigemptyset(&signals);
	for (const int *n = (const int[]){ SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, 0 }; *n; n++)
		sigaddset(&signals, *n);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	ready[1].fd = signalfd(-1, &signals, SFD_CLOEXEC);
	close_all_but(fd, ready[1].fd);
	for (;;) {
		if (poll(ready, 2, -1) < 0 && errno != EINTR)
			break;
		if (ready[0].revents)
			break;
		if (ready[1].revents && read(ready[1].fd, &info, sizeof(info)) == sizeof(info) &&
		    info.ssi_code == SI_USER && info.ssi_pid == (uint32_t)getppid())
			kill(pid, (int)info.ssi_signo);
	}
	if (read_line(fd, line, sizeof(line), -1) && sscanf(line, "end %d", &status) == 1)
		end_as(status);
	_exit(FRAG_FORKS_LOST); /* the server was ended, and with it the process */
}

/* This process stands for one that the server forks, and ends as that does. Returns if the server does not. */
static void become(char *const *program)
{
	size_t python = *used || *noted ? python_words(program) : 0, bytes;
	FRAG_AUTO_FREE char *text = NULL;
	char line[64];
	pid_t pid = 0;
	int fd;

	if (!python)
		return;
	if (!*used) {
		write_first(program, python);
		return;
	}
	text = describe(program, python, &bytes);
	fd = socket_at(used, false);
	if (text && fd >= 0 && ask(fd, text, bytes) &&
	    read_line(fd, line, sizeof(line), PATIENCE_MS) && sscanf(line, "pid %d", &pid) == 1)
		stand_for(pid, fd);
	if (fd >= 0)
		close(fd);
}

void frag_forks_note(const char *folder)
{
	snprintf(noted, sizeof(noted), "%s", folder);
	frag_launch_stand_in(become);
}

void frag_forks_use(const char *folder)
{
	snprintf(used, sizeof(used), "%s", folder);
	frag_launch_stand_in(become);
}
