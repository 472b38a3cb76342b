/* SPDX-License-Identifier: Apache-2.0 */
/* One value of a row: is it there, and how a table shows it. */
#include "field.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include <frag/opt.h>

static const void *at(const struct frag_field *f, const void *row)
{
	return (const char *)row + f->offset;
}

static uint64_t u64_of(const struct frag_field *f, const void *row)
{
	return *(const uint64_t *)at(f, row);
}

/* What a member is in memory. */
enum storage { POINTER, WHOLE, SIGNED, DOUBLE, TRUTH, ROWS };
static const enum storage stored[] = {
#define FRAG_X_(name, ctype, text) \
	[FRAG_FIELD_##name] = _Generic((ctype){ 0 }, const char *: POINTER, const void *: POINTER, \
				       uint64_t: WHOLE, int64_t: SIGNED, double: DOUBLE, \
				       bool: TRUTH, struct frag_rows: ROWS),
	FRAG_FIELD_TYPES(FRAG_X_)
#undef FRAG_X_
};

bool frag_field_is_null(const struct frag_field *f, const void *row)
{
	switch (stored[f->type]) {
	case POINTER:
		return !*(const void *const *)at(f, row);
	case WHOLE:
		return u64_of(f, row) > INT64_MAX;
	case SIGNED:
		return *(const int64_t *)at(f, row) == INT64_MIN;
	case DOUBLE:
		return !isfinite(*(const double *)at(f, row));
	default:
		return false;
	}
}

bool frag_field_is_zero(const struct frag_field *f, const void *row)
{
	if (frag_field_is_null(f, row))
		return true;
	switch (stored[f->type]) {
	case POINTER:
		return f->type == FRAG_FIELD_TEXT && !**(const char *const *)at(f, row);
	case WHOLE:
	case SIGNED:
		return !u64_of(f, row);
	case DOUBLE:
		return *(const double *)at(f, row) == 0;
	case TRUTH:
		return !*(const bool *)at(f, row);
	default:
		return !((const struct frag_rows *)at(f, row))->count;
	}
}

/* How many of the unit a byte, a nanosecond or a whole is. */
static double scale_of(const char *unit)
{
	static const struct {
		const char *unit;
		double scale;
	} units[] = { { "KiB", 1.0 / 1024 },
		      { "MiB", 1.0 / (1 << 20) },
		      { "GiB", 1.0 / (1 << 30) },
		      { "us", 1e-3 },
		      { "ms", 1e-6 },
		      { "s", 1e-9 },
		      { "%", 100 } };

	for (size_t i = 0; i < FRAG_ARRAY_LEN(units); i++)
		if (!strcmp(units[i].unit, unit))
			return units[i].scale;
	return 1;
}

static void add_real(const struct frag_field *f, double v, struct frag_text *out)
{
	double scale = f->unit ? scale_of(f->unit) : f->type == FRAG_FIELD_RATIO ? 100 : 1;

	frag_text_addf(out, f->sign ? "%+.*f" : "%.*f", (int)f->precision, v * scale);
	if (!f->unit && f->type == FRAG_FIELD_RATIO)
		frag_text_add(out, " %");
}

void frag_texts_add(const struct frag_rows *list, const char *between, struct frag_text *out)
{
	for (size_t i = 0; i < list->count; i++)
		frag_text_addf(out, "%s%s", i ? between : "", ((const char *const *)list->rows)[i]);
}

static void add_u64(const struct frag_field *f, uint64_t v, struct frag_text *out)
{
	if (f->unit && f->type != FRAG_FIELD_COUNT)
		add_real(f, (double)v * (f->type == FRAG_FIELD_US ? 1000 : 1), out);
	else if (f->type == FRAG_FIELD_BYTES)
		frag_text_add(out, FRAG_BYTES(v));
	else if (f->type == FRAG_FIELD_NS || f->type == FRAG_FIELD_US)
		frag_text_add(out, FRAG_NS(f->type == FRAG_FIELD_US ? v * 1000 : v));
	else if (f->grouped)
		frag_text_add(out, FRAG_GROUPED(v));
	else
		frag_text_addf(out, "%" PRIu64, v);
}

void frag_field_text(const struct frag_field *f, const void *row, struct frag_text *out)
{
	if (frag_field_is_null(f, row)) {
		frag_text_add(out, f->none ? f->none : "-");
		return;
	}
	switch (f->type) {
	case FRAG_FIELD_TEXT:
		frag_text_add(out, *(const char *const *)at(f, row));
		break;
	case FRAG_FIELD_BYTES:
	case FRAG_FIELD_COUNT:
	case FRAG_FIELD_NS:
	case FRAG_FIELD_US:
		add_u64(f, u64_of(f, row), out);
		break;
	case FRAG_FIELD_INT:
		frag_text_addf(out, f->sign ? "%+" PRId64 : "%" PRId64,
			       *(const int64_t *)at(f, row));
		break;
	case FRAG_FIELD_RATIO:
	case FRAG_FIELD_REAL:
		add_real(f, *(const double *)at(f, row), out);
		break;
	case FRAG_FIELD_BOOL:
		frag_text_add(out, *(const bool *)at(f, row) ? "yes" : "no");
		break;
	case FRAG_FIELD_TEXTS:
		frag_texts_add(at(f, row), ", ", out);
		break;
	case FRAG_FIELD_LIST:
	case FRAG_FIELD_MAP:
	case FRAG_FIELD_COUNTS:
		frag_text_addf(out, "%zu", ((const struct frag_rows *)at(f, row))->count);
		break;
	case FRAG_FIELD_OBJECT:
		break;
	}
}

const char *frag_shape_text(const struct frag_shape *s, const void *row, const char *name)
{
	for (const struct frag_field *f = s->fields; !frag_field_ends(f); f++)
		if (f->name && !strcmp(f->name, name))
			return *(const char *const *)at(f, row);
	FRAG_BUG("a shape names a field that it lacks");
}
