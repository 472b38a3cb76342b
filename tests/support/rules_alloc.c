/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of rules that take and free blocks. */
#include "rules_internal.h"

#include <stdio.h>
#include <string.h>

/* ---- names ------------------------------------------------------------------------------ */

struct names {
	char at[RIG_SLOTS][sizeof((struct rules_name){ 0 }.text)];
	size_t count;
};

struct rules_name *rules_find_name(struct rules *r, const char *text)
{
	for (size_t i = 0; i < r->names_count; i++)
		if (!strcmp(r->names[i].text, text))
			return &r->names[i];
	return NULL;
}

/* "a", or "b0..b7" for eight of them */
static bool add_names(struct rules *r, const char *word, struct names *names)
{
	unsigned from = 0, to = 0;
	int stem = 0, end = 0;
	bool range = sscanf(word, "%*[a-z]%n%u..%*[a-z]%u%n", &stem, &from, &to, &end) == 2 &&
		     end && !word[end];

	if (!range && (!*word || word[strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789")]))
		return rules_wrong(r, "'%s' is no name of a block", word);
	if (!range)
		from = to = 0;
	if (to < from || names->count + to - from >= RIG_SLOTS || strlen(word) > 15)
		return rules_wrong(r, "'%s': too many blocks, or too long a name", word);
	for (unsigned i = from; i <= to; i++)
		snprintf(names->at[names->count++], sizeof(names->at[0]), range ? "%.*s%u" : "%.*s",
			 range ? FRAG_MIN(stem, 8) : 15, word, i);
	return true;
}

/* Binds a name to the block in the slot. */
static bool set_name(struct rules *r, const char *text, unsigned slot)
{
	struct rules_name *name = rules_find_name(r, text);

	if (!name && r->names_count == FRAG_ARRAY_LEN(r->names))
		return rules_wrong(r, "too many names");
	if (!name) {
		name = &r->names[r->names_count++];
		strcpy(name->text, text);
	}
	name->slot = slot;
	name->serial = r->rig.slots[slot].serial;
	name->addr = r->rig.slots[slot].block.addr;
	return true;
}

/* The slot of a block that is live, or waited for where that is enough; RIG_SLOTS: a message was written. */
static unsigned slot_of(struct rules *r, const char *text, bool live)
{
	const struct rules_name *name = rules_find_name(r, text);
	const struct rig_slot *s = name ? &r->rig.slots[name->slot] : NULL;

	if (s && s->serial == name->serial && s->state != RIG_EMPTY &&
	    (!live || s->state == RIG_LIVE))
		return name->slot;
	rules_wrong(r, "no block '%s' is %s", text, live ? "live" : "held");
	return RIG_SLOTS;
}

/* ---- [NAMES =] alloc SIZES [stream N] [pool N] [-> RESULTS] -------------------------------- */

/* What is wanted of each request, or one for all of them. */
struct wants {
	char *at[RULES_WORDS];
	size_t count;
};

struct alloc {
	struct names names;
	struct wants sizes, granted, addresses, classes;
	uint64_t stream, pool;
	bool oom;
	char *error; /* part of its message */
};

static char *nth(const struct wants *w, size_t i)
{
	return w->count ? w->at[w->count == 1 ? 0 : i] : NULL;
}

static bool is_class(const char *word)
{
	unsigned i = 0;

	while (i < FRAG_CLASS_COUNT && strcmp(word, frag_class_name((enum frag_class)i)) != 0)
		i++;
	return i < FRAG_CLASS_COUNT;
}

static bool parse_results(struct rules *r, char **words, struct alloc *a)
{
	for (; *words; words++) {
		struct wants *list = **words == '@'	? &a->addresses
				     : is_class(*words) ? &a->classes
							: &a->granted;

		if (!strcmp(*words, "oom"))
			a->oom = true;
		else if (!strcmp(*words, "error") && words[1])
			a->error = *++words;
		else
			list->at[list->count++] = *words + (list == &a->addresses);
	}
	if (!a->oom && !a->error)
		return true;
	return !(a->granted.count + a->addresses.count + a->classes.count) ||
	       rules_wrong(r, "a request that is refused has no block");
}

static bool parse_alloc(struct rules *r, char **words, struct alloc *a)
{
	for (; strcmp(*words, "alloc") != 0; words++)
		if (strcmp(*words, "=") != 0 && !add_names(r, *words, &a->names))
			return false;
	for (words++; *words && strcmp(*words, "->") != 0; words++) {
		uint64_t *number = !strcmp(*words, "stream") ? &a->stream
				   : !strcmp(*words, "pool") ? &a->pool
							     : NULL;

		if (!number)
			a->sizes.at[a->sizes.count++] = *words;
		else if (!words[1])
			return rules_wrong(r, "which %s?", *words);
		else if (!rules_number(r, *++words, number, NULL))
			return false;
	}
	if (!a->sizes.count)
		return rules_wrong(r, "how many bytes?");
	return !*words || parse_results(r, words + 1, a);
}

/* Lists are as long as there are requests, or have one that holds for all. */
static bool fits(struct rules *r, const struct wants *w, size_t requests, const char *what)
{
	return w->count < 2 || w->count == requests ||
	       rules_wrong(r, "%zu %s for %zu requests", w->count, what, requests);
}

/* "a+64K", or with '!', '<' or '>' in front: not there, below, above */
static bool expect_address(struct rules *r, const char *want, frag_addr_t got)
{
	size_t relation = strspn(want, "!<>");
	char text[48], wanted[48];
	frag_addr_t addr;

	if (!rules_address(r, want + relation, &addr))
		return false;
	return (*want == '!'   ? got != addr
		: *want == '<' ? got < addr
		: *want == '>' ? got > addr
			       : got == addr) ||
	       rules_wrong(r, "the block is at %s, expected %.*s%s",
			   rules_address_text(r, got, text), (int)relation, want,
			   rules_address_text(r, addr, wanted));
}

static bool expect_block(struct rules *r, const struct alloc *a, size_t i,
			 const struct frag_block *b)
{
	const char *granted = nth(&a->granted, i), *address = nth(&a->addresses, i);
	const char *cls = nth(&a->classes, i), *served = frag_class_name((enum frag_class)b->cls);
	uint64_t bytes = b->granted;
	char text[48];

	if (granted && !rules_number(r, granted, &bytes, NULL))
		return false;
	if (b->granted != bytes)
		return rules_wrong(r, "alloc %s: %s granted, expected %s", nth(&a->sizes, i),
				   rules_bytes_text(b->granted, text), granted);
	if (cls && strcmp(cls, served) != 0)
		return rules_wrong(r, "alloc %s: served by %s, expected %s", nth(&a->sizes, i),
				   served, cls);
	return !address || expect_address(r, address, b->addr);
}

static bool alloc_one(struct rules *r, const struct alloc *a, size_t i)
{
	const char *size = nth(&a->sizes, i);
	const struct frag_block *b;
	unsigned slot = 0;
	uint64_t bytes;
	int rc;

	if (!rules_number(r, size, &bytes, NULL))
		return false;
	while (slot < RIG_SLOTS && r->rig.slots[slot].state != RIG_EMPTY)
		slot++;
	if (slot == RIG_SLOTS)
		return rules_wrong(r, "more than %d blocks", RIG_SLOTS);
	rc = rig_alloc(&r->rig, slot, bytes, (uint32_t)a->stream, (uint16_t)a->pool);
	if (a->oom && rc != FRAG_OOM)
		return rules_wrong(r, "alloc %s: not refused", size);
	if (a->oom || a->error || rc)
		return a->oom || rules_result(r, rc, a->error);
	b = &r->rig.slots[slot].block;
	if (a->names.count && !set_name(r, a->names.at[i], slot))
		return false;
	if (!expect_block(r, a, i, b))
		return false;
	r->next = b->addr + b->granted;
	return true;
}

bool rules_alloc(struct rules *r, char **words)
{
	static struct alloc a; /* large: not for the stack */
	size_t n;

	memset(&a, 0, sizeof(a));
	if (!parse_alloc(r, words, &a))
		return false;
	n = FRAG_MAX(a.names.count, a.sizes.count);
	if (a.names.count && a.names.count != n)
		return rules_wrong(r, "%zu names for %zu requests", a.names.count, n);
	if (!fits(r, &a.sizes, n, "sizes") || !fits(r, &a.granted, n, "granted sizes") ||
	    !fits(r, &a.addresses, n, "addresses") || !fits(r, &a.classes, n, "classes"))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!alloc_one(r, &a, i))
			return false;
	return true;
}

/* grants 1:512 513:1K …: a request, and what it is granted */
bool rules_grants(struct rules *r, char **words)
{
	for (; *words; words++) {
		char request[32], granted[32];

		if (sscanf(*words, "%31[^:]:%31s", request, granted) != 2)
			return rules_wrong(r, "'%s': request:granted is wanted", *words);
		if (!rules_alloc(r, (char *[]){ "alloc", request, "->", granted, NULL }))
			return false;
	}
	return true;
}

/* free all; free NAMES [-> error TEXT] */
bool rules_free(struct rules *r, char **words)
{
	static struct names names; /* large: not for the stack */
	const char *error;

	names.count = 0;
	if (*words && !strcmp(*words, "all"))
		return rules_error(r, words + 1, &error) &&
		       rules_result(r, rig_free_all(&r->rig), error);
	for (; *words && strcmp(*words, "->") != 0; words++)
		if (!add_names(r, *words, &names))
			return false;
	if (!rules_error(r, words, &error))
		return false;
	for (size_t i = 0; i < names.count; i++) {
		unsigned slot = slot_of(r, names.at[i], false);

		if (slot == RIG_SLOTS || !rules_result(r, rig_free(&r->rig, slot), error))
			return false;
	}
	return true;
}

bool rules_request(struct rules *r, char **words)
{
	for (; *words; words++) {
		unsigned slot = slot_of(r, *words, true);

		if (slot == RIG_SLOTS)
			return false;
		rig_request(&r->rig, slot);
	}
	return true;
}
