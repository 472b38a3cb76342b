/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Policy texts:
 *
 * 	spec    = name [":" options] ["/" spec]
 * 	name    = a registered policy, a short name, or a path "./x.so", "/y/x.so"
 * 	options = text for the policy's own parser, or key=value,key=value
 *
 * Only adaptors have an inner spec. Their options may contain '/', too (a file name), so the inner
 * text begins after the first '/' outside brackets that is followed by a policy's name; if there is
 * none, after the first '/', and the error is about the unknown policy. A policy's own parser gets
 * all items without '=' in one call, like PyTorch; items with '=' go through the table.
 */
#include "spec.h"
#include "base/clean.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define TEXT_MAX 4000
#define DEPTH_MAX 8
#define LONG_TEXT_MAX 64 /* most characters that an alias stands for */

/* End of the name in a spec: at ':' or '/', or after the ".so" of a path. */
static const char *name_end(const char *text)
{
	const char *colon = text + strcspn(text, ":");
	const char *so = text;

	/* "wrap/./mine.so" is not a path */
	while ((*text == '.' || *text == '/') && (so = strstr(so, ".so")) && so < colon) {
		so += 3;
		if (!*so || *so == ':' || *so == '/')
			return so;
	}
	return text + strcspn(text, ":/");
}

/* Copies the name; false if it does not fit (then no policy has it). */
static bool copy_name(const char *text, char *buf, size_t cap)
{
	size_t n = (size_t)(name_end(text) - text);

	if (n >= cap)
		return false;
	memcpy(buf, text, n);
	buf[n] = '\0';
	return true;
}

/* The policy and options of an alias; NULL if the name is not an alias. */
static const struct frag_policy_ops *find_alias(const char *name, const char **options)
{
	const struct frag_policy_ops *ops;
	const char *known;

	for (size_t i = 0; (known = frag_policy_short(i, &ops, options)); i++)
		if (!strcmp(known, name))
			return ops;
	return NULL;
}

static bool names_policy(const char *text)
{
	char name[TEXT_MAX];
	const char *options;

	return copy_name(text, name, sizeof(name)) &&
	       (frag_policy_find(name) || find_alias(name, &options) ||
		frag_ends_with(name, ".so"));
}

/* The '/' before the inner text; NULL if there is none. */
static const char *inner_slash(const char *text)
{
	const char *first = NULL;
	int depth = 0;

	for (; *text; text++) {
		if (strchr("([{", *text))
			depth++;
		else if (strchr(")]}", *text))
			depth -= depth > 0;
		if (*text != '/' || depth)
			continue;
		if (names_policy(text + 1))
			return text;
		if (!first)
			first = text;
	}
	return first;
}

/* ---- shared objects ---------------------------------------------------------- */

static int open_external(struct frag_policy_spec *spec, const char *path, struct frag_err *err)
{
	struct frag_err detail = { 0 };
	const char *why;

	if (!strchr(path, '/'))
		return FRAG_USAGE(err, "policy '%s' is not a path; write './%s' to load it", path,
				  path);
	spec->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!spec->library) {
		why = dlerror();
		return FRAG_USAGE(err, "cannot load policy '%.100s': %s", path,
				  why ? why : "unknown reason");
	}
	spec->ops = dlsym(spec->library, "frag_policy_external");
	if (!spec->ops)
		return frag_fail(
			err, FRAG_EUSAGE,
			"'%s' does not define 'frag_policy_external' (docs/add-a-policy.md)", path);
	if (frag_policy_ops_check(spec->ops, &detail))
		return FRAG_USAGE(err, "'%.100s': %s", path, detail.msg);
	return 0;
}

/* ---- options ------------------------------------------------------------------- */

/* Appends one item to a comma list. pre: there is room. */
static void add_item(char *list, const char *item, size_t n)
{
	size_t used = strlen(list);

	if (used)
		list[used++] = ',';
	memcpy(list + used, item, n);
	list[used + n] = '\0';
}

/* Puts the items with '=' into `keyed`, the others into `own`. */
static void sort_items(const char *text, char *own, char *keyed)
{
	*own = *keyed = '\0';
	for (;;) {
		const char *end = frag_opt_item_end(text);
		size_t n = (size_t)(end - text);

		add_item(memchr(text, '=', n) ? keyed : own, text, n);
		if (!*end)
			return;
		text = end + 1;
	}
}

static int parse_both(const struct frag_policy_ops *ops, void *params, const char *text,
		      struct frag_err *err)
{
	/* +2 each: an empty item still takes its comma */
	size_t room = 2 * strlen(text) + 2;
	FRAG_AUTO_FREE char *own = frag_host_alloc(2 * room);
	char *keyed;

	FRAG_CHECK_ALLOC(own, "policy options", err);
	keyed = own + room;
	sort_items(text, own, keyed);
	if (*own)
		FRAG_TRY(ops->parse(own, params, err));
	return frag_opt_parse(ops->opts, params, keyed, err);
}

static int parse_options(struct frag_policy_spec *spec, const char *text, struct frag_err *err)
{
	const struct frag_policy_ops *ops = spec->ops;
	int rc = 0;

	if (ops->params_size) {
		spec->params = frag_host_calloc(1, ops->params_size);
		FRAG_CHECK_ALLOC(spec->params, "policy options", err);
		frag_opt_defaults(ops->opts, spec->params);
	}
	if (!frag_opt_balanced(text, strlen(text)))
		rc = FRAG_USAGE(err, "brackets in '%.60s' do not match", text);
	else if (*text && ops->parse && ops->opts)
		rc = parse_both(ops, spec->params, text, err);
	else if (*text && ops->parse)
		rc = ops->parse(text, spec->params, err);
	else if (*text)
		rc = frag_opt_parse(ops->opts, spec->params, text, err);
	if (!rc && ops->validate)
		rc = ops->validate(spec->params, err);
	if (rc)
		frag_err_prefix(err, "policy '%s'", ops->name);
	return rc;
}

/* What policies set elsewhere, as in PYTORCH_CUDA_ALLOC_CONF; NULL if they cannot. */
static int make_conf(struct frag_policy_spec *spec, struct frag_err *err)
{
	size_t (*conf)(const void *params, char *buf, size_t cap) = spec->ops->conf;
	size_t length = conf ? conf(spec->params, NULL, 0) : SIZE_MAX;

	if (length == SIZE_MAX)
		return 0;
	spec->conf = frag_host_alloc(length + 1);
	FRAG_CHECK_ALLOC(spec->conf, "policy options", err);
	conf(spec->params, spec->conf, length + 1);
	return 0;
}

/* The shortest text of the options. Returns the needed length. */
static size_t echo_options(const struct frag_policy_spec *spec, const char *options, char *buf,
			   size_t cap)
{
	if (!spec->ops->opts)
		return (size_t)snprintf(buf, cap, "%s", options);
	return frag_opt_echo(spec->ops->opts, spec->params, spec->conf ? ':' : '=', buf, cap);
}

/* "name:key=value,…/inner" with the name as typed for files. */
static int make_echo(struct frag_policy_spec *spec, const char *name, const char *options,
		     struct frag_err *err)
{
	const char *inner = spec->inner ? spec->inner->echo : "";
	size_t length = echo_options(spec, options, NULL, 0);
	size_t room = strlen(name) + 1 + length + 1 + strlen(inner) + 1;
	int n;

	spec->echo = frag_host_alloc(room);
	FRAG_CHECK_ALLOC(spec->echo, "policy options", err);
	n = snprintf(spec->echo, room, "%s%s", name, length ? ":" : "");
	echo_options(spec, options, spec->echo + n, room - (size_t)n);
	snprintf(spec->echo + n + length, room - (size_t)n - length, "%s%s", *inner ? "/" : "",
		 inner);
	return 0;
}

/* ---- the whole text -------------------------------------------------------------- */

static int parse_text(const char *text, int depth, struct frag_policy_spec **out,
		      struct frag_err *err);

/* Splits "…/inner" off `rest` in place and parses the inner text. */
static int parse_inner(struct frag_policy_spec *spec, char *rest, int depth, struct frag_err *err)
{
	const char *name = spec->ops->name;
	char *slash;

	if (!(spec->ops->flags & FRAG_POLICY_ADAPTOR)) {
		if (*rest == '/')
			return FRAG_USAGE(err,
					  "policy '%s' wraps no other policy; options follow a ':'",
					  name);
		return 0;
	}
	slash = (char *)inner_slash(rest);
	if (!slash || !slash[1])
		return FRAG_USAGE(err, "policy '%s' wraps another one; write '%s:key=value/POLICY'",
				  name, name);
	*slash = '\0';
	return parse_text(slash + 1, depth + 1, &spec->inner, err);
}

/* work: a copy of the text that may be modified; the name ends at `rest`. */
static int fill_spec(struct frag_policy_spec *spec, char *work, int depth, struct frag_err *err)
{
	char *rest = (char *)name_end(work);
	char name[TEXT_MAX], options[TEXT_MAX + LONG_TEXT_MAX];
	const char *given = "";

	copy_name(work, name, sizeof(name));
	spec->ops = find_alias(name, &given);
	if (!spec->ops)
		given = "";
	if (frag_ends_with(name, ".so"))
		FRAG_TRY(open_external(spec, name, err));
	else if (!spec->ops)
		spec->ops = frag_policy_find(name);
	if (!spec->ops) { /* expandable_segments:True is a setting */
		const char *value = strncmp(work, "PYTORCH_", 8) ? NULL : strchr(work, '=');

		snprintf(options, sizeof(options), "pytorch:%s", value ? value + 1 : work);
		if (frag_policy_spec_parse(options, &spec->inner, NULL))
			return frag_policy_unknown(name, err);
		return FRAG_USAGE(err, "'%.100s' is a setting, no policy; write '%.120s'", work,
				  options);
	}
	FRAG_TRY(parse_inner(spec, rest, depth, err));
	if (*rest == ':')
		rest++;
	snprintf(options, sizeof(options), "%s%s%s", given, *given && *rest ? "," : "", rest);
	FRAG_TRY(parse_options(spec, options, err));
	FRAG_TRY(make_conf(spec, err));
	return make_echo(spec, spec->library ? name : spec->ops->name, options, err);
}

static int parse_text(const char *text, int depth, struct frag_policy_spec **out,
		      struct frag_err *err)
{
	struct frag_policy_spec *spec;
	char *work;
	int rc;

	if (!*text)
		return FRAG_USAGE(err, "empty policy name (cufrag list policies)");
	if (strlen(text) >= TEXT_MAX)
		return FRAG_USAGE(err, "policy '%.40s…' is too long", text);
	if (depth >= DEPTH_MAX)
		return FRAG_USAGE(err, "more than %d policies are nested", DEPTH_MAX);
	spec = frag_host_calloc(1, sizeof(*spec));
	work = frag_host_strdup(text);
	if (spec)
		spec->text = frag_host_strdup(text);
	if (!spec || !work || !spec->text)
		rc = frag_fail_nomem(err, "policy text");
	else
		rc = fill_spec(spec, work, depth, err);
	frag_host_free(work);
	if (rc)
		frag_policy_spec_destroy(spec);
	else
		*out = spec;
	return rc;
}

int frag_policy_spec_parse(const char *text, struct frag_policy_spec **out, struct frag_err *err)
{
	return parse_text(text, 0, out, err);
}

void frag_policy_spec_destroy(struct frag_policy_spec *spec)
{
	if (!spec)
		return;
	frag_policy_spec_destroy(spec->inner);
	FRAG_FREE(spec->params, spec->text, spec->echo, spec->conf);
	if (spec->library)
		dlclose(spec->library);
	frag_host_free(spec);
}

const struct frag_policy_ops *frag_policy_spec_ops(const struct frag_policy_spec *spec)
{
	return spec->ops;
}

const struct frag_policy_ops *frag_policy_spec_core(const struct frag_policy_spec *spec)
{
	while (spec->inner)
		spec = spec->inner;
	return spec->ops;
}

const void *frag_policy_spec_params(const struct frag_policy_spec *spec)
{
	return spec->params;
}

const char *frag_policy_spec_text(const struct frag_policy_spec *spec)
{
	return spec->text;
}

const char *frag_policy_spec_echo(const struct frag_policy_spec *spec)
{
	return spec->echo;
}

const char *frag_policy_spec_conf(const struct frag_policy_spec *spec)
{
	return spec->conf;
}

const char *frag_policy_spec_file(const struct frag_policy_spec *spec)
{
	for (; spec; spec = spec->inner)
		for (const struct frag_opt *o = spec->ops->opts; o && o->type; o++)
			if (o->type == FRAG_OPT_T_STRING && !strcmp(o->key, "file") &&
			    *((const char *)spec->params + o->offset))
				return (const char *)spec->params + o->offset;
	return NULL;
}
