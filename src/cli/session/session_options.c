/* SPDX-License-Identifier: Apache-2.0 */
/* A session's beginning and end, and the options that compare and replay share. */
#include "session.h"

#include "session_stream.h"

#include <string.h>

#include <frag/base.h>
#include <frag/opt.h>

/* One word as a shell would take it back. */
static void add_quoted(struct frag_text *out, const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "_-./:=,+@%";

	if (*word && strspn(word, plain) == strlen(word)) {
		frag_text_add(out, word);
		return;
	}
	frag_text_add(out, "'");
	for (; *word; word++)
		frag_text_addn(out, *word == '\'' ? "'\\''" : word, *word == '\'' ? 4 : 1);
	frag_text_add(out, "'");
}

int frag_session_init(struct frag_session *s, int argc, char **argv, struct frag_err *err)
{
	struct frag_text line = { 0 };

	*s = (struct frag_session){ .formats = FRAG_FORMAT_SVG | FRAG_FORMAT_PNG, .repeats = 3 };
	frag_run_options_defaults(&s->run);
	s->run.losses = s->run.latency = true;
	frag_text_add(&line, "cufrag");
	for (int i = 0; i < argc; i++) {
		frag_text_add(&line, " ");
		add_quoted(&line, argv[i]);
	}
	if (frag_text_check(&line, err)) {
		frag_text_release(&line);
		return FRAG_ENOMEM;
	}
	s->command_line = line.s;
	return 0;
}

void frag_session_release(struct frag_session *s)
{
	for (size_t i = 0; i < s->sections_count; i++)
		frag_section_release(&s->sections[i]);
	frag_host_free(s->sections);
	frag_host_free(s->command_line);
	frag_text_release(&s->against);
	frag_text_release(&s->against_calls_text);
	frag_text_release(&s->missing);
	frag_policy_texts_release(&s->policies);
	*s = (struct frag_session){ 0 };
}

static int parse_formats(const char *list, unsigned *out, struct frag_err *err)
{
	static const struct {
		const char *name;
		unsigned bit;
	} known[] = { { "svg", FRAG_FORMAT_SVG },
		      { "png", FRAG_FORMAT_PNG },
		      { "pdf", FRAG_FORMAT_PDF } };

	*out = FRAG_FORMAT_SVG;
	while (*list) {
		size_t n = strcspn(list, ","), i = 0;

		while (i < FRAG_ARRAY_LEN(known) &&
		       (strlen(known[i].name) != n || strncmp(known[i].name, list, n)))
			i++;
		if (i == FRAG_ARRAY_LEN(known))
			return frag_fail(err, FRAG_EUSAGE,
					 "unknown picture format '%.*s'; known are "
					 "svg, png and pdf",
					 (int)FRAG_MIN(n, (size_t)40), list);
		*out |= known[i].bit;
		list += n + (list[n] == ',');
	}
	return 0;
}

static int parse_fill(const char *arg, enum frag_fill *out, struct frag_err *err)
{
	static const char *const words[] = { [FRAG_FILL_NONE] = "none",
					     [FRAG_FILL_TOUCH] = "touch",
					     [FRAG_FILL_VERIFY] = "verify" };

	for (unsigned i = 0; i < FRAG_ARRAY_LEN(words); i++) {
		if (!strcmp(arg, words[i])) {
			*out = (enum frag_fill)i;
			return 0;
		}
	}
	return frag_fail(err, FRAG_EUSAGE,
			 "unknown value '%.40s' of '--fill'; known are none, "
			 "touch and verify",
			 arg);
}

static int parse_repeats(struct frag_session *s, const char *arg, struct frag_err *err)
{
	struct frag_opt o[2] = {
		{ .type = FRAG_OPT_T_UINT, .key = "repeats", .min = 1, .max = 1000 }
	};
	uint64_t n = 0;

	FRAG_TRY(frag_opt_set(o, &n, "repeats", arg, err));
	s->repeats = (unsigned)n;
	return 0;
}

int frag_session_option(struct frag_session *s, int key, const char *arg, struct frag_err *err)
{
	struct frag_opt number[2] = {
		{ .type = FRAG_OPT_T_UINT, .key = "sync-every", .max = UINT64_MAX }
	};

	struct frag_opt micros[2] = {
		{ .type = FRAG_OPT_T_UINT, .key = "stream-work", .max = 1000000 }
	};

	switch (key) {
	case FRAG_KEY_ON_OOM:
		s->run.skip_oom = !strcmp(arg, "skip");
		if (s->run.skip_oom || !strcmp(arg, "stop"))
			return 0;
		return frag_fail(err, FRAG_EUSAGE,
				 "unknown value '%.40s' of '--on-oom'; known are "
				 "stop and skip",
				 arg);
	case FRAG_KEY_FAIL_ON_OOM:
		s->fail_on_oom = true;
		return 0;
	case FRAG_KEY_SYNC_EVERY:
		return frag_opt_set(number, &s->run.sync_every, "sync-every", arg, err);
	case FRAG_KEY_FREE_AT_REQUEST:
		s->run.free_at_request = true;
		return 0;
	case FRAG_KEY_FILL:
		return parse_fill(arg, &s->run.fill, err);
	case FRAG_KEY_PACE:
		s->run.paced = !strcmp(arg, "recorded");
		if (s->run.paced || !strcmp(arg, "max"))
			return 0;
		return frag_fail(err, FRAG_EUSAGE,
				 "unknown value '%.40s' of '--pace'; known are "
				 "recorded and max",
				 arg);
	case FRAG_KEY_STREAM_WORK:
		FRAG_TRY(frag_opt_set(micros, &s->run.work_ns, "stream-work", arg, err));
		s->run.work_ns *= 1000;
		return 0;
	case FRAG_KEY_AGAINST_SIM:
		s->against_sim = arg;
		return 0;
	case FRAG_KEY_AGAINST_CALLS:
		s->against_calls = arg;
		return 0;
	case FRAG_KEY_REPEATS:
		return parse_repeats(s, arg, err);
	case FRAG_KEY_STREAM:
		return frag_session_stream_option(s, arg, err);
	case FRAG_KEY_FORMATS:
		return parse_formats(arg, &s->formats, err);
	case FRAG_KEY_NO_HOST:
		s->omit_host = true;
		return 0;
	case FRAG_KEY_POLICY:
		return frag_policy_texts_add(&s->policies, arg, err);
	case FRAG_KEY_POLICIES:
		return frag_policy_texts_list(&s->policies, arg, err);
	}
	FRAG_BUG("option of a session");
}
