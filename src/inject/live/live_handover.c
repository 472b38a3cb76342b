/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that goes from one stream to another, for policies that have no rule of their own for it.
 * Work of the stream that freed it may still run: the new owner's stream waits for an event
 * recorded there, on the card; the host does not.
 *
 * `left` holds for each piece of free memory which stream freed it and when (a serial number);
 * adjacent pieces of one stream are merged. waited[a][b]: the last serial of stream b that stream a
 * has waited for. With one stream nothing is kept; a new stream waits once for all others, which
 * covers everything freed before.
 */
#include "live_core.h"

#include <string.h>

#define END(n) ((n)->node.key + (n)->node.weight)

static struct frag_live_left *left_of(struct frag_tree_node *n)
{
	return n ? FRAG_TREE_OF(n, struct frag_live_left, node) : NULL;
}

static void insert(struct frag_live_dev *d, uint64_t addr, uint64_t bytes, uint32_t stream,
		   uint64_t serial)
{
	struct frag_live_left *n = frag_slab_alloc(&d->left_nodes);

	if (!n) {
		/* no node to record the owner: synchronise now */
		frag_dev_sync_all(d->dev, NULL);
		return;
	}
	*n = (struct frag_live_left){ .node = { .key = addr, .weight = bytes },
				      .stream = stream,
				      .serial = serial };
	frag_tree_insert(&d->left, &n->node);
}

static void drop(struct frag_live_dev *d, struct frag_live_left *n)
{
	frag_tree_remove(&d->left, &n->node);
	frag_slab_free(&d->left_nodes, n);
}

/* ---- waits between streams ------------------------------------------------------------------ */

static int room(struct frag_live_dev *d, struct frag_err *err)
{
	uint32_t cap = d->waited_cap, more = FRAG_MAX(8u, 2 * cap);
	uint64_t *table;

	if (d->card->streams_count <= cap)
		return 0;
	while (more < d->card->streams_count)
		more *= 2;
	FRAG_TRY_CALLOC(table, (size_t)more * more, "streams", err);
	for (uint32_t i = 0; i < cap; i++)
		memcpy(table + (size_t)i * more, d->waited + (size_t)i * cap, cap * sizeof(*table));
	frag_host_free(d->waited);
	d->waited = table;
	d->waited_cap = more;
	return 0;
}

/* `stream` waits for everything that `other` was given so far. */
static int wait_for(struct frag_live_dev *d, uint32_t stream, uint32_t other, struct frag_err *err)
{
	const struct frag_live_card *c = d->card;
	FRAG_LIVE_ENTERED(c);
	void *event;
	int rc;

	FRAG_TRY(frag_live_event_take(d->card, &event, err));
	rc = FRAG_CU(c->cu, err, cuEventRecord, event, c->streams[other])
		     ?: FRAG_CU(c->cu, err, cuStreamWaitEvent, c->streams[stream], event, 0);
	/* the wait has its own copy of what the event stood for */
	frag_live_event_give(d->card, event);
	FRAG_TRY(rc);
	d->waited[(size_t)stream * d->waited_cap + other] = d->left_serial;
	d->stats.stream_waits++;
	return 0;
}

/* ---- handing over ----------------------------------------------------------------------- */

/* The first piece that ends above addr. */
static struct frag_live_left *first_above(const struct frag_live_dev *d, uint64_t addr)
{
	struct frag_live_left *n = left_of(frag_tree_floor(&d->left, addr));

	return n && END(n) > addr ? n : left_of(frag_tree_ceil(&d->left, addr, 0));
}

/* Cuts [addr, end) out of n. */
static void cut(struct frag_live_dev *d, struct frag_live_left *n, uint64_t addr, uint64_t end)
{
	uint64_t begin = n->node.key, stop = END(n);
	uint32_t stream = n->stream;
	uint64_t serial = n->serial;

	drop(d, n);
	if (begin < addr)
		insert(d, begin, addr - begin, stream, serial);
	if (stop > end)
		insert(d, end, stop - end, stream, serial);
}

int frag_live_hand_over(struct frag_live_dev *d, const struct frag_block *b, bool fresh,
			struct frag_err *err)
{
	uint64_t end = b->addr + b->granted;
	struct frag_live_left *n;

	if (FRAG_LIKELY(d->card->streams_count == 1))
		return 0;
	FRAG_TRY(room(d, err));
	for (uint32_t i = 0; fresh && i < d->card->streams_count; i++)
		if (i != b->stream)
			FRAG_TRY(wait_for(d, b->stream, i, err));
	while ((n = first_above(d, b->addr)) && n->node.key < end) {
		if (n->stream != b->stream &&
		    n->serial > d->waited[(size_t)b->stream * d->waited_cap + n->stream])
			FRAG_TRY(wait_for(d, b->stream, n->stream, err));
		cut(d, n, b->addr, end);
	}
	return 0;
}

void frag_live_left_by(struct frag_live_dev *d, const struct frag_block *b)
{
	uint64_t addr = b->addr, bytes = b->granted;
	struct frag_live_left *n;

	if (FRAG_LIKELY(d->card->streams_count == 1))
		return;
	while ((n = first_above(d, addr)) && n->node.key < addr + bytes)
		cut(d, n, addr, addr + bytes);
	n = left_of(frag_tree_floor(&d->left, addr));
	if (n && END(n) == addr && n->stream == b->stream) {
		addr = n->node.key;
		bytes += n->node.weight;
		drop(d, n);
	}
	n = left_of(frag_tree_ceil(&d->left, addr + bytes, 0));
	if (n && n->node.key == addr + bytes && n->stream == b->stream) {
		bytes += n->node.weight;
		drop(d, n);
	}
	insert(d, addr, bytes, b->stream, ++d->left_serial);
}

void frag_live_left_forget(struct frag_live_dev *d)
{
	d->left = (struct frag_tree){ 0 };
	frag_slab_release(&d->left_nodes);
}

void frag_live_left_release(struct frag_live_dev *d)
{
	frag_live_left_forget(d);
	frag_host_free(d->waited);
}
