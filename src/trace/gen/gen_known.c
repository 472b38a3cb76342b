/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces whose bounds are known; see gen_known.h. A generator asks for blocks and says at once when
 * they are released: entries are sorted by time at the end.
 */
#include "gen_known.h"

#include "lib/random.h"
#include "trace/log/log.h"

#define RING 512u
#define TICK_US 10u /* from one request to the next */

struct maker {
	struct frag_log log; /* first */
	uint64_t random, scale, now_us, ids;
	unsigned kind;
	uint64_t online_bytes;
};

static uint64_t below(struct maker *m, uint64_t n)
{
	return frag_random(&m->random) % n;
}

static uint64_t ticks(const struct maker *m, uint64_t n)
{
	return m->now_us + n * TICK_US;
}

static int put(struct maker *m, enum frag_log_action action, uint64_t id, uint64_t bytes,
	       uint64_t stream, uint64_t time_us, struct frag_err *err)
{
	const struct frag_log_entry e = { .action = action,
					  .id = id,
					  .bytes = bytes,
					  .stream = stream,
					  .pool = FRAG_LOG_UNKNOWN,
					  .time_us = time_us,
					  .line = m->log.later_count };

	return frag_log_later(&m->log, &e, err);
}

/* Asks a tick after the request before. *id names the block. */
static int ask(struct maker *m, uint64_t bytes, uint64_t stream, uint64_t *id, struct frag_err *err)
{
	m->now_us += TICK_US;
	*id = ++m->ids;
	return put(m, FRAG_LOG_ALLOC, *id, bytes, stream, m->now_us, err);
}

/* At that time; another stream may use the block until a later one. */
static int release(struct maker *m, uint64_t id, uint64_t at_us, uint64_t until_us,
		   struct frag_err *err)
{
	const uint64_t unknown = FRAG_LOG_UNKNOWN;

	if (until_us <= at_us)
		return put(m, FRAG_LOG_FREE, id, unknown, unknown, at_us, err);
	FRAG_TRY(put(m, FRAG_LOG_FREE_REQUESTED, id, unknown, unknown, at_us, err));
	return put(m, FRAG_LOG_FREE_COMPLETED, id, unknown, unknown, until_us, err);
}

/* A block with a life of so many ticks. */
static int block(struct maker *m, uint64_t bytes, uint64_t life, struct frag_err *err)
{
	uint64_t id;

	FRAG_TRY(ask(m, bytes, 0, &id, err));
	return release(m, id, ticks(m, life), 0, err);
}

/* Teeth of one size fill what is left; of each two neighbours one goes; then teeth of twice the
 * size, for which no hole is large enough. */
static int comb(struct maker *m, struct frag_err *err)
{
	uint64_t left = m->scale * FRAG_GIB;

	for (uint64_t tooth = FRAG_MIB / 4; tooth <= 16 * FRAG_MIB; tooth *= 2) {
		uint64_t pairs = left / (2 * tooth), end = ticks(m, 2 * pairs + 1);

		for (uint64_t i = 0; i < pairs; i++) {
			uint64_t which = below(m, 2), id[2];

			FRAG_TRY(ask(m, tooth, 0, &id[0], err));
			FRAG_TRY(ask(m, tooth, 0, &id[1], err));
			FRAG_TRY(release(m, id[which], end, 0, err));
		}
		left -= pairs * tooth;
	}
	return 0;
}

/* Rises with blocks of one size and falls at once, each tooth with another size; one block of each
 * stays for 20 teeth. */
static int sawtooth(struct maker *m, struct frag_err *err)
{
	for (uint64_t tooth = 0; tooth < 100; tooth++) {
		uint64_t bytes = (3 + below(m, 40)) * FRAG_MIB / 2;
		uint64_t count = m->scale * FRAG_GIB / bytes, stays = below(m, count);

		for (uint64_t i = 0; i < count; i++)
			FRAG_TRY(block(m, bytes, i == stays ? 20 * count : count - i, err));
	}
	return 0;
}

/* Each block takes the place of another at random. Sizes are one byte above a power of two, or
 * (mixed) many small ones and in 8 places huge ones. */
static int churn(struct maker *m, uint64_t places, struct frag_err *err)
{
	uint64_t ring[RING] = { 0 };

	for (uint64_t i = 0; i < 8000 * m->scale; i++) {
		bool huge = places && !below(m, 32);
		uint64_t at = huge ? below(m, places) : places + below(m, RING - places);
		uint64_t bytes = (512ull << below(m, 15)) + 1;

		if (places)
			bytes = huge ? (64 + below(m, 448)) * FRAG_MIB : 512 * (1 + below(m, 1024));
		if (ring[at])
			FRAG_TRY(release(m, ring[at], m->now_us, 0, err));
		FRAG_TRY(ask(m, bytes, 0, &ring[at], err));
	}
	return 0;
}

static int above(struct maker *m, struct frag_err *err)
{
	return churn(m, 0, err);
}

static int mixed(struct maker *m, struct frag_err *err)
{
	return churn(m, 8, err);
}

/* Half of all lives end within 2 ticks, of the rest half within 4, and so on. */
static int powerlaw(struct maker *m, struct frag_err *err)
{
	for (uint64_t i = 0; i < 15000 * m->scale; i++) {
		uint64_t life = 1ull << __builtin_ctzll(frag_random(&m->random) | 1 << 14);
		uint64_t bytes = 8192ull << below(m, 14);

		life += below(m, life);
		bytes += below(m, bytes);
		FRAG_TRY(block(m, bytes, life, err));
	}
	return 0;
}

/* Four stages, each on a stream of its own; the next one is still at work on what a stage freed. */
static int pipeline(struct maker *m, struct frag_err *err)
{
	static const uint64_t kib[] = { 256, 1024, 512, 128 };

	for (uint64_t i = 0; i < 2000 * m->scale; i++) {
		uint64_t batch = 1 + below(m, 64), id;

		for (unsigned s = 0; s < FRAG_ARRAY_LEN(kib); s++) {
			FRAG_TRY(ask(m, batch * kib[s] * FRAG_KIB, s + 1, &id, err));
			FRAG_TRY(release(m, id, ticks(m, 2), ticks(m, 2 + below(m, 60)), err));
		}
	}
	return 0;
}

/* Caches of 24 sequences in 8 layers; a step copies each into one that is a token longer. */
static int kvgrow(struct maker *m, struct frag_err *err)
{
	enum { SEQUENCES = 24, LAYERS = 8 };
	uint64_t length[SEQUENCES] = { 0 }, end[SEQUENCES] = { 0 };

	for (uint64_t step = 0; step < 80 * m->scale; step++) {
		for (unsigned s = 0; s < SEQUENCES; s++) {
			if (length[s]++ == end[s]) {
				length[s] = 16 + below(m, 800);
				end[s] = length[s] + below(m, 100);
			}
			for (unsigned layer = 0; layer < LAYERS; layer++)
				FRAG_TRY(block(m, length[s] * 16 * FRAG_KIB,
					       length[s] < end[s] ? SEQUENCES * LAYERS + 1 : 1,
					       err));
		}
	}
	return 0;
}

/* Eight models after another: each matrix is loaded, packed to a quarter with scales, and goes; what
 * that left over is for a cache. */
static int repack(struct maker *m, struct frag_err *err)
{
	enum { LAYERS = 48, MATRICES = 7 };

	for (uint64_t model = 0; model < 8 * m->scale; model++) {
		uint64_t width = 1024 + 128 * below(m, 24), saved = 0;
		uint64_t end = ticks(m, LAYERS * (3 * MATRICES + 1));
		uint64_t id, bytes;

		for (unsigned i = 0; i < LAYERS * MATRICES; i++) {
			bytes = width * width * (i % MATRICES < 4 ? 2 : 7);
			FRAG_TRY(block(m, bytes, 3, err));
			for (unsigned part = 4; part <= 64; part *= 16) {
				FRAG_TRY(ask(m, bytes / part, 0, &id, err));
				FRAG_TRY(release(m, id, end, 0, err));
			}
			saved += bytes / 2;
		}
		for (unsigned i = 0; i < LAYERS; i++) {
			FRAG_TRY(ask(m, saved / LAYERS, 0, &id, err));
			FRAG_TRY(release(m, id, end, 0, err));
		}
	}
	return 0;
}

/*
 * Robson's program. J. M. Robson, An estimate of the store size necessary for dynamic storage
 * allocation, Journal of the ACM 18 (1971): with blocks of 1 to n words, n a power of two, and at
 * most m words live, it makes any policy that moves nothing take at least
 *
 *	m (1 + log2(n) / 2) - n + 1
 *
 * words, because it looks where blocks lie. A trace cannot look, so it is written against first fit
 * by address, which is simulated here; a policy that places blocks elsewhere may take less.
 */
#define WORD_BYTES (256 * FRAG_KIB)
#define LEVELS 8u /* log2(n) */

struct robson {
	struct maker *m;
	struct words {
		uint64_t at, words, id;
	} * live;
	size_t live_count;
	bool *taken; /* by word */
	uint64_t room, words;
};

/* Does the block hold a word whose address is `offset` modulo `step`? */
static bool holds(const struct words *b, uint64_t offset, uint64_t step)
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
		const struct words b = r->live[i];

		if (holds(&b, offset, step)) {
			r->live[kept++] = b;
			continue;
		}
		for (uint64_t w = 0; w < b.words; w++)
			r->taken[b.at + w] = false;
		r->words -= b.words;
		FRAG_TRY(release(r->m, b.id, r->m->now_us, 0, err));
	}
	r->live_count = kept;
	return 0;
}

/* As many blocks of one size as fit, each in the lowest hole; all lie above the one before. */
static int fit(struct robson *r, uint64_t most, uint64_t words, struct frag_err *err)
{
	uint64_t at = 0, free_words = 0;

	while (r->words + words <= most) {
		struct words *b = &r->live[r->live_count++];

		for (; free_words < words; at++) {
			FRAG_ASSERT(at < r->room);
			free_words = r->taken[at] ? 0 : free_words + 1;
		}
		*b = (struct words){ .at = at - words, .words = words };
		free_words = 0;
		for (uint64_t w = 0; w < words; w++)
			r->taken[b->at + w] = true;
		r->words += words;
		FRAG_TRY(ask(r->m, words * WORD_BYTES, 0, &b->id, err));
	}
	return 0;
}

static int play(struct robson *r, uint64_t most, struct frag_err *err)
{
	uint64_t offset = 0, n = 1u << LEVELS;

	FRAG_TRY(fit(r, most, 1, err));
	for (uint64_t step = 2; step <= n; step *= 2) {
		if (spoilt(r, offset + step / 2, step) > spoilt(r, offset, step))
			offset += step / 2;
		FRAG_TRY(drop_others(r, offset, step, err));
		FRAG_TRY(fit(r, most, step, err));
	}
	r->m->online_bytes = (most + most * LEVELS / 2 - n + 1) * WORD_BYTES;
	return 0;
}

static int robson(struct maker *m, struct frag_err *err)
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

/* ---- the list ---- */

#define KINDS(X) \
	X(comb) X(sawtooth) X(robson) X(above) X(powerlaw) X(pipeline) X(kvgrow) X(repack) X(mixed)
#define NAME(kind) #kind,
const char *const frag_known_kinds[] = { KINDS(NAME) "repeat", NULL };
#define MAKE(kind) kind,
static int (*const make[])(struct maker *m, struct frag_err *err) = { KINDS(MAKE) };

static int fill(struct frag_log *log, struct frag_err *err)
{
	struct maker *m = (struct maker *)log;

	FRAG_TRY(make[m->kind](m, err));
	return frag_log_add_sorted(log, 1, 0, err);
}

int frag_known_make(unsigned kind, uint64_t seed, uint64_t scale, uint64_t *online_bytes,
		    struct frag_trace **out, struct frag_err *err)
{
	struct maker m = { .log = { .numbered = true, .complete = true },
			   .random = seed,
			   .scale = scale,
			   .kind = kind };

	FRAG_TRY(frag_log_read(&m.log, "gen", NULL, fill, out, err));
	*online_bytes = m.online_bytes;
	(*out)->name = frag_host_strdup(frag_known_kinds[kind]);
	return (*out)->name ? 0 : frag_fail_nomem(err, "name of the trace");
}
