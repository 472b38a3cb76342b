/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One policy on a simulated card, driven by tests/drivers/rules.py. After each call rig.h checks
 * every promise; a broken one ends the program with a message. The answer is "=", the result, and
 * its message or fields; before it stand what the device was asked ("c"), what the journal was told
 * ("j") and which segments are new ("t").
 */
#include "test.h"

#include "lines.h"
#include "rig.h"

#define PLACES 16

static struct {
	struct rig rig;
	bool open;
	char text[256], extra[200];
	frag_addr_t places[PLACES + 1]; /* of the next segments, up to a 0 */
	size_t places_used, told;
} s;

static void on_call(void *ctx, enum frag_call call, uint64_t bytes, int result)
{
	if (call == FRAG_CALL_MALLOC || call == FRAG_CALL_FREE)
		printf("c\t%c\t%llu\t%llu\n", (call == FRAG_CALL_MALLOC ? "mr" : "fx")[result != 0],
		       (ull)bytes, (ull)s.rig.dev->logged_addr);
}

static void on_segment(void *ctx, enum frag_segment_event kind, frag_addr_t addr, uint64_t bytes,
		       uint32_t stream)
{
	printf("j\t%c\t%llu\t%llu\n", "afmu"[kind], (ull)bytes, (ull)addr);
}

static int place(void *ctx, enum frag_call kind, uint64_t bytes, frag_addr_t *addr)
{
	if (kind == FRAG_CALL_CREATE || !s.places[s.places_used])
		return -1;
	*addr = s.places[s.places_used++];
	return 0;
}

/* ---- calls: each returns its result ----------------------------------------------------------- */

static int close_policy(void)
{
	if (s.open)
		rig_close(&s.rig);
	s.open = false;
	return 0;
}

/* TEXT CARD CONTEXT LIMIT RELEASE PLACES… */
static int open_policy(void)
{
	struct rig_options o = { .still = true,
				 .total_bytes = line_number(2),
				 .context_bytes = line_number(3),
				 .limit_bytes = line_number(4),
				 .source_release = (unsigned)line_number(5),
				 .watch = { on_call, on_segment, place, NULL } };
	int rc;

	close_policy();
	for (unsigned i = 0; i < PLACES; i++)
		s.places[i] = line_number(i + 6);
	s.places_used = s.told = 0;
	snprintf(s.text, sizeof(s.text), "%s", line_words[1]);
	rc = rig_open(&s.rig, s.text, &o);
	s.open = !rc;
	return rc;
}

static int parse(void)
{
	struct frag_policy_spec *spec = NULL;
	int rc = frag_policy_spec_parse(line_words[1], &spec, &s.rig.err);

	frag_policy_spec_destroy(spec);
	assert_true(!rc || (rc == FRAG_EUSAGE && s.rig.err.msg[0]));
	return rc;
}

/* SIZE STREAM POOL: slot, its serial number, address, bytes, class */
static int alloc(void)
{
	unsigned slot = 0;
	const struct frag_block *b;
	int rc;

	while (slot < RIG_SLOTS && s.rig.slots[slot].state != RIG_EMPTY)
		slot++;
	if (slot == RIG_SLOTS)
		fail_msg("more than %d blocks", RIG_SLOTS);
	rc = rig_alloc(&s.rig, slot, line_number(1), (uint32_t)line_number(2),
		       (uint16_t)line_number(3));
	b = &s.rig.slots[slot].block;
	if (!rc)
		snprintf(s.extra, sizeof(s.extra), "%u\t%u\t%llu\t%llu\t%s", slot,
			 s.rig.slots[slot].serial, (ull)b->addr, (ull)b->granted,
			 frag_class_name((enum frag_class)b->cls));
	return rc;
}

/* Is the block of SLOT SERIAL still there? Live, if that is asked for. */
static bool is_held(bool live)
{
	const struct rig_slot *slot = &s.rig.slots[line_number(1) % RIG_SLOTS];
	bool held = slot->serial == line_number(2) && slot->state != RIG_EMPTY &&
		    (!live || slot->state == RIG_LIVE);

	if (!held)
		strcpy(s.extra, "gone");
	return held;
}

static int free_block(void)
{
	return is_held(false) ? rig_free(&s.rig, (unsigned)line_number(1)) : 0;
}

static int request(void)
{
	if (is_held(true))
		rig_request(&s.rig, (unsigned)line_number(1));
	return 0;
}

static int free_all(void)
{
	return rig_free_all(&s.rig);
}

static int trim(void)
{
	return rig_trim(&s.rig, (uint16_t)line_number(1));
}

static int sync_device(void)
{
	return line_words[1] ? frag_dev_sync(s.rig.dev, (uint32_t)line_number(1), &s.rig.err)
			     : rig_synced(&s.rig);
}

static int at(void)
{
	s.rig.dev->now_ns = line_number(1);
	return 0;
}

static int wait_for(void)
{
	s.rig.dev->now_ns += line_number(1);
	return 0;
}

static int fail_later(void)
{
	s.rig.dev->fail_call = s.rig.dev->driver_calls + line_number(1);
	return 0;
}

static int usage_exact(void)
{
	return s.rig.usage_exact = true, 0;
}

/* STEPS SLOTS MAX SEED PLAIN FAILURES */
static int soak(void)
{
	struct script script;

	script_init(&script, line_number(4), (unsigned)line_number(2));
	script.max_bytes = line_number(3);
	script.plain = line_number(5);
	return script_soak(&script, &s.rig, (unsigned)line_number(1), line_number(6));
}

static void on_counter(void *ctx, const char *name, int64_t value)
{
	printf("v\t%s\t%lld\n", name, (long long)value);
}

/* Everything that there is to see, a line "v" each; of lines with one name the first counts. */
static int look(void)
{
	const struct frag_policy_ops *ops = s.rig.ops;
	struct frag_usage u = { 0 };

	if (ops->usage)
		ops->usage(s.rig.policy.self, &u);
	else
		frag_policy_usage_walk(&s.rig.policy, &u);
	printf("v\treserved\t%llu\nv\tsyncs\t%u\nv\talignment\t%llu\nv\tcalls\t%llu\n",
	       (ull)s.rig.dev->reserved_bytes, s.rig.syncs, (ull)s.rig.alignment,
	       (ull)s.rig.dev->driver_calls);
	printf("v\tallocated\t%llu\nv\twaiting\t%llu\nv\tfree\t%llu\nv\treleasable\t%llu\n",
	       (ull)u.allocated_bytes, (ull)u.waiting_bytes, (ull)u.free_bytes,
	       (ull)u.releasable_bytes);
	printf("v\tnonreleasable\t%llu\nv\tlargest\t%llu\nv\tsegments\t%llu\nv\tblocks\t%llu\n",
	       (ull)u.non_releasable_bytes, (ull)u.largest_free_bytes, (ull)u.segments_count,
	       (ull)u.blocks_count);
	for (unsigned i = 0; i < FRAG_CALL_COUNT; i++) {
		const char *name = frag_call_name((enum frag_call)i);

		printf("v\t%s\t%llu\nv\t%s.bytes\t%llu\n", name, (ull)s.rig.dev->stat[i].count,
		       name, (ull)s.rig.dev->stat[i].bytes);
	}
	if (ops->counters)
		ops->counters(s.rig.policy.self, on_counter, NULL);
	return 0;
}

static const struct {
	const char *word;
	int (*run)(void);
} calls[] = {
	{ "policy", open_policy }, { "close", close_policy },
	{ "parse", parse },	   { "alloc", alloc },
	{ "free", free_block },	   { "request", request },
	{ "free-all", free_all },  { "trim", trim },
	{ "sync", sync_device },   { "at", at },
	{ "wait", wait_for },	   { "fail", fail_later },
	{ "soak", soak },	   { "usage", usage_exact },
	{ "look", look },
};

static void answer(void)
{
	size_t i = 0;
	int rc;

	while (i < FRAG_ARRAY_LEN(calls) && strcmp(calls[i].word, line_words[0]) != 0)
		i++;
	if (i == FRAG_ARRAY_LEN(calls))
		fail_msg("unknown call '%s'", line_words[0]);
	s.extra[0] = '\0';
	rc = calls[i].run();
	if (s.open) {
		rig_check(&s.rig);
		rig_walk(&s.rig, NULL);
	}
	for (; s.open && s.told < s.rig.taken_count; s.told++)
		printf("t\t%llu\t%llu\n", (ull)s.rig.taken[s.told].addr,
		       (ull)s.rig.taken[s.told].bytes);
	printf("=\t%d\t%s\n", rc, rc ? s.rig.err.msg : s.extra);
}

int main(void)
{
	lines_run(answer);
	return close_policy();
}
