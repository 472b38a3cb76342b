/* SPDX-License-Identifier: Apache-2.0 */
/* What a recording leaves open; see settle.h. */
#include "settle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <frag/replay.h>

int frag_cli_read(const char *path, const char *option, struct frag_trace **out,
		  struct frag_err *err)
{
	FRAG_AUTO(frag_progress_end) struct frag_progress progress;

	frag_cli_show(&progress, "reading", path);
	return frag_trace_read(path, option, out, err);
}

int frag_cli_read_conf(const char *path, const char *conf, struct frag_trace **out,
		       struct frag_err *err)
{
	char *option = NULL;
	int rc;

	if (!conf)
		return frag_cli_read(path, NULL, out, err);
	if (asprintf(&option, "conf=%s", conf) < 0)
		return frag_fail_nomem(err, "options");
	rc = frag_cli_read(path, option, out, err);
	free(option);
	FRAG_TRY(rc);
	rc = frag_settings_use(*out, conf, err);
	if (rc)
		frag_trace_destroy(*out);
	return rc;
}

void frag_cli_settle_tell(const struct frag_cli *cli, const struct frag_trace *trace)
{
	const struct frag_trace_settings *set = &trace->settings;
	char text[600];

	frag_cli_detail(cli, "'%s': format %s, %u %s, settings %s", trace->name, trace->format,
			trace->devs_count, trace->devs_count == 1 ? "device" : "devices",
			!set->present		  ? "not recorded"
			: set->conf && *set->conf ? set->conf
						  : "the defaults");
	if (set->torch_last)
		frag_cli_detail(cli, "recorded by PyTorch %u.%u to %u.%u, as far as the file tells",
				set->torch_first / 100, set->torch_first % 100,
				set->torch_last / 100, set->torch_last % 100);
	for (uint32_t d = 0; d < trace->devs_count; d++) {
		const struct frag_trace_dev *dev = &trace->devs[d];

		if (!dev->has_evidence)
			frag_cli_detail(cli, "device %u: no segments recorded, nothing to check",
					dev->ordinal);
		else if (dev->settled.checked)
			frag_cli_detail(cli, "device %u: %s", dev->ordinal,
					frag_settled_text(&dev->settled, text, sizeof(text)));
	}
}

uint64_t frag_cli_outside(const struct frag_trace_dev *dev)
{
	uint64_t context = dev->card.context_bytes;
	size_t n;
	const struct frag_gpu *gpus = frag_gpu_list(&n);

	while (!context && n--) {
		const struct frag_gpu_chip *chip = frag_gpu_chip_find(gpus[n].name);

		if (chip && !strcmp(chip->shown, dev->card.name))
			context = gpus[n].context_bytes;
	}
	/* of a card that is not known, nobody can say which part was the context */
	return context && dev->card.beside_bytes > context ? dev->card.beside_bytes - context : 0;
}

void frag_cli_settle_say(const struct frag_trace *trace, FILE *to)
{
	char text[600];

	for (uint32_t d = 0; d < trace->devs_count; d++) {
		const struct frag_settled *s = &trace->devs[d].settled;

		if (s->checked && (!s->identical || s->limit_source != FRAG_LIMIT_NONE))
			fprintf(to, "device %u: %s\n", trace->devs[d].ordinal,
				frag_settled_text(s, text, sizeof(text)));
	}
}

int frag_cli_settle_as(const struct frag_cli *cli, struct frag_trace *trace,
		       const struct frag_sim_config *card, uint64_t limit_bytes, bool given,
		       struct frag_err *err)
{
	struct frag_progress progress;
	int rc;

	frag_cli_show(&progress, "settling", trace->name);
	rc = frag_settle(trace, card, limit_bytes, given, err);
	frag_progress_end(&progress);
	if (!rc)
		frag_cli_settle_tell(cli, trace);
	return rc;
}

/* What was recorded may be impossible: of which recording? */
static int named(const struct frag_trace *trace, int rc, struct frag_err *err)
{
	if (rc == FRAG_EINPUT)
		frag_err_prefix(err, "'%s'", trace->name);
	return rc;
}

/* Card and limit asked for may be a what-if; the card is one only where the recording fits into it. */
int frag_cli_settle(const struct frag_cli *cli, uint64_t limit_bytes, struct frag_trace *trace,
		    struct frag_err *err)
{
	const struct frag_sim_config *card = &cli->card;
	bool fits = true;

	/* --torch is about the replay, but where the file does not tell it is all there is */
	if (cli->torch && !trace->settings.torch_last)
		frag_trace_set_torch(trace, cli->torch, cli->torch);
	for (uint32_t d = 0; d < trace->devs_count; d++)
		fits = fits && frag_recorded_peak(&trace->devs[d]) <=
				       card->total_bytes - card->context_bytes;
	return named(trace,
		     frag_cli_settle_as(cli, trace, fits ? card : NULL, limit_bytes, false, err),
		     err);
}

int frag_cli_settle_recorded(const struct frag_cli *cli, struct frag_trace *trace,
			     struct frag_err *err)
{
	uint64_t limit = frag_cli_limit(cli, cli->card.total_bytes);

	if (cli->torch)
		frag_trace_set_torch(trace, cli->torch, cli->torch);
	return named(trace,
		     frag_cli_settle_as(cli, trace, &cli->card, limit, cli->limit != NULL, err),
		     err);
}
