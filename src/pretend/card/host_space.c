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
#include "card.h"

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
} spaces[PRETEND_CARDS_MAX];

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

/* What of the ranges of `from` is in none of `out`, lowest first. */
static struct list without(const struct list *from, const struct list *out)
{
	struct list left = { .at = NULL };
	size_t n = 0;

	for (size_t i = 0; i < from->count; i++) {
		struct held h = from->at[i];

		for (; n < out->count && out->at[n].begin < h.end; n++) {
			const uint64_t gap = out->at[n].begin,
				       next = FRAG_MAX(out->at[n].end, h.begin);

			if (gap > h.begin)
				add(&left, (struct held){ h.begin, gap, h.at });
			h.at += h.at ? next - h.begin : 0;
			h.begin = next;
			if (next > h.end)
				break; /* it covers the next range, too */
		}
		if (h.begin < h.end)
			add(&left, h);
	}
	return left;
}

FRAG_COMPARE(compare, struct held, FRAG_ORDER(x->begin, y->begin))

void *frag_pretend_host_space(int ordinal)
{
	return &spaces[ordinal];
}

void frag_pretend_host_begin(void *ctx, struct frag_device *sim)
{
	((struct space *)ctx)->sim = sim;
	frag_pretend_host_look(ctx);
}

void frag_pretend_host_look(void *ctx)
{
	struct space *s = ctx;
	struct list now = { .at = NULL }, gone, fresh, kept;

	if (!s->sim || !look(&now)) {
		free(now.at);
		return;
	}
	if (!s->held.count) {
		first_look(s->sim, &now);
		s->held = now;
		return;
	}
	gone = without(&s->held, &now);
	fresh = without(&now, &s->held);
	kept = without(&s->held, &gone);
	for (size_t i = 0; i < gone.count; i++)
		if (gone.at[i].at)
			frag_sim_host_give(s->sim, gone.at[i].at,
					   gone.at[i].end - gone.at[i].begin);
	for (size_t i = fresh.count; i-- > 0;) { /* highest first, as the kernel placed them */
		struct held h = fresh.at[i];

		h.at = frag_sim_host_take(s->sim, h.end - h.begin);
		add(&kept, h);
	}
	qsort(kept.at, kept.count, sizeof(*kept.at), compare);
	free(now.at);
	free(gone.at);
	free(fresh.at);
	free(s->held.at);
	s->held = kept;
}
