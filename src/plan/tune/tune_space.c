/* SPDX-License-Identifier: Apache-2.0 */
/* Settings as numbers; see tune_space.h. */
#include "tune_space.h"

#include <string.h>

#include "answer/textbuf.h"

/* Is `key` set in the text? Then it stays fixed. */
static bool is_fixed(const char *base, const char *key)
{
	const char *at = strchr(base, ':');
	size_t n = strlen(key);

	while (at && *at) {
		at++;
		if (!strncmp(at, key, n) && (at[n] == ':' || at[n] == '='))
			return true;
		at = frag_opt_item_end(at);
	}
	return false;
}

bool frag_tune_is_known(const struct frag_policy_spec *spec, unsigned release)
{
	struct frag_sim_config card = { 0 };
	struct frag_policy_env env = { .limit_bytes = UINT64_MAX, .source_release = release };
	struct frag_policy policy;
	struct frag_device_info info;
	int rc;

	/* only settings of the recorded allocator itself have releases */
	if (!release || !frag_policy_spec_ops(spec)->conf || frag_sim_open(&card, &env.dev, NULL))
		return true;
	frag_dev_info(env.dev, &info);
	env.device_total_bytes = info.total_bytes;
	rc = frag_policy_create(spec, &env, &policy, NULL);
	if (!rc)
		frag_policy_destroy(&policy);
	frag_dev_close(env.dev);
	return rc != FRAG_EUSAGE;
}

/* Leaves out values that the release does not know, even if nothing else is set. */
static void keep_known(struct frag_tune_space *s, struct frag_tune_dim *d, unsigned release)
{
	struct frag_tune_space one = {
		.base = s->base, .conf = s->conf, .dims = { *d }, .dims_count = 1
	};
	unsigned kept = 0, changed;

	for (unsigned v = 0; v < d->count; v++) {
		struct frag_policy_spec *spec = NULL;
		char *text = frag_tune_text(&one, v + 1, &changed);
		bool known = !text || (!frag_policy_spec_parse(text, &spec, NULL) &&
				       frag_tune_is_known(spec, release));

		frag_policy_spec_destroy(spec);
		frag_host_free(text);
		if (!known)
			continue;
		d->value[kept] = d->value[v];
		d->length[kept++] = d->length[v];
	}
	d->count = kept;
}

int frag_tune_space_init(struct frag_tune_space *s, const char *base, bool limited,
			 unsigned release, struct frag_err *err)
{
	const struct frag_policy_ops *ops;

	*s = (struct frag_tune_space){ .base = base, .size = 1 };
	FRAG_TRY(frag_policy_spec_parse(base, &s->spec, err));
	ops = frag_policy_spec_ops(s->spec);
	s->conf = ops->conf != NULL;
	for (const struct frag_opt *o = ops->opts; o && o->type != FRAG_OPT_T_END; o++) {
		struct frag_tune_dim *d = &s->dims[s->dims_count];

		if (!o->tune || s->dims_count == FRAG_TUNE_DIMS || is_fixed(base, o->key))
			continue;
		if (o->tune_limited && !limited)
			continue;
		d->key = o->key;
		for (const char *at = o->tune, *end; *at && d->count < FRAG_TUNE_VALUES;
		     at = end + (*end == ',')) {
			end = frag_opt_item_end(at);
			d->value[d->count] = at;
			d->length[d->count++] = (size_t)(end - at);
		}
		if (release)
			keep_known(s, d, release);
		s->size *= d->count + 1;
		s->dims_count += d->count != 0;
	}
	return 0;
}

void frag_tune_space_release(struct frag_tune_space *s)
{
	frag_policy_spec_destroy(s->spec);
	*s = (struct frag_tune_space){ 0 };
}

static unsigned digit_of(const struct frag_tune_space *s, uint64_t code, unsigned d)
{
	for (unsigned i = 0; i < d; i++)
		code /= s->dims[i].count + 1;
	return (unsigned)(code % (s->dims[d].count + 1));
}

uint64_t frag_tune_with(const struct frag_tune_space *s, uint64_t code, unsigned d, unsigned digit)
{
	uint64_t unit = 1;

	for (unsigned i = 0; i < d; i++)
		unit *= s->dims[i].count + 1;
	return code - unit * digit_of(s, code, d) + unit * digit;
}

char *frag_tune_text(const struct frag_tune_space *s, uint64_t code, unsigned *changed)
{
	FRAG_AUTO(frag_text_release) struct frag_text text = { 0 };
	const char *sign = strchr(s->base, ':') ? "," : ":";

	*changed = 0;
	frag_text_add(&text, s->base);
	for (unsigned d = 0; d < s->dims_count; d++) {
		unsigned v = digit_of(s, code, d);

		if (!v)
			continue;
		frag_text_addf(&text, "%s%s%c%.*s", sign, s->dims[d].key, s->conf ? ':' : '=',
			       (int)s->dims[d].length[v - 1], s->dims[d].value[v - 1]);
		sign = ",";
		++*changed;
	}
	return text.failed ? NULL : FRAG_GIVE(text.s);
}
