/* SPDX-License-Identifier: Apache-2.0 */
/* cufrag monitor: the memory of this machine's cards, live. */
#include "common.h"
#include "monitor/monitor.h"

static const struct frag_arg options[] = {
	{ FRAG_ARG_OWN, "interval", .set = frag_monitor_set_interval, .value = "TIME", .def = "1s",
	  .help = "sampling interval, such as 100ms or 2s" },
	{ FRAG_ARG_UINT, "count", FRAG_ARG_AT(struct frag_monitor_options, count), .value = "N",
	  .min = 1, .max = 1000000000, .rare = true,
	  .help = "end after N samples (default: at Ctrl-C)" },
	{ FRAG_ARG_FLAG, "json", FRAG_ARG_AT(struct frag_monitor_options, json),
	  .help = "JSON lines instead of text" },
	{ FRAG_ARG_FLAG, "plain", FRAG_ARG_AT(struct frag_monitor_options, plain),
	  .help = "lines of text also on a terminal, instead of the full screen" },
	{ FRAG_ARG_TEXT, "csv", FRAG_ARG_AT(struct frag_monitor_options, csv), .value = "FILE",
	  .file = FRAG_ARG_WRITES, .help = "also append a line per card to this file" },
	{ FRAG_ARG_BYTES, "rotate", FRAG_ARG_AT(struct frag_monitor_options, rotate_bytes),
	  .value = "SIZE", .min = 1, .max = UINT64_MAX >> 1, .def = "64M", .rare = true,
	  .help = "at this size FILE becomes FILE.1, and a new one begins" },
	{ FRAG_ARG_TEXT, "textfile", FRAG_ARG_AT(struct frag_monitor_options, textfile),
	  .value = "FILE", .file = FRAG_ARG_WRITES, .rare = true,
	  .help = "keep the latest sample there for the node_exporter of Prometheus" },
	{ FRAG_ARG_TEXT, "listen", FRAG_ARG_AT(struct frag_monitor_options, listen),
	  .value = "ADDRESS:PORT",
	  .help = "serve the latest sample to Prometheus at /metrics; a port alone is reachable "
		  "from this machine only" },
	{ FRAG_ARG_TEXT, "web", FRAG_ARG_AT(struct frag_monitor_options, web), .value = "PORT",
	  .rare = true,
	  .help = "serve a page with live curves to browsers of this machine, at the address that "
		  "is printed; 0 chooses a port" },
	{ FRAG_ARG_OWN, "alarm", .set = frag_monitor_set_alarm, .value = "PERCENT%",
	  .help = "report when a card uses this much of its memory, as "
		  "80%[,for=30s][,run=COMMAND], and when it is 5 points below again; the exit "
		  "status is then 1" },
	{ 0 },
};

static int run(struct frag_cli *cli, void *values, struct frag_err *err)
{
	bool alarmed;

	FRAG_TRY(frag_monitor_run(values, frag_cli_note_text, cli, &alarmed, err));
	return alarmed ? FRAG_EXIT_CONDITION : FRAG_EXIT_DONE;
}

const struct frag_cmd frag_cmd_monitor = {
	.name = "monitor",
	.summary = "watch the memory of this machine's cards, with logs, metrics and an alarm",
	.group = FRAG_GROUP_RECORD,
	.rank = 4,
	.about = "Once a second, reports for every card how much memory is in use, how busy "
		 "it is and which processes hold how much: figures of the driver (NVML) and "
		 "of recorded processes themselves. On a terminal it fills the screen: h "
		 "shows its keys, q ends it. A lost card, a full disk or a closed pipe is "
		 "reported once, and the watch goes on.",
	.examples = "  cufrag monitor\n"
		    "  cufrag monitor --interval 100ms --csv run.csv\n"
		    "  cufrag monitor --alarm '90%,for=30s,run=notify-send \"GPU is full\"'\n"
		    "  cufrag monitor --listen 9400 > /dev/null\n"
		    "  cufrag monitor --web 0\n"
		    "  cufrag monitor --textfile /var/lib/node_exporter/cufrag.prom > /dev/null\n",
	FRAG_CMD_OPTIONS(struct frag_monitor_options, options),
	.run = run,
};
