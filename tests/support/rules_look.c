/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of rules that look: expect, calls, journal. */
#include "rules_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- expect KEY VALUE … ------------------------------------------------------------- */

struct counter {
	const char *name;
	int64_t value;
	bool found;
};

static void on_counter(void *ctx, const char *name, int64_t value)
{
	struct counter *c = ctx;

	if (strcmp(name, c->name) != 0)
		return;
	c->value = value;
	c->found = true;
}

static bool find_counter(struct rules *r, const char *name, uint64_t *out)
{
	struct counter c = { .name = name };

	if (r->rig.ops->counters)
		r->rig.ops->counters(r->rig.policy.self, on_counter, &c);
	*out = (uint64_t)c.value;
	return c.found;
}

/* "cuMemMap": calls that succeeded; "cuMemMap.bytes": the sum of their bytes. */
static bool find_call(struct rules *r, const char *key, uint64_t *out)
{
	for (unsigned i = 0; i < FRAG_CALL_COUNT; i++) {
		const char *name = frag_call_name((enum frag_call)i);
		size_t n = strlen(name);

		if (strncmp(key, name, n) != 0 || (key[n] && strcmp(key + n, ".bytes") != 0))
			continue;
		*out = key[n] ? r->rig.dev->stat[i].bytes : r->rig.dev->stat[i].count;
		return true;
	}
	return false;
}

/* As the policy tells it; without `usage`, as a walk finds it. */
static bool find_usage(struct rules *r, const char *key, uint64_t *out)
{
	static const struct {
		const char *key;
		size_t at;
	} fields[] = {
		{ "allocated", offsetof(struct frag_usage, allocated_bytes) },
		{ "waiting", offsetof(struct frag_usage, waiting_bytes) },
		{ "free", offsetof(struct frag_usage, free_bytes) },
		{ "releasable", offsetof(struct frag_usage, releasable_bytes) },
		{ "nonreleasable", offsetof(struct frag_usage, non_releasable_bytes) },
		{ "largest", offsetof(struct frag_usage, largest_free_bytes) },
		{ "segments", offsetof(struct frag_usage, segments_count) },
		{ "blocks", offsetof(struct frag_usage, blocks_count) },
	};
	struct frag_usage u = { 0 };

	for (size_t i = 0; i < FRAG_ARRAY_LEN(fields); i++) {
		if (strcmp(key, fields[i].key) != 0)
			continue;
		if (r->rig.ops->usage)
			r->rig.ops->usage(r->rig.policy.self, &u);
		else
			frag_policy_usage_walk(&r->rig.policy, &u);
		memcpy(out, (const char *)&u + fields[i].at, sizeof(*out));
		return true;
	}
	return false;
}

static bool find_value(struct rules *r, const char *key, uint64_t *out)
{
	if (!strcmp(key, "reserved"))
		*out = r->rig.dev->reserved_bytes;
	else if (!strcmp(key, "syncs"))
		*out = r->rig.syncs;
	else if (!strcmp(key, "alignment"))
		*out = r->rig.alignment; /* of all addresses so far */
	else if (!strcmp(key, "calls"))
		*out = r->rig.dev->driver_calls;
	else
		return find_usage(r, key, out) || find_call(r, key, out) ||
		       find_counter(r, key, out) ||
		       rules_wrong(r, "there is nothing called '%s'", key);
	return true;
}

/* "5", ">5" or "<5" */
static bool expect_value(struct rules *r, const char *key, const char *want)
{
	char relation = *want, text[48];
	uint64_t got, low;
	bool ok;

	if (!find_value(r, key, &got) ||
	    !rules_number(r, want + (relation == '<' || relation == '>'), &low, NULL))
		return false;
	ok = relation == '<' ? got < low : relation == '>' ? got > low : got == low;
	return ok ||
	       rules_wrong(r, "%s is %s, expected %s", key, rules_bytes_text(got, text), want);
}

/* PyTorch keeps four counters of a kind: "allocation.all 3/6/9/6". */
static bool expect_family(struct rules *r, const char *key, const char *want)
{
	static const char *const parts[] = { "current", "peak", "allocated", "freed" };
	char name[80], value[64];

	for (size_t i = 0; i < FRAG_ARRAY_LEN(parts); i++) {
		size_t n = strcspn(want, "/");

		if (!want[n] != (i + 1 == FRAG_ARRAY_LEN(parts)))
			return rules_wrong(r, "%s: current/peak/allocated/freed are wanted", key);
		snprintf(name, sizeof(name), "%s.%s", key, parts[i]);
		snprintf(value, sizeof(value), "%.*s", (int)n, want);
		if (!expect_value(r, name, value))
			return false;
		want += n + 1;
	}
	return true;
}

bool rules_expect(struct rules *r, char **words)
{
	if (!*words)
		return rules_wrong(r, "what is expected?");
	for (; *words; words += 2) {
		if (!words[1])
			return rules_wrong(r, "%s: a value is wanted", *words);
		if (!(strchr(words[1], '/') ? expect_family : expect_value)(r, words[0], words[1]))
			return false;
	}
	return true;
}

/* ---- what the device was asked, what the journal was told ------------------------------ */

static const char *const event_names[] = { "alloc", "free", "map", "unmap" };

static void render(const struct rules *r, const struct rules_event *e, bool journal, char *out)
{
	char bytes[48], addr[48];

	if (journal)
		sprintf(out, " %s %s@%s", event_names[(int)e->kind],
			rules_bytes_text(e->bytes, bytes), rules_address_text(r, e->addr, addr));
	else
		sprintf(out, " %c%s", e->kind, rules_bytes_text(e->bytes, bytes));
}

static bool differs(struct rules *r, struct rules_log *log, bool journal)
{
	char text[RULES_MESSAGE] = "";
	size_t n = 0;

	for (size_t i = 0; i < log->count && n < sizeof(text) - 120; i++) {
		render(r, &log->at[i], journal, text + n);
		n = strlen(text);
	}
	return rules_wrong(r, "it was%s", n ? text : " nothing");
}

/* "2M", "2M@S0" or "2M..3M": is it this event? */
static bool is_event(struct rules *r, const struct rules_event *e, const char *word, bool *same)
{
	char text[64], *at, *dots;
	uint64_t low, high;
	frag_addr_t addr = e->addr;

	snprintf(text, sizeof(text), "%s", word);
	at = strchr(text, '@');
	if (at)
		*at = '\0';
	dots = strstr(text, "..");
	if (dots)
		*dots = '\0';
	if (!rules_number(r, text, &low, NULL) ||
	    !rules_number(r, dots ? dots + 2 : text, &high, NULL) ||
	    (at && !rules_address(r, at + 1, &addr)))
		return false;
	*same = e->bytes >= low && e->bytes <= high && e->addr == addr;
	return true;
}

static const struct rules_event *event_at(const struct rules_log *log, size_t i)
{
	static const struct rules_event none = { .kind = '?' };

	return i < log->count ? &log->at[i] : &none;
}

static size_t count_words(char **words)
{
	size_t n = 0;

	while (words[n])
		n++;
	return n;
}

/* calls m8M f8M@S0 r8M …; "..." stands for all but the last ones */
bool rules_calls(struct rules *r, char **words)
{
	size_t i = 0;

	for (; *words; words++) {
		const struct rules_event *e = event_at(&r->calls, i);
		bool same = false;

		if (!strcmp(*words, "...")) {
			i = FRAG_MAX(i + count_words(words + 1), r->calls.count) -
			    count_words(words + 1);
			continue;
		}
		if (!strchr("mrfx", **words))
			return rules_wrong(r, "'%s': m8M, r8M (refused), f8M or x8M (failed)",
					   *words);
		if (!is_event(r, e, *words + 1, &same))
			return false;
		if (!same || e->kind != **words)
			return differs(r, &r->calls, false);
		i++;
	}
	if (i != r->calls.count)
		return differs(r, &r->calls, false);
	r->calls.count = 0;
	return true;
}

bool rules_journal(struct rules *r, char **words)
{
	size_t i = 0;

	for (; words[0] && words[1]; words += 2, i++) {
		const struct rules_event *e = event_at(&r->journal, i);
		bool same = false;
		size_t kind = 0;

		while (kind < FRAG_ARRAY_LEN(event_names) && strcmp(*words, event_names[kind]) != 0)
			kind++;
		if (kind == FRAG_ARRAY_LEN(event_names))
			return rules_wrong(r, "'%s' is none of alloc, free, map, unmap", *words);
		if (!is_event(r, e, words[1], &same))
			return false;
		if (!same || e->kind != (char)kind)
			return differs(r, &r->journal, true);
	}
	if (*words)
		return rules_wrong(r, "%s: how much?", *words);
	if (i != r->journal.count)
		return differs(r, &r->journal, true);
	r->journal.count = 0;
	return true;
}
