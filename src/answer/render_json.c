/* SPDX-License-Identifier: Apache-2.0 */
/* Rows and answers as JSON. Key order is that of the fields; what is not available is null. */
#include "answer.h"

#include <math.h>

#include "base/outfile.h"

json_t *frag_json_text(const char *s)
{
	json_t *v = s ? json_string(s) : json_null();
	char *copy;

	if (v)
		return v;
	copy = frag_host_strdup(s);
	for (char *p = copy; p && *p; p++)
		if ((unsigned char)*p >= 0x80)
			*p = '?';
	v = copy ? json_string(copy) : NULL;
	frag_host_free(copy);
	return v;
}

static json_t *value_of(const struct frag_field *f, const void *row);

static json_t *list_of(const struct frag_field *f, const struct frag_rows *list)
{
	json_t *out = json_array();

	for (size_t i = 0; i < list->count; i++)
		if (json_array_append_new(
			    out,
			    f->type == FRAG_FIELD_TEXTS
				    ? frag_json_text(((const char *const *)list->rows)[i])
			    : f->type == FRAG_FIELD_COUNTS
				    ? json_integer((json_int_t)((const uint64_t *)list->rows)[i])
				    : frag_shape_json(f->of, (const char *)list->rows +
								     i * f->of->size))) {
			json_decref(out);
			return NULL;
		}
	return out;
}

/* {key: value} of two fields, {key: {…}} of more. */
static json_t *map_of(const struct frag_field *f, const struct frag_rows *list)
{
	const struct frag_field *key = frag_field_named(f->of->fields),
				*value = frag_field_named(key + 1);
	bool alone = value && !frag_field_named(value + 1);
	json_t *out = json_object();

	for (size_t i = 0; out && i < list->count; i++) {
		const char *row = (const char *)list->rows + i * f->of->size;
		json_t *v = alone ? value_of(value, row) : frag_shape_json(f->of, row);

		if (v && !alone)
			json_object_del(v, key->name);
		if (json_object_set_new(out, *(const char *const *)(row + key->offset), v)) {
			json_decref(out);
			return NULL;
		}
	}
	return out;
}

/* Whole numbers exactly: a sum of bytes may come as a real. */
static json_t *number_of(double v)
{
	return fabs(v) < 1e15 && v == floor(v) ? json_integer((json_int_t)v) : json_real(v);
}

static json_t *value_of(const struct frag_field *f, const void *row)
{
	const void *at = (const char *)row + f->offset;

	if (frag_field_is_null(f, row))
		return json_null();
	switch (f->type) {
	case FRAG_FIELD_TEXT:
		return frag_json_text(*(const char *const *)at);
	case FRAG_FIELD_BYTES:
	case FRAG_FIELD_COUNT:
	case FRAG_FIELD_NS:
	case FRAG_FIELD_US:
		return json_integer((json_int_t) * (const uint64_t *)at);
	case FRAG_FIELD_INT:
		return json_integer(*(const int64_t *)at);
	case FRAG_FIELD_REAL:
		return number_of(*(const double *)at);
	case FRAG_FIELD_RATIO:
		return json_real(*(const double *)at);
	case FRAG_FIELD_BOOL:
		return json_boolean(*(const bool *)at);
	case FRAG_FIELD_OBJECT:
		return frag_shape_json(f->of, *(const void *const *)at);
	case FRAG_FIELD_MAP:
		return map_of(f, at);
	case FRAG_FIELD_LIST:
	case FRAG_FIELD_TEXTS:
	case FRAG_FIELD_COUNTS:
		break;
	}
	return list_of(f, at);
}

/* false: memory is short. */
static bool add_fields(const struct frag_shape *s, const void *row, json_t *object)
{
	for (const struct frag_field *f = frag_field_named(s->fields); f;
	     f = frag_field_named(f + 1))
		if (json_object_set_new(object, f->name, value_of(f, row)))
			return false;
	return true;
}

json_t *frag_shape_json(const struct frag_shape *s, const void *row)
{
	json_t *o = json_object();

	if (o && add_fields(s, row, o))
		return o;
	json_decref(o);
	return NULL;
}

/* ---- documents -------------------------------------------------------------------------- */

/* The conclusions, or of each chart of the page base name, title and the numbers of the title. */
static bool add_parts(const struct frag_answer *a, bool charts, json_t *root)
{
	json_t *list = json_array();
	bool ok = list != NULL;

	for (size_t i = 0; ok && i < a->parts_count; i++) {
		const struct frag_part *part = &a->parts[i];
		const struct frag_answer_chart *c = &part->chart;

		if (!charts &&
		    (part->kind == FRAG_PART_CONCLUSION || part->kind == FRAG_PART_VERDICT))
			ok = !json_array_append_new(list, frag_json_text(part->text));
		if (charts && part->kind == FRAG_PART_CHART) {
			json_t *numbers = json_object();

			for (size_t n = 0; n < c->numbers_count; n++)
				json_object_set_new(numbers, c->numbers[n].name,
						    number_of(c->numbers[n].value));
			ok = !json_array_append_new(list, json_pack("{s:s, s:o, s:o}", "base",
								    frag_chart_base(c), "title",
								    frag_json_text(c->title),
								    "numbers", numbers));
		}
	}
	ok = ok && !json_object_set(root, charts ? "charts" : "answers", list);
	json_decref(list);
	return ok;
}

json_t *frag_answer_json(const struct frag_answer *a)
{
	json_t *root = json_object();

	if (!a->failed && root &&
	    !json_object_set_new(root, "schema", json_integer(FRAG_ANSWER_SCHEMA)) &&
	    !json_object_set_new(root, "version", json_string(FRAG_VERSION)) &&
	    !json_object_set_new(root, "command", json_string(a->command)) &&
	    !json_object_set_new(root, "estimated", json_boolean(a->estimated)) &&
	    add_parts(a, false, root) && add_parts(a, true, root) &&
	    (!a->shape || add_fields(a->shape, a->data, root)))
		return root;
	json_decref(root);
	return NULL;
}

int frag_json_put(json_t *root, const char *path, struct frag_err *err)
{
	struct frag_outfile out;
	int rc;

	FRAG_CHECK_ALLOC(root, "JSON document", err);
	rc = frag_outfile_open(&out, path, err);
	/* 15 digits: what a double holds for certain, and 0.1 stays 0.1 */
	if (!rc && json_dumpf(root, out.to, JSON_INDENT(2) | JSON_REAL_PRECISION(15)) &&
	    !ferror(out.to)) {
		frag_outfile_abort(&out);
		rc = frag_fail_nomem(err, "JSON document");
	} else if (!rc) {
		fputc('\n', out.to);
		rc = frag_outfile_commit(&out, err);
	}
	json_decref(root);
	return rc;
}

int frag_answer_put_json(const struct frag_answer *a, const char *path, struct frag_err *err)
{
	return frag_json_put(frag_answer_json(a), path, err);
}
