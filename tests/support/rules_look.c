/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of rules that look: expect, calls, journal. */
#include "rules_internal.h"

#include <stdio.h>
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

static bool differs(struct rules *r, const struct rules_log *log)
{
	char text[RULES_MESSAGE] = "", bytes[48], addr[48];
	size_t n = 0;

	for (size_t i = 0; i < log->count && n < sizeof(text) - 120; i++)
		n += (size_t)sprintf(text + n, " %c%s@%s", log->at[i].kind,
				     rules_bytes_text(log->at[i].bytes, bytes),
				     rules_address_text(r, log->at[i].addr, addr));
	return rules_wrong(r, "it was%s", n ? text : " nothing");
}

static size_t count_words(char **words)
{
	size_t n = 0;

	while (words[n])
		n++;
	return n;
}

/* "..." stands for all but the last ones. kinds: the letters that may stand in front. */
static bool look_at_log(struct rules *r, struct rules_log *log, const char *kinds, char **words)
{
	size_t i = 0;

	for (; *words; words++) {
		size_t behind = count_words(words + 1);
		bool same = false;

		if (!strcmp(*words, "...")) {
			i = FRAG_MAX(i + behind, log->count) - behind;
			continue;
		}
		if (!strchr(kinds, **words))
			return rules_wrong(r, "'%s' does not begin with one of %s", *words, kinds);
		if (i < log->count && !is_event(r, &log->at[i], *words + 1, &same))
			return false;
		if (!same || log->at[i].kind != **words)
			return differs(r, log);
		i++;
	}
	if (i != log->count)
		return differs(r, log);
	log->count = 0;
	return true;
}

/* calls m8M f8M@S0 …: m malloc, r refused, f free, x free that failed */
bool rules_calls(struct rules *r, char **words)
{
	return look_at_log(r, &r->calls, "mrfx", words);
}

/* journal a2M@S0 …: a alloc, f free, m map, u unmap */
bool rules_journal(struct rules *r, char **words)
{
	return look_at_log(r, &r->journal, RULES_JOURNAL, words);
}
