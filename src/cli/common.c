/* SPDX-License-Identifier: Apache-2.0 */
/* Messages, devices and the date of the commands. */
#include "common.h"

#include "base/clean.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int frag_cli_fail(const struct frag_cli *cli, const struct frag_err *err)
{
	const char *hint =
		err->code == FRAG_EUSAGE && !strstr(err->msg, "(cufrag ") ? cli->cmd->name : NULL;
	char msg[sizeof(err->msg)];

	/* a failure without a reason is a mistake of ours, never a success */
	if (!frag_code_exit(err->code) || !*err->msg) {
		fprintf(stderr,
			"cufrag %s: internal error: it failed and gave no reason (code %d)\n",
			cli->cmd->name, err->code);
		return FRAG_EXIT_DEVICE;
	}
	snprintf(msg, sizeof(msg), "%s", err->msg);
	fprintf(stderr, "cufrag %s: %s", cli->cmd->name, frag_clean_text(msg, strlen(msg)));
	if (hint)
		fprintf(stderr, " (cufrag %s --help)", hint);
	fputc('\n', stderr);
	return frag_code_exit(err->code);
}

void frag_cli_show(struct frag_progress *p, const char *what, const char *name)
{
	char label[160];

	snprintf(label, sizeof(label), "%s %.120s", what, name ? name : "");
	frag_progress_show(p, label);
}

static void __attribute__((format(printf, 2, 0)))
say(const struct frag_cli *cli, const char *fmt, va_list ap)
{
	char text[2048];

	vsnprintf(text, sizeof(text), fmt, ap);
	frag_progress_wipe();
	fprintf(stderr, "cufrag %s: %s\n", cli->cmd->name, frag_clean_text(text, strlen(text)));
}

void frag_cli_note(const struct frag_cli *cli, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (!cli->quiet)
		say(cli, fmt, ap);
	va_end(ap);
}

void frag_cli_detail(const struct frag_cli *cli, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (cli->verbose && !cli->quiet)
		say(cli, fmt, ap);
	va_end(ap);
}

static int open_cuda(const struct frag_cli *cli, int ordinal, struct frag_device **out,
		     struct frag_err *err)
{
	struct frag_cuda_config cfg = { .ordinal = ordinal,
					.managed_max_bytes = cli->managed_max_bytes };

	if (cli->capacity_bytes) {
		cfg.total_bytes = cli->target.card.total_bytes;
		cfg.context_bytes = cli->target.card.context_bytes;
	}
	return frag_cuda_open_config(&cfg, out, err);
}

int frag_cli_open_nth(const struct frag_cli *cli, uint32_t dev, struct frag_device **out,
		      struct frag_err *err)
{
	uint32_t cards = 1;

	if (cli->device == FRAG_CLI_DEVICE_CUDA && !cli->ordinal_given)
		cards = FRAG_MAX((uint32_t)frag_cuda_count(), 1u);
	if (cards > 1)
		return open_cuda(cli, (int)(dev % cards), out, err);
	return frag_cli_open_device(cli, out, err);
}

void frag_cli_note_cards(const struct frag_cli *cli, uint32_t devices)
{
	uint32_t cards;

	if (cli->device != FRAG_CLI_DEVICE_CUDA || cli->ordinal_given)
		return;
	cards = (uint32_t)frag_cuda_count();
	if (cards && cards < devices)
		frag_cli_note(cli,
			      "the trace has %u devices and there %s %u CUDA card%s: devices are "
			      "replayed one after the other, and share cards",
			      devices, cards == 1 ? "is" : "are", cards, cards == 1 ? "" : "s");
}

int frag_cli_open_device(const struct frag_cli *cli, struct frag_device **out, struct frag_err *err)
{
	switch (cli->device) {
	case FRAG_CLI_DEVICE_SIM:
		return frag_sim_open(&cli->target.card, out, err);
	case FRAG_CLI_DEVICE_CUDA:
		return open_cuda(cli, cli->ordinal, out, err);
	case FRAG_CLI_DEVICE_NULL:
		return frag_null_open(out, err);
	}
	FRAG_BUG("device kind");
}

char *frag_cli_day(bool clock)
{
	const char *epoch = getenv("SOURCE_DATE_EPOCH");
	char day[40], *end;
	long long seconds = epoch && *epoch ? strtoll(epoch, &end, 10) : -1;
	time_t when = (time_t)seconds;
	struct tm tm;

	if (seconds < 0 || *end) {
		if (!clock)
			return NULL;
		when = time(NULL);
	}
	if (!gmtime_r(&when, &tm) || !strftime(day, sizeof(day), "%Y-%m-%d", &tm))
		return NULL;
	return frag_host_strdup(day);
}
