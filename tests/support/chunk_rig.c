/* SPDX-License-Identifier: Apache-2.0 */
/* A policy on a small card, its chunks in a list. */
#include "chunk_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void on_segment(void *ctx, enum frag_segment_event kind, frag_addr_t addr, uint64_t bytes,
		       uint32_t stream)
{
	struct crig *r = ctx;

	if (r->events_count < CRIG_EVENTS)
		r->events[r->events_count] = (struct crig_event){ kind, addr, bytes, stream };
	r->events_count++;
}

static void on_sync(void *ctx)
{
	struct crig *r = ctx;

	while (r->pending_count)
		crig_free(r, r->pending[--r->pending_count]);
}

void crig_open(struct crig *r, const char *text, uint64_t total, uint64_t limit)
{
	struct frag_sim_config card = { .total_bytes = total };
	struct frag_policy_env env = { .limit_bytes = limit ? limit : UINT64_MAX,
				       .device_total_bytes = total,
				       .streams_count = 1,
				       .sync = on_sync,
				       .sync_ctx = r,
				       .journal = on_segment,
				       .journal_ctx = r };

	memset(r, 0, sizeof(*r));
	if (frag_policy_spec_parse(text, &r->spec, &r->err) ||
	    frag_sim_open(&card, &r->dev, &r->err))
		fail_msg("%s: %s", text, r->err.msg);
	env.dev = r->dev;
	if (frag_policy_create(r->spec, &env, &r->policy, &r->err))
		fail_msg("%s: %s", text, r->err.msg);
}

void crig_close(struct crig *r)
{
	crig_check(r);
	frag_policy_destroy(&r->policy);
	assert_int_equal(frag_dev_leaks(r->dev), 0);
	assert_int_equal(r->dev->reserved_bytes, 0);
	frag_dev_close(r->dev);
	frag_policy_spec_destroy(r->spec);
}

int crig_try(struct crig *r, uint64_t bytes, uint32_t stream, struct frag_block *out)
{
	struct frag_request req = { .bytes = bytes, .stream = stream };

	*out = (struct frag_block){ .stream = stream, .requested = bytes };
	return r->policy.ops->alloc(r->policy.self, &req, out, &r->err);
}

struct frag_block crig_alloc(struct crig *r, uint64_t bytes, uint32_t stream)
{
	struct frag_block b;
	int rc = crig_try(r, bytes, stream, &b);

	if (rc)
		fail_msg("alloc of %llu bytes: %d, %s", (unsigned long long)bytes, rc, r->err.msg);
	return b;
}

void crig_free(struct crig *r, const struct frag_block *b)
{
	if (r->policy.ops->free(r->policy.self, b, &r->err))
		fail_msg("free: %s", r->err.msg);
}

void crig_request(struct crig *r, struct frag_block *b)
{
	assert_true(r->pending_count < FRAG_ARRAY_LEN(r->pending));
	r->policy.ops->free_requested(r->policy.self, b);
	r->pending[r->pending_count++] = b;
}

void crig_trim(struct crig *r)
{
	if (r->policy.ops->trim && r->policy.ops->trim(r->policy.self, 0, &r->err))
		fail_msg("trim: %s", r->err.msg);
}

const struct crig_event *crig_event(const struct crig *r, size_t i)
{
	assert_true(i < r->events_count && i < CRIG_EVENTS);
	return &r->events[i];
}

size_t crig_chunks(const struct crig *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->events_count; i++)
		n += crig_event(r, i)->kind == FRAG_SEGMENT_ALLOC;
	return n;
}

const struct crig_event *crig_chunk(const struct crig *r, size_t i)
{
	for (size_t k = 0; k < r->events_count; k++)
		if (crig_event(r, k)->kind == FRAG_SEGMENT_ALLOC && !i--)
			return crig_event(r, k);
	fail_msg("there is no such chunk");
	return NULL;
}

uint64_t crig_calls(const struct crig *r, enum frag_call call)
{
	return r->dev->stat[call].count + r->dev->stat[call].failed;
}

struct frag_usage crig_check(struct crig *r)
{
	struct frag_usage told, walk;

	if (r->policy.ops->check && r->policy.ops->check(r->policy.self, &r->err))
		fail_msg("check: %s", r->err.msg);
	r->policy.ops->usage(r->policy.self, &told);
	frag_policy_usage_walk(&r->policy, &walk);
	assert_int_equal(told.allocated_bytes, walk.allocated_bytes);
	assert_int_equal(told.waiting_bytes, walk.waiting_bytes);
	assert_int_equal(told.free_bytes, walk.free_bytes);
	assert_int_equal(told.non_releasable_bytes, walk.non_releasable_bytes);
	assert_int_equal(told.releasable_bytes, walk.releasable_bytes);
	assert_int_equal(told.segments_count, walk.segments_count);
	assert_int_equal(told.blocks_count, walk.blocks_count);
	if (told.largest_free_bytes || !r->largest_may_be_unknown)
		assert_int_equal(told.largest_free_bytes, walk.largest_free_bytes);
	return told;
}

void crig_refused_text(const char *text, const char *part)
{
	struct frag_policy_spec *spec;
	struct frag_err err = { 0 };
	int rc = frag_policy_spec_parse(text, &spec, &err);

	if (rc != FRAG_EUSAGE)
		fail_msg("'%s' was not refused", text);
	if (!strstr(err.msg, part))
		fail_msg("'%s' was refused by '%s', which does not say '%s'", text, err.msg, part);
}

uint64_t crig_random(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

struct soak {
	struct frag_block b;
	enum { EMPTY, LIVE, WAITING } state;
};

static void soak_step(struct crig *r, struct soak *s, unsigned streams, uint64_t most,
		      uint64_t *seed)
{
	uint64_t bytes = crig_random(seed) % (most >> crig_random(seed) % 12) + 1;
	int rc;

	if (s->state == LIVE && crig_random(seed) % 4 == 0) {
		r->policy.ops->free_requested(r->policy.self, &s->b);
		s->state = WAITING;
	} else if (s->state != EMPTY) {
		crig_free(r, &s->b);
		s->state = EMPTY;
	} else {
		rc = crig_try(r, bytes, (uint32_t)(crig_random(seed) % streams), &s->b);
		if (rc && rc != FRAG_OOM)
			fail_msg("alloc: %s", r->err.msg);
		s->state = rc ? EMPTY : LIVE;
	}
}

void crig_soak(struct crig *r, unsigned steps, unsigned slots, unsigned streams, uint64_t most,
	       uint64_t seed)
{
	struct soak *s = calloc(slots, sizeof(*s));

	assert_non_null(s);
	for (unsigned i = 0; i < steps; i++) {
		soak_step(r, &s[crig_random(&seed) % slots], streams, most, &seed);
		if (i % 16 == 0)
			crig_check(r);
	}
	for (unsigned i = 0; i < slots; i++)
		if (s[i].state != EMPTY)
			crig_free(r, &s[i].b);
	assert_int_equal(crig_check(r).allocated_bytes, 0);
	free(s);
}
