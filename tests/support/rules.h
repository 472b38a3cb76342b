/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules of policies as text: tests/policies/NAME.rules. A line that begins at the margin is a
 * title, one sentence that says the rule, and begins a test. Indented lines are its steps; one that
 * is indented by two tabs goes on where the last one ended. '#' begins a comment, ';' stands
 * between steps on one line. tests/policies/README.md lists the steps.
 *
 *	Halving goes on with the lower half
 *		policy buddy:arena=1M
 *		a b = alloc 257 64K -> 512 64K @0 @64K
 *		free a
 *		calls m1M
 *
 * A step that does not hold, or that does not exist, is reported with its file and line.
 */
#ifndef FRAG_TESTS_RULES_H
#define FRAG_TESTS_RULES_H

#include <frag/base.h>

#define RULES_LINES 2048
#define RULES_SECTIONS 256
#define RULES_BYTES (256 * 1024)

struct rules_line {
	unsigned number;
	const char *text;
};

struct rules_section {
	const char *path, *title;
	const struct rules_line *lines;
	size_t lines_count;
};

/* Large: not for the stack. */
struct rules_file {
	char bytes[RULES_BYTES];
	struct rules_line lines[RULES_LINES];
	size_t lines_count;
	struct rules_section sections[RULES_SECTIONS];
	size_t sections_count;
};

#define RULES_MESSAGE 1024

/* Reads a file; the path is borrowed. Returns false with a message, "path:line: what is wrong". */
bool rules_read(const char *path, struct rules_file *out, char *message);

/*
 * Runs a section. Returns false with a message, "path:line: step: what is wrong". A promise of
 * <frag/policy.h> that a step breaks fails the cmocka test at once (rig.h).
 */
bool rules_run(const struct rules_section *section, char *message);

#endif
