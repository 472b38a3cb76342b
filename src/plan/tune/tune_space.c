/* SPDX-License-Identifier: Apache-2.0 */
/* Settings as numbers; see tune_space.h. */
#include "tune_space.h"

#include <stdio.h>
#include <string.h>

/* Is `key` given in the text already? Then it stays as it is. */
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

static void add_values(struct frag_tune_dim *d, const char *list)
{
	while (*list && d->count < FRAG_TUNE_VALUES) {
		const char *end = frag_opt_item_end(list);

		d->value[d->count] = list;
		d->length[d->count++] = (size_t)(end - list);
		list = end + (*end == ',');
	}
}

int frag_tune_space_init(struct frag_tune_space *s, const char *base, bool limited,
			 struct frag_err *err)
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
		add_values(d, o->tune);
		s->size *= d->count + 1;
		s->dims_count++;
	}
	return 0;
}

void frag_tune_space_release(struct frag_tune_space *s)
{
	frag_policy_spec_destroy(s->spec);
	*s = (struct frag_tune_space){ 0 };
}

unsigned frag_tune_digit(const struct frag_tune_space *s, uint64_t code, unsigned d)
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
	return code - unit * frag_tune_digit(s, code, d) + unit * digit;
}

char *frag_tune_text(const struct frag_tune_space *s, uint64_t code, unsigned *changed)
{
	size_t room = strlen(s->base) + 2, n;
	bool first = strchr(s->base, ':') == NULL;
	char *text;

	*changed = 0;
	for (unsigned d = 0; d < s->dims_count; d++) {
		unsigned v = frag_tune_digit(s, code, d);

		if (v)
			room += strlen(s->dims[d].key) + s->dims[d].length[v - 1] + 2;
	}
	text = frag_host_alloc(room);
	if (!text)
		return NULL;
	n = (size_t)snprintf(text, room, "%s", s->base);
	for (unsigned d = 0; d < s->dims_count; d++) {
		unsigned v = frag_tune_digit(s, code, d);

		if (!v)
			continue;
		n += (size_t)snprintf(text + n, room - n, "%c%s%c%.*s", first ? ':' : ',',
				      s->dims[d].key, s->conf ? ':' : '=',
				      (int)s->dims[d].length[v - 1], s->dims[d].value[v - 1]);
		first = false;
		++*changed;
	}
	return text;
}
