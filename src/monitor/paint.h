/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A terminal to paint on, by ncurses, which is opened when there is a terminal: it knows the
 * sequences of every terminal, follows its size and steps aside while the job is stopped. However
 * the program ends, except by SIGKILL, the terminal is as before. Only one can be open at a time.
 *
 * Ownership: the struct is the caller's; zero before open, closed by close (also where open
 * failed).
 */
#ifndef FRAG_MONITOR_PAINT_H
#define FRAG_MONITOR_PAINT_H

#include <stdbool.h>
#include <stdint.h>

#include <frag/base.h>

enum frag_paint_style {
	FRAG_PAINT_PLAIN,
	FRAG_PAINT_DIM,
	FRAG_PAINT_STRONG,
	FRAG_PAINT_GOOD,
	FRAG_PAINT_WARM,
	FRAG_PAINT_HOT,
	FRAG_PAINT_CHOSEN
};

/* Keys without a character; others are their character. */
enum frag_paint_key {
	FRAG_KEY_NONE, /* the time is over */
	FRAG_KEY_ESCAPE = 27,
	FRAG_KEY_UP = 0x110000,
	FRAG_KEY_DOWN,
	FRAG_KEY_LEFT,
	FRAG_KEY_RIGHT,
	FRAG_KEY_HOME,
	FRAG_KEY_END,
	FRAG_KEY_PAGE_UP,
	FRAG_KEY_PAGE_DOWN,
	FRAG_KEY_GONE,	 /* there is no terminal any more */
	FRAG_KEY_REDRAW, /* the size is another, or the program goes on after a stop */
};

struct frag_paint {
	void *window;
	bool colors, utf8;
	int rows, columns;
	int row; /* where `put` puts */
};

/* False: no ncurses here; *why in words. */
bool frag_paint_open(struct frag_paint *p, const char **why);
void frag_paint_close(struct frag_paint *p);

/* An empty screen of the size that the terminal has now; what was put is shown by `end`. */
void frag_paint_begin(struct frag_paint *p);
void frag_paint_end(struct frag_paint *p);
/* Into the row in hand, from a column on, cut to a width (and to the screen); a sign that this
 * terminal does not have becomes '?'. The text is harmless already (base/clean.h). */
void frag_paint_put(struct frag_paint *p, int column, int width, enum frag_paint_style style,
		    const char *format, ...) __attribute__((format(printf, 5, 6)));
/* A sign n times. */
void frag_paint_run(struct frag_paint *p, int column, enum frag_paint_style style, const char *sign,
		    int n);
/* Waits so long for a key. */
uint32_t frag_paint_wait(struct frag_paint *p, uint64_t ms);

#endif
