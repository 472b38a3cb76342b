/* SPDX-License-Identifier: Apache-2.0 */
/* The terminal: colour, and a line of progress on stderr, the only output below src/cli. */
#ifndef FRAG_BASE_TERM_H
#define FRAG_BASE_TERM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <frag/watch.h>

enum frag_color { FRAG_COLOR_AUTO, FRAG_COLOR_ALWAYS, FRAG_COLOR_NEVER };

/* auto: colour on a terminal, unless TERM is "dumb" or NO_COLOR is set. */
bool frag_term_color(enum frag_color mode, FILE *to);
/* Columns of the terminal behind `to`; 80 if it is not a terminal. */
unsigned frag_term_columns(FILE *to);
/* Columns for a table: of the terminal behind `to`, else COLUMNS; 0 = unlimited. */
unsigned frag_term_room(FILE *to);
/* Switches progress off for good. */
void frag_progress_silence(void);

/*
 * "replaying gnn 42 %, 9 s, about 12 s left": one line on stderr, shown only if stderr is a
 * terminal. Updates (at most ten a second) are cheap enough to call per batch. Begin and end on one
 * thread; may be nested: the innermost is shown.
 */
struct frag_progress {
	struct frag_watch watch;
	char label[160];
	uint64_t begin_ns, next_ns;
	uint64_t done, total; /* the last report; total 0: only `done` is known, or nothing */
	struct frag_progress *outer;
	bool on;
};
/* For work that does not check signals: they end the program as before. */
void frag_progress_show(struct frag_progress *p, const char *label);
/* From here on signals are caught (interrupt.h); `watch`, for work that takes one, shows the
 * progress and stops on a signal. */
void frag_progress_begin(struct frag_progress *p, const char *label);
void frag_progress_update(struct frag_progress *p, uint64_t done, uint64_t total);
/* Wipes the line. */
void frag_progress_end(struct frag_progress *p);
/* Wipes the line before a message; it reappears with the next update. */
void frag_progress_wipe(void);

#endif
