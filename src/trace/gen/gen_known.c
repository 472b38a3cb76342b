/* SPDX-License-Identifier: Apache-2.0 */
/* Traces whose bounds are known; see gen_known.h. */
#include "gen_known.h"

#include "lib/random.h"

#define RING 512u

uint64_t frag_maker_below(struct frag_maker *m, uint64_t n)
{
	return frag_random(&m->random) % n;
}

static int put(struct frag_maker *m, enum frag_log_action action, uint64_t id, uint64_t bytes,
	       uint64_t stream, uint64_t time_us, struct frag_err *err)
{
	const struct frag_log_entry e = { .action = action,
					  .id = id,
					  .bytes = bytes,
					  .stream = stream,
					  .pool = FRAG_LOG_UNKNOWN,
					  .time_us = time_us,
					  .line = ++m->lines };

	return frag_log_later(&m->log, &e, err);
}

int frag_maker_ask(struct frag_maker *m, uint64_t bytes, uint64_t stream, uint64_t *id,
		   struct frag_err *err)
{
	m->now_us += FRAG_KNOWN_TICK_US;
	m->ids++;
	if (id)
		*id = m->ids;
	return put(m, FRAG_LOG_ALLOC, m->ids, bytes, stream, m->now_us, err);
}

int frag_maker_release(struct frag_maker *m, uint64_t id, uint64_t at_us, uint64_t until_us,
		       struct frag_err *err)
{
	if (until_us <= at_us)
		return put(m, FRAG_LOG_FREE, id, FRAG_LOG_UNKNOWN, FRAG_LOG_UNKNOWN, at_us, err);
	FRAG_TRY(put(m, FRAG_LOG_FREE_REQUESTED, id, FRAG_LOG_UNKNOWN, FRAG_LOG_UNKNOWN, at_us,
		     err));
	return put(m, FRAG_LOG_FREE_COMPLETED, id, FRAG_LOG_UNKNOWN, FRAG_LOG_UNKNOWN, until_us,
		   err);
}

/* A block with a life of so many ticks. */
static int block(struct frag_maker *m, uint64_t bytes, uint64_t ticks, struct frag_err *err)
{
	uint64_t id;

	FRAG_TRY(frag_maker_ask(m, bytes, 0, &id, err));
	return frag_maker_release(m, id, frag_maker_ticks(m, ticks), 0, err);
}

/* Teeth of one size fill what is left; of each two neighbours one goes; then teeth of twice the
 * size, for which no hole is large enough. */
static int comb(struct frag_maker *m, struct frag_err *err)
{
	uint64_t left = m->scale * FRAG_GIB;

	for (uint64_t tooth = FRAG_MIB / 4; tooth <= 16 * FRAG_MIB; tooth *= 2) {
		uint64_t pairs = left / (2 * tooth), end = frag_maker_ticks(m, 2 * pairs + 1);

		for (uint64_t i = 0; i < pairs; i++) {
			uint64_t which = frag_maker_below(m, 2), id[2];

			FRAG_TRY(frag_maker_ask(m, tooth, 0, &id[0], err));
			FRAG_TRY(frag_maker_ask(m, tooth, 0, &id[1], err));
			FRAG_TRY(frag_maker_release(m, id[which], end, 0, err));
		}
		left -= pairs * tooth;
	}
	return 0;
}

/* Rises with blocks of one size and falls at once, each tooth with another size; one block of each
 * stays for 20 teeth. */
static int sawtooth(struct frag_maker *m, struct frag_err *err)
{
	for (uint64_t tooth = 0; tooth < 100; tooth++) {
		uint64_t bytes = (3 + frag_maker_below(m, 40)) * FRAG_MIB / 2;
		uint64_t count = m->scale * FRAG_GIB / bytes, stays = frag_maker_below(m, count);

		for (uint64_t i = 0; i < count; i++)
			FRAG_TRY(block(m, bytes, i == stays ? 20 * count : count - i, err));
	}
	return 0;
}

/* Each block takes the place of another at random: so many small ones, and so many others. */
static int churn(struct frag_maker *m, uint64_t count, uint64_t others,
		 uint64_t (*size)(struct frag_maker *m, bool other), struct frag_err *err)
{
	uint64_t ring[RING] = { 0 };

	for (uint64_t i = 0; i < count * m->scale; i++) {
		bool other = !frag_maker_below(m, 32) && others;
		uint64_t at = other ? frag_maker_below(m, others)
				    : others + frag_maker_below(m, RING - others);

		if (ring[at])
			FRAG_TRY(frag_maker_release(m, ring[at], m->now_us, 0, err));
		FRAG_TRY(frag_maker_ask(m, size(m, other), 0, &ring[at], err));
	}
	return 0;
}

static uint64_t above_class(struct frag_maker *m, bool other)
{
	(void)other;
	return (512ull << frag_maker_below(m, 15)) + 1;
}

static int above(struct frag_maker *m, struct frag_err *err)
{
	return churn(m, 8000, 0, above_class, err);
}

static uint64_t small_or_huge(struct frag_maker *m, bool huge)
{
	return huge ? (64 + frag_maker_below(m, 448)) * FRAG_MIB
		    : 512 * (1 + frag_maker_below(m, 1024));
}

static int mixed(struct frag_maker *m, struct frag_err *err)
{
	return churn(m, 8000, 8, small_or_huge, err);
}

/* Half of all lives end within 2 ticks, of the rest half within 4, and so on. */
static int powerlaw(struct frag_maker *m, struct frag_err *err)
{
	for (uint64_t i = 0; i < 15000 * m->scale; i++) {
		uint64_t life = 1ull
				<< FRAG_MIN(__builtin_ctzll(frag_random(&m->random) | 1 << 14), 14);
		uint64_t bytes = 8192ull << frag_maker_below(m, 14);

		life += frag_maker_below(m, life);
		bytes += frag_maker_below(m, bytes);
		FRAG_TRY(block(m, bytes, life, err));
	}
	return 0;
}

/* Four stages, each on a stream of its own; the next one is still at work on what a stage freed. */
static int pipeline(struct frag_maker *m, struct frag_err *err)
{
	static const uint64_t kib[] = { 256, 1024, 512, 128 };

	for (uint64_t i = 0; i < 2000 * m->scale; i++) {
		uint64_t batch = 1 + frag_maker_below(m, 64), id;

		for (unsigned s = 0; s < FRAG_ARRAY_LEN(kib); s++) {
			uint64_t wait = frag_maker_below(m, 60);

			FRAG_TRY(frag_maker_ask(m, batch * kib[s] * FRAG_KIB, s + 1, &id, err));
			FRAG_TRY(frag_maker_release(m, id, frag_maker_ticks(m, 2),
						    frag_maker_ticks(m, 2 + wait), err));
		}
	}
	return 0;
}

/* Caches of 24 sequences in 8 layers; a step copies each into one that is a token longer. */
static int kvgrow(struct frag_maker *m, struct frag_err *err)
{
	enum { SEQUENCES = 24, LAYERS = 8 };
	uint64_t length[SEQUENCES] = { 0 }, end[SEQUENCES] = { 0 };

	for (uint64_t step = 0; step < 80 * m->scale; step++) {
		for (unsigned s = 0; s < SEQUENCES; s++) {
			if (length[s]++ == end[s]) {
				length[s] = 16 + frag_maker_below(m, 800);
				end[s] = length[s] + frag_maker_below(m, 100);
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
static int repack(struct frag_maker *m, struct frag_err *err)
{
	enum { LAYERS = 48, MATRICES = 7 };

	for (uint64_t model = 0; model < 8 * m->scale; model++) {
		uint64_t width = 1024 + 128 * frag_maker_below(m, 24), saved = 0;
		uint64_t end = frag_maker_ticks(m, LAYERS * (3 * MATRICES + 1));
		uint64_t id, bytes;

		for (unsigned i = 0; i < LAYERS * MATRICES; i++) {
			bytes = width * width * (i % MATRICES < 4 ? 2 : 7);
			FRAG_TRY(block(m, bytes, 3, err));
			for (unsigned part = 4; part <= 64; part *= 16) {
				FRAG_TRY(frag_maker_ask(m, bytes / part, 0, &id, err));
				FRAG_TRY(frag_maker_release(m, id, end, 0, err));
			}
			saved += bytes / 2;
		}
		for (unsigned i = 0; i < LAYERS; i++) {
			FRAG_TRY(frag_maker_ask(m, saved / LAYERS, 0, &id, err));
			FRAG_TRY(frag_maker_release(m, id, end, 0, err));
		}
	}
	return 0;
}

const struct frag_known frag_known_kinds[] = {
	{ "comb", comb },
	{ "sawtooth", sawtooth },
	{ "robson", frag_known_robson },
	{ "above", above },
	{ "powerlaw", powerlaw },
	{ "pipeline", pipeline },
	{ "kvgrow", kvgrow },
	{ "repack", repack },
	{ "mixed", mixed },
	{ 0 },
};

static int fill(struct frag_log *log, struct frag_err *err)
{
	struct frag_maker *m = (struct frag_maker *)log;

	FRAG_TRY(m->kind->make(m, err));
	return frag_log_add_sorted(log, 1, 0, err);
}

int frag_known_make(const struct frag_known *kind, uint64_t seed, uint64_t scale,
		    struct frag_known_bounds *bounds, struct frag_trace **out, struct frag_err *err)
{
	struct frag_maker m = { .log = { .numbered = true, .complete = true },
				.random = seed,
				.scale = scale,
				.kind = kind };

	FRAG_TRY(frag_log_read(&m.log, "gen", NULL, fill, out, err));
	*bounds = m.bounds;
	(*out)->name = frag_host_strdup(kind->name);
	return (*out)->name ? 0 : frag_fail_nomem(err, "name of the trace");
}
