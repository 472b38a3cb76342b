/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of commands as data. A row says how an option is written, where its value goes, which
 * values are allowed and what it means. Parsing, --help, the man pages, the pages of docs/ and
 * shell completion all come from the rows; no other code reads argv.
 *
 * 	static const struct frag_arg options[] = {
 * 		{ FRAG_ARG_TEXT, "output", 'o', FRAG_ARG_AT(struct options, output),
 * 		  .value = "FILE", .help = "the .cft to write" },
 * 		{ FRAG_ARG_UINT, "budget", FRAG_ARG_AT(struct options, budget), .value = "N",
 * 		  .min = 1, .max = 1000000, .def = "800", .help = "settings to try" },
 * 		{ 0 },
 * 	};
 *
 * On the command line --name=value, --name value, -ovalue and -o value are the same, a name may be
 * abbreviated if that is unambiguous, --no-name resets a flag, and "--" ends the options.
 */
#ifndef FRAG_BASE_ARGS_H
#define FRAG_BASE_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <frag/error.h>

enum frag_arg_type {
	FRAG_ARG_END,
	FRAG_ARG_FLAG,	/* bool, no value */
	FRAG_ARG_UINT,	/* unsigned of any width: a whole number from min to max */
	FRAG_ARG_BYTES, /* uint64_t: a size as 20M, from min to max */
	FRAG_ARG_REAL,	/* double: from fmin to fmax */
	FRAG_ARG_WORD,	/* bool, enum or unsigned of any width: the index in `words` */
	FRAG_ARG_SET,	/* unsigned of any width: bits 1 << index of `words`, a list with commas */
	FRAG_ARG_TEXT,	/* const char *: the word in argv itself */
	FRAG_ARG_OWN,	/* set() interprets the text; without FRAG_ARG_AT, it gets the whole
			 * struct */
};

/* An output file must not be an input, a recording or another output (outputs.c). */
enum frag_arg_file {
	FRAG_ARG_READS, /* reads it, or it is not a file */
	FRAG_ARG_WRITES,
	FRAG_ARG_WRITES_TRACE,	/* may take the place of a .cft */
	FRAG_ARG_WRITES_PICKLE, /* writes a pickle */
};

/* fields in the order in which rows list them */
struct frag_arg { /* NOLINT(clang-analyzer-optin.performance.Padding) */
	enum frag_arg_type type;
	const char *name;	  /* without its dashes */
	char letter;		  /* the short form, 0 = none */
	size_t offset, size;	  /* offset of the field: FRAG_ARG_AT */
	const char *value;	  /* name of the value in the help, which also selects the shell's
				   * completion: FILE, TRACE, DIR, POLICY, POLICIES, GPU; NULL: the
				   * words */
	uint64_t min, max;	  /* UINT, BYTES; max 0 = none */
	double fmin, fmax;	  /* REAL */
	uint64_t scale;		  /* UINT: the field is the number times this; 0 = 1 */
	const char *const *words; /* WORD, SET: NULL-terminated; "" = a value without a word */
	/* OWN: takes the text. A list may be given several times. Errors: FRAG_EUSAGE. */
	int (*set)(void *field, const char *text, struct frag_err *err);
	void (*release)(void *field); /* OWN: what set() took; also of an unset field, and twice */
	const char *def;	 /* default, as one would type it; NULL: the field is unchanged */
	const char *bare;	 /* value of --name without a value; NULL: a value is required */
	enum frag_arg_file file; /* TEXT: the use of the named file */
	bool rare;		 /* shown only by --help all */
	/* accepted, and shown nowhere: the old name of another row, or without effect now */
	bool silent;
	const char *help; /* one sentence, lower case; also describes a default that is not a
			   * value */
};

#define FRAG_ARG_AT(type, field) .offset = offsetof(type, field), .size = sizeof(((type *)0)->field)

/* Rows, and the struct for their offsets. heading: title of this part of --help. */
struct frag_arg_table {
	const struct frag_arg *rows;
	void *base;
	const char *heading;
};

#define FRAG_ARG_TABLES_MAX 24

/* Writes the defaults of all rows. Errors: FRAG_EUSAGE for a default that does not parse. */
int frag_args_defaults(const struct frag_arg_table *tables, struct frag_err *err);
/* Of all rows that have one. */
void frag_args_release(const struct frag_arg_table *tables);
/*
 * Parses the options in argv[1] to argv[argc - 1]. operands[argc]: the other words, in order, and
 * *count, their number; *rest: index in argv after a "--", else argc. Stops after an option that
 * sets *stop. Errors: FRAG_EUSAGE, one sentence with the nearest known word.
 */
int frag_args_parse(const struct frag_arg_table *tables, int argc, char **argv, char **operands,
		    size_t *count, int *rest, const bool *stop, struct frag_err *err);
/* As frag_parse_bytes, of memory of a card: "24" is refused, 24G is meant; "0" and "24B" are not. */
int frag_parse_memory(const char *text, uint64_t *out, struct frag_err *err);
/*
 * FRAG_EUSAGE: WHAT 'name', then "; did you mean 'x'?" where a known word (NULL ends them) is near,
 * and `rest`; a rest that begins with ';' only where none is.
 */
int frag_fail_unknown(struct frag_err *err, const char *what, const char *name,
		      const char *const *known, const char *rest);
/* The value as the help shows it: "N", "stop|skip" or "" (flags). Returns the needed length. */
size_t frag_args_value_text(const struct frag_arg *row, char *buf, size_t cap);
/* Are rows valid: unique names and letters, help present? Errors: FRAG_ECHECK. */
int frag_args_check(const struct frag_arg_table *tables, struct frag_err *err);

#endif
