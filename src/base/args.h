/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of commands as data. A row says how an option is written, where its value goes, what
 * it may be and what it means; the parse, --help, the man pages, the pages of docs/ and the
 * completion of shells all come from the rows, and nobody else reads argv.
 *
 *	static const struct frag_arg options[] = {
 *		{ FRAG_ARG_TEXT, "output", 'o', FRAG_ARG_AT(struct options, output),
 *		  .value = "FILE", .help = "the .cft to write" },
 *		{ FRAG_ARG_UINT, "budget", FRAG_ARG_AT(struct options, budget), .value = "N",
 *		  .min = 1, .max = 1000000, .def = "800", .help = "settings to try" },
 *		{ 0 },
 *	};
 *
 * On the command line --name=value, --name value, -ovalue and -o value are the same, any
 * beginning of a name that fits only one will do, --no-name takes a flag back, and "--" ends
 * the options.
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
	FRAG_ARG_WORD,	/* bool, enum or unsigned of any width: the index in `words` */
	FRAG_ARG_SET,	/* unsigned of any width: bits 1 << index of `words`, a list with commas */
	FRAG_ARG_TEXT,	/* const char *: the word in argv itself */
	FRAG_ARG_OWN,	/* whatever set() makes of the text; no FRAG_ARG_AT: of the whole struct */
};

/* A file that is written must be no input, no recording and no other output (outputs.c). */
enum frag_arg_file {
	FRAG_ARG_READS, /* or is no file */
	FRAG_ARG_WRITES,
	FRAG_ARG_WRITES_TRACE,	/* may take the place of a .cft */
	FRAG_ARG_WRITES_PICKLE, /* of a pickle */
};

/* fields in the order in which rows are written */
struct frag_arg { /* NOLINT(clang-analyzer-optin.performance.Padding) */
	enum frag_arg_type type;
	const char *name;	  /* without its dashes */
	char letter;		  /* the short form, 0 = none */
	size_t offset, size;	  /* of the field: FRAG_ARG_AT */
	const char *value;	  /* what the help calls it; it also says what a shell completes:
			      * FILE, TRACE, DIR, POLICY, POLICIES, GPU; NULL: the words */
	uint64_t min, max;	  /* UINT, BYTES; max 0 = none */
	uint64_t scale;		  /* UINT: the field is so many times the number; 0 = 1 */
	const char *const *words; /* WORD, SET: NULL-terminated; "" = a value without a word */
	/* OWN: takes the text. A list may be given several times. Errors: FRAG_EUSAGE. */
	int (*set)(void *field, const char *text, struct frag_err *err);
	const char *def;	 /* as it would be typed; NULL: the field stays as it is */
	const char *bare;	 /* what --name without a value means; NULL: it needs one */
	enum frag_arg_file file; /* TEXT: what it does with the file that it names */
	/* for measurements on cards (docs/measuring.md): only `cufrag help COMMAND --all` shows it */
	bool laboratory;
	const char *help; /* one sentence, lower case; a default that is no value is told here */
};

#define FRAG_ARG_AT(type, field) .offset = offsetof(type, field), .size = sizeof(((type *)0)->field)

/* Rows and what their offsets count from. Heading: of this part of --help. */
struct frag_arg_table {
	const struct frag_arg *rows;
	void *base;
	const char *heading;
};

#define FRAG_ARG_TABLES_MAX 24

/* Writes the defaults of all rows. Errors: FRAG_EUSAGE from a default that is none. */
int frag_args_defaults(const struct frag_arg_table *tables, struct frag_err *err);
/*
 * Takes the options out of argv[1] to argv[argc - 1]. operands[argc]: what is left, in order, and
 * *count of them; *rest: index in argv behind a "--", argc without one. Stops after an option that
 * sets *stop. Errors: FRAG_EUSAGE, in one sentence with the nearest known word.
 */
int frag_args_parse(const struct frag_arg_table *tables, int argc, char **argv, char **operands,
		    size_t *count, int *rest, const bool *stop, struct frag_err *err);
/* "N", "stop|skip" or "" (flags): how the help writes the value. Returns the needed length. */
size_t frag_args_value_text(const struct frag_arg *row, char *buf, size_t cap);
/* Are the rows sound: names unique, help given, what the type needs? Errors: FRAG_ECHECK. */
int frag_args_check(const struct frag_arg_table *tables, struct frag_err *err);

#endif
