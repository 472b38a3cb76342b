/* SPDX-License-Identifier: Apache-2.0 */
/* Watching the memory of this machine's cards. One round = one look at every card. */
#ifndef FRAG_MONITOR_H
#define FRAG_MONITOR_H

#include <stdio.h>
#include <time.h>

#include <frag/base.h>
#include <frag/error.h>

#include "base/live_page.h"
#include "device/nvml.h"

#define FRAG_MONITOR_CARDS 64u /* with instances of cards */

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
	const char *csv, *textfile, *listen;
	uint64_t rotate_bytes;
	struct frag_monitor_alarm alarm;
};

struct frag_monitor_process {
	uint64_t bytes; /* as the driver says; UINT64_MAX = it does not */
	struct frag_live_device held;
	unsigned pid;
	char name[32], user[32]; /* "" = not known; made harmless */
	bool held_known;	 /* it tells by itself what it holds (base/live_page.h) */
};

/* A card, or an instance of a card that is split (MIG). Its place in the list is its own to the end. */
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
	struct frag_monitor_watch watch;
	struct frag_monitor_told told;
	struct frag_monitor_screen *screen; /* NULL: lines */
	struct frag_monitor_server *server; /* NULL: nobody listens */
	struct timespec start;
	int64_t clock_offset_ms; /* of the day's clock to the steady one; 0 = no look so far */
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
/* Raises at the limit, when it has lasted; gives way again five points below. Runs the command. */
void frag_monitor_check(struct frag_monitor *m);

/* One look at all (look.c): says what was lost and what is back. */
void frag_monitor_look(struct frag_monitor *m);
double frag_monitor_percent(const struct frag_monitor_card *c);
/* Fullest and emptiest card; false: fewer than two answer. Instances are left out. */
bool frag_monitor_spread(const struct frag_monitor_round *r, unsigned *least, unsigned *most);

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

/* Full screen (screen.c). NULL: no ncurses here; *why in words. */
struct frag_monitor_screen *frag_monitor_screen_open(const char **why);
void frag_monitor_screen_close(struct frag_monitor_screen *s); /* NULL is allowed */
void frag_monitor_screen_draw(struct frag_monitor *m);
/* Waits so long for a key. True: it was the one that ends the watch. */
bool frag_monitor_screen_wait(struct frag_monitor *m, uint64_t ms);
/* Takes a remark: shown below, printed at the end. */
void frag_monitor_screen_say(struct frag_monitor_screen *s, const char *text);

/* --listen ADDRESS:PORT (serve.c). Errors: FRAG_EUSAGE, FRAG_EOUTPUT. */
int frag_monitor_server_open(const char *where, struct frag_monitor_server **out,
			     struct frag_err *err);
void frag_monitor_server_close(struct frag_monitor_server *s); /* NULL is allowed */
unsigned frag_monitor_server_port(const struct frag_monitor_server *s);
/* What is served from now on. */
void frag_monitor_server_take(struct frag_monitor_server *s, const struct frag_monitor_round *r);

#endif
