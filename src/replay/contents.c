/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contents of blocks: queues fills and verifies, and describes what a verify found.
 *
 * The card is asynchronous: a fault becomes visible some frees later, when the slot may have been
 * reused. So every use of a block is kept by number: its range, and the events of its alloc and
 * free.
 */
#include "contents.h"
#include "lib/grow.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#include <frag/clock.h>

#define LLU(x) ((unsigned long long)(x))

struct life {
	frag_addr_t addr;
	uint64_t bytes;
	uint64_t born, died; /* events; died UINT64_MAX = live */
};

struct frag_contents {
	struct frag_device *dev;
	bool fill, paced;
	uint64_t start_ns; /* host time of the first event */
	bool started;
	uint32_t *current; /* slot -> number of its current use, 0 = none */
	uint32_t slots_count;
	struct life *lives; /* by number, from 1 */
	uint32_t lives_count;
	size_t lives_cap;
};

int frag_contents_create(const struct frag_run_options *opt, struct frag_device *dev,
			 struct frag_contents **out, struct frag_err *err)
{
	struct frag_contents *c;

	*out = NULL;
	if (!opt->fill && !opt->paced)
		return 0;
	if (opt->fill && !frag_dev_has_content(dev))
		return frag_fail(err, FRAG_ENOTSUP,
				 "device '%s' has no memory behind its addresses, so nothing can "
				 "be filled and verified; use --device cuda",
				 dev->ops->name);
	FRAG_TRY_CALLOC(c, 1, "contents of blocks", err);
	c->dev = dev;
	c->fill = opt->fill;
	c->paced = opt->paced;
	*out = c;
	return 0;
}

void frag_contents_destroy(struct frag_contents *c)
{
	if (!c)
		return;
	FRAG_FREE(c->current, c->lives, c);
}

void frag_contents_pace(struct frag_contents *c, uint64_t time_us)
{
	struct timespec due;
	uint64_t due_ns;

	if (!c->paced)
		return;
	if (!c->started) {
		c->start_ns = frag_clock_ns();
		c->started = true;
	}
	due_ns = c->start_ns + time_us * 1000;
	due.tv_sec = (time_t)(due_ns / 1000000000);
	due.tv_nsec = (long)(due_ns % 1000000000);
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL) == EINTR)
		;
}

/* ---- uses of blocks --------------------------------------------------------------------- */

static int grow(struct frag_contents *c, uint32_t slot, struct frag_err *err)
{
	if (slot >= c->slots_count) {
		uint32_t count = FRAG_MAX(slot + 1, 2 * c->slots_count);
		uint32_t *current = frag_host_realloc(c->current, count, sizeof(*current));

		FRAG_CHECK_ALLOC(current, "contents of blocks", err);
		for (uint32_t i = c->slots_count; i < count; i++)
			current[i] = 0;
		c->current = current;
		c->slots_count = count;
	}
	return FRAG_GROW(c->lives, c->lives_count + 1, c->lives_cap, "contents of blocks", err);
}

static struct frag_content content_of(const struct frag_block *b, uint32_t slot, uint32_t number)
{
	return (struct frag_content){ .addr = b->addr,
				      .bytes = b->requested,
				      .stream = b->stream,
				      .id = slot,
				      .generation = number };
}

/* ---- findings ---------------------------------------------------------------- */

static void describe(const struct frag_contents *c, uint32_t id, uint32_t number, char *out,
		     size_t cap)
{
	const struct life *l;
	char died[48] = "live";

	if (!number || number > c->lives_count) {
		snprintf(out, cap, "block %u of an earlier run", id);
		return;
	}
	l = &c->lives[number];
	if (l->died != UINT64_MAX)
		snprintf(died, sizeof(died), "freed at event %llu", LLU(l->died));
	snprintf(out, cap, "block %u at 0x%llx..0x%llx (event %llu, %s)", id, LLU(l->addr),
		 LLU(l->addr + l->bytes), LLU(l->born), died);
}

static int tell(const struct frag_contents *c, const struct frag_content_fault *f,
		struct frag_err *err)
{
	const struct life *a = &c->lives[f->generation], *b = &c->lives[f->other_generation];
	char mine[128], other[128];
	bool together;

	describe(c, f->id, f->generation, mine, sizeof(mine));
	if (!f->foreign)
		return frag_fail(err, FRAG_ECHECK,
				 "lost content: %s has %08x %08x %08x %08x at offset %llu, which "
				 "no fill wrote; %llu pieces of 16 bytes are wrong",
				 mine, f->found[0], f->found[1], f->found[2], f->found[3],
				 LLU(f->offset), LLU(f->count));
	describe(c, f->other_id, f->other_generation, other, sizeof(other));
	if (f->other_generation == f->generation || f->other_generation > c->lives_count)
		return frag_fail(err, FRAG_ECHECK,
				 "lost content: %s has at offset %llu what belongs to offset %llu "
				 "of %s; %llu pieces of 16 bytes are wrong",
				 mine, LLU(f->offset), LLU(f->other_offset), other, LLU(f->count));
	together = a->born < b->died && b->born < a->died;
	return frag_fail(err, FRAG_ECHECK,
			 "%s: %s has at offset %llu the content of offset %llu of %s; "
			 "%llu pieces of 16 bytes are wrong",
			 together ? "live blocks overlap" : "lost content", mine, LLU(f->offset),
			 LLU(f->other_offset), other, LLU(f->count));
}

static int look(struct frag_contents *c, bool wait, struct frag_err *err)
{
	struct frag_content_fault f;

	FRAG_TRY(frag_dev_content_fault(c->dev, wait, &f, err));
	return FRAG_UNLIKELY(f.count) ? tell(c, &f, err) : 0;
}

/* ---- events ------------------------------------------------------------------------ */

int frag_contents_alloc(struct frag_contents *c, uint32_t slot, const struct frag_block *b,
			uint64_t event, struct frag_err *err)
{
	struct frag_content block = content_of(b, slot, c->lives_count + 1);

	if (!c->fill)
		return 0;
	FRAG_TRY(grow(c, slot, err));
	FRAG_TRY(frag_dev_content(c->dev, FRAG_CONTENT_FILL, &block, err));
	c->lives[++c->lives_count] = (struct life){
		.addr = b->addr, .bytes = b->requested, .born = event, .died = UINT64_MAX
	};
	c->current[slot] = c->lives_count;
	return 0;
}

int frag_contents_free(struct frag_contents *c, uint32_t slot, const struct frag_block *b,
		       uint64_t event, struct frag_err *err)
{
	struct frag_content block;

	if (!c->fill || slot >= c->slots_count || !c->current[slot])
		return 0;
	block = content_of(b, slot, c->current[slot]);
	c->lives[c->current[slot]].died = event;
	c->current[slot] = 0;
	FRAG_TRY(frag_dev_content(c->dev, FRAG_CONTENT_VERIFY, &block, err));
	return look(c, false, err);
}

int frag_contents_finish(struct frag_contents *c, struct frag_err *err)
{
	return c->fill ? look(c, true, err) : 0;
}
