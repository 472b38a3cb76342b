/* SPDX-License-Identifier: Apache-2.0 */
/* cufrag summary, which is also cufrag FILE: three sentences about a recording. */
#include "cli/shared.h"

#include <string.h>

#include <frag/torch.h>

#include "answer/row.h"

#define SUMMARY(F, P, S) \
	F(S, TEXT, name, device ? device->name : worst->about, NULL, \
	  "the recording, or its device that reserved most") \
	F(S, COUNT, devices_count, f->devices_count, NULL, "devices of all recordings") \
	F(S, COUNT, steps_count, device ? device->steps_count : UINT64_MAX, NULL, \
	  "steps of that device; null = not known") \
	F(S, BYTES, peak_reserved_bytes, whole ? device->peak_reserved_bytes : UINT64_MAX, NULL, \
	  "most that it reserved; null = not known, as of a state without a history") \
	F(S, BOOL, peak_simulated, whole && device->simulated, NULL, \
	  "of a replay: the recording does not say its peak, or this is a what-if") \
	F(S, TEXT, torch, torch, NULL, "release of PyTorch that --torch names; null: its own") \
	F(S, BYTES, peak_active_bytes, whole ? device->peak_active_bytes : UINT64_MAX, NULL, \
	  "most that it had in use") \
	F(S, BOOL, healthy, worst->kind == FRAG_FOUND_STEADY && !lost && !unused, NULL, \
	  "nothing is wrong, and at most a tenth of what is reserved is lost, or unused later") \
	F(S, TEXT, verdict, worst->verdict, NULL, "the problem, or steady") \
	F(S, TEXT, text, worst->text, NULL, "the problem, in a sentence") \
	F(S, MAP, numbers, worst->numbers, NULL, "the figures behind it", \
	  .of = &frag_number_shape) \
	F(S, TEXT, line, worst->line, NULL, "the line of the program to blame") \
	F(S, TEXT, next, \
	  device ? frag_answer_print(a, "cufrag %s %s", next_commands[worst->kind], files) \
		 : (worst->next ?: "cufrag record --torch -o run.cft -- python train.py"), \
	  NULL, "the command that says more") \
	F(S, OBJECT, ended_out_of_memory, f->ended_out_of_memory, NULL, \
	  "the first recording that did, so its need is unknown; null: none", \
	  .of = &frag_ending_shape)
#define OTHERS_MOST 8u
FRAG_VALUED_ROW(summary, "summary", SUMMARY, "a recording in three sentences");

/* The command that goes on from a finding; the files follow. */
static const char *const next_commands[FRAG_FOUND_KINDS] = {
	[FRAG_FOUND_OOM_FRAGMENTATION] = "explain",
	[FRAG_FOUND_OOM_NEEDED] = "explain",
	[FRAG_FOUND_OOM_OTHERS] = "explain",
	[FRAG_FOUND_OOM_UNCLEAR] = "explain",
	[FRAG_FOUND_LEAK] = "diagnose",
	[FRAG_FOUND_GROWTH] = "diagnose",
	[FRAG_FOUND_SPIKE] = "explain --at peak",
	[FRAG_FOUND_FRAGMENTATION] = "tune",
	[FRAG_FOUND_CACHE] = "tune",
	[FRAG_FOUND_RELEASED] = "diagnose",
	[FRAG_FOUND_IMBALANCE] = "info",
	[FRAG_FOUND_UNDECIDED] = "explain",
	[FRAG_FOUND_STEADY] = "fit",
};

/* The device that reserved most; NULL: the files are logs. */
static const struct frag_checked_device *largest(const struct frag_findings *f)
{
	const struct frag_checked_device *most = NULL;

	for (size_t i = 0; i < f->devices_count; i++)
		if (!most || f->devices[i].peak_reserved_bytes > most->peak_reserved_bytes)
			most = &f->devices[i];
	return most;
}

static void say_size(struct frag_answer *a, const struct summary *s,
		     const struct frag_neighbours *shared)
{
	const char *steps = s->steps_count && s->steps_count != UINT64_MAX
				    ? frag_answer_print(a, " over %llu steps",
							(unsigned long long)s->steps_count)
				    : "";
	const char *simulated =
		!s->peak_simulated ? ""
		: s->torch	   ? frag_answer_print(a, " (simulated, as PyTorch %s)", s->torch)
				   : " (simulated)";

	if (shared->count)
		frag_answer_say(a,
				"%u processes held %s of one card together at most, with a context "
				"each.",
				shared->count, FRAG_BYTES(shared->bytes));
	if (s->devices_count > 1)
		frag_answer_say(a,
				"Of %llu %s, %s reserved most: %s at its peak, of which %s "
				"were in use%s%s.",
				(unsigned long long)s->devices_count,
				shared->count ? "processes" : "devices", s->name,
				FRAG_BYTES(s->peak_reserved_bytes),
				FRAG_BYTES(s->peak_active_bytes), steps, simulated);
	else
		frag_answer_say(a, "%s reserved %s at its peak and had at most %s in use%s%s.",
				s->name, FRAG_BYTES(s->peak_reserved_bytes),
				FRAG_BYTES(s->peak_active_bytes), steps, simulated);
}

/* The other cards of a log or state. */
static void say_others(struct frag_answer *a, const struct frag_findings *f)
{
	const size_t n = FRAG_MIN(f->count, (size_t)OTHERS_MOST);

	for (size_t i = 1; i < n; i++)
		frag_answer_say(a, "%s.", f->list[i].text);
	if (f->count > n)
		frag_answer_say(a, "%zu more: cufrag diagnose.", f->count - n);
}

/* f: answered (frag_findings_answer). files: of the recordings, as a shell takes them. */
static int answer(const struct frag_findings *f, const char *files, const char *torch,
		  struct frag_answer *a, struct frag_err *err)
{
	const struct frag_finding *worst = &f->list[0];
	const struct frag_checked_device *device = largest(f);
	const bool state = device && worst->kind == FRAG_FOUND_UNDECIDED;
	const bool whole = device && !state;
	bool lost, unused = frag_finding_value(worst, "unused_bytes") > 0;
	struct summary *s = frag_answer_new(a, 1, sizeof(*s));

	for (size_t i = 1; i < f->count && worst->kind == FRAG_FOUND_STEADY; i++)
		worst = frag_finding_value(&f->list[i], "lost_ratio") ? &f->list[i] : worst;
	lost = frag_finding_value(worst, "lost_ratio") > 0;
	FRAG_CHECK_ALLOC(s, "summary", err);
	*s = FRAG_ROW_VALUES(summary, SUMMARY);
	if (lost)
		s->next = frag_answer_print(a, "cufrag tune %s", files);
	frag_answer_data(a, &summary_shape, s);
	a->title = frag_answer_print(a, "Summary of %s", s->name);
	a->question = "Is it healthy, what is wrong, and what comes next?";
	a->estimated = f->texts->estimated;
	if (whole)
		say_size(a, s, &device->shared);
	else
		say_others(a, f);
	if (state)
		frag_answer_conclude(a, "%s", s->text);
	else if (s->healthy && device) /* a log tells less */
		frag_answer_conclude(a, "healthy: nothing is wrong with its memory%s%s",
				     device->truncated ? " in what is left of its history, whose "
							 "oldest entries were lost"
						       : "",
				     strchr(s->text, ';') ?: "");
	else
		frag_answer_conclude(
			a, strstr(s->text, s->line ? s->line : "") ? "%s: %s" : "%s: %s, at %s",
			s->verdict, s->text, s->line);
	frag_answer_last(a)->as_is = false; /* a word of ours */
	frag_ending_warn(a, s->ended_out_of_memory);
	frag_answer_paste(a, "next", s->next);
	return a->failed ? frag_fail_nomem(err, "summary") : 0;
}

static int run(struct frag_cli *cli, void *values, struct frag_err *err)
{
	FRAG_AUTO(frag_answer_release) struct frag_answer texts = { 0 }, a = { 0 };
	FRAG_AUTO(frag_findings_release) struct frag_findings f = { .texts = &texts };
	FRAG_AUTO(frag_text_release) struct frag_text files = { 0 };
	char torch[16];

	(void)values;
	FRAG_TRY(frag_cli_diagnose(cli, NULL, &f, err));
	for (size_t i = 0; i < cli->operands_count; i++) {
		frag_text_add(&files, i ? " " : "");
		frag_text_add_shell(&files, cli->operands[i]);
	}
	FRAG_TRY(frag_text_check(&files, err));
	frag_torch_format(cli->target.torch, torch, sizeof(torch));
	FRAG_TRY(answer(&f, frag_text_str(&files), cli->target.torch ? torch : NULL, &a, err));
	return frag_cli_show_answer(cli, &a, err);
}

const struct frag_cmd frag_cmd_summary = {
	.name = "summary",
	.summary = "three sentences: how much it took, what is wrong, what to type next",
	.group = FRAG_GROUP_UNDERSTAND,
	.operands = "TRACE|LOG...",
	.operands_max = 4096,
	.about = "Tells in three sentences how much memory a recording took, what is wrong and at "
		 "which line, and which command shows more. 'cufrag FILE' is short for it.",
	.examples = "  cufrag summary traces/leak.frames.cft\n"
		    "  cufrag summary rank*.pickle --json -\n",
	.shared = FRAG_CLI_CARD | FRAG_CLI_TORCH | FRAG_CLI_PAGE,
	.answer = &summary_shape,
	.run = run,
};
