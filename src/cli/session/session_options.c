/* SPDX-License-Identifier: Apache-2.0 */
/* A session's beginning and end, and the options that compare and replay share. */
#include "session.h"

#include "session_stream.h"

#include <frag/base.h>

void frag_session_init(void *session)
{
	struct frag_session *s = session;

	frag_run_options_defaults(&s->run);
	s->run.losses = s->run.latency = true;
}

int frag_session_begin(struct frag_session *s, const struct frag_cli *cli, struct frag_err *err)
{
	const char *conf = s->target.conf;
	struct frag_text line = { 0 };

	s->cli = cli;
	s->target = cli->target;
	s->target.conf = conf;
	s->formats |= FRAG_FORMAT_SVG | (s->pdf ? FRAG_FORMAT_ONE_PDF : 0);
	frag_text_add(&line, "cufrag");
	for (int i = 0; i < cli->argc; i++) {
		frag_text_add(&line, " ");
		frag_text_add_shell(&line, cli->argv[i]);
	}
	if (frag_text_check(&line, err)) {
		frag_text_release(&line);
		return FRAG_ENOMEM;
	}
	s->command_line = line.s;
	return 0;
}

void frag_session_release(void *session)
{
	struct frag_session *s = session;

	for (size_t i = 0; i < s->sections_count; i++)
		frag_section_release(&s->sections[i]);
	FRAG_FREE(s->sections, s->date_text);
	frag_catalog_release(&s->catalog);
	frag_host_free(s->command_line);
	frag_text_release(&s->calls_text);
	frag_text_release(&s->against);
	frag_text_release(&s->against_calls_text);
	frag_text_release(&s->missing);
	frag_policy_texts_release(&s->policies);
	*s = (struct frag_session){ 0 };
}

/* ---- the options --------------------------------------------------------------------- */

#define AT(field) FRAG_ARG_AT(struct frag_session, field)

static const char *const oom_words[] = { "stop", "skip", NULL };
static const char *const fill_words[] = {
	[FRAG_FILL_NONE] = "none", [FRAG_FILL_TOUCH] = "touch", [FRAG_FILL_VERIFY] = "verify", NULL
};
static const char *const pace_words[] = { "max", "recorded", NULL };
static const char *const stream_words[] = { [FRAG_STREAM_AUTO] = "auto",
					    [FRAG_STREAM_ALWAYS] = "always",
					    [FRAG_STREAM_NEVER] = "never",
					    NULL };
static const char *const format_words[] = { "svg", "png", "pdf", NULL }; /* FRAG_FORMAT_… */

const struct frag_arg frag_session_args[] = {
	{ FRAG_ARG_WORD, "on-oom", AT(run.skip_oom), .words = oom_words, .def = "stop",
	  .help = "when a request cannot be served: stop the replay, or skip the request" },
	{ FRAG_ARG_FLAG, "fail-on-oom", AT(fail_on_oom),
	  .help = "exit with 1 if a policy cannot serve a request" },
	{ FRAG_ARG_UINT, "sync-every", AT(run.sync_every), .value = "N", .laboratory = true,
	  .help = "synchronise the device after every N operations (default: 0, never)" },
	{ FRAG_ARG_FLAG, "free-at-request", AT(run.free_at_request),
	  .help = "let blocks be reused when they are freed, not when all streams are done" },
	{ FRAG_ARG_WORD, "fill", AT(run.fill), .words = fill_words, .def = "none",
	  .laboratory = true,
	  .help = "on cuda: touch the first byte of each page, or write a pattern into every byte "
		  "and compare it before the free" },
	{ FRAG_ARG_WORD, "pace", AT(run.paced), .words = pace_words, .def = "max",
	  .help = "every event at its recorded time, or as fast as it goes" },
	{ FRAG_ARG_UINT, "stream-work", AT(run.work_ns), .value = "US", .max = 1000000,
	  .scale = 1000, .def = "0", .laboratory = true,
	  .help = "on cuda: every alloc keeps its stream busy for so many microseconds" },
	{ FRAG_ARG_TEXT, "against-sim", AT(against_sim), .value = "FILE", .file = FRAG_ARG_WRITES,
	  .laboratory = true,
	  .help = "replay on the simulated card, too, and write what differs as CSV" },
	{ FRAG_ARG_TEXT, "against-calls", AT(against_calls), .value = "FILE",
	  .file = FRAG_ARG_WRITES, .laboratory = true,
	  .help = "with --against-sim: write every driver call with its time as CSV" },
	{ FRAG_ARG_UINT, "repeats", AT(repeats), .value = "N", .min = 1, .max = 1000, .def = "3",
	  .laboratory = true, .help = "with --against-sim: replays on the device" },
	{ FRAG_ARG_OWN, "conf", AT(target.conf), .set = frag_cli_set_conf, .value = "SETTINGS",
	  .help = "settings as in PYTORCH_CUDA_ALLOC_CONF that the recordings were made with, "
		  "where "
		  "they do not hold them (PyTorch 2.1 and 2.2)" },
	{ FRAG_ARG_WORD, "stream", AT(stream), .words = stream_words, .bare = "always",
	  .help = "replay a .cft while it is read, with the same memory for any length "
		  "(default: auto, from 8 M events on)" },
	{ FRAG_ARG_SET, "formats", AT(formats), .words = format_words, .value = "LIST",
	  .def = "svg,png", .help = "pictures of --out: svg, png, pdf; svg is always made" },
	{ FRAG_ARG_FLAG, "no-host", AT(omit_host),
	  .help = "leave measured host times out: same input, same bytes" },
	{ 0 },
};
