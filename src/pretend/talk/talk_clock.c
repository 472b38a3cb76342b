/* SPDX-License-Identifier: Apache-2.0 */
/* See talk_clock.h. */
#include "talk_clock.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/locked.h"
#include "protocol_list.inc"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

#define PATH_ROOM 4200

static void path_of(char *path, long pid)
{
	const char *folder = getenv(CUFRAG_NOGPU_TALK);

	snprintf(path, PATH_ROOM, "%.4000s/%ld.clock", folder ? folder : "", pid);
}

static void *map(const char *path, bool own)
{
	int fd = open(path, (own ? O_RDWR | O_CREAT | O_TRUNC : O_RDONLY) | O_CLOEXEC | O_NOFOLLOW,
		      0600);
	void *page = MAP_FAILED;
	struct stat st;

	if (fd < 0)
		return NULL;
	if (own ? !ftruncate(fd, sizeof(struct talk_clock))
		: !fstat(fd, &st) && (size_t)st.st_size >= sizeof(struct talk_clock))
		page = mmap(NULL, sizeof(struct talk_clock), PROT_READ | (own ? PROT_WRITE : 0),
			    MAP_SHARED, fd, 0);
	close(fd);
	return page == MAP_FAILED ? NULL : page;
}

static struct talk_clock unread;
static struct talk_clock *_Atomic own_page = &unread;

static char made[PATH_ROOM];

static bool is_there(void)
{
	FRAG_LOCKED(&mutex);

	return !access(made, F_OK);
}

/* The folder disappears when cufrag, or the launcher of the ranks, has ended. This process could
 * not be recorded any more, and waiting ones would never end. */
static void *watch(void *ctx)
{
	while (is_there())
		sleep(1);
	dprintf(STDERR_FILENO, "cufrag: process %d ends, since the recording of its job is over\n",
		(int)getpid());
	_exit(1);
	return ctx;
}

static void begin_watch(void)
{
	static bool begun;
	sigset_t all, before;
	pthread_t thread;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	if (!begun && !pthread_create(&thread, NULL, watch, NULL))
		begun = !pthread_detach(thread);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void talk_clock_make(void)
{
	char path[PATH_ROOM];
	struct talk_clock *page;
	FRAG_LOCKED(&mutex);

	path_of(path, getpid());
	if (!strcmp(path, made) && !access(path, F_OK))
		return;
	page = map(path, true);
	own_page = page ? page : &unread;
	memcpy(made, path, sizeof(made));
	if (page)
		begin_watch();
}

struct talk_clock *talk_clock_own(void)
{
	return own_page;
}

struct talk_peer *talk_peer_of(long pid)
{
	static struct known {
		struct talk_peer peer; /* first */
		struct known *next;
		long pid;
	} * all;
	char path[PATH_ROOM];
	FRAG_LOCKED(&mutex);
	struct known *k = all;

	while (k && k->pid != pid)
		k = k->next;
	if (k || pid <= 0)
		return k ? &k->peer : NULL;
	path_of(path, pid);
	k = frag_host_calloc(1, sizeof(*k));
	if (k)
		*k = (struct known){ .peer.clock = map(path, false), .next = all, .pid = pid };
	if (!k || !k->peer.clock) {
		frag_host_free(k);
		return NULL;
	}
	all = k;
	return &k->peer;
}
