/* SPDX-License-Identifier: Apache-2.0 */
#include "raw_text.h"

#include "test.h"

#include "cases.h"

static const uint64_t handles[] = { 0, 900, 500, 700 };
static const struct frag_pool_id pools[] = { { 0, 0 }, { 3, 0 }, { 0, 7 } };

static const struct cases_name addresses[] = { { "S0", 0x700000000000 },
					       { "S1", 0x710000000000 },
					       { "S2", 0x720000000000 },
					       { "R", 0x302000000 },
					       { "P", 20 << 20 } };

static uint64_t number(char **at)
{
	return cases_must_number(cases_word(at), addresses, FRAG_ARRAY_LEN(addresses));
}

static unsigned one_of(const char *word, const char *const *words, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (!strcmp(words[i], word))
			return i;
	fail_msg("unknown word '%s'", word);
	return 0;
}

static void add_final(struct raw_text *s, char *at)
{
	struct frag_raw_segment *g = &s->segments[s->raw.segments_count++];
	const char *word;

	*g = (struct frag_raw_segment){ .addr = number(&at), .first_block = s->blocks_count };
	g->bytes = number(&at);
	while ((word = cases_word(&at))) {
		g->small |= !strcmp(word, "small");
		g->expandable |= !strcmp(word, "expandable");
		sscanf(word, "pool=%hu", &g->pool);
		s->raw.pools_count = FRAG_MAX(s->raw.pools_count, g->pool + 1u);
	}
	s->raw.finals_known = true;
}

static void add_block(struct raw_text *s, char *at)
{
	static const char *const states[] = { "live", "waiting", "free" };
	struct frag_final_block *b = &s->blocks[s->blocks_count++];

	b->addr = number(&at);
	b->bytes = number(&at);
	b->requested = number(&at);
	b->state = (uint8_t)one_of(cases_word(&at), states, 3);
	s->segments[s->raw.segments_count - 1].blocks_count++;
}

static void add_mark(struct raw_text *s, char *at)
{
	struct frag_raw_mark *m = &s->marks[s->raw.marks_count++];
	const char *word;

	*m = (struct frag_raw_mark){ .time_us = number(&at) };
	m->name = (uint32_t)number(&at);
	while ((word = cases_word(&at)))
		m->flags |= !strcmp(word, "step") ? FRAG_EVF_STEP : FRAG_EVF_END;
}

static void add_entry(struct raw_text *s, const char *kind, char *at)
{
	static const char *const kinds[] = { "other",	     "alloc",	    "free",
					     "requested",    "completed",   "segment_alloc",
					     "segment_free", "segment_map", "segment_unmap",
					     "oom",	     "snapshot" };
	struct frag_raw_entry *e = &s->entries[s->raw.entries_count++];
	const char *word;

	*e = (struct frag_raw_entry){ .addr = number(&at), .pool = FRAG_RAW_NO_POOL };
	e->bytes = number(&at);
	e->time_us = 100;
	e->action = one_of(kind, kinds, FRAG_RAW_COUNT);
	while ((word = cases_word(&at))) {
		sscanf(word, "stream=%hu", &e->stream);
		sscanf(word, "pool=%hu", &e->pool);
		if (!strncmp(word, "time=", 5))
			e->time_us = cases_must_number(word + 5, NULL, 0) & FRAG_RAW_TIME_MAX;
	}
	if (e->pool != FRAG_RAW_NO_POOL)
		s->raw.pools_count = FRAG_MAX(s->raw.pools_count, e->pool + 1u);
	s->raw.recorded_count = s->raw.entries_count;
}

void raw_text_parse(struct raw_text *s, const char *text)
{
	char *copy = strdup(text), *left = copy, *item;

	*s = (struct raw_text){ .raw = { .entries = s->entries,
					 .streams = handles,
					 .streams_count = 4,
					 .pools_count = 1,
					 .pools = pools,
					 .marks = s->marks,
					 .segments = s->segments,
					 .blocks = s->blocks,
					 .start_us = 100 } };
	while ((item = strsep(&left, ","))) {
		const char *kind = cases_word(&item);

		assert_true(s->raw.entries_count < RAW_TEXT_MOST);
		if (!strcmp(kind, "final"))
			add_final(s, item);
		else if (!strcmp(kind, "block"))
			add_block(s, item);
		else if (!strcmp(kind, "mark"))
			add_mark(s, item);
		else if (!strcmp(kind, "nothing"))
			s->raw.finals_known = cases_word(&item) != NULL;
		else
			add_entry(s, kind, item);
	}
	free(copy);
}
