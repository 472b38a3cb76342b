/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interned strings. Texts are in chunks that never move; an open-addressing table of indices
 * (linear probing, at most half full, a power of two) finds them by the low half of XXH3. Index 0
 * marks an empty cell: "" is never in the table.
 */
#include "strings.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define CHUNK_BYTES 65536u
#define MAX_STRINGS (1u << 29)

struct chunk {
	struct chunk *next;
	char text[];
};

struct entry {
	const char *text;
	uint32_t len, hash;
};

struct frag_strings {
	struct entry *entries;
	uint32_t count, cap;
	uint32_t *table;
	uint32_t mask;
	struct chunk *chunks;
	char *free; /* rest of the newest shared chunk */
	size_t free_left;
};

int frag_strings_create(struct frag_strings **out, struct frag_err *err)
{
	FRAG_AUTO(frag_strings_destroy_at) struct frag_strings *s = NULL;

	FRAG_TRY_CALLOC(s, 1, "strings", err);
	s->cap = 64;
	s->mask = 127;
	FRAG_TRY_CALLOC(s->entries, s->cap, "strings", err);
	FRAG_TRY_CALLOC(s->table, s->mask + 1, "strings", err);
	s->entries[0].text = "";
	s->count = 1;
	*out = FRAG_GIVE(s);
	return 0;
}

void frag_strings_destroy(struct frag_strings *s)
{
	if (!s)
		return;
	while (s->chunks) {
		struct chunk *next = s->chunks->next;

		frag_host_free(s->chunks);
		s->chunks = next;
	}
	FRAG_FREE(s->entries, s->table, s);
}

/* Room for len + 1 bytes; long texts get a chunk of their own. */
static char *text_room(struct frag_strings *s, size_t len)
{
	bool own = len >= CHUNK_BYTES / 4;
	struct chunk *c;
	char *at;

	if (own || s->free_left < len + 1) {
		size_t bytes = own ? len + 1 : CHUNK_BYTES;

		c = frag_host_alloc(sizeof(*c) + bytes);
		if (!c)
			return NULL;
		c->next = s->chunks;
		s->chunks = c;
		if (own)
			return c->text;
		s->free = c->text;
		s->free_left = bytes;
	}
	at = s->free;
	s->free += len + 1;
	s->free_left -= len + 1;
	return at;
}

static int grow(struct frag_strings *s, struct frag_err *err)
{
	uint32_t cap = s->cap * 2, mask = cap * 2 - 1;
	struct entry *entries;
	uint32_t *table;

	if (s->count >= MAX_STRINGS)
		return FRAG_INPUT(err, "more than %u different strings", MAX_STRINGS);
	entries = frag_host_realloc(s->entries, cap, sizeof(*entries));
	FRAG_CHECK_ALLOC(entries, "strings", err);
	s->entries = entries;
	FRAG_TRY_CALLOC(table, (size_t)mask + 1, "strings", err);
	for (uint32_t i = 1; i < s->count; i++) {
		uint32_t at = entries[i].hash & mask;

		while (table[at])
			at = (at + 1) & mask;
		table[at] = i;
	}
	frag_host_free(s->table);
	s->table = table;
	s->mask = mask;
	s->cap = cap;
	return 0;
}

int frag_strings_intern(struct frag_strings *s, const char *text, size_t len, uint32_t *index,
			struct frag_err *err)
{
	uint32_t hash, at, i;
	char *copy;

	if (!len) {
		*index = 0;
		return 0;
	}
	if (len > UINT32_MAX)
		return FRAG_INPUT(err, "string of %zu bytes is too long", len);
	hash = (uint32_t)XXH3_64bits(text, len);
	for (at = hash & s->mask; (i = s->table[at]); at = (at + 1) & s->mask) {
		const struct entry *e = &s->entries[i];

		if (e->hash == hash && e->len == len && !memcmp(e->text, text, len)) {
			*index = i;
			return 0;
		}
	}
	if (s->count == s->cap) {
		FRAG_TRY(grow(s, err));
		for (at = hash & s->mask; s->table[at]; at = (at + 1) & s->mask)
			;
	}
	copy = text_room(s, len);
	FRAG_CHECK_ALLOC(copy, "strings", err);
	memcpy(copy, text, len);
	copy[len] = 0;
	s->entries[s->count] = (struct entry){ copy, (uint32_t)len, hash };
	s->table[at] = *index = s->count++;
	return 0;
}

const char *frag_strings_get(const struct frag_strings *s, uint32_t i)
{
	return i < s->count ? s->entries[i].text : "";
}

size_t frag_strings_len(const struct frag_strings *s, uint32_t i)
{
	return i < s->count ? s->entries[i].len : 0;
}

uint32_t frag_strings_count(const struct frag_strings *s)
{
	return s->count;
}

/* ---- stacks: frames and stacks are interned as the bytes they consist of; number 0 is the empty
 * stack, and frame n has number n + 1 ---- */

#define STACKS_MAX (1u << 24) /* an event has 24 bits for its stack */

struct frag_stack_table {
	struct frag_strings *frames, *stacks;
};

int frag_stack_table_create(struct frag_stack_table **out, struct frag_err *err)
{
	FRAG_AUTO(frag_stack_table_destroy_at) struct frag_stack_table *t = NULL;

	FRAG_TRY_CALLOC(t, 1, "stacks", err);
	FRAG_TRY(frag_strings_create(&t->frames, err));
	FRAG_TRY(frag_strings_create(&t->stacks, err));
	*out = FRAG_GIVE(t);
	return 0;
}

void frag_stacks_release(struct frag_stacks *s)
{
	FRAG_FREE(s->frames, s->index, s->first);
	*s = (struct frag_stacks){ 0 };
}

void frag_stack_table_destroy(struct frag_stack_table *t)
{
	if (!t)
		return;
	frag_strings_destroy(t->frames);
	frag_strings_destroy(t->stacks);
	frag_host_free(t);
}

int frag_stack_table_frame(struct frag_stack_table *t, struct frag_frame frame, uint32_t *number,
			   struct frag_err *err)
{
	FRAG_TRY(frag_strings_intern(t->frames, (const char *)&frame, sizeof(frame), number, err));
	--*number;
	return 0;
}

int frag_stack_table_stack(struct frag_stack_table *t, const uint32_t *frames, size_t n,
			   uint32_t *stack, struct frag_err *err)
{
	FRAG_TRY(frag_strings_intern(t->stacks, (const char *)frames, n * sizeof(*frames), stack,
				     err));
	*stack = *stack < STACKS_MAX ? *stack : 0;
	return 0;
}

int frag_stack_table_take(const struct frag_stack_table *t, struct frag_stacks *out,
			  struct frag_err *err)
{
	uint32_t frames = frag_strings_count(t->frames) - 1;
	uint32_t stacks = FRAG_MIN(frag_strings_count(t->stacks), STACKS_MAX);
	size_t bytes = 0;

	for (uint32_t i = 0; i < stacks; i++)
		bytes += frag_strings_len(t->stacks, i);
	*out = (struct frag_stacks){ .frames_count = frames,
				     .index_count = bytes / sizeof(*out->index),
				     .count = stacks };
	out->frames = frag_host_alloc(frames * sizeof(*out->frames));
	out->index = frag_host_alloc(bytes);
	out->first = frag_host_calloc(stacks + 1u, sizeof(*out->first));
	FRAG_CHECK_ALLOC(out->frames && out->index && out->first, "stacks", err);
	for (uint32_t i = 0; i < frames; i++)
		memcpy(&out->frames[i], t->frames->entries[i + 1].text, sizeof(*out->frames));
	for (uint32_t i = 0; i < stacks; i++) {
		size_t len = frag_strings_len(t->stacks, i);

		memcpy(out->index + out->first[i], frag_strings_get(t->stacks, i), len);
		out->first[i + 1] = out->first[i] + len / sizeof(*out->index);
	}
	return 0;
}
