/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules of the PyTorch allocator with hand-computed values: rounding, segment
 * sizes, splits, ties, expandable segments, limits, garbage collection.
 */
#include <frag/device.h>
#include <frag/policy.h>

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MAX_BLOCKS 64

/* One allocator on a simulated card, and what it told of its segments. */
struct rig {
	struct frag_device *dev;
	struct frag_policy_spec *spec;
	struct frag_policy policy;
	struct frag_block blocks[MAX_BLOCKS];
	frag_addr_t bases[32]; /* S0, S1, … in order of creation */
	unsigned bases_count;
	char log[4096];		  /* events since the last look */
	frag_addr_t next_address; /* the card places upwards from here */
};

static int base_of(struct rig *r, frag_addr_t addr, uint64_t *offset)
{
	int best = -1;

	for (unsigned i = 0; i < r->bases_count; i++)
		if (addr >= r->bases[i] && (best < 0 || r->bases[i] >= r->bases[best]))
			best = (int)i;
	*offset = best < 0 ? addr : addr - r->bases[best];
	return best;
}

static void say(struct rig *r, const char *what, frag_addr_t addr, uint64_t bytes)
{
	size_t n = strlen(r->log);
	uint64_t offset;
	int s = base_of(r, addr, &offset);

	snprintf(r->log + n, sizeof(r->log) - n, "%s%s S%d+%" PRIu64 " %" PRIu64, n ? "; " : "",
		 what, s, offset, bytes);
}

static void journal(void *ctx, enum frag_segment_event kind, frag_addr_t addr, uint64_t bytes,
		    uint32_t stream)
{
	static const char *const names[] = { "segment_alloc", "segment_free", "segment_map",
					     "segment_unmap" };
	struct rig *r = ctx;

	(void)stream;
	say(r, names[kind], addr, bytes);
}

/* Every segment and reservation gets the next gibibyte-aligned place: S0 < S1 < … */
static int place(void *ctx, enum frag_call kind, uint64_t bytes, frag_addr_t *addr)
{
	struct rig *r = ctx;

	if (kind == FRAG_CALL_CREATE)
		return -1;
	*addr = r->next_address;
	r->bases[r->bases_count++] = *addr;
	r->next_address += frag_round_up(bytes, FRAG_GIB);
	return 0;
}

static void rig_open(struct rig *r, const char *text, uint64_t limit)
{
	struct frag_err err = { 0 };
	struct frag_sim_config cfg = { .context_bytes = UINT64_MAX,
				       .place = place,
				       .place_ctx = r };
	struct frag_policy_env env;

	memset(r, 0, sizeof(*r));
	r->next_address = 1ull << 40;
	assert_int_equal(frag_sim_open(&cfg, &r->dev, &err), 0);
	if (frag_policy_spec_parse(text, &r->spec, &err))
		fail_msg("%s", err.msg);
	env = (struct frag_policy_env){ .dev = r->dev,
					.limit_bytes = limit,
					.device_total_bytes = 150109880320,
					.journal = journal,
					.journal_ctx = r };
	assert_int_equal(frag_policy_create(r->spec, &env, &r->policy, &err), 0);
}

static void rig_close(struct rig *r)
{
	struct frag_err err = { 0 };

	if (r->policy.ops->check(r->policy.self, &err))
		fail_msg("%s", err.msg);
	frag_policy_destroy(&r->policy);
	assert_int_equal(frag_dev_leaks(r->dev), 0);
	assert_int_equal(r->dev->reserved_bytes, 0);
	frag_policy_spec_destroy(r->spec);
	frag_dev_close(r->dev);
}

static int alloc_on(struct rig *r, unsigned id, uint64_t bytes, uint32_t stream)
{
	struct frag_request req = { .bytes = bytes, .stream = stream };
	struct frag_err err = { 0 };
	int rc = r->policy.ops->alloc(r->policy.self, &req, &r->blocks[id], &err);

	if (rc < 0)
		fail_msg("%s", err.msg);
	if (!rc)
		say(r, "alloc", r->blocks[id].addr, r->blocks[id].granted);
	return rc;
}

static void give(struct rig *r, unsigned id)
{
	assert_int_equal(r->policy.ops->free(r->policy.self, &r->blocks[id], NULL), 0);
}

static void trim(struct rig *r)
{
	assert_int_equal(r->policy.ops->trim(r->policy.self, 0, NULL), 0);
}

/* What happened since the last call must be exactly `want`. */
static void saw(struct rig *r, const char *want)
{
	assert_string_equal(r->log, want);
	r->log[0] = 0;
}

struct counter {
	const char *name;
	int64_t value;
	bool found;
};

static void find_counter(void *ctx, const char *name, int64_t value)
{
	struct counter *c = ctx;

	if (strcmp(name, c->name) != 0)
		return;
	c->value = value;
	c->found = true;
}

static int64_t counter(struct rig *r, const char *name)
{
	struct counter c = { .name = name };

	r->policy.ops->counters(r->policy.self, find_counter, &c);
	if (!c.found)
		fail_msg("no counter %s", name);
	return c.value;
}

static void counter4(struct rig *r, const char *family, int64_t current, int64_t peak,
		     int64_t allocated, int64_t freed)
{
	static const char *const parts[] = { "current", "peak", "allocated", "freed" };
	int64_t want[] = { current, peak, allocated, freed };
	char name[80];

	for (int i = 0; i < 4; i++) {
		snprintf(name, sizeof(name), "%s.%s", family, parts[i]);
		if (counter(r, name) != want[i])
			fail_msg("%s: %lld, not %lld", name, (long long)counter(r, name),
				 (long long)want[i]);
	}
}

/* ---- rounding ---- */

static uint64_t granted(const char *text, uint64_t bytes)
{
	struct rig r;
	uint64_t size;

	/* expandable segments never hand out more than the rounded size */
	rig_open(&r, text, UINT64_MAX);
	assert_int_equal(alloc_on(&r, 0, bytes, 0), 0);
	size = r.blocks[0].granted;
	give(&r, 0);
	rig_close(&r);
	return size;
}

static void rounding(void **state)
{
	static const struct {
		uint64_t n, plain, d4, d8;
	} rows[] = {
		{ 1, 512, 512, 512 },
		{ 512, 512, 512, 512 },
		{ 513, 1024, 1024, 1024 },
		{ 1025, 1536, 1536, 1536 },
		{ 1200, 1536, 1536, 1536 },
		{ 2048, 2048, 2048, 2048 },
		{ 2049, 2560, 2560, 2560 },
		{ 1048577, 1049088, 1310720, 1179648 },
		{ 3145729, 3146240, 3670016, 3407872 },
		{ 104857600, 104857600, 117440512, 109051904 },
		{ 1ull << 27, 1ull << 27, 1ull << 27, 1ull << 27 },
	};
	const char *e = "pytorch:expandable_segments:True";

	(void)state;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(rows); i++) {
		assert_int_equal(granted(e, rows[i].n), rows[i].plain);
		assert_int_equal(granted("pytorch:expandable_segments:True,roundup_power2_"
					 "divisions:1",
					 rows[i].n),
				 rows[i].plain);
		assert_int_equal(granted("pytorch:expandable_segments:True,roundup_power2_"
					 "divisions:4",
					 rows[i].n),
				 rows[i].d4);
		assert_int_equal(granted("pytorch:expandable_segments:True,roundup_power2_"
					 "divisions:8",
					 rows[i].n),
				 rows[i].d8);
	}
}

/* [256:1,512:2,1024:4,>:8]: below 512 MiB plain, 1 GiB.. in quarters, 2 GiB.. in eighths. */
static void rounding_list(void **state)
{
	const char *t = "pytorch:expandable_segments:True,roundup_power2_divisions:[256:1,512:2,"
			"1024:4,>:8]";

	(void)state;
	assert_int_equal(granted(t, 300 * FRAG_MIB + 1), 300 * FRAG_MIB + 512);
	assert_int_equal(granted(t, 3 * FRAG_MIB + 1), 3 * FRAG_MIB + 512);
	assert_int_equal(granted(t, 600 * FRAG_MIB), 768 * FRAG_MIB);
	assert_int_equal(granted(t, FRAG_GIB + 1), FRAG_GIB + 256 * FRAG_MIB);
	assert_int_equal(granted(t, 2 * FRAG_GIB + 1), 2 * FRAG_GIB + 256 * FRAG_MIB);
}

/* ---- worked sequences ---- */

static void default_settings(void **state)
{
	enum { A, B, C, D, E, F, G, H, I };
	struct rig r;

	(void)state;
	rig_open(&r, "pytorch", UINT64_MAX);
	alloc_on(&r, A, 1, 0);
	saw(&r, "segment_alloc S0+0 2097152; alloc S0+0 512");
	alloc_on(&r, B, 1048576, 0);
	saw(&r, "alloc S0+512 1048576");
	alloc_on(&r, C, 1048577, 0);
	saw(&r, "segment_alloc S1+0 20971520; alloc S1+0 1049088");
	alloc_on(&r, D, 9437184, 0);
	saw(&r, "alloc S1+1049088 9437184");
	alloc_on(&r, E, 10485760, 0);
	saw(&r, "segment_alloc S2+0 10485760; alloc S2+0 10485760");
	alloc_on(&r, F, 34603015, 0); /* 1 MiB is left over: not split */
	saw(&r, "segment_alloc S3+0 35651584; alloc S3+0 35651584");
	give(&r, C);
	alloc_on(&r, G, 600000, 0);
	saw(&r, "alloc S0+1049088 600064");
	give(&r, D);
	alloc_on(&r, H, 12582912, 0);
	saw(&r, "alloc S1+0 12582912");
	give(&r, F);
	alloc_on(&r, I, 34604544, 0);
	saw(&r, "alloc S3+0 35651584");
	give(&r, A);
	give(&r, B);
	give(&r, G);
	trim(&r);
	saw(&r, "segment_free S0+0 2097152");
	counter4(&r, "allocated_bytes.all", 58720256, 60369408, 106507264, 47787008);
	counter4(&r, "reserved_bytes.all", 67108864, 69206016, 69206016, 2097152);
	counter4(&r, "requested_bytes.all", 57673216, 59321793, 104410569, 46737353);
	counter4(&r, "inactive_split_bytes.all", 8388608, 20970496, 32505856, 24117248);
	counter4(&r, "inactive_split.all", 1, 3, 5, 4);
	counter4(&r, "segment.all", 3, 4, 4, 1);
	counter4(&r, "allocation.all", 3, 6, 9, 6);
	assert_int_equal(counter(&r, "num_device_alloc"), 4);
	assert_int_equal(counter(&r, "num_device_free"), 1);
	assert_int_equal(counter(&r, "num_sync_all_streams"), 1);
	rig_close(&r);
}

static void expandable(void **state)
{
	enum { A, B, C, D, G };
	struct rig r;

	(void)state;
	rig_open(&r, "pytorch:expandable_segments:True", UINT64_MAX);
	alloc_on(&r, A, 3 * FRAG_MIB, 0);
	saw(&r, "segment_map S0+0 20971520; alloc S0+0 3145728");
	alloc_on(&r, B, 18 * FRAG_MIB, 0);
	saw(&r, "segment_map S0+20971520 20971520; alloc S0+3145728 18874368");
	alloc_on(&r, C, 100, 0);
	saw(&r, "segment_map S1+0 2097152; alloc S1+0 512");
	give(&r, A);
	alloc_on(&r, D, 25 * FRAG_MIB, 0);
	saw(&r, "segment_map S0+41943040 20971520; alloc S0+22020096 26214400");
	give(&r, B);
	give(&r, D);
	trim(&r);
	saw(&r, "segment_unmap S0+0 62914560");
	alloc_on(&r, G, 41 * FRAG_MIB, 0);
	saw(&r, "segment_map S2+0 62914560; alloc S2+0 42991616");
	give(&r, C);
	give(&r, G);
	trim(&r);
	saw(&r, "segment_unmap S2+0 62914560; segment_unmap S1+0 2097152");
	counter4(&r, "reserved_bytes.all", 0, 65011712, 127926272, 127926272);
	counter4(&r, "segment.all", 0, 0, 0, 0);
	assert_int_equal(counter(&r, "num_device_alloc"), 5);
	assert_int_equal(counter(&r, "num_device_free"), 3);
	rig_close(&r);
}

static void max_split(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, "pytorch:max_split_size_mb:64", UINT64_MAX);
	alloc_on(&r, 0, 64 * FRAG_MIB, 0);
	give(&r, 0);
	r.log[0] = 0;
	alloc_on(&r, 1, 30 * FRAG_MIB, 0);
	saw(&r, "segment_alloc S1+0 31457280; alloc S1+0 31457280");
	alloc_on(&r, 2, 63 * FRAG_MIB, 0); /* 1 MiB is left: not split */
	saw(&r, "segment_alloc S2+0 67108864; alloc S2+0 67108864");
	give(&r, 2);
	alloc_on(&r, 3, 64 * FRAG_MIB, 0); /* lowest address of equals */
	saw(&r, "alloc S0+0 67108864");
	give(&r, 3);
	alloc_on(&r, 4, 45 * FRAG_MIB, 0); /* S0 and S2 are oversize: refused */
	saw(&r, "segment_alloc S3+0 48234496; alloc S3+0 48234496");
	assert_int_equal(counter(&r, "oversize_allocations.allocated"), 3);
	assert_int_equal(counter(&r, "max_split_size"), 64 * 1048576);
	rig_close(&r);
}

/* Blocks of one stream never serve another, however much room there is. */
static void streams(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, "pytorch", UINT64_MAX);
	alloc_on(&r, 0, 3 * FRAG_MIB, 0);
	r.policy.ops->free_requested(r.policy.self, &r.blocks[0]);
	r.log[0] = 0;
	alloc_on(&r, 1, 3 * FRAG_MIB, 0); /* still waited for */
	saw(&r, "alloc S0+3145728 3145728");
	give(&r, 0);
	alloc_on(&r, 2, 3 * FRAG_MIB, 0);
	saw(&r, "alloc S0+0 3145728");
	alloc_on(&r, 3, 2 * FRAG_MIB, 1);
	saw(&r, "segment_alloc S1+0 20971520; alloc S1+0 2097152");
	rig_close(&r);
}

/* ---- limits ---- */

static void retry_and_oom(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, "pytorch", 60 * FRAG_MIB);
	alloc_on(&r, 0, 30 * FRAG_MIB, 0);
	give(&r, 0);
	alloc_on(&r, 1, 20 * FRAG_MIB, 0); /* from the 30 MiB segment, 10 MiB left over */
	r.log[0] = 0;
	/* 30 + 32 > 60: nothing whole to release, out of memory; the message would say 32 MiB */
	assert_int_equal(alloc_on(&r, 2, 32 * FRAG_MIB, 0), FRAG_OOM);
	saw(&r, "");
	give(&r, 1);
	assert_int_equal(alloc_on(&r, 2, 32 * FRAG_MIB, 0), 0);
	saw(&r, "segment_free S0+0 31457280; segment_alloc S1+0 33554432; alloc S1+0 33554432");
	assert_int_equal(counter(&r, "num_ooms"), 1);
	assert_int_equal(counter(&r, "num_alloc_retries"), 2);
	assert_int_equal(counter(&r, "num_sync_all_streams"), 2);
	rig_close(&r);
}

/* 7b: the smallest sufficient oversize segment goes, nothing else, and it is no retry. */
static void oversize_release(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, "pytorch:max_split_size_mb:32", 300 * FRAG_MIB);
	alloc_on(&r, 0, 100 * FRAG_MIB, 0);
	alloc_on(&r, 1, 60 * FRAG_MIB, 0);
	alloc_on(&r, 2, 120 * FRAG_MIB, 0);
	give(&r, 0);
	give(&r, 1);
	give(&r, 2);
	r.log[0] = 0;
	alloc_on(&r, 3, 70 * FRAG_MIB, 0); /* 100 >= 70 + 20: refused, and so is the search */
	saw(&r, "segment_free S0+0 104857600; segment_alloc S3+0 73400320; alloc S3+0 73400320");
	assert_int_equal(counter(&r, "num_alloc_retries"), 0);
	rig_close(&r);
}

/* The oldest half goes; a round is not cut short at the target. */
static void garbage(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, "pytorch:garbage_collection_threshold:0.5", 200 * FRAG_MIB);
	alloc_on(&r, 0, 40 * FRAG_MIB, 0);
	alloc_on(&r, 1, 42 * FRAG_MIB, 0);
	alloc_on(&r, 2, 44 * FRAG_MIB, 0);
	give(&r, 0);			  /* age counts from search 3 */
	alloc_on(&r, 3, 2 * FRAG_MIB, 1); /* another stream: search 4 misses; 126 > 100: collect */
	r.log[0] = 0;
	/* S0 was the only whole free segment: it went before the new one came */
	give(&r, 1);
	give(&r, 2);
	alloc_on(&r, 4, 60 * FRAG_MIB, 0);
	/* total 44 + 42 + 20 = 106 > 100, target 6; both have the same age: both go */
	saw(&r, "segment_free S1+0 44040192; segment_free S2+0 46137344; segment_alloc S4+0 "
		"62914560; alloc S4+0 62914560");
	rig_close(&r);
}

/* ---- settings ---- */

static void settings_refused(void **state)
{
	static const char *const bad[] = {
		"pytorch:max_split_size_mb:19",
		"pytorch:max_split_size_mb:abc",
		"pytorch:max_split_size_mb",
		"pytorch:garbage_collection_threshold:1.0",
		"pytorch:garbage_collection_threshold:0",
		"pytorch:expandable_segments:true",
		"pytorch:roundup_power2_divisions:3",
		"pytorch:roundup_power2_divisions:[3:1]",
		"pytorch:roundup_power2_divisions:[4:1",
		"pytorch:large_segment_size_mb:10",
		"pytorch:large_segment_size_mb:64,max_split_size_mb:32",
		"pytorch:max_non_split_rounding_mb:19",
		"pytorch:per_process_memory_fraction:1.5",
		"pytorch:backend:cudaMallocAsync",
		"pytorch:backend:mine",
		"pytorch:max_split_sise_mb:64",
	};
	static const char *const good[] = {
		"pytorch: max_split_size_mb : 21.7 , expandable_segments:False",
		"pytorch:max_split_size_mb=20",
		"pytorch:backend:native,release_lock_on_cudamalloc:True",
		"pytorch:pinned_num_register_threads:8,pinned_use_background_threads:True",
		"pytorch:roundup_power2_divisions:[256:1,512:2,1024:4,>:8],max_split_size_mb:-1",
		"pytorch:large_segment_size_mb:11",
	};
	struct frag_policy_spec *spec;
	struct frag_err err;

	(void)state;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(bad); i++) {
		err = (struct frag_err){ 0 };
		if (frag_policy_spec_parse(bad[i], &spec, &err) != FRAG_EUSAGE)
			fail_msg("'%s' was accepted", bad[i]);
		assert_true(err.msg[0] != 0);
	}
	assert_non_null(strstr(err.msg, "max_split_size_mb"));
	for (size_t i = 0; i < FRAG_ARRAY_LEN(good); i++) {
		if (frag_policy_spec_parse(good[i], &spec, &err))
			fail_msg("'%s': %s", good[i], err.msg);
		frag_policy_spec_destroy(spec);
	}
}

/* Every n-th driver call fails once: sound state, nothing leaks. */
static void driver_failures(void **state)
{
	static const char *const texts[] = { "pytorch", "pytorch:expandable_segments:True" };

	(void)state;
	for (size_t t = 0; t < FRAG_ARRAY_LEN(texts); t++) {
		for (uint64_t n = 1; n < 60; n++) {
			struct frag_request req = { .stream = 0 };
			struct frag_block b[8];
			bool live[8] = { false };
			struct frag_err err = { 0 };
			struct rig r;

			rig_open(&r, texts[t], UINT64_MAX);
			r.dev->fail_call = n;
			for (unsigned i = 0; i < 24; i++) {
				unsigned k = i * 5 % 8;

				req.bytes = (i * 7919u % 13 + 1) * 3 * FRAG_MIB / (i % 3 ? 1 : 64);
				if (live[k])
					r.policy.ops->free(r.policy.self, &b[k], &err);
				live[k] = !r.policy.ops->alloc(r.policy.self, &req, &b[k], &err);
				if (i % 6 == 5)
					r.policy.ops->trim(r.policy.self, 0, &err);
				if (r.policy.ops->check(r.policy.self, &err))
					fail_msg("call %u: %s", (unsigned)n, err.msg);
			}
			r.dev->fail_call = 0;
			rig_close(&r);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rounding),	    cmocka_unit_test(rounding_list),
		cmocka_unit_test(default_settings), cmocka_unit_test(expandable),
		cmocka_unit_test(max_split),	    cmocka_unit_test(streams),
		cmocka_unit_test(retry_and_oom),    cmocka_unit_test(oversize_release),
		cmocka_unit_test(garbage),	    cmocka_unit_test(settings_refused),
		cmocka_unit_test(driver_failures),
	};

	return cmocka_run_group_tests_name("policy_pytorch", tests, NULL, NULL);
}
