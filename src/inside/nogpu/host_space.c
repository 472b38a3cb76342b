/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses of the host process. The driver asks the kernel for address space, so segments fill the holes that the program
 * leaves: a model that was made on the CPU and moves to the card makes room for itself, from the top down. What the process
 * maps and unmaps between two looks (/proc/self/maps) is done again in the address space of the simulated card.
 *
 * What was mapped before the card was opened lies above the context, as it does on a real card; holes in it from 32 MiB on are
 * taken for the driver's own.
 *
 * Invariant: held[] of a card is ascending and disjoint.
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

static struct space {
	struct list held;
	bool known;
} spaces[NOGPU_CARDS_MAX];

static bool add(struct list *l, struct held h)
{
	if (FRAG_GROW(l->at, l->count, l->room, "mapped addresses", NULL))
		return false;
	l->at[l->count++] = h;
	return true;
}

/* The area that the kernel fills from the top, where libraries lie; neighbours joined. false: unknown. */
static bool look(struct list *now)
{
	FILE *f = fopen("/proc/self/maps", "re");
	uint64_t library = (uint64_t)(uintptr_t)look;
	unsigned long long begin, end;
	bool fine = f != NULL;

	while (fine && fscanf(f, "%llx-%llx%*[^\n]", &begin, &end) == 2) {
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
	if (f)
		fclose(f);
	return fine && now->count;
}

static void first_look(struct frag_device *sim, struct space *s, struct list *now)
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
	s->held = *now;
	*now = (struct list){ .at = NULL };
	s->known = true;
}

static void give(struct frag_device *sim, const struct held *h, uint64_t begin, uint64_t end)
{
	if (h->at && begin < end)
		frag_sim_host_give(sim, h->at + (begin - h->begin), end - begin);
}

/* What of `before` is still there goes to `kept`; the rest is given back. */
static bool keep(struct frag_device *sim, const struct list *before, const struct list *now,
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
			if (!add(kept, (struct held){ begin, end,
						      h->at ? h->at + (begin - h->begin) : 0 }))
				return false;
			from = end;
		}
		give(sim, h, from, h->end);
	}
	return true;
}

/* What is new, the highest first, as the kernel gave it. `kept` is no longer ascending then. */
static bool take(struct frag_device *sim, const struct list *now, struct list *kept)
{
	size_t k = kept->count;

	for (size_t i = now->count; i-- > 0;) {
		uint64_t begin = now->at[i].begin, end = now->at[i].end;

		while (end > begin) {
			const struct held *below = k ? &kept->at[k - 1] : NULL;
			uint64_t from = below ? FRAG_MAX(begin, FRAG_MIN(below->end, end)) : begin;

			if (from < end &&
			    !add(kept,
				 (struct held){ from, end, frag_sim_host_take(sim, end - from) }))
				return false;
			if (!k || from == begin)
				break;
			k--;
			end = FRAG_MAX(begin, kept->at[k].begin);
		}
		while (k && kept->at[k - 1].begin >= begin)
			k--;
	}
	return true;
}

static int compare(const void *a, const void *b)
{
	const struct held *x = a, *y = b;

	return x->begin < y->begin ? -1 : x->begin > y->begin;
}

void frag_nogpu_host_look(void *ctx)
{
	int ordinal = *(const int *)ctx;
	struct frag_device *sim = frag_nogpu_sim(ordinal);
	struct space *s = &spaces[ordinal];
	struct list now = { .at = NULL }, kept = { .at = NULL };

	if (look(&now) && !s->known)
		first_look(sim, s, &now);
	else if (s->known && now.count && keep(sim, &s->held, &now, &kept) &&
		 take(sim, &now, &kept)) {
		struct list before = s->held;

		qsort(kept.at, kept.count, sizeof(*kept.at), compare);
		s->held = kept;
		kept = before;
	}
	free(now.at);
	free(kept.at);
}
