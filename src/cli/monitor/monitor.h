/* SPDX-License-Identifier: Apache-2.0 */
/* cufrag monitor: what its parts share. One round = one look at every card. */
#ifndef FRAG_CLI_MONITOR_H
#define FRAG_CLI_MONITOR_H

#include "cli/common.h"
#include "device/nvml.h"

#define FRAG_MONITOR_CARDS 64u

struct frag_monitor_alarm {
	bool on;
	unsigned percent;
	double for_s;
	const char *command; /* NULL = none */
};

struct frag_monitor_options {
	uint64_t interval_ms;
	unsigned count; /* rounds, 0 = until interrupted */
	bool json;
	const char *csv, *textfile;
	uint64_t rotate_bytes;
	struct frag_monitor_alarm alarm;
};

struct frag_monitor_round {
	int64_t unix_ms;
	double since_start_s; /* by a clock that never jumps */
	unsigned count;
	struct frag_nvml_card cards[FRAG_MONITOR_CARDS];
};

/* Whether a fault was told already, until it is gone. */
struct frag_monitor_told {
	bool csv, textfile, output;
};

struct frag_monitor_watch {
	double over_since_s[FRAG_MONITOR_CARDS]; /* < 0: not over */
	bool raised[FRAG_MONITOR_CARDS];
	unsigned alarms_count;
};

/* For FRAG_ARG_OWN: "100ms", "2s", "1m"; "80%[,for=30s][,run=COMMAND]". */
int frag_monitor_set_interval(void *field, const char *text, struct frag_err *err);
int frag_monitor_set_alarm(void *field, const char *text, struct frag_err *err);
/* Raises at the limit, when it has lasted; gives way again five points below. Runs the command. */
void frag_monitor_check(const struct frag_cli *cli, const struct frag_monitor_alarm *a,
			const struct frag_monitor_round *r, struct frag_monitor_watch *w);

/* 0, or FRAG_EOUTPUT. */
int frag_monitor_print(const struct frag_monitor_round *r, bool json, struct frag_err *err);
int frag_monitor_append_csv(const struct frag_monitor_options *o,
			    const struct frag_monitor_round *r, struct frag_err *err);
int frag_monitor_write_textfile(const char *path, const struct frag_monitor_round *r,
				struct frag_err *err);

#endif
