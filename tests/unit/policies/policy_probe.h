/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For unit tests of policies that pin single rules: one policy on one small
 * simulated card, its `check` after every call, and a log of every driver call
 * that takes or gives back a segment. Include after cmocka.h.
 */
#ifndef FRAG_TESTS_POLICY_PROBE_H
#define FRAG_TESTS_POLICY_PROBE_H

#include <string.h>

#include <frag/policy.h>

#define KIB FRAG_KIB
#define MIB FRAG_MIB
#define GIB FRAG_GIB
#define PROBE_LOG 256

struct probe_call {
	uint64_t bytes;
	char kind; /* 'm' malloc, 'r' malloc refused, 'f' free, 'x' free failed */
};

struct probe {
	struct frag_device *dev;
	struct frag_policy_spec *spec;
	struct frag_policy policy;
	struct frag_err err;
	struct probe_call log[PROBE_LOG];
	size_t calls;
	struct frag_block pending; /* freed when the policy waits for everything */
	bool has_pending;
	unsigned syncs;
};

struct probe_options {
	uint64_t total, context; /* of the card; 0 = 64 GiB, no context */
	uint64_t limit;		 /* 0 = none */
};

static inline void probe_log(void *ctx, enum frag_call call, uint64_t bytes, int result)
{
	struct probe *p = ctx;
	char kind = call == FRAG_CALL_MALLOC ? (result ? 'r' : 'm') : (result ? 'x' : 'f');

	if (call != FRAG_CALL_MALLOC && call != FRAG_CALL_FREE)
		return;
	assert_true(p->calls < PROBE_LOG);
	p->log[p->calls++] = (struct probe_call){ bytes, kind };
}

static inline void probe_check(struct probe *p)
{
	struct frag_err err;

	if (p->policy.ops->check && p->policy.ops->check(p->policy.self, &err))
		fail_msg("check: %s", err.msg);
}

static inline void probe_sync(void *ctx)
{
	struct probe *p = ctx;

	p->syncs++;
	if (p->has_pending)
		assert_int_equal(p->policy.ops->free(p->policy.self, &p->pending, &p->err), 0);
	p->has_pending = false;
}

static inline void probe_open(struct probe *p, const char *text, const struct probe_options *o)
{
	static const struct probe_options none;
	struct frag_sim_config card = { 0 };
	struct frag_policy_env env;
	struct frag_device_info info;

	memset(p, 0, sizeof(*p));
	o = o ? o : &none;
	card.total_bytes = o->total ? o->total : 64 * GIB;
	card.context_bytes = o->context;
	assert_int_equal(frag_sim_open(&card, &p->dev, &p->err), 0);
	p->dev->log = probe_log;
	p->dev->log_ctx = p;
	frag_dev_info(p->dev, &info);
	env = (struct frag_policy_env){
		.dev = p->dev,
		.limit_bytes = o->limit ? o->limit : UINT64_MAX,
		.device_total_bytes = info.total_bytes,
		.streams_count = 1,
		.sync = probe_sync,
		.sync_ctx = p,
	};
	if (frag_policy_spec_parse(text, &p->spec, &p->err))
		fail_msg("%s", p->err.msg);
	assert_int_equal(frag_policy_create(p->spec, &env, &p->policy, &p->err), 0);
}

/* Destroys everything; nothing may have leaked. */
static inline void probe_close(struct probe *p)
{
	frag_policy_destroy(&p->policy);
	assert_int_equal(frag_dev_leaks(p->dev), 0);
	frag_policy_spec_destroy(p->spec);
	frag_dev_close(p->dev);
}

static inline int probe_try(struct probe *p, uint64_t bytes, uint32_t stream, struct frag_block *b)
{
	struct frag_request req = { .bytes = bytes, .stream = stream };
	int rc;

	*b = (struct frag_block){ .stream = stream, .requested = bytes };
	rc = p->policy.ops->alloc(p->policy.self, &req, b, &p->err);
	probe_check(p);
	return rc;
}

static inline struct frag_block probe_alloc_on(struct probe *p, uint64_t bytes, uint32_t stream)
{
	struct frag_block b;

	assert_int_equal(probe_try(p, bytes, stream, &b), 0);
	assert_true(b.granted >= bytes);
	return b;
}

static inline struct frag_block probe_alloc(struct probe *p, uint64_t bytes)
{
	return probe_alloc_on(p, bytes, 0);
}

static inline void probe_refuses(struct probe *p, uint64_t bytes)
{
	struct frag_block b;

	assert_int_equal(probe_try(p, bytes, 0, &b), FRAG_OOM);
}

static inline void probe_free(struct probe *p, struct frag_block b)
{
	assert_int_equal(p->policy.ops->free(p->policy.self, &b, &p->err), 0);
	probe_check(p);
}

/* The block is let go; the next "wait for everything" frees it. */
static inline void probe_defer(struct probe *p, struct frag_block b)
{
	if (p->policy.ops->free_requested)
		p->policy.ops->free_requested(p->policy.self, &b);
	p->pending = b;
	p->has_pending = true;
	probe_check(p);
}

static inline void probe_trim(struct probe *p)
{
	assert_int_equal(p->policy.ops->trim(p->policy.self, 0, &p->err), 0);
	probe_check(p);
}

static inline struct frag_usage probe_usage(struct probe *p)
{
	struct frag_usage u, w;

	p->policy.ops->usage(p->policy.self, &u);
	frag_policy_usage_walk(&p->policy, &w);
	assert_int_equal(u.allocated_bytes, w.allocated_bytes);
	assert_int_equal(u.waiting_bytes, w.waiting_bytes);
	assert_int_equal(u.free_bytes, w.free_bytes);
	assert_int_equal(u.releasable_bytes, w.releasable_bytes);
	assert_int_equal(u.non_releasable_bytes, w.non_releasable_bytes);
	assert_int_equal(u.segments_count, w.segments_count);
	return u;
}

/*
 * The driver calls since the last look, as text: "m2M f2M r4M" (sizes in M, K or
 * plain bytes). Empties the log.
 */
static inline void probe_expect(struct probe *p, const char *calls)
{
	char text[PROBE_LOG * 16] = "";
	size_t i, n = 0;

	for (i = 0; i < p->calls; i++) {
		uint64_t b = p->log[i].bytes;
		const char *unit = b % MIB == 0 ? "M" : b % KIB == 0 ? "K" : "";

		b /= b % MIB == 0 ? MIB : b % KIB == 0 ? KIB : 1;
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%c%llu%s", i ? " " : "",
				      p->log[i].kind, (unsigned long long)b, unit);
	}
	assert_string_equal(text, calls);
	p->calls = 0;
}

#endif
