/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Address space of the host process. The driver maps through the kernel, so segments fill holes
 * that the program leaves: a model that was made on the CPU and moves to the card makes room for
 * itself, top down. Changes between two reads of /proc/self/maps are repeated in the address space
 * of the simulated card.
 *
 * Mappings older than the card lie above the context, as on a real card; holes of 32 MiB and more
 * among them are assumed to be the driver's own.
 *
 * Invariant: the list of a card is ascending and disjoint.
 */
#include "nogpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <frag/device.h>

#include "lib/grow.h"

#define AREA_GAP (64 * FRAG_GIB) /* below a hole of this size, the kernel placed nothing */
/* Taken first by the driver's own libraries: between 96 and 160 MiB in four programs on an H200. */
#define DRIVER (128 * FRAG_MIB)
#define ROOM (400 * FRAG_GIB) /* higher addresses are not followed */
#define HOLE (32 * FRAG_MIB)

struct held {
	uint64_t begin, end;
	frag_addr_t at; /* its address for the card's driver; 0 = none */
};

struct list {
	struct held *at;
	size_t count, room;
};

static struct space {
	struct frag_device *sim; /* NULL: not open yet */
	struct list held;	 /* empty: not read yet */
} spaces[NOGPU_CARDS_MAX];

static bool add(struct list *l, struct held h)
{
	if (FRAG_GROW(l->at, l->count, l->room, "mapped addresses", NULL))
		return false;
	l->at[l->count++] = h;
	return true;
}

/* Adds a mapping, lowest first, and merges neighbours. Keeps only the area that the kernel fills
 * from the top, where libraries lie, and which has no large hole. False: it is complete. */
static bool join(struct list *now, uint64_t begin, uint64_t end)
{
	struct held *last = now->count ? &now->at[now->count - 1] : NULL;

	if (last && begin - last->end > AREA_GAP) {
		if (last->end > (uint64_t)(uintptr_t)join)
			return false; /* only the stack follows */
		now->count = 0;
	}
	if (now->count && last->end == begin)
		last->end = end;
	else if (!add(now, (struct held){ .begin = begin, .end = end }))
		now->count = 0;
	return now->count;
}

/* "BEGIN-END ...", both in hexadecimal. Parsed by hand: fscanf took longer than the kernel needs to
 * write the file. */
static bool parse(const char *line, uint64_t *begin, uint64_t *end)
{
	char *dash, *space;

	*begin = strtoull(line, &dash, 16);
	if (dash == line || *dash != '-')
		return false;
	*end = strtoull(dash + 1, &space, 16);
	return *space == ' ';
}

/* Reads the current mappings. False: unknown. */
static bool look(struct list *now)
{
	FILE *f = fopen("/proc/self/maps", "re");
	uint64_t begin, end;
	char *line = NULL;
	size_t room = 0;

	if (!f)
		return false;
	while (getline(&line, &room, f) > 0 && parse(line, &begin, &end) && join(now, begin, end))
		;
	free(line);
	fclose(f);
	return now->count;
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

/* Moves those of `before` that still exist to `kept`, which has room; unmaps the rest. */
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

/* Maps the new ones, highest first, as the kernel placed them. `kept` is unsorted afterwards. */
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

void *frag_nogpu_host_space(int ordinal)
{
	return &spaces[ordinal];
}

void frag_nogpu_host_begin(void *ctx, struct frag_device *sim)
{
	((struct space *)ctx)->sim = sim;
	frag_nogpu_host_look(ctx);
}

void frag_nogpu_host_look(void *ctx)
{
	struct space *s = ctx;
	struct list *held = &s->held, now = { .at = NULL }, kept = { .at = NULL };

	if (!s->sim || !look(&now)) {
		free(now.at);
		return;
	}
	if (!held->count) {
		first_look(s->sim, &now);
		*held = now;
		return;
	}
	/* two lists overlap, and have gaps, at most once for each end of a range */
	kept.room = 2 * held->count + 3 * now.count;
	kept.at = frag_host_calloc(kept.room, sizeof(*kept.at));
	if (kept.at) {
		keep(s->sim, held, &now, &kept);
		take_new(s->sim, &now, &kept);
		qsort(kept.at, kept.count, sizeof(*kept.at), compare);
		free(held->at);
		*held = kept;
	}
	free(now.at);
}
