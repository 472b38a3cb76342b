/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Robson's program against first fit. J. M. Robson, An estimate of the store size necessary for
 * dynamic storage allocation, Journal of the ACM 18 (1971): with blocks of 1 to n words, n a power
 * of two, and at most m words live, it makes any policy that moves nothing take at least
 *
 *	m (1 + log2(n) / 2) - n + 1
 *
 * words, because it looks where blocks lie. A trace cannot look, so it is written against first fit
 * by address, which is simulated here; a policy that places blocks elsewhere may take less.
 */
#include "gen_known.h"

#define WORD_BYTES (256 * FRAG_KIB)
#define LEVELS 8u /* log2(n) */

struct robson {
	struct frag_maker *m;
	struct frag_block_of_words {
		uint64_t at, words, id;
	} * live;
	size_t live_count;
	bool *taken; /* by word */
	uint64_t room, words, height;
};

/* Does the block hold a word whose address is `offset` modulo `step`? */
static bool holds(const struct frag_block_of_words *b, uint64_t offset, uint64_t step)
{
	return (offset + step - b->at % step) % step < b->words;
}

/* What the blocks that hold such a word make useless for blocks of `step` words. */
static uint64_t spoilt(const struct robson *r, uint64_t offset, uint64_t step)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < r->live_count; i++)
		if (holds(&r->live[i], offset, step))
			sum += step - r->live[i].words;
	return sum;
}

static int drop_others(struct robson *r, uint64_t offset, uint64_t step, struct frag_err *err)
{
	size_t kept = 0;

	for (size_t i = 0; i < r->live_count; i++) {
		const struct frag_block_of_words b = r->live[i];

		if (holds(&b, offset, step)) {
			r->live[kept++] = b;
			continue;
		}
		for (uint64_t w = 0; w < b.words; w++)
			r->taken[b.at + w] = false;
		r->words -= b.words;
		FRAG_TRY(frag_maker_release(r->m, b.id, r->m->now_us, 0, err));
	}
	r->live_count = kept;
	return 0;
}

/* As many blocks of one size as fit, each in the lowest hole; all lie above the one before. */
static int fill(struct robson *r, uint64_t most, uint64_t words, struct frag_err *err)
{
	uint64_t at = 0, free_words = 0;

	while (r->words + words <= most) {
		struct frag_block_of_words *b = &r->live[r->live_count++];

		for (; free_words < words; at++) {
			FRAG_ASSERT(at < r->room);
			free_words = r->taken[at] ? 0 : free_words + 1;
		}
		*b = (struct frag_block_of_words){ .at = at - words, .words = words };
		free_words = 0;
		for (uint64_t w = 0; w < words; w++)
			r->taken[b->at + w] = true;
		r->words += words;
		r->height = FRAG_MAX(r->height, at);
		FRAG_TRY(frag_maker_ask(r->m, words * WORD_BYTES, 0, &b->id, err));
	}
	return 0;
}

static int play(struct robson *r, uint64_t most, struct frag_err *err)
{
	uint64_t offset = 0, n = 1u << LEVELS;

	FRAG_TRY(fill(r, most, 1, err));
	for (uint64_t step = 2; step <= n; step *= 2) {
		if (spoilt(r, offset + step / 2, step) > spoilt(r, offset, step))
			offset += step / 2;
		FRAG_TRY(drop_others(r, offset, step, err));
		FRAG_TRY(fill(r, most, step, err));
	}
	r->m->bounds.first_fit_bytes = r->height * WORD_BYTES;
	r->m->bounds.online_bytes = (most + most * LEVELS / 2 - n + 1) * WORD_BYTES;
	return 0;
}

int frag_known_robson(struct frag_maker *m, struct frag_err *err)
{
	uint64_t most = m->scale * FRAG_GIB / WORD_BYTES;
	struct robson r = { .m = m, .room = (LEVELS + 1) * most };
	int rc;

	r.live = frag_host_calloc(most, sizeof(*r.live));
	r.taken = frag_host_calloc(r.room, sizeof(*r.taken));
	rc = r.live && r.taken ? play(&r, most, err) : frag_fail_nomem(err, "blocks of a program");
	FRAG_FREE(r.live, r.taken);
	return rc;
}
