/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See talk.h. In the folder, for a communicator NAME:
 *
 *	NAME.R		empty; the first file of a member, and locked by the process of rank R while it is one
 *	NAME.R.P.0	messages of rank R for rank P: the head of a struct talk_message, then its bytes if
 *			carried, and so on
 *	NAME.R.P.1	the same for sends
 *	PID.waits	a link to "pid file bytes": PID waits for that process, to write more than `bytes`
 *			into this file
 *	R.present	empty, and locked by the process of the job's rank R, even if it joins no
 *			communicator
 *
 * Each file has one writer. The reader of NAME.R.P.N punches holes where it has read.
 */
#include "talk.h"
#include "protocol_list.inc"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CIRCLE_MOST 4096 /* processes to follow */
#define PATH_ROOM 4300
#define HEAD_BYTES offsetof(struct talk_message, data)

#define KINDS 2 /* of files to a rank: collectives, sends */

struct line {
	FILE *out, *in;	  /* NULL: not open yet */
	uint64_t heard;	  /* bytes read of `in` */
	uint64_t punched; /* bytes punched out */
};

struct talk {
	char name[TALK_NAME_CHARS];
	int ranks, rank;
	int lock;	/* descriptor */
	bool abandoned; /* missing members count as ended */
	struct line lines[];
};

static const char *folder(void)
{
	return getenv(CUFRAG_PRETEND_TALK);
}

bool talk_possible(void)
{
	const char *path = folder();

	return path && *path;
}

/* The path of a file in the folder. */
__attribute__((format(printf, 2, 3))) static char *in_folder(char *path, const char *format, ...)
{
	int used = snprintf(path, PATH_ROOM, "%.4000s/", folder());
	va_list args;

	va_start(args, format);
	vsnprintf(path + used, PATH_ROOM - (size_t)used, format, args);
	va_end(args);
	return path;
}

static struct line *line_of(struct talk *t, int peer, enum talk_call call)
{
	return &t->lines[KINDS * peer + (call == TALK_SEND)];
}

/* Opens it if it is not open; NULL: there is none. */
static FILE *file_of(FILE **kept, const struct talk *t, int from, int to, enum talk_call call,
		     const char *mode)
{
	char path[PATH_ROOM];

	if (!*kept)
		*kept = fopen(in_folder(path, "%s.%d.%d.%d", t->name, from, to, call == TALK_SEND),
			      mode);
	return *kept;
}

/* Makes an empty file, locked by this process (not its children) before anybody sees it. Its
 * descriptor, which stays open, or -1. */
static int make_locked(const char *path)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	static _Atomic unsigned count;
	char temp[PATH_ROOM + 32];
	int fd;

	snprintf(temp, sizeof(temp), "%s.%d.%u", path, getpid(), ++count);
	fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd >= 0 && !fcntl(fd, F_SETLK, &lock) && !rename(temp, path))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* The process that holds the lock of a file; 0: none any more; -1: there is no file. pre: it is not
 * this one, which would lose its lock. */
static long owner_of(const char *path)
{
	struct flock lock = { .l_type = F_RDLCK, .l_whence = SEEK_SET };
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	long pid = -1;

	if (fd >= 0 && !fcntl(fd, F_GETLK, &lock))
		pid = lock.l_type == F_UNLCK ? 0 : lock.l_pid;
	if (fd >= 0)
		close(fd);
	return pid;
}

/* ---- the end of the recording -------------------------------------------------------------- */

static char *_Atomic watched;

/* The folder disappears when cufrag, or the launcher of the ranks, has ended. This process could
 * not be recorded any more, and waiting ones would never end. */
static void *watch(void *ctx)
{
	for (int gone = 0; gone < 2; sleep(1)) /* twice: the process may be about to join another */
		gone = access(watched, F_OK) ? gone + 1 : 0;
	dprintf(STDERR_FILENO, "cufrag: process %d ends, since the recording of its job is over\n",
		(int)getpid());
	_exit(1);
	return ctx;
}

static void begin_watch(void)
{
	static pid_t begun; /* a forked process has no such thread yet */
	sigset_t all, before;
	pthread_t thread;

	if (access(folder(), F_OK))
		return;
	if (!watched || strcmp(watched, folder()) != 0)
		watched = strdup(folder()); /* the thread may still read the other one */
	if (!watched || begun == getpid())
		return;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	if (!pthread_create(&thread, NULL, watch, NULL) && !pthread_detach(thread))
		begun = getpid();
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* ---- messages ------------------------------------------------------------------------------ */

struct talk *talk_join(const char *name, int ranks, int rank)
{
	struct talk *t;
	char path[PATH_ROOM];

	if (ranks < 1 || rank < 0 || rank >= ranks)
		return NULL;
	begin_watch();
	t = frag_host_calloc(1, sizeof(*t) + KINDS * (size_t)ranks * sizeof(t->lines[0]));
	if (!t)
		return NULL;
	snprintf(t->name, sizeof(t->name), "%s", name);
	t->ranks = ranks;
	t->rank = rank;
	t->lock = make_locked(in_folder(path, "%s.%d", name, rank));
	if (t->lock >= 0)
		return t;
	frag_host_free(t);
	return NULL;
}

void talk_leave(struct talk *t)
{
	for (int i = 0; t && i < KINDS * t->ranks; i++) {
		if (t->lines[i].out)
			fclose(t->lines[i].out);
		if (t->lines[i].in)
			fclose(t->lines[i].in);
	}
	if (t)
		close(t->lock);
	frag_host_free(t);
}

bool talk_say(struct talk *t, int peer, enum talk_call call, const void *data, uint64_t bytes,
	      uint32_t origin, uint64_t start)
{
	struct line *l = line_of(t, peer, call);
	struct talk_message head = { bytes, start, origin, data && bytes <= TALK_BYTES_MAX, NULL };
	FILE *out = file_of(&l->out, t, t->rank, peer, call, "ae");

	return out && fwrite(&head, HEAD_BYTES, 1, out) == 1 &&
	       (!head.carried || fwrite(data, 1, bytes, out) == bytes) && !fflush(out);
}

/* pid of a rank, from the owner of its lock file (the lock ends with the process, even as a
 * zombie). 0: it has ended; -1: it has not started, or is this process. */
static long pid_of(const struct talk *t, int peer)
{
	char path[PATH_ROOM];

	return peer == t->rank ? -1 : owner_of(in_folder(path, "%s.%d", t->name, peer));
}

/* Punches out what was read; file systems without holes keep it to the end. */
static void give_back(struct line *l)
{
	uint64_t whole = frag_round_down(l->heard, 4096);

	if (whole - l->punched < FRAG_MIB)
		return;
	(void)fallocate(fileno(l->in), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			(off_t)l->punched, (off_t)(whole - l->punched));
	l->punched = whole;
}

static bool take(struct line *l, struct talk_message *out)
{
	struct stat st;
	uint64_t left;

	if (fstat(fileno(l->in), &st) || (uint64_t)st.st_size < l->heard + HEAD_BYTES ||
	    fseeko(l->in, (off_t)l->heard, SEEK_SET) || fread(out, HEAD_BYTES, 1, l->in) != 1)
		return false;
	left = (uint64_t)st.st_size - l->heard - HEAD_BYTES;
	if (out->carried && (out->bytes > TALK_BYTES_MAX || left < out->bytes)) {
		out->carried = 0;
		return false;
	}
	l->heard += HEAD_BYTES + (out->carried ? out->bytes : 0);
	if (out->carried) {
		out->data = frag_host_calloc(1, FRAG_MAX(out->bytes, 1u));
		out->carried = out->data && fread(out->data, 1, out->bytes, l->in) == out->bytes;
	}
	give_back(l);
	return true;
}

static bool next_message(struct talk *t, int peer, enum talk_call call, struct talk_message *out)
{
	struct line *l = line_of(t, peer, call);

	return file_of(&l->in, t, peer, t->rank, call, "r+e") && take(l, out);
}

enum talk_answer talk_hear(struct talk *t, int peer, enum talk_call call, struct talk_message *out)
{
	long pid;

	if (next_message(t, peer, call, out))
		return TALK_HERE;
	pid = pid_of(t, peer);
	if (pid > 0 || (pid < 0 && !t->abandoned))
		return TALK_NOT_YET;
	return next_message(t, peer, call, out) ? TALK_HERE : TALK_ENDED; /* its last one */
}

/* ---- deadlocks ------------------------------------------------------------------------- */

void talk_waits(struct talk *t, int peer, enum talk_call call)
{
	char path[PATH_ROOM], text[200];

	in_folder(path, "%d.waits", (int)getpid());
	snprintf(text, sizeof(text), "%ld %s.%d.%d.%d %" PRIu64, pid_of(t, peer), t->name, peer,
		 t->rank, call == TALK_SEND, line_of(t, peer, call)->heard);
	unlink(path);
	(void)!symlink(text, path);
}

void talk_waits_end(void)
{
	char path[PATH_ROOM];

	unlink(in_folder(path, "%d.waits", (int)getpid()));
}

/* The process that this one waits for. 0: none, or its message is there. */
static long next_of(long pid)
{
	char path[PATH_ROOM], text[200], file[100];
	uint64_t heard;
	struct stat st;
	ssize_t n = readlink(in_folder(path, "%ld.waits", pid), text, sizeof(text) - 1);

	text[FRAG_MAX(n, 0)] = '\0';
	if (sscanf(text, "%ld %99s %" SCNu64, &pid, file, &heard) != 3)
		return 0;
	return !stat(in_folder(path, "%s", file), &st) && (uint64_t)st.st_size > heard ? 0 : pid;
}

bool talk_circle(struct talk *t, int peer)
{
	long pid = pid_of(t, peer);

	for (int i = 0; pid > 0 && pid != getpid() && i < CIRCLE_MOST; i++)
		pid = next_of(pid);
	return pid == getpid();
}

/* ---- ranks that never come ---------------------------------------------------------------- */

void frag_pretend_present(void)
{
	static pid_t present; /* it has the lock of its rank's file */
	const char *rank = getenv("RANK");
	char path[PATH_ROOM];

	if (!talk_possible() || !rank || present == getpid())
		return;
	in_folder(path, "%d.present", atoi(rank));
	if (owner_of(path) <= 0) /* child processes inherit its number */
		present = make_locked(path) >= 0 ? getpid() : 0;
}

static bool is_member(const struct talk *t, long pid)
{
	bool found = false;

	for (int i = 0; !found && i < t->ranks; i++)
		found = pid_of(t, i) == pid;
	return found;
}

bool talk_never(struct talk *t, int peer)
{
	const char *world = getenv("WORLD_SIZE"), *rank = getenv("RANK");
	bool never = world && rank && pid_of(t, peer) < 0;
	char path[PATH_ROOM];

	for (int i = 0; never && i < atoi(world); i++) {
		long pid = i == atoi(rank) ? 0 : owner_of(in_folder(path, "%d.present", i));

		never = !pid || (pid > 0 && is_member(t, pid));
	}
	return never;
}

void talk_abandon(struct talk *t)
{
	t->abandoned = true;
}
