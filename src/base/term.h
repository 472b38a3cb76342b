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
 * "replaying gnn 42 %, about 12 s left": one line on stderr, shown only if that is a terminal and
 * the work takes longer than a second; at most ten updates a second. Cheap enough to call per
 * batch. One thread. From the begin on signals are taken (interrupt.h), and `watch`, for work that
 * takes one, shows the progress and stops on them.
 */
struct frag_progress {
	struct frag_watch watch;
	char label[160];
	uint64_t begin_ns, next_ns;
	bool on, shown;
};
void frag_progress_begin(struct frag_progress *p, const char *label);
void frag_progress_update(struct frag_progress *p, uint64_t done, uint64_t total);
/* Wipes the line. */
void frag_progress_end(struct frag_progress *p);

#endif
