/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds by behaviour; see explain.h for the rules. */
#include "explain.h"

#include <string.h>

#include "lib/addr_map.h"

#define SHORT_PART 50u /* a temporary lives for at most 1/50 of the requests of its step */
#define SHORT_MIN 8u
#define KEYS_MAX 65536u
#define NO_ITEM UINT32_MAX

static const char *const words[][2] = {
#define FRAG_X_(name, text, rule) { text, rule },
	FRAG_KIND_LIST(FRAG_X_)
#undef FRAG_X_
};

const char *frag_kind_name(enum frag_kind kind)
{
	return words[kind][0];
}

const char *frag_kind_rule(enum frag_kind kind)
{
	return words[kind][1];
}

struct birth {
	uint64_t event, allocs; /* when, and the number of requests before it */
	uint32_t step, key;	/* key: index of its counts, NO_ITEM = not counted */
	uint32_t item;		/* of the view, NO_ITEM = not in it */
	bool live, in_optimizer;
};

struct pass {
	const struct frag_history *h;
	struct birth *births;
	size_t slots;
	uint64_t event, allocs, step_allocs, last_step_allocs;
	uint64_t alloc_event; /* of the last request */
	size_t step;
	bool stacks;
	struct frag_addr_map numbers;  /* of counts, by stack or size */
	uint32_t (*table)[FRAG_KINDS]; /* [KEYS_MAX]: of all blocks of a stack, or size */
	uint32_t keys;
	uint32_t *item_of_slot; /* blocks of the view */
	const struct frag_heap_view *view;
	struct frag_kind_of *out;
	uint32_t *item_key;
};

/* The number of what is counted for this request, NO_ITEM = too many. */
static uint32_t key_of(struct pass *p, const struct frag_event *e)
{
	uint64_t key = p->stacks ? e->stack : e->bytes;
	const struct frag_addr_cell *cell = frag_addr_map_find(&p->numbers, key);

	if (cell)
		return frag_addr_number(cell);
	if (p->keys == KEYS_MAX || frag_addr_map_number(&p->numbers, key, p->keys))
		return NO_ITEM;
	return p->keys++;
}

static bool in_optimizer(const struct pass *p)
{
	return p->event >= p->h->steps[p->step].optimizer_from && p->step < p->h->count;
}

/* Of a block that goes now; at the end of everything `last`. */
static enum frag_kind kind_of(const struct pass *p, const struct birth *b, bool last)
{
	const struct frag_history *h = p->h;
	uint64_t life = p->allocs - b->allocs, step_allocs;
	bool marks = h->from == FRAG_STEPS_MARKS;

	if (h->from == FRAG_STEPS_NONE || h->count < 3)
		return FRAG_KIND_UNKNOWN;
	if (b->step == 0 && (last || p->step >= h->count))
		return b->in_optimizer ? FRAG_KIND_OPTIMIZER : FRAG_KIND_PERMANENT;
	if (b->step < h->count && (last || p->step >= b->step + 2))
		return FRAG_KIND_KEPT;
	if (p->step == b->step + 1)
		return marks && p->alloc_event < h->steps[b->step].end && !b->in_optimizer
			       ? FRAG_KIND_GRADIENT
			       : FRAG_KIND_CARRIED;
	step_allocs = FRAG_MAX(p->last_step_allocs, p->step_allocs);
	if (life <= FRAG_MAX(step_allocs / SHORT_PART, (uint64_t)SHORT_MIN) ||
	    (marks && b->in_optimizer))
		return FRAG_KIND_TEMPORARY;
	return marks ? FRAG_KIND_ACTIVATION : FRAG_KIND_WITHIN;
}

static void count_kind(struct pass *p, struct birth *b, bool last)
{
	enum frag_kind kind = kind_of(p, b, last);

	if (b->key != NO_ITEM)
		p->table[b->key][kind]++;
	if (b->item != NO_ITEM) {
		p->out[b->item].kind = (uint8_t)kind;
		p->item_key[b->item] = b->key;
	}
	b->live = false;
}

static void born(struct pass *p, const struct frag_event *e)
{
	struct birth *b = &p->births[e->slot];
	uint32_t item = p->item_of_slot[e->slot];

	p->allocs++;
	p->step_allocs++;
	p->alloc_event = p->event;
	if (item != NO_ITEM && p->view->list[item].born != p->event)
		item = NO_ITEM;
	*b = (struct birth){ p->event, (uint64_t)p->allocs, (uint32_t)p->step, key_of(p, e), item,
			     true,     in_optimizer(p) };
}

static void on_event(struct pass *p, const struct frag_event *e)
{
	if (p->step < p->h->count && p->event == p->h->steps[p->step].end) {
		p->step++;
		p->last_step_allocs = p->step_allocs;
		p->step_allocs = 0;
	}
	if (e->kind == FRAG_EV_ALLOC)
		born(p, e);
	else if (e->kind <= FRAG_EV_FREE_REQUESTED && p->births[e->slot].live)
		count_kind(p, &p->births[e->slot], false);
}

static int open_pass(struct pass *p, struct frag_err *err)
{
	p->births = frag_host_calloc(p->slots + 1, sizeof(*p->births));
	p->table = frag_host_calloc(KEYS_MAX, sizeof(*p->table));
	p->item_of_slot = frag_host_alloc((p->slots + 1) * sizeof(*p->item_of_slot));
	p->item_key = frag_host_alloc((p->view->count + 1) * sizeof(*p->item_key));
	FRAG_CHECK_ALLOC(p->births && p->table && p->item_of_slot && p->item_key, "kinds", err);
	memset(p->item_of_slot, 0xff, (p->slots + 1) * sizeof(*p->item_of_slot));
	for (size_t i = 0; i < p->view->count; i++) {
		p->item_of_slot[p->view->list[i].slot] = (uint32_t)i;
		p->item_key[i] = NO_ITEM;
	}
	return 0;
}

static void set_confidence(struct pass *p)
{
	for (size_t i = 0; i < p->view->count; i++) {
		struct frag_kind_of *k = &p->out[i];
		const uint32_t *counts;
		uint32_t total = 0;

		if (p->item_key[i] == NO_ITEM || k->kind == FRAG_KIND_UNKNOWN)
			continue;
		counts = p->table[p->item_key[i]];
		for (unsigned n = 0; n < FRAG_KINDS; n++)
			total += counts[n];
		k->confidence = total ? (float)counts[k->kind] / (float)total : 0;
	}
}

int frag_kinds_find(const struct frag_events *ev, const struct frag_history *h,
		    const struct frag_heap_view *view, struct frag_kind_of *out,
		    struct frag_err *err)
{
	const struct frag_trace_dev *dev = frag_events_dev(ev);
	struct pass p = { .h = h,
			  .view = view,
			  .out = out,
			  .slots = dev->slots_count,
			  .stacks = ev->trace->stacks.count > 1 };
	int rc = open_pass(&p, err);

	for (size_t i = 0; i < view->count; i++)
		out[i] = (struct frag_kind_of){ FRAG_KIND_UNKNOWN, 0 };
	for (; !rc && p.event < dev->events_count; p.event++)
		on_event(&p, &dev->events[p.event]);
	for (size_t i = 0; !rc && i < p.slots; i++)
		if (p.births[i].live)
			count_kind(&p, &p.births[i], true);
	if (!rc)
		set_confidence(&p);
	frag_addr_map_release(&p.numbers);
	FRAG_FREE(p.births, p.table, p.item_of_slot, p.item_key);
	return rc;
}
