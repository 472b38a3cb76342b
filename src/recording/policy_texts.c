/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which policies to replay: texts from the command line, "all", and
 * "recorded", which stands for the settings that a trace was recorded with.
 */
#include "policy_texts.h"

#include "lib/grow.h"

#include <string.h>

#include "recording.h"

int frag_policy_texts_add(void *texts, const char *text, struct frag_err *err)
{
	struct frag_policy_texts *p = texts;
	char *copy = frag_host_strdup(text);

	if (!copy || FRAG_GROW(p->text, p->count, p->cap, "list of policies", NULL)) {
		frag_host_free(copy);
		return frag_fail_nomem(err, "list of policies");
	}
	p->text[p->count++] = copy;
	return 0;
}

int frag_policy_texts_check(const struct frag_policy_texts *p, uint32_t *flags,
			    struct frag_err *err)
{
	uint32_t all = 0;

	for (size_t i = 0; i < p->count; i++) {
		struct frag_policy_spec *spec;

		if (frag_policy_is_recorded(p->text[i]))
			continue;
		FRAG_TRY(frag_policy_spec_parse(p->text[i], &spec, err));
		all |= frag_policy_spec_ops(spec)->flags;
		frag_policy_spec_destroy(spec);
	}
	if (flags)
		*flags = all;
	return 0;
}

/* Every policy that runs alone with its defaults on any trace; none that holds nothing. */
static int add_all(struct frag_policy_texts *p, struct frag_err *err)
{
	size_t count;
	const struct frag_policy_ops *const *list = frag_policy_list(&count);

	p->all = true;
	for (size_t i = 0; i < count; i++) {
		if (!(list[i]->flags & (FRAG_POLICY_HIDDEN | FRAG_POLICY_ADAPTOR |
					FRAG_POLICY_STACK | FRAG_POLICY_NO_MEMORY)))
			FRAG_TRY(frag_policy_texts_add(p, list[i]->name, err));
	}
	return 0;
}

/* One of a list: n characters. */
static int add_one(struct frag_policy_texts *p, const char *from, size_t n, struct frag_err *err)
{
	FRAG_AUTO_FREE char *text = frag_host_calloc(n + 1, 1);

	FRAG_CHECK_ALLOC(text, "list of policies", err);
	memcpy(text, from, n);
	return strcmp(text, "all") ? frag_policy_texts_add(p, text, err) : add_all(p, err);
}

int frag_policy_texts_list(void *texts, const char *list, struct frag_err *err)
{
	struct frag_policy_texts *p = texts;

	while (*list) {
		size_t n = strcspn(list, ";"), from = strspn(list, " \t"), to = n;

		while (to > from && (list[to - 1] == ' ' || list[to - 1] == '\t'))
			to--;
		if (from >= to)
			return FRAG_USAGE(
				err, "empty policy in the list '%.100s' (separated by ';')", list);
		FRAG_TRY(add_one(p, list + from, to - from, err));
		list += n + (list[n] == ';');
	}
	return 0;
}

int frag_policy_texts_default(struct frag_policy_texts *p, const char *list, struct frag_err *err)
{
	p->usual = !p->count;
	return p->count ? 0 : frag_policy_texts_list(p, list, err);
}

const char *frag_policy_texts_for(const struct frag_policy_texts *p, size_t i,
				  const struct frag_trace *trace)
{
	size_t n;
	const struct frag_own_allocator *own = frag_own_allocators(trace->format, &n);

	if (!p->usual || !own || strncmp(p->text[i], "pytorch", 7) != 0)
		return p->text[i];
	return i < n ? own[i].policy : NULL;
}

void frag_policy_texts_release(void *texts)
{
	struct frag_policy_texts *p = texts;

	for (size_t i = 0; i < p->count; i++)
		frag_host_free(p->text[i]);
	frag_host_free(p->text);
	*p = (struct frag_policy_texts){ 0 };
}

/* Index of a spec that does the same, or SIZE_MAX. */
static size_t find_same(struct frag_policy_spec *const *specs, size_t count,
			const struct frag_policy_spec *spec)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(frag_policy_spec_echo(specs[i]), frag_policy_spec_echo(spec)))
			return i;
	return SIZE_MAX;
}

static int parse_texts(const struct frag_policy_texts *p, const struct frag_trace *trace,
		       struct frag_policy_spec **specs, size_t *count, struct frag_err *err)
{
	for (size_t i = 0; i < p->count; i++) {
		const char *text = frag_policy_texts_for(p, i, trace);
		struct frag_policy_spec *spec;

		if (!text)
			continue;
		FRAG_TRY(frag_recording_spec(trace, text, &spec, err));
		if (spec && find_same(specs, *count, spec) == SIZE_MAX)
			specs[(*count)++] = spec;
		else if (spec)
			frag_policy_spec_destroy(spec);
	}
	return 0;
}

int frag_policy_texts_specs(const struct frag_policy_texts *p, const struct frag_trace *trace,
			    struct frag_policy_spec ***out, size_t *recorded, struct frag_err *err)
{
	FRAG_AUTO(frag_policy_specs_release) struct frag_policy_spec **specs = NULL;
	FRAG_AUTO(frag_policy_spec_destroy_at) struct frag_policy_spec *own = NULL;
	size_t count = 0;

	FRAG_TRY_CALLOC(specs, p->count + 1, "list of policies", err);
	if (frag_recorded_spec(trace, &own, NULL))
		own = NULL;
	FRAG_TRY(parse_texts(p, trace, specs, &count, err));
	*recorded = own ? find_same(specs, count, own) : SIZE_MAX;
	if (!count)
		return frag_recorded_invalid(trace, err)
			       ?: FRAG_USAGE(err,
					     "no policy to replay: '%s' does not say what it was "
					     "recorded with",
					     trace->name);
	*out = FRAG_GIVE(specs);
	return 0;
}

void frag_policy_specs_release(struct frag_policy_spec ***specs)
{
	for (struct frag_policy_spec **s = *specs; s && *s; s++)
		frag_policy_spec_destroy(*s);
	frag_host_free(*specs);
}
