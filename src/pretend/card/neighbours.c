/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes of a run that use the same card share its memory. Each writes what it holds into a file
 * of the card, in the folder of recordings, and locks its place there as long as it lives. The file
 * "shared" gets a line, the bytes, whenever several hold more than before.
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

static bool locked(int fd, int command, short type, int place)
{
	struct flock l = { .l_type = type, .l_whence = SEEK_SET, .l_start = place, .l_len = 1 };

	return !fcntl(fd, command, &l) && (command != F_GETLK || l.l_type != F_UNLCK);
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

/* The place of somebody else, who lives. */
static bool taken(const struct used_card *c, int place)
{
	return c->held[place] && (!c->pid || place != c->mine) &&
	       locked(c->fd, F_GETLK, F_WRLCK, place);
}

static bool begin(struct used_card *c)
{
	while (c->mine < PLACES_MAX && !locked(c->fd, F_SETLK, F_WRLCK, c->mine))
		c->mine++;
	c->pid = c->mine < PLACES_MAX ? getpid() : 0;
	return c->pid;
}

static void tell(struct used_card *c, uint64_t bytes)
{
	int fd;

	if (bytes <= c->most_bytes)
		return;
	c->most_bytes = bytes;
	fd = open_beside(getenv(CUFRAG_RECORD), "shared", O_WRONLY | O_APPEND);
	if (fd >= 0)
		dprintf(fd, "%llu\n", (unsigned long long)bytes);
	if (fd >= 0)
		close(fd);
}

uint64_t frag_pretend_others(void *ordinal, uint64_t used_bytes, uint64_t asked_bytes)
{
	const struct pretend_card *card = frag_pretend_card();
	struct used_card *c = &cards[(intptr_t)ordinal];
	uint64_t own = card->context_bytes + used_bytes, others = 0;

	/* a fork of a process that used the card cannot use it */
	if ((c->pid && c->pid != getpid()) || !read_card(c, (int)(intptr_t)ordinal))
		return 0;
	for (int i = 0; i < PLACES_MAX; i++)
		others += taken(c, i) ? c->held[i] : 0;
	if (asked_bytes <= card->total_bytes && own + asked_bytes + others <= card->total_bytes)
		own += asked_bytes;
	if ((c->pid || ((used_bytes || asked_bytes) && begin(c))) &&
	    pwrite(c->fd, &own, sizeof(own), c->mine * (off_t)sizeof(own)) == sizeof(own))
		tell(c, others ? own + others : 0);
	locked(c->fd, F_SETLK, F_UNLCK, PLACES_MAX);
	return others;
}
