/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes described: as JSON schema (2020-12) and as Markdown (json.md of `make docs`). */
#include "answer.h"

#include <string.h>

static const char *const type_names[] = {
#define FRAG_X_(name, ctype, text) [FRAG_FIELD_##name] = text,
	FRAG_FIELD_TYPES(FRAG_X_)
#undef FRAG_X_
};

/* ---- JSON schema ------------------------------------------------------------------------ */

static json_t *object_schema(const struct frag_shape *s, const char *without);

static json_t *field_schema(const struct frag_field *f)
{
	const struct frag_field *key, *value;

	switch (f->type) {
	case FRAG_FIELD_TEXT:
		return json_pack("{s:[s, s]}", "type", "string", "null");
	case FRAG_FIELD_BOOL:
		return json_pack("{s:s}", "type", "boolean");
	case FRAG_FIELD_RATIO:
	case FRAG_FIELD_REAL:
		return json_pack("{s:[s, s]}", "type", "number", "null");
	case FRAG_FIELD_OBJECT:
		return object_schema(f->of, NULL);
	case FRAG_FIELD_LIST:
		return json_pack("{s:s, s:o}", "type", "array", "items",
				 object_schema(f->of, NULL));
	case FRAG_FIELD_TEXTS:
		return json_pack("{s:s, s:{s:s}}", "type", "array", "items", "type", "string");
	case FRAG_FIELD_COUNTS:
		return json_pack("{s:s, s:{s:s}}", "type", "array", "items", "type", "integer");
	case FRAG_FIELD_MAP:
		key = frag_field_named(f->of->fields);
		value = frag_field_named(key + 1);
		return json_pack(
			"{s:[s, s], s:o}", "type", "object", "null", "additionalProperties",
			value && !frag_field_named(value + 1) ? field_schema(value)
							      : object_schema(f->of, key->name));
	default:
		return json_pack("{s:[s, s]}", "type", "integer", "null");
	}
}

static void add_field(json_t *properties, json_t *required, const char *name, const char *help,
		      json_t *schema)
{
	if (help)
		json_object_set_new(schema, "description", json_string(help));
	json_object_set_new(properties, name, schema);
	json_array_append_new(required, json_string(name));
}

static void add_fields(const struct frag_shape *s, const char *without, json_t *properties,
		       json_t *required)
{
	for (const struct frag_field *f = s->fields; (f = frag_field_named(f)); f++)
		if ((!without || strcmp(f->name, without) != 0))
			add_field(properties, required, f->name, f->help, field_schema(f));
}

/* An object, or null where an OBJECT may be; `without`: the key of a map. */
static json_t *object_schema(const struct frag_shape *s, const char *without)
{
	json_t *properties = json_object(), *required = json_array();

	add_fields(s, without, properties, required);
	return json_pack("{s:[s, s], s:o, s:o, s:b}", "type", "object", "null", "properties",
			 properties, "required", required, "additionalProperties", 0);
}

/* What every document begins with. */
static const struct {
	const char *name, *type, *help;
} head[] = {
	{ "schema", "integer", "version of this description" },
	{ "version", "string", "of cufrag" },
	{ "command", "string", "that wrote the document" },
	{ "estimated", "boolean", "rests on a recording that was made without a GPU" },
	{ "answers", "array", "the conclusions, as sentences" },
	{ "charts", "array", "of the page: base name of the files, title, and the numbers in it" },
};

json_t *frag_shape_schema(const struct frag_shape *s)
{
	json_t *properties = json_object(), *required = json_array();

	for (size_t i = 0; i < FRAG_ARRAY_LEN(head); i++)
		add_field(properties, required, head[i].name, head[i].help,
			  json_pack("{s:s}", "type", head[i].type));
	add_fields(s, NULL, properties, required);
	return json_pack("{s:s, s:s, s:s, s:o, s:o, s:b}", "$schema",
			 "https://json-schema.org/draft/2020-12/schema", "title", s->help, "type",
			 "object", "properties", properties, "required", required,
			 "additionalProperties", 0);
}

/* ---- Markdown --------------------------------------------------------------------------- */

#define SHAPES_MAX 64u

struct seen {
	const struct frag_shape *list[SHAPES_MAX];
	size_t count;
};

void frag_shape_markdown(const struct frag_shape *s, struct frag_text *out)
{
	struct seen seen = { .list = { s }, .count = 1 };

	for (size_t i = 0; i < seen.count; i++) {
		size_t k;

		s = seen.list[i];
		frag_text_addf(out, "%s%s: %s\n\n| field | type | what it is |\n|---|---|---|\n",
			       i ? "\n" : "", s->name, s->help);
		for (const struct frag_field *f = s->fields; (f = frag_field_named(f)); f++) {
			frag_text_addf(out, "| `%s` | %s%s%s | %s |\n", f->name,
				       type_names[f->type], f->of ? ": " : "",
				       f->of ? f->of->name : "", f->help);
			for (k = 0; f->of && k < seen.count && seen.list[k] != f->of;)
				k++;
			FRAG_ASSERT(k < SHAPES_MAX);
			if (f->of && k == seen.count)
				seen.list[seen.count++] = f->of;
		}
	}
}
