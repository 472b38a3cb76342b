/* SPDX-License-Identifier: Apache-2.0 */
/* cufrag info: what is in a recording, from one pass over it with bounded memory. */
#include "cli/common.h"
#include "explain/info/info.h"

static int scan(struct frag_source *src, struct frag_info *infos, struct frag_err *err)
{
	FRAG_AUTO(frag_progress_end) struct frag_progress progress;
	struct frag_batch batch;
	int rc;

	frag_cli_show(&progress, "reading", frag_source_head(src)->name);
	while ((rc = frag_source_next(src, &batch, err)) == 1)
		FRAG_TRY(frag_info_add(&infos[batch.dev], batch.events, batch.count, err));
	return rc;
}

static int add(const struct frag_cli *cli, const char *path, struct frag_infos *all,
	       struct frag_err *err)
{
	FRAG_AUTO(frag_recording_release) struct frag_recording r = { 0 };
	FRAG_AUTO_FREE struct frag_info *infos = NULL;
	struct frag_target quiet = cli->target;
	int rc;

	quiet.tell = NULL; /* that it is an estimate is among what is shown */
	FRAG_TRY(frag_recording_open(&r, path, &quiet, FRAG_OPEN_SOURCE, err));
	FRAG_TRY_CALLOC(infos, r.trace->devs_count, "statistics of the trace", err);
	for (uint32_t d = 0; d < r.trace->devs_count; d++)
		frag_info_init(&infos[d], &r.trace->devs[d]);
	rc = scan(r.source, infos, err) ?: frag_recording_settle(&r, &cli->target, 0, err)
					?: frag_infos_add(all, &r, infos, err);
	for (uint32_t d = 0; d < r.trace->devs_count; d++)
		frag_info_release(&infos[d]);
	return rc;
}

static int run(struct frag_cli *cli, void *options, struct frag_err *err)
{
	FRAG_AUTO(frag_answer_release) struct frag_answer a = { 0 };
	FRAG_AUTO(frag_infos_release) struct frag_infos all = { .a = &a };

	(void)options;
	for (size_t i = 0; i < cli->operands_count; i++)
		FRAG_TRY(add(cli, cli->operands[i], &all, err));
	FRAG_TRY(frag_infos_answer(&all, err));
	return frag_cli_show_answer(cli, &a, err);
}

const struct frag_cmd frag_cmd_info = {
	.name = "info",
	.summary = "what is in a trace: events, sizes, lifetimes, settings, limits",
	.group = FRAG_GROUP_UNDERSTAND,
	.rank = 3,
	.operands = "TRACE...",
	.about = "Reads a recording once and says what it holds. Peak live is the largest sum of "
		 "live requests, each rounded up to 512 B: no allocator can reserve less. A "
		 "lifetime ends when the program lets go of the block; the percentiles are at most "
		 "3.2 % too high. With several recordings, such as the ranks of a job, it prints "
		 "one line per device, and the spread.",
	.examples = "  cufrag info traces/gnn.default.cft\n"
		    "  cufrag info rank*.pickle\n"
		    "  xz -dc snapshot.pickle.xz | cufrag info - --json -\n",
	.answer = &frag_infos_shape,
	.shared = FRAG_CLI_PAGE,
	.texts = true,
	.run = run,
};
