/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every policy when its surroundings fail: each driver call of a scenario in
 * turn, all calls from one on, each host allocation in turn. After a failure
 * the state is sound, the failure was reported or made good, and nothing leaks.
 */
#include "test.h"

#include "rig.h"
#include "variants.h"

#define SCENARIO_STEPS (test_is_quick() ? 60u : 120u)
#define MEMORY_STEPS 400 /* more blocks: tables of the policy have to grow */

static struct rig rig;

/* The call that failed, from the device's log. */
struct failure {
	enum frag_call call;
	bool happened; /* and was no FRAG_OOM: that is an every-day result */
	bool reported; /* by an error that names the call */
	unsigned errors;
	uint64_t calls;
};

static void watch(void *ctx, enum frag_call call, uint64_t bytes, int result)
{
	struct failure *f = ctx;

	f->calls++;
	if (result < 0 && !f->happened) {
		f->happened = true;
		f->call = call;
	}
}

static void note(struct failure *f, const struct rig *r, int rc)
{
	f->errors += rc < 0;
	if (rc < 0 && strstr(r->err.msg, frag_call_name(f->call)))
		f->reported = true;
}

/* Goes on after failures, as a program would that catches them. */
static void scenario(struct rig *r, uint64_t seed, struct failure *f)
{
	struct script s;

	script_init(&s, seed, 60);
	for (unsigned i = 0; i < SCENARIO_STEPS; i++) {
		note(f, r, script_step(&s, r));
		if (r->sync_rc)
			note(f, r, r->sync_rc);
		rig_check(r);
		if (i % 10 == 9)
			rig_walk(r, NULL);
	}
	/* half of it goes, the rest is left for destroy */
	for (int top; (top = rig_top(r)) >= 0 && r->count > 10;)
		note(f, r, rig_free(r, (unsigned)top));
	rig_check(r);
	note(f, r, rig_trim(r, 0));
	rig_check(r);
	rig_walk(r, NULL);
}

/* One run with call n failing. Returns false when there is no call n. */
static bool fail_one(const char *text, uint64_t seed, uint64_t n)
{
	struct rig_options o = { .fail_call = n };
	struct failure f = { 0 };
	bool before_destroy;
	uint64_t leaks;
	int rc = rig_open(&rig, text, &o);

	if (rc) {
		/* rig_open has seen to it that nothing is left behind */
		if (rc == FRAG_EUSAGE || rc == FRAG_ENOTSUP)
			fail_msg("%s: create: %s", text, rig.err.msg);
		return true;
	}
	f.calls = rig.dev->driver_calls;
	rig.dev->log = watch;
	rig.dev->log_ctx = &f;
	scenario(&rig, seed, &f);
	before_destroy = f.calls >= n;
	if (f.happened && !f.reported)
		fail_msg("%s: failure of call %llu (%s) was not reported", text, (ull)n,
			 frag_call_name(f.call));
	if (f.errors > 1 && !rig.sync_rc)
		fail_msg("%s: %u calls failed with call %llu (%s)", text, f.errors, (ull)n,
			 frag_call_name(f.call));
	leaks = rig_close_count_leaks(&rig);
	/* what is left when destroy itself meets the failure: at most one range with its page */
	if (leaks > (before_destroy ? 0 : 3))
		fail_msg("%s: %llu things leaked after the failure of call %llu (%s)", text,
			 (ull)leaks, (ull)n, frag_call_name(f.call));
	return f.calls >= n;
}

static void each_driver_call(void **state)
{
	static const uint64_t seeds[] = { 23, 41 };

	for (size_t i = 0; i < test_rounds(FRAG_ARRAY_LEN(seeds)); i++) {
		uint64_t n = 1;

		while (fail_one(*state, seeds[i], n))
			n++;
	}
}

/* From call n on nothing works; then all is well again. */
static void driver_gone(void **state)
{
	uint64_t calls = 1;

	for (uint64_t n = 1; n <= calls; n += 1 + n / 8) {
		struct rig_options o = { .fail_call = n, .fail_all_after = true };
		struct failure f = { .happened = true }; /* not of interest */
		uint64_t leaks;

		if (rig_open(&rig, *state, &o)) {
			calls = n + 1;
			continue;
		}
		scenario(&rig, 23, &f);
		calls = rig.dev->driver_calls;
		rig.dev->fail_call = 0;
		rig_free_all(&rig);
		rig_check(&rig);
		rig_walk(&rig, NULL);
		if (rig_alloc(&rig, 0, FRAG_MIN(5 * MIB, rig_max_bytes(rig.text)), 0, 0))
			fail_msg("%s: no alloc after the driver came back (was gone from call "
				 "%llu)",
				 (const char *)*state, (ull)n);
		rig_check(&rig);
		leaks = rig_close_count_leaks(&rig);
		if (leaks)
			fail_msg("%s: %llu things leaked, the driver was gone from call %llu",
				 (const char *)*state, (ull)leaks, (ull)n);
	}
}

/* Short of host memory at the n-th allocation; well again after the call that met it. */
static bool short_of_memory(const char *text, uint64_t n)
{
	static const struct rig_options none;
	bool met = false;
	struct script s;
	uint64_t leaks;
	int rc;

	frag_host_fail_after(n);
	rc = rig_open(&rig, text, &none);
	if (rc) {
		frag_host_fail_after(0);
		if (rc != FRAG_ENOMEM)
			fail_msg("%s: create: %d, '%s'", text, rc, rig.err.msg);
		return true;
	}
	script_init(&s, 29, 300);
	for (unsigned i = 0; i < MEMORY_STEPS; i++) {
		rc = script_step(&s, &rig);
		if (!met && (rc || rig.sync_rc)) {
			met = true;
			frag_host_fail_after(0);
		}
		/* a check may need host memory itself */
		if (met)
			rig_check(&rig);
	}
	frag_host_fail_after(0);
	rig_walk(&rig, NULL);
	if (rig_free_all(&rig))
		fail_msg("%s: free: %s", text, rig.err.msg);
	rig_check(&rig);
	leaks = rig_close_count_leaks(&rig);
	if (leaks)
		fail_msg("%s: %llu things leaked, host memory was short at allocation %llu", text,
			 (ull)leaks, (ull)n);
	return met;
}

static void each_host_allocation(void **state)
{
	/* some policies take memory in large pieces: runs that meet nothing may come between */
	unsigned quiet = 0;

	for (uint64_t n = 1; quiet < 20; n += 1 + n / test_rounds(100))
		quiet = short_of_memory(*state, n) ? 0 : quiet + 1;
}

TESTS
{
	conformance_add("each driver call fails", each_driver_call, true);
	conformance_add("the driver is gone for a while", driver_gone, false);
	conformance_add("each host allocation fails", each_host_allocation, true);
}
