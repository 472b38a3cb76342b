/* SPDX-License-Identifier: Apache-2.0 */
/* Logs addresses and repeats them; see address_log.h. */
#include "address_log.h"
#include "lib/grow.h"

static void on_placed(void *ctx, enum frag_call call, uint64_t bytes, frag_addr_t addr)
{
	struct address_log *t = ctx;

	if (t->before)
		t->before(t->before_ctx, call, bytes, addr);
	if (FRAG_GROW(t->given, t->count, t->cap, "addresses", NULL)) {
		t->short_of_memory = true;
		return;
	}
	t->given[t->count++] =
		(struct given_address){ .bytes = bytes, .addr = addr, .call = (uint8_t)call };
}

void address_log_record(struct address_log *t, struct frag_device *dev)
{
	*t = (struct address_log){ .dev = dev,
				   .before = dev->placed,
				   .before_ctx = dev->placed_ctx };
	dev->placed = on_placed;
	dev->placed_ctx = t;
}

void address_log_stop(struct address_log *t)
{
	t->dev->placed = t->before;
	t->dev->placed_ctx = t->before_ctx;
	t->dev = NULL;
}

/* The next entry of the log, if it matches the request. */
static const struct given_address *due(const struct address_log *t, enum frag_call call,
				       uint64_t bytes)
{
	const struct given_address *g = t->next < t->count ? &t->given[t->next] : NULL;

	return g && !t->lost && g->call == call && g->bytes == bytes ? g : NULL;
}

/* Only peeks: if the card has no room, a later call uses the same entry. */
static int give(void *ctx, enum frag_call call, uint64_t bytes, frag_addr_t *addr)
{
	const struct given_address *g = due(ctx, call, bytes);

	if (!g)
		return -1;
	*addr = g->addr;
	return 0;
}

static void on_given(void *ctx, enum frag_call call, uint64_t bytes, frag_addr_t addr)
{
	struct address_log *t = ctx;
	const struct given_address *g = due(t, call, bytes);

	if (g && g->addr == addr)
		t->next++;
	else
		t->lost = true;
}

int address_log_play(struct address_log *t, const struct frag_sim_config *cfg,
		     struct frag_device **out, struct frag_err *err)
{
	struct frag_sim_config card = *cfg;

	card.place = give;
	card.place_ctx = t;
	t->next = 0;
	t->lost = false;
	FRAG_TRY(frag_sim_open(&card, out, err));
	(*out)->placed = on_given;
	(*out)->placed_ctx = t;
	return 0;
}

void address_log_release(struct address_log *t)
{
	frag_host_free(t->given);
	*t = (struct address_log){ 0 };
}
