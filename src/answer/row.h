/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A struct for rows, its fields and its shape (field.h) from one list:
 *
 *	#define CARD(F, P, S) \
 *		F(S, TEXT, card, "card", "its name in `list gpus`") \
 *		F(S, BYTES, total_bytes, "memory", "total memory") \
 *		P(S, TEXT, fits, "fits", "for people only")
 *	FRAG_ROW(card, "card", CARD, "one known card");
 *
 * is struct card with these members, and the static card_shape. What follows the help are further
 * members of struct frag_field, as in FRAG_FIELD. FRAG_ROW_AS names the shape, which may be known
 * elsewhere. Where a struct has more than its fields, FRAG_ROW_MEMBERS and FRAG_ROW_SHAPE are the
 * two halves.
 *
 * In the list of a FRAG_VALUED_ROW the value of each field follows its name, as an expression of
 * the variables in scope where a row is made:
 *
 *	F(S, BYTES, total_bytes, gpu->total_bytes, "memory", "total memory")
 *
 *	row = FRAG_ROW_VALUES(card, CARD);
 */
#ifndef FRAG_ANSWER_ROW_H
#define FRAG_ANSWER_ROW_H

#include "answer/field.h"

#define FRAG_ROW_MEMBER_(s, type, name, ...) frag_ctype_##type name;
#define FRAG_ROW_FIELD_(s, type, name, ...) FRAG_FIELD(type, struct s, name, __VA_ARGS__),
#define FRAG_ROW_SHOWN_(s, type, name, ...) FRAG_FIELD_SHOWN(type, struct s, name, __VA_ARGS__),

#define FRAG_ROW_MEMBERS(LIST) LIST(FRAG_ROW_MEMBER_, FRAG_ROW_MEMBER_, )
/* The struct alone, where a header has it and a .c file the shape. */
#define FRAG_ROW_STRUCT(tag, LIST) \
	struct tag { \
		FRAG_ROW_MEMBERS(LIST) \
	}
#define FRAG_SHAPE_OF_(F, P, storage, var, tag, name, LIST, help) \
	static const struct frag_field var##_fields[] = { LIST(F, P, tag) FRAG_FIELD_END }; \
	storage const struct frag_shape var = FRAG_SHAPE(name, struct tag, var##_fields, help)
/* storage: static or nothing; var: of the shape; tag: of the struct. */
#define FRAG_ROW_SHAPE(...) FRAG_SHAPE_OF_(FRAG_ROW_FIELD_, FRAG_ROW_SHOWN_, __VA_ARGS__)

#define FRAG_ROW_AS(storage, var, tag, name, LIST, help) \
	FRAG_ROW_STRUCT(tag, LIST); \
	FRAG_ROW_SHAPE(storage, var, tag, name, LIST, help)
#define FRAG_ROW(tag, name, LIST, help) FRAG_ROW_AS(static, tag##_shape, tag, name, LIST, help)

#define FRAG_VALUED_FIELD_(s, type, name, value, ...) FRAG_ROW_FIELD_(s, type, name, __VA_ARGS__)
#define FRAG_VALUED_SHOWN_(s, type, name, value, ...) FRAG_ROW_SHOWN_(s, type, name, __VA_ARGS__)
#define FRAG_VALUE_(s, type, name, value, ...) .name = value,
#define FRAG_VALUED_SHAPE(...) FRAG_SHAPE_OF_(FRAG_VALUED_FIELD_, FRAG_VALUED_SHOWN_, __VA_ARGS__)
#define FRAG_VALUED_ROW_AS(storage, var, tag, name, LIST, help) \
	FRAG_ROW_STRUCT(tag, LIST); \
	FRAG_VALUED_SHAPE(storage, var, tag, name, LIST, help)
#define FRAG_VALUED_ROW(tag, name, LIST, help) \
	FRAG_VALUED_ROW_AS(static, tag##_shape, tag, name, LIST, help)
#define FRAG_ROW_VALUES(tag, LIST) ((struct tag){ LIST(FRAG_VALUE_, FRAG_VALUE_, tag) })
/* A list as such a value. */
#define FRAG_ROWS(list, n) ((struct frag_rows){ (list), (n) })

/*
 * The same for columns that only programs read, the data of charts: tag##_shape has no help. Each
 * has its value, in terms of the variables in scope where a row is made:
 *
 *	#define COLUMNS(X, s) X(s, COUNT, rank, i) X(s, TEXT, policy, r->policy)
 *	FRAG_CSV_ROW(peak_row, COLUMNS)
 *
 *	list[i] = FRAG_CSV_VALUES(peak_row, COLUMNS);
 */
#define FRAG_CSV_ROW(tag, COLUMNS) \
	struct tag { \
		COLUMNS(FRAG_ROW_MEMBER_, tag) \
	}; \
	static const struct frag_field tag##_fields[] = { COLUMNS(FRAG_CSV_FIELD_, tag) \
								  FRAG_FIELD_END }; \
	static const struct frag_shape tag##_shape = \
		FRAG_SHAPE(#tag, struct tag, tag##_fields, NULL);
#define FRAG_CSV_VALUES(tag, COLUMNS) ((struct tag){ COLUMNS(FRAG_CSV_VALUE_, tag) })
#define FRAG_CSV_FIELD_(tag, type, member, ...) FRAG_FIELD(type, struct tag, member, NULL, NULL),
#define FRAG_CSV_VALUE_(tag, type, member, ...) .member = __VA_ARGS__,

#endif
