/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses of the host process. The driver asks the kernel for address space, so segments fill the holes that the program
 * leaves: a model that was made on the CPU and moves to the card makes room for itself, from the top down. What the process
 * maps and unmaps between two looks (/proc/self/maps) is done again in the address space of the simulated card.
 *
 * What was mapped before the card was opened lies above the context, as it does on a real card; holes in it from 32 MiB on are
 * taken for the driver's own.
 *
 * Invariant: the list of a card is ascending and disjoint.
 */
#include "nogpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <frag/device.h>

#include "lib/grow.h"

#define AREA_GAP (64 * FRAG_GIB) /* below a hole of this size lies nothing that the kernel placed */
/* What the driver's own libraries take first: between 96 and 160 MiB in four programs on an H200. */
#define DRIVER (128 * FRAG_MIB)
#define ROOM (400 * FRAG_GIB) /* what is higher is not followed */
#define HOLE (32 * FRAG_MIB)

struct held {
	uint64_t begin, end;
	frag_addr_t at; /* where the card's driver would see it; 0 = nowhere */
};

struct list {
	struct held *at;
	size_t count, room;
};

static struct list spaces[NOGPU_CARDS_MAX]; /* empty: no look yet */

static bool add(struct list *l, struct held h)
{
	if (FRAG_GROW(l->at, l->count, l->room, "mapped addresses", NULL))
		return false;
	l->at[l->count++] = h;
	return true;
}

/* "BEGIN-END ...", both in hexadecimal. Read by hand: fscanf took longer than the kernel needs to write the file. */
static bool parse(const char *line, uint64_t *begin, uint64_t *end)
{
	char *dash, *space;

	*begin = strtoull(line, &dash, 16);
	if (dash == line || *dash != '-')
		return false;
	*end = strtoull(dash + 1, &space, 16);
	return *space == ' ';
}

/* The area that the kernel fills from the top, where libraries lie; neighbours joined. false: unknown. */
static bool look(struct list *now)
{
	FILE *f = fopen("/proc/self/maps", "re");
	uint64_t library = (uint64_t)(uintptr_t)look, begin, end;
	char *line = NULL;
	size_t room = 0;
	bool fine = f != NULL;

	while (fine && getline(&line, &room, f) > 0 && parse(line, &begin, &end)) {
		struct held *last = now->count ? &now->at[now->count - 1] : NULL;

		if (last && begin - last->end > AREA_GAP) {
			if (last->end > library)
				break; /* what follows is the stack */
			now->count = 0;
		}
		if (now->count && last->end == begin)
			last->end = end;
		else
			fine = add(now, (struct held){ .begin = begin, .end = end });
	}
	free(line);
	if (f)
		fclose(f);
	return fine && now->count;
}

static void first_look(struct frag_device *sim, struct list *now)
{
	uint64_t low = now->at[0].begin;

	for (size_t i = 0; i < now->count; i++) {
		struct held *h = &now->at[i];
		uint64_t hole = i ? h->begin - h[-1].end : 0;

		if (h->end - low > ROOM)
			continue;
		h->at = h->begin - low + FRAG_SIM_HOST + DRIVER;
		if (hole && hole < HOLE)
			frag_sim_host_give(sim, h->at - hole, hole);
	}
}

static void give(struct frag_device *sim, const struct held *h, uint64_t begin, uint64_t end)
{
	if (h->at && begin < end)
		frag_sim_host_give(sim, h->at + (begin - h->begin), end - begin);
}

/* What of `before` is still there goes to `kept`, which has room; the rest is given back. */
static void keep(struct frag_device *sim, const struct list *before, const struct list *now,
		 struct list *kept)
{
	size_t n = 0;

	for (size_t i = 0; i < before->count; i++) {
		const struct held *h = &before->at[i];
		uint64_t from = h->begin;

		while (n < now->count && now->at[n].end <= h->begin)
			n++;
		for (size_t k = n; k < now->count && now->at[k].begin < h->end; k++) {
			uint64_t begin = FRAG_MAX(now->at[k].begin, h->begin);
			uint64_t end = FRAG_MIN(now->at[k].end, h->end);

			give(sim, h, from, begin);
			kept->at[kept->count++] =
				(struct held){ begin, end, h->at ? h->at + (begin - h->begin) : 0 };
			from = end;
		}
		give(sim, h, from, h->end);
	}
}

static void take(struct frag_device *sim, struct list *kept, uint64_t begin, uint64_t end)
{
	if (begin < end)
		kept->at[kept->count++] =
			(struct held){ begin, end, frag_sim_host_take(sim, end - begin) };
}

/* What is new, the highest first, as the kernel gave it. `kept` is no longer ascending then. */
static void take_new(struct frag_device *sim, const struct list *now, struct list *kept)
{
	size_t k = kept->count;

	for (size_t i = now->count; i-- > 0;) {
		uint64_t end = now->at[i].end;

		for (; k && kept->at[k - 1].begin >= now->at[i].begin; k--) {
			take(sim, kept, kept->at[k - 1].end, end);
			end = kept->at[k - 1].begin;
		}
		take(sim, kept, now->at[i].begin, end);
	}
}

FRAG_COMPARE(compare, struct held, FRAG_ORDER(x->begin, y->begin))

void frag_nogpu_host_look(void *ctx)
{
	int ordinal = (int)(intptr_t)ctx;
	struct list *held = &spaces[ordinal], now = { .at = NULL }, kept = { .at = NULL };
	struct frag_device *sim = frag_nogpu_sim(ordinal);

	if (!look(&now)) {
		free(now.at);
		return;
	}
	if (!held->count) {
		first_look(sim, &now);
		*held = now;
		return;
	}
	/* two ranges have parts in common, and between them, as often as one of them ends */
	kept.room = 2 * held->count + 3 * now.count;
	kept.at = frag_host_calloc(kept.room, sizeof(*kept.at));
	if (kept.at) {
		keep(sim, held, &now, &kept);
		take_new(sim, &now, &kept);
		qsort(kept.at, kept.count, sizeof(*kept.at), compare);
		free(held->at);
		*held = kept;
	}
	free(now.at);
}
