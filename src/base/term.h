/* SPDX-License-Identifier: Apache-2.0 */
/* The terminal: colour where it is wanted, and one line of progress on stderr, the one thing
 * below src/cli that is ever printed. */
#ifndef FRAG_BASE_TERM_H
#define FRAG_BASE_TERM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <frag/watch.h>

enum frag_color { FRAG_COLOR_AUTO, FRAG_COLOR_ALWAYS, FRAG_COLOR_NEVER };

/* auto: a terminal, TERM not "dumb", NO_COLOR unset or empty. */
bool frag_term_color(enum frag_color mode, FILE *to);
/* Escape sequence of a style ("bold", "red", "green", "yellow", "dim", "off"), or "" without colour. */
const char *frag_term_style(bool color, const char *style);
/* Columns of the terminal behind `to`, 80 if it is none. */
unsigned frag_term_columns(FILE *to);
/* What a table has room for: the terminal behind `to`, else COLUMNS of the environment; 0 = no bound. */
unsigned frag_term_room(FILE *to);
/* No progress from now on, whatever begins. */
void frag_progress_silence(void);

/*
 * "replaying gnn 42 %, 9 s, about 12 s left": one line on stderr, shown only if that is a terminal and
 * the program has worked for longer than a second. A thread of its own moves the seconds on while the
 * work is silent; updates, at most ten a second, are cheap enough to call per batch. Begun and ended
 * on one thread, also one inside the other: the innermost is shown.
 */
struct frag_progress {
	struct frag_watch watch;
	char label[160];
	uint64_t begin_ns, next_ns;
	uint64_t done, total; /* as last told; total 0: only done is known, or nothing */
	struct frag_progress *outer;
	bool on;
};
/* For work that does not look at signals: they end the program as before. */
void frag_progress_show(struct frag_progress *p, const char *label);
/* From here on signals are taken (interrupt.h), and `watch`, for work that takes one, shows the
 * progress and stops on them. */
void frag_progress_begin(struct frag_progress *p, const char *label);
void frag_progress_update(struct frag_progress *p, uint64_t done, uint64_t total);
/* Wipes the line. */
void frag_progress_end(struct frag_progress *p);
/* The same before a message; the line comes again below it. */
void frag_progress_wipe(void);

#endif
