/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes of a run that use the same card share its memory. Each writes what it holds into a file
 * of the card, in the folder of recordings, and locks its place there as long as it lives. The file
 * "shared" gets a line whenever several hold more than before: the bytes, and how many hold them.
 * When one of them is refused memory, "refused.PID.ORDINAL" says the same of the others, and the
 * PID of the one that holds most.
 */
#include "card.h"
#include "protocol_list.inc"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PLACES_MAX 256

static struct used_card {
	uint64_t held[PLACES_MAX]; /* with the context of each, as read last */
	uint64_t most_bytes;
	int fd, mine, pid; /* pid 0: this process has no place yet */
	bool tried;
} cards[PRETEND_CARDS_MAX];

/* F_GETLK: the process that has the lock, -1 = one that is not seen from here, 0 = none; else 1, or
 * 0: it failed. */
static int locked(int fd, int command, short type, int place)
{
	struct flock l = { .l_type = type, .l_whence = SEEK_SET, .l_start = place, .l_len = 1 };

	if (fcntl(fd, command, &l))
		return 0;
	return command != F_GETLK ? 1 : l.l_type == F_UNLCK ? 0 : l.l_pid > 0 ? l.l_pid : -1;
}

static int open_beside(const char *folder, const char *name, int flags)
{
	char path[4200];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return open(path, flags | O_CREAT | O_CLOEXEC, 0600);
}

static int number_of(const char *variable)
{
	const char *value = getenv(variable);

	return value ? atoi(value) : 0;
}

/* Nodes and ranks of a job have cards of their own: NCCL refuses ranks that share one. False: there
 * is no folder, or no room in it. */
static bool read_card(struct used_card *c, int ordinal)
{
	const char *folder = getenv(CUFRAG_RECORD);
	char name[60];

	if (!c->tried) {
		snprintf(name, sizeof(name), "card.%d.%d.%d", number_of("GROUP_RANK"),
			 number_of("LOCAL_RANK"), frag_pretend_number(ordinal));
		c->fd = folder ? open_beside(folder, name, O_RDWR) : -1;
		c->tried = true;
	}
	return c->fd >= 0 && locked(c->fd, F_SETLKW, F_WRLCK, PLACES_MAX) &&
	       pread(c->fd, c->held, sizeof(c->held), 0) >= 0;
}

static bool begin(struct used_card *c)
{
	while (c->mine < PLACES_MAX && !locked(c->fd, F_SETLK, F_WRLCK, c->mine))
		c->mine++;
	c->pid = c->mine < PLACES_MAX ? getpid() : 0;
	return c->pid;
}

struct others {
	uint64_t bytes, most_bytes;
	int count, most_pid;
};

/* Those who live. */
static struct others look(const struct used_card *c)
{
	struct others o = { 0 };

	for (int i = 0; i < PLACES_MAX; i++) {
		int pid = c->held[i] && (!c->pid || i != c->mine)
				  ? locked(c->fd, F_GETLK, F_WRLCK, i)
				  : 0;

		if (!pid)
			continue;
		o.bytes += c->held[i];
		o.count++;
		if (c->held[i] > o.most_bytes) {
			o.most_bytes = c->held[i];
			o.most_pid = pid;
		}
	}
	return o;
}

static void tell(const char *name, int flags, uint64_t bytes, int count, int pid)
{
	int fd = open_beside(getenv(CUFRAG_RECORD), name, O_WRONLY | flags);

	if (fd >= 0)
		dprintf(fd, "%llu %d %d\n", (unsigned long long)bytes, count, pid);
	if (fd >= 0)
		close(fd);
}

uint64_t frag_pretend_others(void *number, uint64_t used_bytes, uint64_t asked_bytes)
{
	const struct pretend_card *card = frag_pretend_card();
	const int ordinal = (int)(intptr_t)number;
	struct used_card *c = &cards[ordinal];
	uint64_t own = card->context_bytes + used_bytes;
	struct others o;
	char name[60];

	/* a fork of a process that used the card cannot use it */
	if ((c->pid && c->pid != getpid()) || !read_card(c, ordinal))
		return 0;
	o = look(c);
	if (asked_bytes <= card->total_bytes && own + asked_bytes + o.bytes <= card->total_bytes)
		own += asked_bytes;
	else if (snprintf(name, sizeof(name), "refused.%d.%d", getpid(), ordinal) && o.count)
		tell(name, O_TRUNC, o.bytes, o.count, o.most_pid);
	if ((c->pid || ((used_bytes || asked_bytes) && begin(c))) &&
	    pwrite(c->fd, &own, sizeof(own), c->mine * (off_t)sizeof(own)) == sizeof(own) &&
	    o.count && own + o.bytes > c->most_bytes) {
		c->most_bytes = own + o.bytes;
		tell("shared", O_APPEND, c->most_bytes, o.count + 1, 0);
	}
	locked(c->fd, F_SETLK, F_UNLCK, PLACES_MAX);
	return o.bytes;
}
