/* SPDX-License-Identifier: Apache-2.0 */
/*
 * src/replay/spec.c and instance.c on a registry of made-up policies: texts,
 * adaptors, short names, PyTorch's own option text, echo, instances.
 */
#define FRAG_POLICY_LIST "tests/unit/policies/fake_policies.inc"
#include "replay/registry.c"
#include "replay/instance.c"
#include "replay/spec.c"

#include "test.h"

/* ---- the made-up policies -------------------------------------------------------- */

struct toy_params {
	uint64_t block;
	bool merge;
	char file[FRAG_OPT_STRING_MAX];
};
static const struct frag_opt toy_opts[] = {
	FRAG_OPT_BYTES("block", struct toy_params, block, 512, 1, UINT64_MAX, "bytes"),
	FRAG_OPT_BOOL("merge", struct toy_params, merge, false, "neighbours"),
	FRAG_OPT_STRING("file", struct toy_params, file, "", "to write"), FRAG_OPT_END
};

static int live_instances;

struct toy {
	struct frag_inner inner;
	const struct toy_params *params;
};

static int toy_create(const struct frag_policy_env *env, const void *params, void **self,
		      struct frag_err *err)
{
	struct toy *t = frag_host_calloc(1, sizeof(*t));

	if (!t)
		return frag_fail_nomem(err, "toy");
	t->params = params;
	if (env->inner) {
		int rc = frag_inner_open(env->inner, env, &t->inner, err);

		if (rc) {
			frag_host_free(t);
			return rc;
		}
	}
	live_instances++;
	*self = t;
	return 0;
}

static void toy_destroy(void *self)
{
	struct toy *t = self;

	frag_inner_close(&t->inner);
	frag_host_free(t);
	live_instances--;
}

static int toy_alloc(void *self, const struct frag_request *req, struct frag_block *out,
		     struct frag_err *err)
{
	return FRAG_OOM;
}

static int toy_free(void *self, const struct frag_block *block, struct frag_err *err)
{
	return 0;
}

static void toy_visit(void *self, const struct frag_visitor *v)
{
	v->segment(v->ctx, 4096, 8192, 0);
	v->block(v->ctx, 4096, 1024, FRAG_STATE_LIVE, 0);
	v->block(v->ctx, 5120, 1024, FRAG_STATE_WAITING, 0);
	v->block(v->ctx, 6144, 6144, FRAG_STATE_FREE, 2048);
	v->segment(v->ctx, 65536, 512, 1);
	v->block(v->ctx, 65536, 512, FRAG_STATE_FREE, 512);
}

static int toy_validate(const void *params, struct frag_err *err)
{
	const struct toy_params *p = params;

	if (p->merge && p->block == 1)
		return frag_fail(err, FRAG_EUSAGE, "merge needs blocks above 1 byte");
	return 0;
}

/* "key:value,…" as PyTorch has it; remembers the whole text. */
static int own_parse(const char *text, void *params, struct frag_err *err)
{
	struct toy_params *p = params;

	if (strstr(text, "bad"))
		return frag_fail(err, FRAG_EUSAGE, "unrecognized key 'bad'");
	snprintf(p->file, sizeof(p->file), "%.200s", text);
	return 0;
}

#define TOY(n, f) \
	.abi = FRAG_POLICY_ABI, .name = n, .summary = "made up", .source = "this test", \
	.flags = f, .opts = toy_opts, .params_size = sizeof(struct toy_params), \
	.create = toy_create, .destroy = toy_destroy, .alloc = toy_alloc, .free = toy_free, \
	.visit = toy_visit, .validate = toy_validate

const struct frag_policy_ops frag_policy_toy = { TOY("toy", 0) };
const struct frag_policy_ops frag_policy_wrap = { TOY("wrap", FRAG_POLICY_ADAPTOR) };
static const struct frag_policy_alias aliases[] = { { "caching", "" },
						    { "expandable", "expandable_segments:True" },
						    { NULL, NULL } };
const struct frag_policy_ops frag_policy_own = { TOY("pytorch", 0), .parse = own_parse,
						 .aliases = aliases };
const struct frag_policy_ops frag_policy_rmm_pool = { TOY("rmm-pool", 0), .needs = FRAG_CAN_VMM };
const struct frag_policy_ops frag_policy_secret = { TOY("secret", FRAG_POLICY_HIDDEN) };

/* ---- a made-up device -------------------------------------------------------------- */

static void dev_close(void *priv)
{
}

static void dev_info(void *priv, struct frag_device_info *out)
{
	*out = (struct frag_device_info){ .name = "made up", .can = FRAG_CAN_MALLOC };
}

static const struct frag_device_ops dev_ops = {
	.name = "fake", .summary = "made up", .close = dev_close, .info = dev_info
};
static struct frag_device device = { .ops = &dev_ops };
static const struct frag_policy_env env = { .dev = &device, .limit_bytes = UINT64_MAX };

/* ---- tests -------------------------------------------------------------------------- */

static void answer(char *call, FILE *out)
{
	FRAG_AUTO(frag_policy_spec_destroy_at) struct frag_policy_spec *spec = NULL;

	if (!strcmp(call, "(nothing)"))
		*call = 0;
	if (frag_policy_spec_parse(call, &spec, &test_err)) {
		assert_int_equal(test_err.code, FRAG_EUSAGE);
		assert_null(spec);
		if (!strncmp(test_err.msg, "cannot load", 11)) /* why is the C library's word */
			strstr(test_err.msg, "': ")[2] = 0;
		fputs(test_err.msg, out);
		return;
	}
	assert_string_equal(frag_policy_spec_text(spec), call);
	assert_non_null(frag_policy_spec_params(spec));
	fprintf(out, "%s, %s", frag_policy_spec_ops(spec)->name, frag_policy_spec_echo(spec));
}

CASES_IN_LINES("tests/unit/replay/spec.cases", answer)

TEST(long_text_refused)
{
	char text[TEXT_MAX + 1];
	struct frag_policy_spec *spec = NULL;

	memset(text, 'x', sizeof(text));
	text[TEXT_MAX] = '\0';
	assert_int_equal(frag_policy_spec_parse(text, &spec, NULL), FRAG_EUSAGE);
	text[TEXT_MAX - 1] = '\0';
	assert_int_equal(frag_policy_spec_parse(text, &spec, NULL), FRAG_EUSAGE);
	memcpy(text, "toy:", 4);
	assert_int_equal(frag_policy_spec_parse(text, &spec, NULL), FRAG_EUSAGE);
}

TEST(short_of_memory)
{
	static const char *const rows[] = { "wrap:block=2/expandable:a:1,block=7", "toy" };

	for (size_t i = 0; i < FRAG_ARRAY_LEN(rows); i++) {
		FRAG_AUTO(frag_policy_spec_destroy_at) struct frag_policy_spec *spec = NULL;

		FAIL_ALLOCATIONS(frag_policy_spec_parse(rows[i], &spec, NULL))
		assert_null(spec);
	}
}

TEST(instances)
{
	FRAG_AUTO(frag_policy_spec_destroy_at) struct frag_policy_spec *spec = NULL;
	struct frag_policy a, b;

	assert_int_equal(frag_policy_spec_parse("wrap/toy:block=7", &spec, NULL), 0);
	assert_int_equal(frag_policy_create(spec, &env, &a, NULL), 0);
	assert_int_equal(frag_policy_create(spec, &env, &b, NULL), 0);
	assert_int_equal(live_instances, 4);
	assert_ptr_equal(a.ops, &frag_policy_wrap);
	assert_string_equal(a.env.inner, "toy:block=7");
	assert_true(((const struct toy_params *)frag_policy_spec_params(
			     ((struct toy *)a.self)->inner.spec))
			    ->block == 7);
	assert_null(((struct toy *)a.self)->inner.policy.env.inner);
	frag_policy_destroy(&a);
	frag_policy_destroy(&b);
	frag_policy_destroy(&b); /* an empty one is fine */
	assert_int_equal(live_instances, 0);
	frag_policy_spec_destroy(NULL);
}

TEST(needs)
{
	struct frag_policy_spec *spec;
	struct frag_policy p;
	struct frag_inner inner;
	char text[100];

	assert_int_equal(frag_policy_spec_parse("rmm-pool", &spec, NULL), 0);
	assert_int_equal(frag_policy_create(spec, &env, &p, &test_err), FRAG_ENOTSUP);
	assert_string_equal(test_err.msg,
			    "policy 'rmm-pool' needs virtual memory management, which "
			    "device 'fake' does not have");
	frag_policy_spec_destroy(spec);
	assert_int_equal(frag_inner_open("wrap/rmm-pool", &env, &inner, &test_err), FRAG_ENOTSUP);
	assert_int_equal(frag_inner_open("nothing", &env, &inner, &test_err), FRAG_EUSAGE);
	assert_int_equal(live_instances, 0);
	assert_int_equal(frag_policy_needs_text(FRAG_CAN_MALLOC | FRAG_CAN_ASYNC, text, 100), 24);
	assert_string_equal(text, "cudaMalloc, memory pools");
	assert_int_equal(frag_policy_needs_text(FRAG_CAN_MALLOC, NULL, 0), 10);
}

TEST(usage_by_walking)
{
	struct frag_inner inner;
	struct frag_usage u;

	assert_int_equal(frag_inner_open("toy", &env, &inner, NULL), 0);
	frag_policy_usage_walk(&inner.policy, &u);
	frag_inner_close(&inner);
	assert_true(u.segments_count == 2 && u.blocks_count == 4);
	assert_true(u.allocated_bytes == 1024 && u.waiting_bytes == 1024);
	assert_true(u.free_bytes == 6656 && u.releasable_bytes == 2560 &&
		    u.non_releasable_bytes == 4096);
	assert_true(u.largest_free_bytes == 6144);
}
