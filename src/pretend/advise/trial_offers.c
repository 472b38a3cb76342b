/* SPDX-License-Identifier: Apache-2.0 */
/* The changes that a program offers, as its processes report them. */
#include "trial_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/clean.h"

static const char *text_of(const json_t *row, const char *key)
{
	const char *text = json_string_value(json_object_get(row, key));

	return text ? text : "";
}

char *frag_offer_text(const char *text)
{
	char *copy = frag_host_strdup(text);

	return copy ? frag_clean_text(copy, strlen(copy)) : NULL;
}

bool frag_offer_asked(const char *only, const char *name, unsigned *number)
{
	size_t len = strlen(name);

	*number = 0;
	for (const char *at = only; at && *at; at += strcspn(at, ","), at += *at == ',')
		if (strcspn(at, ",=") == len && !strncmp(at, name, len)) {
			*number = at[len] == '=' ? (unsigned)strtoul(at + len + 1, NULL, 10) : 0;
			return true;
		}
	return !only;
}

/* A name is sent to the fork server in a line, and is put into the environment. */
static bool is_name(const char *name)
{
	return *name && strlen(name) < 60 &&
	       !name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_")];
}

char *frag_offer_name(const char *name, unsigned n)
{
	char text[80];

	if (!n)
		return frag_host_strdup(name);
	snprintf(text, sizeof(text), "%s=%u", name, n);
	return frag_host_strdup(text);
}

char *frag_offer_sentence(const char *pattern, unsigned n)
{
	const char *at = strstr(pattern, "{n}");
	const size_t room = strlen(pattern) + 16;
	char *text = at ? frag_host_calloc(room, 1) : frag_host_strdup(pattern);

	if (at && text)
		snprintf(text, room, "%.*s%u%s", (int)(at - pattern), pattern, n, at + 3);
	return text;
}

static int add_offer(struct frag_advising *a, const json_t *row, struct frag_err *err)
{
	const char *name = text_of(row, "name"), *group = text_of(row, "group");
	struct frag_offer *o = &a->offers[a->count];
	struct frag_advice *x = &a->list[a->count];
	unsigned number;

	if (!is_name(name) || !frag_offer_asked(a->only, name, &number))
		return 0;
	o->most = (unsigned)FRAG_MIN(frag_facts_count(row, "most"), UINT16_MAX);
	o->group = frag_offer_text(o->most && !*group ? name : group);
	o->pattern = frag_offer_text(text_of(row, "what"));
	o->compiled = json_is_true(json_object_get(row, "compiled"));
	number = o->most ? number : 0;
	*x = (struct frag_advice){
		.change = frag_offer_name(name, number),
		.what = o->pattern ? frag_offer_sentence(o->pattern, number ? number : 2) : NULL,
		.where = frag_offer_text(text_of(row, "where")),
		.numerics = frag_offer_text(text_of(row, "numerics")),
		.left_out = frag_offer_text(text_of(row, "left_out")),
		.before = a->first.peaks
	};
	x->untimed = json_is_true(json_object_get(row, "untimed"));
	o->most = number ? 0 : o->most; /* the number is given */
	a->count++;
	FRAG_CHECK_ALLOC(x->change && x->what && x->where && x->numerics && x->left_out && o->group,
			 "advice", err);
	return 0;
}

int frag_trial_offers(struct frag_advising *a, struct frag_err *err)
{
	json_auto_t *facts = frag_trial_facts(a, 0);
	const json_t *changes = json_object_get(facts, "changes");
	size_t i, n = FRAG_MIN(json_array_size(changes), FRAG_TRIALS_MAX / 2);
	const size_t cap =
		2 * n + FRAG_TRIAL_REPLAYED + 1; /* a numbered change may have two rows */

	FRAG_TRY_CALLOC(a->list, cap, "advice", err);
	FRAG_TRY_CALLOC(a->offers, cap, "advice", err);
	for (i = 0; i < 2 * n; i++) { /* changes that compile take longest, so they start first */
		json_t *row = json_array_get(changes, i % n);

		if (json_is_true(json_object_get(row, "untimed")) == (i < n))
			FRAG_TRY(add_offer(a, row, err));
	}
	return 0;
}
