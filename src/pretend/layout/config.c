/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See config.h. Only the bytes of the value change: comments, order and what is not understood
 * stay. A key that is missing is added. JSON may have comments, as DeepSpeed allows them, and is
 * nested as deep as it likes, so it is scanned here. libyaml finds values in YAML; only block
 * mappings are edited, as programs write their own configuration.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <frag/base.h>
#include <jansson.h>
#include <yaml.h>

#include "answer/textbuf.h"

#define BYTE_ORDER_MARK "\xef\xbb\xbf"

/* Replaces `cut` bytes at `at` by before, a value and after. */
struct edit {
	const char *at;
	size_t cut;
	struct frag_text before, after;
};

static const char *behind_mark(const char *text)
{
	return text + (strncmp(text, BYTE_ORDER_MARK, 3) ? 0 : 3);
}

/* In double quotes, as JSON and YAML read it. */
static void put_quoted(struct frag_text *t, const char *value)
{
	frag_text_add(t, "\"");
	for (; *value; value++)
		if ((unsigned char)*value < ' ')
			frag_text_addf(t, "\\u%04x", (unsigned)*value);
		else
			frag_text_addf(t, "%s%c", strchr("\"\\", *value) ? "\\" : "", *value);
	frag_text_add(t, "\"");
}

/* ---- JSON ------------------------------------------------------------------------------ */

static int fail_json(const char *text, const char *at, struct frag_err *err)
{
	return frag_fail(err, FRAG_EINPUT, "cannot be read as JSON at byte %zu",
			 (size_t)(at - text));
}

/* Skips blanks and comments. */
static const char *blanks(const char *at)
{
	for (;;) {
		at += strspn(at, " \t\r\n");
		if (*at == '#' || !strncmp(at, "//", 2)) {
			at += strcspn(at, "\n");
		} else if (!strncmp(at, "/*", 2)) {
			const char *end = strstr(at + 2, "*/");

			at = end ? end + 2 : at + strlen(at);
		} else {
			return at;
		}
	}
}

/* The end of the string that begins here. */
static const char *text_end(const char *at)
{
	for (at++; *at && *at != '"'; at++)
		at += *at == '\\' && at[1];
	return at + (*at == '"');
}

static const char *value_end(const char *at)
{
	size_t depth = 0;

	while (*at && (depth || !strchr(",}] \t\r\n/#", *at))) {
		depth += *at == '{' || *at == '[';
		depth -= *at == '}' || *at == ']';
		at = *at == '"' ? text_end(at) : at + 1;
		at = depth ? blanks(at) : at;
	}
	return at;
}

/* Value of the last member with this name, as parsers do, in the object at this place, or NULL. */
static int find_member(const char *text, const char *at, const char *key, size_t len,
		       const char **value, struct frag_err *err)
{
	*value = NULL;
	do {
		const char *name = blanks(at + 1), *end;

		if (*name == '}')
			return 0;
		end = *name == '"' ? text_end(name) : name;
		at = blanks(end);
		if (end == name || *at != ':' || memchr(name, '\\', (size_t)(end - name)))
			return fail_json(text, name, err);
		at = blanks(at + 1);
		if ((size_t)(end - name) == len + 2 && !memcmp(name + 1, key, len))
			*value = at;
		end = value_end(at);
		if (end == at)
			return fail_json(text, at, err);
		at = blanks(end);
	} while (*at == ',');
	return *at == '}' ? 0 : fail_json(text, at, err);
}

/* "a": {"b": VALUE}, as the first member of an object. */
static void add_member(struct edit *e, const char *key)
{
	for (;; key++) {
		size_t len = strcspn(key, ".");

		frag_text_addf(&e->before, "\"%.*s\": %s", (int)len, key, key[len] ? "{" : "");
		frag_text_add(&e->after, key[len] ? "}" : "");
		key += len;
		if (!*key)
			break;
	}
	frag_text_add(&e->after, *blanks(e->at) == '}' ? "" : ", ");
}

static int find_json(const char *text, const char *key, struct edit *e, struct frag_err *err)
{
	const char *at = blanks(behind_mark(text));

	for (;;) {
		size_t len = strcspn(key, ".");
		const char *value;

		if (*at != '{')
			return frag_fail(err, FRAG_EINPUT, "no object holds '%.80s'", key);
		FRAG_TRY(find_member(text, at, key, len, &value, err));
		if (value && !key[len]) {
			e->at = value;
			e->cut = (size_t)(value_end(value) - value);
			return 0;
		}
		if (!value)
			break;
		key += len + 1;
		at = value;
	}
	e->at = at + 1;
	add_member(e, key);
	return 0;
}

/* Numbers, true, false and null as they are; everything else as a string. */
static void put_json(struct frag_text *t, const char *value)
{
	const size_t flags = JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL;
	json_t *word = strpbrk(value, " \t\r\n[{\"") ? NULL : json_loads(value, flags, NULL);

	if (word)
		frag_text_add(t, value);
	else
		put_quoted(t, value);
	json_decref(word);
}

/* ---- YAML ------------------------------------------------------------------------------ */

static int fail_yaml(const char *key, const char *why, struct frag_err *err)
{
	return frag_fail(err, FRAG_EINPUT, "'%.80s' %s", key, why);
}

/* The only document of a file. */
struct yaml {
	const char *text;
	yaml_document_t doc;
	yaml_node_t *root; /* NULL: empty */
};

static void release_yaml(struct yaml *y)
{
	yaml_document_delete(&y->doc);
}

static int load(yaml_parser_t *p, struct yaml *y, const char *key, struct frag_err *err)
{
	yaml_document_t second = { 0 };
	bool ok, more = false;

	yaml_parser_set_encoding(p, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(p, (const unsigned char *)y->text, strlen(y->text));
	ok = yaml_parser_load(p, &y->doc);
	y->root = ok ? yaml_document_get_root_node(&y->doc) : NULL;
	if (y->root) {
		ok = yaml_parser_load(p, &second);
		more = ok && yaml_document_get_root_node(&second);
		yaml_document_delete(&second);
	}
	if (more)
		return fail_yaml(key, "may be in one of several documents", err);
	return ok ? 0
		  : frag_fail(err, FRAG_EINPUT, "cannot be read as YAML at line %zu: %s",
			      p->problem_mark.line + 1, p->problem ? p->problem : "not UTF-8");
}

/* y: zeroed; text stays the caller's. */
static int open_yaml(struct yaml *y, const char *text, const char *key, struct frag_err *err)
{
	yaml_parser_t p;
	int rc;

	y->text = text;
	if (!yaml_parser_initialize(&p))
		return frag_fail_nomem(err, "configuration");
	rc = load(&p, y, key, err);
	yaml_parser_delete(&p);
	return rc;
}

/* libyaml counts characters, not bytes. */
static const char *at_mark(const struct yaml *y, yaml_mark_t mark)
{
	const char *at = y->text;

	for (size_t n = mark.index; n && *at; n--)
		for (at++; ((unsigned char)*at & 0xc0) == 0x80; at++)
			;
	return at;
}

/* Can other text on its line take its place? Not if it has an anchor or a tag. */
static bool is_single(const struct yaml *y, const yaml_node_t *node)
{
	yaml_scalar_style_t style = node->data.scalar.style;
	bool flow = node->type == YAML_SEQUENCE_NODE
			    ? node->data.sequence.style == YAML_FLOW_SEQUENCE_STYLE
			    : node->data.mapping.style == YAML_FLOW_MAPPING_STYLE;
	char first = *at_mark(y, node->start_mark);

	if (node->type == YAML_SCALAR_NODE)
		flow = style != YAML_LITERAL_SCALAR_STYLE && style != YAML_FOLDED_SCALAR_STYLE;
	return flow && node->start_mark.line == node->end_mark.line && first != '&' && first != '!';
}

static bool is_key(const yaml_node_t *node, const char *key, size_t len)
{
	return node->type == YAML_SCALAR_NODE && node->data.scalar.length == len &&
	       !memcmp(node->data.scalar.value, key, len);
}

/* The last pair with this key, as parsers take it; NULL: none. */
static const yaml_node_pair_t *find_pair(struct yaml *y, const yaml_node_t *map, const char *key,
					 size_t len)
{
	const yaml_node_pair_t *at = map->data.mapping.pairs.top;

	while (at-- > map->data.mapping.pairs.start)
		if (is_key(yaml_document_get_node(&y->doc, at->key), key, len))
			return at;
	return NULL;
}

/* key: VALUE, behind a mapping, with the mappings that are missing. */
static void add_lines(struct edit *e, const char *text, const char *key, size_t indent)
{
	const char *line_end = strstr(text, "\r\n") ? "\r\n" : "\n";

	frag_text_add(&e->before, e->at > text && e->at[-1] != '\n' ? line_end : "");
	for (;; indent += 2) {
		size_t len = strcspn(key, ".");

		frag_text_addf(&e->before, "%*s%.*s:%s", (int)indent, "", (int)len, key,
			       key[len] ? line_end : " ");
		key += len + 1;
		if (!key[-1])
			break;
	}
	frag_text_add(&e->after, line_end);
}

/* An empty value is where the colon ends; blanks behind it go, unless they separate a comment. */
static void replace_node(struct edit *e, const struct yaml *y, const yaml_node_t *node)
{
	e->at = at_mark(y, node->start_mark);
	e->cut = (size_t)(at_mark(y, node->end_mark) - e->at);
	if (e->cut)
		return;
	frag_text_add(&e->before, " ");
	e->cut = strspn(e->at, " \t");
	e->cut = e->at[e->cut] == '#' ? 0 : e->cut;
}

static int find_yaml(const char *text, const char *key, struct edit *e, struct frag_err *err)
{
	FRAG_AUTO(release_yaml) struct yaml y = { 0 };
	const yaml_node_pair_t *pair;
	const yaml_node_t *map;

	FRAG_TRY(open_yaml(&y, behind_mark(text), key, err));
	for (map = y.root; map; key += strcspn(key, ".") + 1) {
		size_t len = strcspn(key, ".");
		const yaml_node_t *value;

		if (map->type != YAML_MAPPING_NODE ||
		    map->data.mapping.style == YAML_FLOW_MAPPING_STYLE)
			return fail_yaml(key, "is not in a mapping of lines", err);
		pair = find_pair(&y, map, key, len);
		if (!pair)
			break;
		value = yaml_document_get_node(&y.doc, pair->value);
		if (value->start_mark.index <
		    yaml_document_get_node(&y.doc, pair->key)->end_mark.index)
			return fail_yaml(key, "is an alias of another value", err);
		if (is_single(&y, value) == (key[len] != '\0'))
			return fail_yaml(key, "is not a single value", err);
		if (!key[len]) {
			replace_node(e, &y, value);
			return 0;
		}
		map = value;
	}
	e->at = map ? at_mark(&y, map->end_mark) : text + strlen(text);
	while (map && *e->at && e->at > y.text && e->at[-1] != '\n')
		e->at--; /* to the beginning of the line that follows */
	add_lines(e, text, key, map ? map->start_mark.column : 0);
	return 0;
}

/* Would YAML read it as another text than it is? */
static bool needs_quotes(const char *value)
{
	FRAG_AUTO(release_yaml) struct yaml y = { 0 };
	struct frag_err err;

	if (!*value)
		return false;
	return open_yaml(&y, value, "", &err) || !y.root || !is_single(&y, y.root) ||
	       y.root->start_mark.index || *at_mark(&y, y.root->end_mark);
}

static void put_yaml(struct frag_text *t, const char *value)
{
	if (needs_quotes(value))
		put_quoted(t, value);
	else
		frag_text_add(t, value);
}

/* ---- files ----------------------------------------------------------------------------- */

bool frag_config_known(const char *path, bool *yaml)
{
	const char *dot = strrchr(path, '.');

	*yaml = dot && (!strcmp(dot, ".yaml") || !strcmp(dot, ".yml"));
	return *yaml || (dot && !strcmp(dot, ".json"));
}

static void release_edit(struct edit *e)
{
	frag_text_release(&e->before);
	frag_text_release(&e->after);
}

int frag_config_set(const char *text, bool yaml, const char *key, const char *value, char **out,
		    struct frag_err *err)
{
	FRAG_AUTO(release_edit) struct edit e = { 0 };
	FRAG_AUTO(frag_text_release) struct frag_text all = { 0 };

	FRAG_TRY(yaml ? find_yaml(text, key, &e, err) : find_json(text, key, &e, err));
	frag_text_addn(&all, text, (size_t)(e.at - text));
	frag_text_add(&all, frag_text_str(&e.before));
	(yaml ? put_yaml : put_json)(&all, value);
	frag_text_add(&all, frag_text_str(&e.after));
	frag_text_add(&all, e.at + e.cut);
	FRAG_TRY(frag_text_check(&e.before, err));
	FRAG_TRY(frag_text_check(&e.after, err));
	FRAG_TRY(frag_text_check(&all, err));
	*out = all.s;
	all = (struct frag_text){ 0 };
	return 0;
}

int frag_config_add(char **settings, const char *text, struct frag_err *err)
{
	size_t n = 0;

	while (settings[n])
		n++;
	if (n == FRAG_CONFIG_MAX)
		return frag_fail(err, FRAG_EUSAGE, "more than %u values in files", FRAG_CONFIG_MAX);
	settings[n] = frag_host_strdup(text);
	FRAG_CHECK_ALLOC(settings[n], "command", err);
	return 0;
}
