/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What differs between the releases of PyTorch: the order of free blocks, by hand-made cases in
 * which the three rules choose differently, and which release knows which setting.
 */
#include <pytorch/pt.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MIB FRAG_MIB

struct rig {
	struct frag_device *dev;
	struct frag_policy_spec *spec;
	struct frag_policy policy;
	frag_addr_t next;     /* segments are placed downwards, as drivers do */
	frag_addr_t given[8]; /* back, in order */
	size_t given_count;
};

static int place(void *ctx, enum frag_call kind, uint64_t bytes, frag_addr_t *addr)
{
	struct rig *r = ctx;

	if (kind == FRAG_CALL_CREATE)
		return -1;
	r->next -= frag_round_up(bytes, FRAG_GIB);
	*addr = r->next;
	return 0;
}

static void journal(void *ctx, enum frag_segment_event kind, frag_addr_t addr, uint64_t bytes,
		    uint32_t stream)
{
	struct rig *r = ctx;

	(void)bytes;
	(void)stream;
	if (kind == FRAG_SEGMENT_FREE && r->given_count < FRAG_ARRAY_LEN(r->given))
		r->given[r->given_count++] = addr;
}

static int rig_try(struct rig *r, const char *text, unsigned recorded, struct frag_err *err)
{
	struct frag_sim_config card = { .place = place, .place_ctx = r };
	struct frag_policy_env env;
	struct frag_device_info info;
	int rc;

	*r = (struct rig){ .next = 1ull << 46 };
	assert_int_equal(frag_sim_open(&card, &r->dev, NULL), 0);
	frag_dev_info(r->dev, &info);
	env = (struct frag_policy_env){ .dev = r->dev,
					.limit_bytes = UINT64_MAX,
					.device_total_bytes = info.total_bytes,
					.journal = journal,
					.journal_ctx = r,
					.source_release = recorded };
	rc = frag_policy_spec_parse(text, &r->spec, err);
	if (!rc) {
		rc = frag_policy_create(r->spec, &env, &r->policy, err);
		if (rc)
			frag_policy_spec_destroy(r->spec);
	}
	if (rc)
		frag_dev_close(r->dev);
	return rc;
}

static void rig_open(struct rig *r, const char *text)
{
	struct frag_err err = { 0 };

	if (rig_try(r, text, 0, &err))
		fail_msg("%s", err.msg);
}

static void rig_close(struct rig *r)
{
	struct frag_err err = { 0 };

	if (r->policy.ops->check(r->policy.self, &err))
		fail_msg("%s", err.msg);
	frag_policy_destroy(&r->policy);
	assert_int_equal(frag_dev_leaks(r->dev), 0);
	frag_policy_spec_destroy(r->spec);
	frag_dev_close(r->dev);
}

static struct frag_block take(struct rig *r, uint64_t bytes)
{
	struct frag_request req = { .bytes = bytes };
	struct frag_block b = { 0 };
	struct frag_err err = { 0 };

	if (r->policy.ops->alloc(r->policy.self, &req, &b, &err))
		fail_msg("%s", err.msg);
	return b;
}

static void give(struct rig *r, struct frag_block *b)
{
	assert_int_equal(r->policy.ops->free(r->policy.self, b, NULL), 0);
}

/* ---- order ---- */

static const char *const releases[] = { "pytorch:version:2.1", "pytorch:version:2.11",
					"pytorch:version:2.12", "pytorch:version:2.13", "pytorch" };

/* Of two whole segments, the second below the first: the lower one, or the older one. */
static void test_segments(void **state)
{
	(void)state;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(releases); i++) {
		struct frag_block older, newer, b;
		struct rig r;

		rig_open(&r, releases[i]);
		older = take(&r, 12 * MIB);
		newer = take(&r, 12 * MIB);
		assert_true(newer.addr < older.addr);
		give(&r, &newer);
		give(&r, &older);
		b = take(&r, 12 * MIB);
		assert_true(b.addr == (i < 2 ? newer.addr : older.addr));
		rig_close(&r);
	}
}

/* In one segment: what is cut off in front is a new block, what stays behind an old one. */
static void test_blocks(void **state)
{
	(void)state;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(releases); i++) {
		struct frag_block a, c, x, b;
		struct rig r;

		rig_open(&r, releases[i]);
		a = take(&r, 1024);
		take(&r, 512); /* holds a and c apart */
		c = take(&r, 512);
		take(&r, 512);
		give(&r, &a);
		x = take(&r, 512); /* the front of a, made after c */
		take(&r, 512);	   /* the rest of a */
		assert_true(x.addr == a.addr);
		give(&r, &c);
		give(&r, &x);
		b = take(&r, 512);
		assert_true(b.addr == (i == 2 ? c.addr : x.addr));
		rig_close(&r);
	}
}

/* Of merging blocks the one that is freed survives, not its neighbours. */
static void test_merged(void **state)
{
	(void)state;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(releases); i++) {
		struct frag_block a, d, e, x, b;
		struct rig r;

		rig_open(&r, releases[i]);
		a = take(&r, 1024);
		take(&r, 512);
		d = take(&r, 512);
		e = take(&r, 512);
		take(&r, 512);
		give(&r, &a);
		x = take(&r, 512);
		give(&r, &x); /* takes in the rest of a, which is the oldest of all */
		give(&r, &d);
		give(&r, &e); /* takes in d, which is older than it; both are older than x */
		b = take(&r, 1024);
		assert_true(b.addr == (i == 2 ? d.addr : a.addr));
		rig_close(&r);
	}
}

static void test_released(void **state)
{
	(void)state;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(releases); i++) {
		struct frag_block b[3];
		struct rig r;

		rig_open(&r, releases[i]);
		for (unsigned k = 0; k < 3; k++)
			b[k] = take(&r, 12 * MIB);
		for (unsigned k = 0; k < 3; k++)
			give(&r, &b[k]);
		assert_int_equal(r.policy.ops->trim(r.policy.self, 0, NULL), 0);
		assert_int_equal(r.given_count, 3);
		for (unsigned k = 0; k < 3; k++)
			assert_true(r.given[k] == b[i < 2 ? 2 - k : k].addr);
		rig_close(&r);
	}
}

/* An expandable segment has one number for all that is in it, given when it was reserved. */
static void test_ranges(void **state)
{
	(void)state;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(releases); i++) {
		struct frag_block a, b[2];
		char text[64];
		struct rig r;

		snprintf(text, sizeof(text), "%s%cexpandable_segments:True", releases[i],
			 strchr(releases[i], ':') ? ',' : ':');
		rig_open(&r, text);
		a = take(&r, 12 * MIB);
		b[0] = take(&r, 12 * MIB);
		take(&r, 2 * MIB);
		give(&r, &a);
		b[1] = take(&r, 6 * MIB); /* the front of a, a new block */
		give(&r, &b[1]);
		give(&r, &b[0]);
		assert_true(take(&r, 20 * MIB).addr == a.addr); /* all is one free block */
		rig_close(&r);
	}
}

/* The numbers of segments run out: those that are left close ranks, and order stays. */
static void test_renumbered(void **state)
{
	struct frag_block b[6], got;
	struct rig r;
	struct pt *a;

	(void)state;
	rig_open(&r, "pytorch:version:2.13");
	a = r.policy.self;
	for (unsigned k = 0; k < 3; k++)
		b[k] = take(&r, 12 * MIB);
	give(&r, &b[1]);
	a->made = (UINT64_MAX >> a->rank_bits) - 1;
	b[1] = take(&r, 12 * MIB);
	give(&r, &b[1]);
	for (unsigned k = 3; k < 6; k++)
		b[k] = take(&r, k == 3 ? 12 * MIB : 14 * MIB);
	assert_true(a->made < 10);
	for (unsigned k = 6; k-- > 0;)
		if (k != 1)
			give(&r, &b[k]);
	for (unsigned k = 0; k < 6; k++) {
		static const unsigned order[] = { 0, 1, 2, 4, 5 };

		if (k == 5)
			break;
		got = take(&r, order[k] < 3 ? 12 * MIB : 14 * MIB);
		assert_true(got.addr == b[order[k]].addr);
	}
	rig_close(&r);
}

/* ---- settings ---- */

/* The first release that knows a key. */
static const struct {
	const char *item;
	unsigned since;
} items[] = {
	{ "max_split_size_mb:64", 1 },
	{ "garbage_collection_threshold:0.5", 1 },
	{ "roundup_power2_divisions:4", 1 },
	{ "expandable_segments:True", 1 },
	{ "backend:native", 1 },
	{ "release_lock_on_cudamalloc:True", 2 },
	{ "pinned_use_cuda_host_register:True", 2 },
	{ "pinned_num_register_threads:8", 2 },
	{ "max_non_split_rounding_mb:64", 6 },
	{ "pinned_use_background_threads:True", 6 },
	{ "graph_capture_record_stream_reuse:True", 9 },
	{ "per_process_memory_fraction:0.5", 10 },
	{ "pinned_reserve_segment_size_mb:64", 10 },
	{ "large_segment_size_mb:40", 11 },
	{ "large_segment_size_mb=40", 11 },
	{ "throw_on_cudamalloc_oom:True", 12 },
	{ "pinned_free_catch_all:True", 12 },
	{ "pinned_max_cached_size_mb:64", 13 },
	{ "pinned_max_round_threshold_mb:64", 13 },
	{ "expandable_segments_reserve:0.5", 15 },
	{ "expandable_segments_reserve:40G", 15 },
	{ "expandable_segments_reserve_by_class:[a:0.5,b:40G]", 15 },
};

static void test_keys(void **state)
{
	(void)state;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(items); i++) {
		for (unsigned minor = 1; minor <= 15; minor++) {
			struct frag_policy_spec *spec = NULL;
			char text[128], since[32];
			struct frag_err err = { 0 };
			int rc;

			snprintf(text, sizeof(text), "pytorch:version:2.%u,%s", minor,
				 items[i].item);
			snprintf(since, sizeof(since), "came with 2.%u", items[i].since);
			rc = frag_policy_spec_parse(text, &spec, &err);
			if (minor >= items[i].since && rc)
				fail_msg("%s: %s", text, err.msg);
			if (minor < items[i].since) {
				assert_int_equal(rc, FRAG_EUSAGE);
				assert_non_null(strstr(err.msg, since));
			}
			frag_policy_spec_destroy(spec);
		}
	}
}

/* Without a version the recording's holds, and it has to know the key. */
static void test_recorded(void **state)
{
	struct frag_err err = { 0 };
	struct rig r;

	(void)state;
	assert_int_equal(rig_try(&r, "pytorch:large_segment_size_mb:40", FRAG_TORCH(2, 6), &err),
			 FRAG_EUSAGE);
	assert_string_equal(err.msg,
			    "PyTorch 2.6, which made the recording, does not know the key "
			    "'large_segment_size_mb', which came with 2.11; what if: version=2.11");
	assert_int_equal(rig_try(&r, "pytorch:large_segment_size_mb:40", FRAG_TORCH(2, 11), &err),
			 0);
	assert_int_equal(((struct pt *)r.policy.self)->order, PT_BY_ADDRESS);
	rig_close(&r);
	assert_int_equal(rig_try(&r, "pytorch:version=2.15,large_segment_size_mb:40",
				 FRAG_TORCH(2, 6), &err),
			 0);
	assert_int_equal(((struct pt *)r.policy.self)->order, PT_BY_SEGMENT);
	rig_close(&r);
}

static bool takes(const char *text)
{
	struct frag_policy_spec *spec = NULL;
	bool ok = !frag_policy_spec_parse(text, &spec, NULL);

	frag_policy_spec_destroy(spec);
	return ok;
}

static void test_smallest_sizes(void **state)
{
	(void)state;
	assert_false(takes("pytorch:version:2.8,max_split_size_mb:20"));
	assert_true(takes("pytorch:version:2.8,max_split_size_mb:21"));
	assert_true(takes("pytorch:version:2.9,max_split_size_mb:20"));
	assert_false(takes("pytorch:version:2.9,max_non_split_rounding_mb:20"));
	assert_true(takes("pytorch:version:2.10,max_non_split_rounding_mb:20"));
	assert_false(takes("pytorch:version:2.10,max_non_split_rounding_mb:19"));
	assert_false(takes("pytorch:version:2.0"));
	assert_false(takes("pytorch:version:2.16"));
	assert_false(takes("pytorch:version:new"));
}

/* Up to 2.10 '>' also overwrites the interval that was named last. */
static void test_rest_of_list(void **state)
{
	uint32_t before[PT_ROUNDUPS], since[PT_ROUNDUPS];

	(void)state;
	assert_int_equal(pt_conf_roundup("[256:2,1024:4,>:1]", FRAG_TORCH(2, 10), before, NULL), 0);
	assert_int_equal(pt_conf_roundup("[256:2,1024:4,>:1]", FRAG_TORCH(2, 11), since, NULL), 0);
	for (unsigned i = 0; i < PT_ROUNDUPS; i++) {
		assert_int_equal(before[i], i <= 8 ? 2 : i == 9 ? 0 : 1);
		assert_int_equal(since[i], i <= 8 ? 2 : i == 9 ? 0 : i == 10 ? 4 : 1);
	}
	assert_int_equal(pt_conf_roundup("[>:8]", FRAG_TORCH(2, 1), before, NULL), 0);
	assert_int_equal(before[0], 8);
	assert_int_equal(pt_conf_roundup("[>:8]", FRAG_TORCH(2, 15), since, NULL), 0);
	assert_int_equal(since[0], 0);
	assert_int_equal(since[1], 8);
}

/* One division was no rounding at all once: what is left of the segment begins at an odd address. */
static void test_one_division(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} cases[] = {
		{ "pytorch:version:2.2,roundup_power2_divisions:1", 12 * MIB + 1 },
		{ "pytorch:version:2.3,roundup_power2_divisions:[4:4,>:1]", 12 * MIB + 1 },
		{ "pytorch:version:2.3,roundup_power2_divisions:[16:1,64:4]", 12 * MIB + 1 },
		{ "pytorch:version:2.3", 12 * MIB + 512 },
		{ "pytorch:version:2.4,roundup_power2_divisions:1", 12 * MIB + 512 },
	};

	(void)state;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(cases); i++) {
		struct frag_block b, rest;
		struct rig r;

		rig_open(&r, cases[i].text);
		b = take(&r, 12 * MIB + 1);
		rest = take(&r, MIB + MIB / 2);
		assert_true(rest.addr == b.addr + cases[i].bytes);
		give(&r, &rest);
		give(&r, &b);
		rig_close(&r);
	}
}

static void test_reserve(void **state)
{
	static const struct {
		const char *text;
		uint64_t gib;
	} cases[] = { { "", 90 },  { "0.5", 40 },  { "40G", 40 },
		      { "1", 80 }, { "200G", 90 }, { "1e20G", 90 } };
	static const char *const wrong[] = { "G", "0", "-1", "1.5", "40M", "x", "nan" };
	uint64_t bytes;

	(void)state;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(cases); i++) {
		struct pt_conf c = { 0 };

		snprintf(c.reserve_text, sizeof(c.reserve_text), "%s", cases[i].text);
		assert_int_equal(pt_conf_reserve(&c, 80 * FRAG_GIB, &bytes, NULL), 0);
		assert_true(bytes == cases[i].gib * FRAG_GIB);
	}
	for (size_t i = 0; i < FRAG_ARRAY_LEN(wrong); i++) {
		char text[64];

		snprintf(text, sizeof(text), "pytorch:expandable_segments_reserve:%s", wrong[i]);
		assert_false(takes(text));
	}
}

/* A request that no reservation can hold is refused, and reserves nothing. */
static void test_reserve_too_short(void **state)
{
	struct frag_request req = { .bytes = 3 * FRAG_GIB };
	struct frag_block b = { 0 }, kept;
	frag_addr_t next;
	struct rig r;

	(void)state;
	rig_open(&r, "pytorch:expandable_segments:True,expandable_segments_reserve:2G");
	kept = take(&r, FRAG_GIB);
	next = r.next;
	assert_int_equal(r.policy.ops->alloc(r.policy.self, &req, &b, NULL), FRAG_OOM);
	assert_true(r.next == next);
	give(&r, &kept);
	rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_segments),
		cmocka_unit_test(test_blocks),
		cmocka_unit_test(test_merged),
		cmocka_unit_test(test_released),
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_renumbered),
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_recorded),
		cmocka_unit_test(test_smallest_sizes),
		cmocka_unit_test(test_rest_of_list),
		cmocka_unit_test(test_one_division),
		cmocka_unit_test(test_reserve),
		cmocka_unit_test(test_reserve_too_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
