/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parameters as data: a table gives key, type, place, default, range and help. Parsing, range
 * errors, "did you mean", help, JSON output and docs all come from the table; no other code parses
 * option strings.
 *
 * Ownership: tables are static. frag_opt_* write only into the caller's params. FRAG_OPT_T_STRING
 * fields are char[FRAG_OPT_STRING_MAX] inside it.
 */
#ifndef FRAG_OPT_H
#define FRAG_OPT_H

#include <frag/base.h>
#include <frag/error.h>

#define FRAG_OPT_STRING_MAX 256

enum frag_opt_type {
	FRAG_OPT_T_END,
	FRAG_OPT_T_BYTES,  /* uint64_t, "512", "20M", "2GiB", "max" = UINT64_MAX */
	FRAG_OPT_T_UINT,   /* uint64_t */
	FRAG_OPT_T_DOUBLE, /* double */
	FRAG_OPT_T_BOOL,   /* bool: true/false, yes/no, on/off, 1/0, True/False */
	FRAG_OPT_T_ENUM,   /* uint64_t: index into `words` */
	FRAG_OPT_T_STRING, /* char[FRAG_OPT_STRING_MAX] */
};

struct frag_opt {
	enum frag_opt_type type;
	bool tune_limited; /* worth trying only if reserved memory is limited */
	const char *key;
	size_t offset;		/* of the field in the params struct */
	uint64_t def, min, max; /* BYTES, UINT, BOOL (0/1), ENUM */
	uint64_t unit; /* BYTES: a multiple of it, or FRAG_OPT_POW2; 0 = any. 0, "max" pass */
	double fdef, fmin, fmax;  /* DOUBLE */
	const char *sdef;	  /* STRING */
	const char *const *words; /* ENUM: NULL-terminated */
	const char *help;	  /* one line, lower case, with the unit if it has one */
	const char *tune; /* values worth trying, comma separated; NULL: `tune` skips the option */
};

#define FRAG_OPT_POW2 UINT64_MAX /* unit: a power of two */

/* More fields may follow: .tune = "1,2,4", .unit = 512. */
#define FRAG_OPT_AS_(t, k, s, f, h, ...) \
	{ \
		.type = FRAG_OPT_T_##t, .key = k, .offset = offsetof(s, f), .help = h, __VA_ARGS__ \
	}
#define FRAG_OPT_BYTES(k, s, f, d, lo, hi, h, ...) \
	FRAG_OPT_AS_(BYTES, k, s, f, h, .def = d, .min = lo, .max = hi, __VA_ARGS__)
#define FRAG_OPT_UINT(k, s, f, d, lo, hi, h, ...) \
	FRAG_OPT_AS_(UINT, k, s, f, h, .def = d, .min = lo, .max = hi, __VA_ARGS__)
#define FRAG_OPT_DOUBLE(k, s, f, d, lo, hi, h, ...) \
	FRAG_OPT_AS_(DOUBLE, k, s, f, h, .fdef = d, .fmin = lo, .fmax = hi, __VA_ARGS__)
#define FRAG_OPT_BOOL(k, s, f, d, h, ...) \
	FRAG_OPT_AS_(BOOL, k, s, f, h, .def = d, .max = 1, __VA_ARGS__)
#define FRAG_OPT_ENUM(k, s, f, d, w, h, ...) \
	FRAG_OPT_AS_(ENUM, k, s, f, h, .def = d, .words = w, __VA_ARGS__)
#define FRAG_OPT_STRING(k, s, f, d, h, ...) FRAG_OPT_AS_(STRING, k, s, f, h, .sdef = d, __VA_ARGS__)
#define FRAG_OPT_END \
	{ \
		.type = FRAG_OPT_T_END \
	}

/* Writes every default into `params`. */
void frag_opt_defaults(const struct frag_opt *opts, void *params);
/* Sets one option; unknown keys are FRAG_EUSAGE with the nearest known word. */
int frag_opt_set(const struct frag_opt *opts, void *params, const char *key, const char *value,
		 struct frag_err *err);
/* Parses "key=value,key=value"; NULL or "" sets nothing. */
int frag_opt_parse(const struct frag_opt *opts, void *params, const char *text,
		   struct frag_err *err);
/* The current value as one would type it. Returns the needed length. */
size_t frag_opt_format(const struct frag_opt *opt, const void *params, char *buf, size_t cap);
/* "key=value,…" for every option that differs from its default. With ':' as `between`, PyTorch's
 * form: "key:value,…", True and False, unquoted texts. Returns the needed length. */
size_t frag_opt_echo(const struct frag_opt *opts, const void *params, char between, char *buf,
		     size_t cap);

/* The entry of a key ('-' and '_' are the same), or NULL. opts may be NULL. */
const struct frag_opt *frag_opt_find(const struct frag_opt *opts, const char *key);
/* End of the first item of "a=1,b=[2,3],…": its ',' outside brackets, or the final NUL. */
const char *frag_opt_item_end(const char *text);
/* Are the brackets in the first n bytes balanced? Only then can the text be split into items. */
bool frag_opt_balanced(const char *text, size_t n);
/* "bytes", "integer", "number", "bool", "word", "text". Static. */
const char *frag_opt_type_name(enum frag_opt_type type);
/* "256 to 1MiB", "1 or more", "true, false", the words; "" for texts. Returns the needed length. */
size_t frag_opt_range(const struct frag_opt *opt, char *buf, size_t cap);
/* Is the table valid: unique keys, help, fields in the params, defaults? Errors: FRAG_ECHECK. */
int frag_opt_check(const struct frag_opt *opts, size_t params_size, struct frag_err *err);

/*
 * "512", "20M", "20MiB", "1.5GiB": powers of 1024. Errors: FRAG_EUSAGE for anything else, negative
 * numbers, and numbers above UINT64_MAX.
 */
int frag_parse_bytes(const char *text, uint64_t *out, struct frag_err *err);
/* "1.50 GiB", "20 MiB", "512 B". buf of at least 32. Returns buf. */
char *frag_format_bytes(uint64_t bytes, char *buf, size_t cap);
/* The same for printing at once: the text is valid until the end of the enclosing block. */
#define FRAG_BYTES(bytes) frag_format_bytes((bytes), (char[32]){ 0 }, 32)
/* Nearest of `words` (NULL-terminated) to `word`, or NULL if none is near. */
const char *frag_nearest(const char *word, const char *const *words);

#endif
