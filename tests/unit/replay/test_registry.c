/* SPDX-License-Identifier: Apache-2.0 */
/* src/replay/registry.c: the built-in table, and what a sound entry is. Short names: spec.cases. */
#include "test.h"

#include <frag/opt.h>
#include <frag/policy.h>

#include "replay/spec.h"

/* Every entry: abi, compulsory calls, defaults in range; aliases are no other policy's name. */
TEST(built_in)
{
	size_t n;
	const struct frag_policy_ops *const *list = frag_policy_list(&n);

	for (size_t i = 0; i < n; i++) {
		SUCCEEDS(frag_policy_ops_check(list[i], &test_err));
		assert_ptr_equal(frag_policy_find(list[i]->name), list[i]);
		assert_non_null(list[i]->trims);
		for (const struct frag_policy_alias *a = list[i]->aliases; a && a->name; a++)
			assert_null(frag_policy_find(a->name));
	}
	assert_null(frag_policy_find("no-such-policy"));
	assert_null(frag_policy_find(""));
}

extern const struct frag_policy_ops frag_policy_null;

TEST(entries)
{
	static const struct frag_opt opts[] = {
		{ .type = FRAG_OPT_T_UINT, .key = "a", .help = "h" }, FRAG_OPT_END
	};
	struct frag_policy_ops sound = frag_policy_null, bad;

#define BAD(field, value, says) \
	do { \
		bad = sound; \
		bad.field = value; \
		assert_int_equal(frag_policy_ops_check(&bad, &test_err), FRAG_ECHECK); \
		assert_string_equal(test_err.msg, says); \
	} while (0)

	sound.name = "sound-1";
	sound.flags = 0; /* those of memory */
	assert_int_equal(frag_policy_ops_check(&sound, &test_err), 0);
	BAD(abi, 7, "policy has ABI 7, this program has ABI 4");
	BAD(name, NULL, "a policy has no valid name (a-z, 0-9, -)");
	BAD(name, "Has_Letters", "a policy has no valid name (a-z, 0-9, -)");
	BAD(source, "", "policy 'sound-1' lacks its summary or its source");
	BAD(create, NULL, "policy 'sound-1' lacks create, destroy, alloc or free");
	BAD(alloc, NULL, "policy 'sound-1' lacks create, destroy, alloc or free");
	BAD(free, NULL, "policy 'sound-1' lacks create, destroy, alloc or free");
	BAD(visit, NULL, "policy 'sound-1' lacks visit");
	BAD(opts, opts, "policy 'sound-1': option 'a' lies outside its params");
}

TEST(unsound_options)
{
	struct params {
		uint64_t n, m;
		double ratio;
	};
	static const char *const words[] = { "first", "second", NULL };
	static const struct {
		struct frag_opt opts[3];
		const char *says;
	} rows[] = {
		{ { FRAG_OPT_UINT("a", struct params, n, 0, 1, 2, "h"), FRAG_OPT_END },
		  "default of option 'a' is outside its range" },
		{ { FRAG_OPT_DOUBLE("a", struct params, ratio, 2, 0, 1, "h"), FRAG_OPT_END },
		  "default of option 'a' is outside its range" },
		{ { FRAG_OPT_ENUM("a", struct params, n, 2, words, "h"), FRAG_OPT_END },
		  "default of option 'a' is outside its range" },
		{ { FRAG_OPT_UINT("a", struct params, n, 1, 1, 2, ""), FRAG_OPT_END },
		  "option 'a' has no help" },
		{ { FRAG_OPT_UINT("a=b", struct params, n, 1, 1, 2, "h"), FRAG_OPT_END },
		  "option 0 has no valid key" },
		{ { FRAG_OPT_UINT("a", struct params, n, 1, 1, 2, "h"),
		    FRAG_OPT_UINT("a", struct params, m, 1, 1, 2, "h"), FRAG_OPT_END },
		  "option 'a' occurs twice" },
	};
	struct frag_policy_ops bad = frag_policy_null;

	bad.params_size = sizeof(struct params);
	for (size_t i = 0; i < FRAG_ARRAY_LEN(rows); i++) {
		bad.opts = rows[i].opts;
		FAILS(FRAG_ECHECK, rows[i].says, frag_policy_ops_check(&bad, &test_err));
	}
}
