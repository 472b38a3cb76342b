/* SPDX-License-Identifier: Apache-2.0 */
/* Messages, devices, the date and notes about recordings. */
#include "common.h"

#include "answer/answer.h"
#include "base/clean.h"
#include "recording/estimate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

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

void frag_cli_note_text(const void *cli, const char *text)
{
	frag_cli_note(cli, "%s", text);
}

/* Only with --verbose: what was settled, found or taken for granted. */
static void __attribute__((format(printf, 2, 3)))
detail(const struct frag_cli *cli, const char *fmt, ...)
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

int frag_cli_open_nth(const void *ctx, uint32_t dev, struct frag_device **out, struct frag_err *err)
{
	const struct frag_cli *cli = ctx;
	uint32_t cards;

	if (cli->device == FRAG_CLI_DEVICE_SIM)
		return frag_sim_open(&cli->target.card, out, err);
	if (cli->device == FRAG_CLI_DEVICE_NULL)
		return frag_null_open(out, err);
	if (cli->ordinal_given)
		return open_cuda(cli, cli->ordinal, out, err);
	cards = FRAG_MAX((uint32_t)frag_cuda_count(), 1u);
	return open_cuda(cli, (int)(dev % cards), out, err);
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

/* ---- while a recording is opened --------------------------------------------------------- */

/* That it is an estimate, and how much depends on invented values. */
static void note_estimate(const struct frag_cli *cli, const struct frag_trace *trace)
{
	FRAG_AUTO(frag_answer_release) struct frag_answer a = { 0 };
	const struct frag_estimate *e = frag_estimate_read(&a, trace);
	unsigned invented = e ? frag_estimate_places(e, "invented") : 0;

	if (!e)
		return;
	if (e->scaled)
		frag_cli_note(cli, "'%s' is an estimate, scaled from other recordings",
			      trace->name);
	else if (invented)
		frag_cli_note(cli,
			      "'%s' is an estimate, recorded without a GPU; the program got "
			      "invented values at %u %s (cufrag info%s lists them)%s",
			      trace->name, invented, invented == 1 ? "place" : "places",
			      cli->program ? " of what cufrag record writes" : "",
			      frag_estimate_again(&a, e));
	else
		frag_cli_note(cli,
			      "'%s' is an estimate, recorded without a GPU; no invented value "
			      "reached the program%s",
			      trace->name, frag_estimate_again(&a, e));
}

/* What was recorded is what the program does on that card. */
static void take_kernels(struct frag_cli *cli, const struct frag_trace *trace)
{
	const struct frag_gpu *card = cli->gpu_ ? frag_gpu_find(cli->gpu_) : NULL;

	for (uint32_t d = 0; d < trace->devs_count && !*cli->other_kernels; d++) {
		const struct frag_gpu_chip *chip = frag_recorded_chip(trace, &trace->devs[d]);

		if (frag_other_kernels(chip, card))
			snprintf(cli->other_kernels, sizeof(cli->other_kernels),
				 "recorded on %s; %s is of another compute capability, where "
				 "another kernel choice is likely: record for it",
				 chip->shown, card->name);
	}
}

void frag_cli_tell(void *ctx, enum frag_recording_stage stage, const char *path,
		   const struct frag_trace *trace)
{
	struct frag_cli *cli = ctx;
	static struct frag_progress progress; /* of this process, which opens one at a time */

	frag_progress_end(&progress);
	if (stage == FRAG_RECORDING_READING)
		frag_cli_show(&progress, "reading", path);
	else if (stage == FRAG_RECORDING_SETTLING)
		frag_cli_show(&progress, "settling", trace->name);
	else if (stage == FRAG_RECORDING_SETTLED)
		frag_cli_settle_tell(cli, trace);
	if (stage != FRAG_RECORDING_READ)
		return;
	cli->estimated |= trace->estimate != NULL;
	take_kernels(cli, trace);
	note_estimate(cli, trace);
}

int frag_cli_read(const char *path, const char *option, struct frag_trace **out,
		  struct frag_err *err)
{
	FRAG_AUTO(frag_progress_end) struct frag_progress progress;

	frag_cli_show(&progress, "reading", path);
	return frag_trace_read(path, option, out, err);
}

int frag_cli_spec(const struct frag_cli *cli, const struct frag_recording *r, const char *text,
		  struct frag_policy_spec **out, struct frag_err *err)
{
	struct frag_err why;

	FRAG_TRY(frag_recording_spec(r->trace, text, out, err));
	if (*out && !r->trace->settings.present && frag_policy_is_recorded(text))
		frag_cli_note(cli,
			      "'%.100s' does not say how its allocator was set up; using %s as it "
			      "is by default",
			      r->trace->name, frag_policy_spec_text(*out));
	if (*out)
		return 0;
	if (frag_recorded_invalid(r->trace, &why))
		frag_cli_note(cli, "%s; using PyTorch's defaults", why.msg);
	else if (!frag_is_state(r->trace, r->trace->devs))
		frag_cli_note(cli,
			      "'%.100s' does not say which settings it was recorded with; using "
			      "PyTorch's defaults",
			      r->trace->name);
	return frag_policy_spec_parse("pytorch", out, err);
}

/* ---- what was found, in words ---------------------------------------------------- */

void frag_cli_settle_tell(const struct frag_cli *cli, const struct frag_trace *trace)
{
	const struct frag_trace_settings *set = &trace->settings;
	char text[600];

	detail(cli, "'%s': format %s, %u %s, settings %s", trace->name, trace->format,
	       trace->devs_count, trace->devs_count == 1 ? "device" : "devices",
	       !set->present		 ? "not recorded"
	       : set->conf && *set->conf ? set->conf
					 : "the defaults");
	if (set->torch_last)
		detail(cli, "recorded by PyTorch %u.%u to %u.%u, as far as the file tells",
		       set->torch_first / 100, set->torch_first % 100, set->torch_last / 100,
		       set->torch_last % 100);
	for (uint32_t d = 0; d < trace->devs_count; d++) {
		const struct frag_trace_dev *dev = &trace->devs[d];

		if (!dev->has_evidence)
			detail(cli, "device %u: no segments recorded, nothing to check",
			       dev->ordinal);
		else if (dev->settled.checked)
			detail(cli, "device %u: %s", dev->ordinal,
			       frag_settled_text(&dev->settled, text, sizeof(text)));
	}
}

#define HOLD_MOST (256u << 20)
int frag_cli_hold(const char **path, struct frag_err *err)
{
	char buffer[1 << 16];
	size_t all = 0;
	struct stat st;
	ssize_t n = 0;
	int in, copy;

	if (!strcmp(*path, "-"))
		*path = "/dev/stdin";
	if (stat(*path, &st) || !S_ISFIFO(st.st_mode))
		return 0;
	in = open(*path, O_RDONLY | O_CLOEXEC);
	copy = memfd_create("pipe", MFD_CLOEXEC);
	while (all <= HOLD_MOST && (n = read(in, buffer, sizeof(buffer))) > 0 &&
	       write(copy, buffer, (size_t)n) == n)
		all += (size_t)n;
	if (n || dup2(copy, STDIN_FILENO))
		n = FRAG_INPUT(err, "cannot read '%.200s': %s", *path,
			       n > 0 ? "more than 256 MiB in a pipe: write it to a file"
				     : strerror(errno));
	close(in);
	close(copy);
	*path = "/dev/stdin";
	return (int)n;
}
