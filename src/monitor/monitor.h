/* SPDX-License-Identifier: Apache-2.0 */
/* Watching the memory of this machine's cards. One round = one look at every card. */
#ifndef FRAG_MONITOR_H
#define FRAG_MONITOR_H

#include <stdio.h>
#include <time.h>

#include <jansson.h>

#include <frag/base.h>
#include <frag/error.h>

#include "base/live_page.h"
#include "device/nvml.h"

#define FRAG_MONITOR_CARDS 64u	/* with instances of cards */
#define FRAG_MONITOR_PAST 3600u /* looks kept of each card: at one a second, an hour */
#define FRAG_MONITOR_UNKNOWN 255u

struct frag_monitor_alarm {
	bool on;
	unsigned percent;
	double for_s;
	const char *command; /* NULL = none */
};

struct frag_monitor_options {
	uint64_t interval_ms;
	unsigned count; /* rounds, 0 = until interrupted */
	bool json, plain;
	const char *csv, *textfile, *listen, *web;
	uint64_t rotate_bytes;
	struct frag_monitor_alarm alarm;
};

struct frag_monitor_process {
	uint64_t bytes; /* as the driver says; UINT64_MAX = it does not */
	struct frag_live_device held;
	uint64_t start; /* of the process, in ticks since boot: a later one has another */
	unsigned pid, uid;
	char name[32], user[32]; /* "" = not known; made harmless */
	char command[400];	 /* its command line, cut; "" = not known; made harmless */
	bool held_known;	 /* it tells by itself what it holds (base/live_page.h) */
};

/* What is known of a process, UINT64_MAX where it is not. */
enum frag_monitor_value {
	FRAG_MONITOR_DRIVER,
	FRAG_MONITOR_ALLOCATED,
	FRAG_MONITOR_RESERVED,
	FRAG_MONITOR_NONRELEASABLE,
	FRAG_MONITOR_HOLE,
	FRAG_MONITOR_VALUES
};
uint64_t frag_monitor_value(const struct frag_monitor_process *p, enum frag_monitor_value value);

/* A card, or an instance of a card that is split (MIG). It keeps its place in the list. */
struct frag_monitor_card {
	unsigned gpu;
	int instance; /* -1 = the card */
	char id[16];  /* "0", "0.1" */
	struct frag_nvml_card nvml;
	struct frag_monitor_process processes[FRAG_NVML_PROCESSES]; /* nvml.processes_count */
	bool lost;						    /* and it was said */
	bool alarm;
};

struct frag_monitor_round {
	int64_t unix_ms;
	double since_start_s; /* by a clock that never jumps */
	unsigned count;
	struct frag_monitor_card cards[FRAG_MONITOR_CARDS];
};

/* The latest looks at a card, in whole percent: look n is in cell n % FRAG_MONITOR_PAST. */
struct frag_monitor_past {
	uint64_t looks;							/* so far */
	unsigned char used[FRAG_MONITOR_PAST], busy[FRAG_MONITOR_PAST]; /* FRAG_MONITOR_UNKNOWN */
};

/* Whether a fault was told already, until it is gone. */
struct frag_monitor_told {
	bool csv, textfile, output;
};

struct frag_monitor_watch {
	double over_since_s[FRAG_MONITOR_CARDS]; /* < 0: not over */
	unsigned alarms_count;
};

struct frag_monitor_screen;
struct frag_monitor_server;
struct frag_monitor {
	void (*note)(const void *ctx, const char *text);
	const void *note_ctx;
	const struct frag_monitor_options *o;
	struct frag_nvml *nvml;
	struct frag_monitor_round round;
	struct frag_monitor_past past[FRAG_MONITOR_CARDS]; /* of the round's card there */
	struct frag_monitor_watch watch;
	struct frag_monitor_told told;
	struct frag_monitor_screen *screen;	  /* NULL: lines */
	struct frag_monitor_server *server, *web; /* NULL: no listener */
	struct timespec start;
};

/*
 * Until `count` rounds are done, or an interruption. note: takes remarks while there is no screen. alarmed: there was
 * an alarm. Errors: FRAG_EUSAGE, FRAG_EOUTPUT, FRAG_ENOTSUP or FRAG_EDEVICE without a driver.
 */
int frag_monitor_run(const struct frag_monitor_options *o,
		     void (*note)(const void *ctx, const char *text), const void *note_ctx,
		     bool *alarmed, struct frag_err *err);

/* A remark: on standard error, and as long as there is a screen, on that. */
void frag_monitor_say(const struct frag_monitor *m, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* For FRAG_ARG_OWN: "100ms", "2s", "1m"; "80%[,for=30s][,run=COMMAND]". */
int frag_monitor_set_interval(void *field, const char *text, struct frag_err *err);
int frag_monitor_set_alarm(void *field, const char *text, struct frag_err *err);

/* One look at all (look.c): says what was lost and what is back. */
void frag_monitor_look(struct frag_monitor *m);
double frag_monitor_percent(const struct frag_monitor_card *c);
/* The largest of a column of `per` looks, `back` columns before the latest; columns begin at multiples of `per`, so that
 * they stay as they are while time goes on. FRAG_MONITOR_UNKNOWN: there was none. */
unsigned frag_monitor_past_most(const struct frag_monitor_past *p, bool busy, unsigned per,
				unsigned back);

/* ---- what becomes of it ---------------------------------------------------------------- */

/* A line of text for each card, or one of JSON. Errors: FRAG_EOUTPUT, FRAG_ENOMEM. */
int frag_monitor_print(const struct frag_monitor_round *r, bool json, struct frag_err *err);
/* A row for each card that answers. Errors: FRAG_EOUTPUT. */
int frag_monitor_append_csv(const struct frag_monitor_options *o,
			    const struct frag_monitor_round *r, struct frag_err *err);
int frag_monitor_write_textfile(const char *path, const struct frag_monitor_round *r,
				struct frag_err *err);
/* OpenMetrics without its end mark. */
void frag_monitor_put_metrics(FILE *to, const struct frag_monitor_round *r);
void frag_monitor_stamp(const struct frag_monitor_round *r, char *buf, size_t cap);

/* A new reference; NULL: memory is short. when: of frag_monitor_stamp. */
json_t *frag_monitor_json(const struct frag_monitor_round *r, const char *when);

/* Full screen (screen.c). NULL: no ncurses here; *why in words. */
struct frag_monitor_screen *frag_monitor_screen_open(const char **why);
void frag_monitor_screen_close(struct frag_monitor_screen *s); /* NULL is allowed */
void frag_monitor_screen_draw(struct frag_monitor *m);
/* Waits so long for a key. True: it was the one that ends the watch. */
bool frag_monitor_screen_wait(struct frag_monitor *m, uint64_t ms);
/* Takes a remark: shown below, printed at the end. */
void frag_monitor_screen_say(struct frag_monitor_screen *s, const char *text);

/* When a process began, in ticks since boot; 0: there is none, or it is hidden. */
uint64_t frag_monitor_start_of(unsigned pid);

/*
 * --listen ADDRESS:PORT (serve.c): the metrics; with `page` --web: the page for people, to this machine only and to
 * those who know the token. Errors: FRAG_EUSAGE, FRAG_EOUTPUT.
 */
int frag_monitor_server_open(const char *where, bool page, struct frag_monitor_server **out,
			     struct frag_err *err);
void frag_monitor_server_close(struct frag_monitor_server *s); /* NULL is allowed */
FRAG_AUTO_AT(struct frag_monitor_server *, frag_monitor_server_close)
unsigned frag_monitor_server_port(const struct frag_monitor_server *s);
/* "http://127.0.0.1:9400/?token=…" */
void frag_monitor_server_url(const struct frag_monitor_server *s, char *buf, size_t cap);
/* What is served from now on. */
void frag_monitor_server_take(struct frag_monitor_server *s, const struct frag_monitor *m);

#endif
