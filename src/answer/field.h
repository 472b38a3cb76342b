/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shapes: what the fields of a C struct are called and mean. From one list of fields come the keys of the JSON, the
 * columns of the CSV, the columns of tables for people, json.md of `make docs` and the JSON schema.
 *
 *	struct card_row { const char *name; uint64_t total_bytes; double price_per_hour; };
 *	static const struct frag_field card_fields[] = {
 *		FRAG_FIELD(TEXT, struct card_row, name, "card", "its name in `list gpus`"),
 *		FRAG_FIELD(BYTES, struct card_row, total_bytes, "memory", "total memory"),
 *		FRAG_FIELD(REAL, struct card_row, price_per_hour, "per hour", "rent", .precision = 2, .if_any = true),
 *		FRAG_FIELD_END
 *	};
 *	const struct frag_shape frag_card_shape = FRAG_SHAPE("card", struct card_row, card_fields, "one known card");
 *
 * A name ends with its unit: _bytes, _ns, _us, _count, _ratio (0 to 1).
 *
 * Null, "not available": NULL, a count or bytes above INT64_MAX (UINT64_MAX by convention), NaN and infinities,
 * INT64_MIN. JSON says null, CSV leaves the field empty, tables say `none`, "-" by default.
 */
#ifndef FRAG_ANSWER_FIELD_H
#define FRAG_ANSWER_FIELD_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "answer/textbuf.h"

/* type, what the C member is, its name in json.md */
#define FRAG_FIELD_TYPES(X) \
	X(TEXT, const char *, "text") \
	X(BYTES, uint64_t, "bytes") \
	X(COUNT, uint64_t, "count") \
	X(INT, int64_t, "integer") \
	X(NS, uint64_t, "nanoseconds") \
	X(US, uint64_t, "microseconds") \
	X(RATIO, double, "ratio") \
	X(REAL, double, "number") \
	X(BOOL, bool, "true or false") \
	X(OBJECT, const void *, "object") \
	X(LIST, struct frag_rows, "list of objects") \
	X(MAP, struct frag_rows, "object by name") \
	X(TEXTS, struct frag_rows, "list of texts") \
	X(COUNTS, struct frag_rows, "list of counts")

enum frag_field_type {
#define FRAG_X_(name, ctype, text) FRAG_FIELD_##name,
	FRAG_FIELD_TYPES(FRAG_X_)
#undef FRAG_X_
};

/* LIST, MAP: rows of the field's shape; TEXTS: of const char *; COUNTS: of uint64_t. */
struct frag_rows {
	const void *rows;
	size_t count;
};

struct frag_shape;

/* members in the order in which rows are written */
struct frag_field {	  /* NOLINT(clang-analyzer-optin.performance.Padding) */
	const char *name; /* JSON key and CSV column; NULL = for people only */
	const char *head; /* heading of the column in tables; NULL = for programs only */
	const char *help; /* what it is: json.md, and the heading's tool tip on a page */
	enum frag_field_type type;
	size_t offset;
	/*
	 * OBJECT, LIST, MAP: of what. A MAP's first field is the key; where one more field follows,
	 * its value stands alone, else the rest are an object.
	 */
	const struct frag_shape *of;
	const char *
		unit; /* tables: "GiB", "MiB", "ms", "s", "%": below the heading, instead of in each cell.
		       * "mem": MiB, or GiB for a table with larger values; its precision is set, too */
	unsigned
		precision; /* tables: digits behind the point of REAL, RATIO and of numbers with a unit */
	const char *none; /* tables: where it is null */
	const char *href; /* pages: name of the field of the same row that has the link */
	unsigned
		spare; /* tables: narrow ones leave out the column with 1 first, then 2, …; 0 = never */
	bool left;    /* tables: numbers to the left; texts are there anyway */
	bool right;   /* tables: texts to the right */
	bool grouped; /* tables: 1,234,567 */
	bool sign;    /* tables: +5.0 */
	bool if_any; /* tables: the column is there only if some row has a value other than 0 or false */
	bool page_only; /* tables: on pages, not in text */
	bool no_csv;
	bool csv_only; /* JSON has it in another place */
};

struct frag_shape {
	const char *name; /* "card": heads its table in json.md */
	const char *help;
	const struct frag_field *fields; /* up to FRAG_FIELD_END */
	size_t size;			 /* of the struct */
};

/* frag_ctype_TEXT and the others: what the members are. */
#define FRAG_X_(name, ctype, text) typedef ctype frag_ctype_##name;
FRAG_FIELD_TYPES(FRAG_X_)
#undef FRAG_X_

/* Offset of a member, which must be of that type. */
#define FRAG_FIELD_AT(s, member, ctype) \
	(offsetof(s, member) + \
	 0 * sizeof(char[__builtin_types_compatible_p(__typeof__(((s *)0)->member), ctype) ? 1 \
											   : -1]))

/* What follows `help` are further members: .of, .unit, .precision, … */
#define FRAG_FIELD_AS(type_, name_, s, member, head_, help_, ...) \
	{ \
		.name = name_, .head = head_, .help = help_, .type = FRAG_FIELD_##type_, \
		.offset = FRAG_FIELD_AT(s, member, frag_ctype_##type_), ##__VA_ARGS__ \
	}
#define FRAG_FIELD(type_, s, member, head_, help_, ...) \
	FRAG_FIELD_AS(type_, #member, s, member, head_, help_, ##__VA_ARGS__)
/* A column of tables only, for what JSON and CSV say in other fields. */
#define FRAG_FIELD_SHOWN(type_, s, member, head_, help_, ...) \
	FRAG_FIELD_AS(type_, NULL, s, member, head_, help_, ##__VA_ARGS__)
#define FRAG_FIELD_END \
	{ \
		.head = NULL \
	}
#define FRAG_SHAPE(name_, s, fields_, help_) \
	{ \
		.name = name_, .help = help_, .fields = fields_, .size = sizeof(s) \
	}

/* After the last field? */
static inline bool frag_field_ends(const struct frag_field *f)
{
	return !f->name && !f->head;
}

/* The first field from f on that is a member of the JSON object; NULL: no more. */
static inline const struct frag_field *frag_field_named(const struct frag_field *f)
{
	while (!frag_field_ends(f) && (!f->name || f->csv_only))
		f++;
	return frag_field_ends(f) ? NULL : f;
}

bool frag_field_is_null(const struct frag_field *f, const void *row);
/* Null, 0 or false. */
bool frag_field_is_zero(const struct frag_field *f, const void *row);
/* The cell of a table: "20.25 GiB", "12.5", "yes"; lists as "a, b". */
void frag_field_text(const struct frag_field *f, const void *row, struct frag_text *out);
/* Of a row of texts, all of them. */
void frag_texts_add(const struct frag_rows *list, const char *between, struct frag_text *out);
/* Text of the field `name` of a row, NULL if it is null. pre: the shape has such a TEXT. */
const char *frag_shape_text(const struct frag_shape *s, const void *row, const char *name);

/* New reference; NULL when memory is short. */
json_t *frag_shape_json(const struct frag_shape *s, const void *row);
/* Text from a file as a JSON string (bytes that are no UTF-8 become '?'); NULL: null. */
json_t *frag_json_text(const char *s);

/* CSV: the columns, and one row, each with its line end. Lists and objects are left out. */
void frag_shape_csv_head(const struct frag_shape *s, struct frag_text *out);
void frag_shape_csv_row(const struct frag_shape *s, const void *row, struct frag_text *out);
void frag_shape_csv(const struct frag_shape *s, const void *rows, size_t count,
		    struct frag_text *out);

/* JSON schema (2020-12) of a document: its fields behind those of all. New reference. */
json_t *frag_shape_schema(const struct frag_shape *s);
/* The same as Markdown: a table for the shape and each shape inside of it. */
void frag_shape_markdown(const struct frag_shape *s, struct frag_text *out);

#endif
