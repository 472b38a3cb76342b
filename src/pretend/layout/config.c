/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See config.h. A document is read, changed and written again by jansson or libyaml; comments go.
 * JSON may have comments, as DeepSpeed allows them. A key that is missing is added.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <frag/base.h>
#include <jansson.h>
#include <yaml.h>

#include "answer/textbuf.h"

/* The next part of a.b.c in a buffer of its own; NULL: the end. */
#define PART_MAX 304u
static const char *next_part(const char *key, char *part)
{
	size_t len = strcspn(key, ".");

	if (!*key)
		return NULL;
	snprintf(part, PART_MAX, "%.*s", (int)len, key);
	return key + len + (key[len] == '.');
}

static int fail_at(const char *part, const char *why, struct frag_err *err)
{
	return frag_fail(err, FRAG_EINPUT, "'%.80s' %s", part, why);
}

/* ---- JSON ------------------------------------------------------------------------------ */

/* Comments become blanks: # and two slashes to the end of the line, and those of C. */
static void blank_comments(char *at)
{
	for (bool quoted = false; *at; at++) {
		const char *end = at;

		if (*at == '"')
			quoted = !quoted;
		if (quoted) {
			at += *at == '\\' && at[1];
			continue;
		}
		if (*at == '#' || !strncmp(at, "//", 2))
			end = at + strcspn(at, "\n");
		else if (!strncmp(at, "/*", 2))
			end = strstr(at, "*/") ? strstr(at, "*/") + 2 : at + strlen(at);
		if (end > at) {
			memset(at, ' ', (size_t)(end - at));
			at += end - at - 1;
		}
	}
}

/* Numbers, true, false and null as they are; everything else is a text. */
static json_t *json_of(const char *value)
{
	json_t *word =
		strpbrk(value, " \t\r\n[{\"") ? NULL : json_loads(value, JSON_DECODE_ANY, NULL);

	return word ? word : json_string(value);
}

static int set_json(const char *text, const char *key, const char *value, struct frag_text *out,
		    struct frag_err *err)
{
	FRAG_AUTO_FREE char *copy = frag_host_strdup(text), *made = NULL;
	json_auto_t *root = NULL;
	char part[PART_MAX];
	json_error_t why;
	json_t *at;

	FRAG_CHECK_ALLOC(copy, "configuration", err);
	blank_comments(copy);
	at = root = json_loads(copy, 0, &why);
	if (!root)
		return frag_fail(err, FRAG_EINPUT, "cannot be read as JSON at line %d: %s",
				 why.line, why.text);
	while ((key = next_part(key, part)) && json_is_object(at)) {
		json_t *below = json_object_get(at, part);

		if (!below || !*key)
			json_object_set_new(at, part, *key ? json_object() : json_of(value));
		at = json_object_get(at, part);
	}
	if (key)
		return fail_at(part, "is in no object", err);
	made = json_dumps(root, 0);
	FRAG_CHECK_ALLOC(made, "configuration", err);
	frag_text_addf(out, "%s\n", made);
	return 0;
}

/* ---- YAML ------------------------------------------------------------------------------ */

/* The only document of a text. */
static int load_yaml(yaml_parser_t *p, const char *text, yaml_document_t *doc, struct frag_err *err)
{
	yaml_document_t second = { 0 };
	bool ok, more = false;

	yaml_parser_set_encoding(p, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(p, (const unsigned char *)text, strlen(text));
	ok = yaml_parser_load(p, doc);
	if (ok && yaml_document_get_root_node(doc)) {
		ok = yaml_parser_load(p, &second);
		more = ok && yaml_document_get_root_node(&second);
		yaml_document_delete(&second);
	}
	if (more)
		return frag_fail(err, FRAG_EINPUT, "has several documents");
	return ok ? 0
		  : frag_fail(err, FRAG_EINPUT, "cannot be read as YAML at line %zu: %s",
			      p->problem_mark.line + 1, p->problem ? p->problem : "not UTF-8");
}

/* doc: zeroed. */
static int open_yaml(const char *text, yaml_document_t *doc, struct frag_err *err)
{
	yaml_parser_t p;
	int rc;

	if (!yaml_parser_initialize(&p))
		return frag_fail_nomem(err, "configuration");
	rc = load_yaml(&p, text, doc, err);
	yaml_parser_delete(&p);
	return rc;
}

/* A list of words in brackets, or one word. */
static int value_of(yaml_document_t *doc, const char *value)
{
	FRAG_AUTO(yaml_document_delete) yaml_document_t own = { 0 };
	const yaml_node_t *list = NULL, *word;
	struct frag_err err;
	int made;

	if (*value == '[' && !open_yaml(value, &own, &err))
		list = yaml_document_get_root_node(&own);
	if (!list)
		return yaml_document_add_scalar(doc, NULL, (const yaml_char_t *)value,
						(int)strlen(value), YAML_PLAIN_SCALAR_STYLE);
	made = yaml_document_add_sequence(doc, NULL, YAML_FLOW_SEQUENCE_STYLE);
	for (int *i = list->data.sequence.items.start; i < list->data.sequence.items.top; i++) {
		word = yaml_document_get_node(&own, *i);
		if (word->type != YAML_SCALAR_NODE)
			return 0;
		yaml_document_append_sequence_item(
			doc, made,
			yaml_document_add_scalar(doc, NULL, word->data.scalar.value,
						 (int)word->data.scalar.length,
						 word->data.scalar.style));
	}
	return made;
}

/* The last pair with this key, as parsers take it; NULL: none. */
static yaml_node_pair_t *find_pair(yaml_document_t *doc, int map, const char *key)
{
	const yaml_node_t *node = yaml_document_get_node(doc, map);
	yaml_node_pair_t *at = node->data.mapping.pairs.top;

	while (at-- > node->data.mapping.pairs.start) {
		const yaml_node_t *k = yaml_document_get_node(doc, at->key);

		if (k->type == YAML_SCALAR_NODE && !strcmp((char *)k->data.scalar.value, key))
			return at;
	}
	return NULL;
}

static int change_yaml(yaml_document_t *doc, const char *key, const char *value,
		       struct frag_err *err)
{
	char part[PART_MAX];
	int map = 1; /* the root */

	if (!yaml_document_get_root_node(doc))
		map = yaml_document_add_mapping(doc, NULL, YAML_BLOCK_MAPPING_STYLE);
	while ((key = next_part(key, part))) {
		yaml_node_pair_t *pair;
		int word, below;

		if (yaml_document_get_node(doc, map)->type != YAML_MAPPING_NODE)
			return fail_at(part, "is in no mapping", err);
		pair = find_pair(doc, map, part);
		if (pair && *key) {
			map = pair->value;
			continue;
		}
		below = *key ? yaml_document_add_mapping(doc, NULL, YAML_BLOCK_MAPPING_STYLE)
			     : value_of(doc, value);
		if (!below)
			return fail_at(part, "takes a word, or a list of words", err);
		word = pair ? pair->key
			    : yaml_document_add_scalar(doc, NULL, (yaml_char_t *)part, -1,
						       YAML_PLAIN_SCALAR_STYLE);
		if (pair)
			pair->value = below;
		else if (!word || !yaml_document_append_mapping_pair(doc, map, word, below))
			return frag_fail_nomem(err, "configuration");
		map = below;
	}
	return 0;
}

static int take(void *text, unsigned char *bytes, size_t size)
{
	frag_text_addn(text, (const char *)bytes, size);
	return 1;
}

static int set_yaml(const char *text, const char *key, const char *value, struct frag_text *out,
		    struct frag_err *err)
{
	FRAG_AUTO(yaml_document_delete) yaml_document_t doc = { 0 };
	yaml_emitter_t to;
	bool good;

	FRAG_TRY(open_yaml(text, &doc, err));
	FRAG_TRY(change_yaml(&doc, key, value, err));
	if (!yaml_emitter_initialize(&to))
		return frag_fail_nomem(err, "configuration");
	yaml_emitter_set_output(&to, take, out);
	yaml_emitter_set_unicode(&to, true);
	yaml_emitter_set_width(&to, -1);
	good = yaml_emitter_open(&to) && yaml_emitter_dump(&to, &doc) && yaml_emitter_close(&to);
	doc = (yaml_document_t){ 0 }; /* dump has released it */
	yaml_emitter_delete(&to);
	return good ? 0 : frag_fail_nomem(err, "configuration");
}

/* ---- files ----------------------------------------------------------------------------- */

bool frag_config_known(const char *path, bool *yaml)
{
	const char *dot = strrchr(path, '.');

	*yaml = dot && (!strcmp(dot, ".yaml") || !strcmp(dot, ".yml"));
	return *yaml || (dot && !strcmp(dot, ".json"));
}

int frag_config_set(const char *text, bool yaml, const char *key, const char *value, char **out,
		    struct frag_err *err)
{
	FRAG_AUTO(frag_text_release) struct frag_text all = { 0 };

	text += strncmp(text, "\xef\xbb\xbf", 3) ? 0 : 3; /* a byte order mark */
	FRAG_TRY((yaml ? set_yaml : set_json)(text, key, value, &all, err));
	FRAG_TRY(frag_text_check(&all, err));
	*out = all.s;
	all = (struct frag_text){ 0 };
	return 0;
}

int frag_config_add(void *field, const char *text, struct frag_err *err)
{
	char **settings = field;
	size_t n = 0;

	while (settings[n])
		n++;
	if (n == FRAG_CONFIG_MAX)
		return frag_fail(err, FRAG_EUSAGE, "more than %u values in files", FRAG_CONFIG_MAX);
	settings[n] = frag_host_strdup(text);
	FRAG_CHECK_ALLOC(settings[n], "command", err);
	return 0;
}
