/* SPDX-License-Identifier: Apache-2.0 */
/* The shared page of a process, see live_page.h. */
#include "live_page.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "room.h"

#define TRIES 100

static void name_of(uint64_t pid, char *buf, size_t cap)
{
	snprintf(buf, cap, "/cufrag-%llu", (unsigned long long)pid);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

struct frag_live_page *frag_live_page_create(const char *by)
{
	struct frag_live_page *page;
	char name[40];
	int fd;

	name_of((uint64_t)getpid(), name, sizeof(name));
	shm_unlink(name); /* left by a dead process with this number */
	fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0644);
	if (fd < 0)
		return NULL;
	page = !frag_room_for(sizeof(*page)) || ftruncate(fd, sizeof(*page))
		       ? MAP_FAILED
		       : mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (page == MAP_FAILED) {
		shm_unlink(name);
		return NULL;
	}
	page->pid = (uint64_t)getpid();
	snprintf(page->by, sizeof(page->by), "%s", by);
	frag_live_page_write(page, NULL, 0);
	memcpy(page->magic, FRAG_LIVE_MAGIC, sizeof(page->magic));
	return page;
}

void frag_live_page_write(struct frag_live_page *page, const struct frag_live_device *devices,
			  uint32_t count)
{
	uint64_t sequence = page->sequence;

	if (count > FRAG_LIVE_DEVICES)
		count = FRAG_LIVE_DEVICES;
	__atomic_store_n(&page->sequence, sequence + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	page->devices_count = count;
	page->beat_ns = now_ns();
	if (count)
		memcpy(page->devices, devices, count * sizeof(*devices));
	__atomic_store_n(&page->sequence, sequence + 2, __ATOMIC_RELEASE);
}

void frag_live_page_remove(struct frag_live_page *page)
{
	char name[40];

	if (!page)
		return;
	name_of(page->pid, name, sizeof(name));
	shm_unlink(name);
}

void frag_live_page_forget(uint64_t pid)
{
	char name[40];

	name_of(pid, name, sizeof(name));
	if (pid && pid <= INT32_MAX && kill((pid_t)pid, 0) && errno == ESRCH)
		shm_unlink(name);
}

static bool read_sequence(int fd, uint64_t *out)
{
	return pread(fd, out, sizeof(*out), offsetof(struct frag_live_page, sequence)) ==
	       (ssize_t)sizeof(*out);
}

/* Reads with system calls, not a mapping, because the page's owner may truncate it at any time. */
static bool take_copy(int fd, struct frag_live_page *out)
{
	for (int i = 0; i < TRIES; i++) {
		uint64_t before, after;

		if (!read_sequence(fd, &before) ||
		    pread(fd, out, sizeof(*out), 0) != (ssize_t)sizeof(*out) ||
		    !read_sequence(fd, &after))
			return false;
		if (!(before & 1) && before == after)
			return true;
	}
	return false;
}

/* Any user may create that name, so it must be a file of the owner of the process. */
static bool is_his(int fd, uint64_t pid)
{
	struct stat page, process;
	char path[40];

	snprintf(path, sizeof(path), "/proc/%llu", (unsigned long long)pid);
	return !fstat(fd, &page) && S_ISREG(page.st_mode) && !stat(path, &process) &&
	       page.st_uid == process.st_uid;
}

bool frag_live_page_read(uint64_t pid, struct frag_live_page *out)
{
	char name[40];
	bool good;
	int fd;

	name_of(pid, name, sizeof(name));
	fd = shm_open(name, O_RDONLY | O_NONBLOCK, 0);
	if (fd < 0)
		return false;
	good = is_his(fd, pid) && take_copy(fd, out);
	close(fd);
	return good && !memcmp(out->magic, FRAG_LIVE_MAGIC, sizeof(out->magic)) &&
	       out->pid == pid && out->devices_count <= FRAG_LIVE_DEVICES &&
	       now_ns() - out->beat_ns < FRAG_LIVE_STALE_NS;
}
