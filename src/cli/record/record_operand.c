/* SPDX-License-Identifier: Apache-2.0 */
/* A program in place of a trace: recorded into a temporary .cft, which becomes the only operand. */
#include "record.h"

#include <string.h>

#include "base/scratch.h"

static int make_file(struct frag_record_operand *out, struct frag_err *err)
{
	int reason = frag_scratch_folder(NULL, &out->folder);

	if (reason)
		return frag_fail(err, FRAG_EOUTPUT, "cannot create a temporary folder: %s",
				 strerror(reason));
	snprintf(out->path, sizeof(out->path), "%s/trace.cft", out->folder);
	return 0;
}

int frag_record_name_after(struct frag_trace *trace, char **program, struct frag_err *err)
{
	const char *word = program[0], *slash;

	for (char **p = program; *p; p++) {
		size_t n = strlen(*p);

		if (n > 3 && !strcmp(*p + n - 3, ".py")) {
			word = *p;
			break;
		}
	}
	slash = strrchr(word, '/');
	frag_host_free(trace->name);
	trace->name = frag_host_strdup(slash ? slash + 1 : word);
	return trace->name ? 0 : frag_fail_nomem(err, "trace");
}

int frag_record_operand(struct frag_cli *cli, const struct frag_record_options *o,
			struct frag_record_operand *out, struct frag_err *err)
{
	struct frag_trace *trace = NULL;
	int rc, status;

	if (cli->program && cli->operands_count)
		return frag_fail(err, FRAG_EUSAGE, "a trace and a program: give one of them");
	if (!cli->program)
		return cli->operands_count
			       ? 0
			       : frag_fail(err, FRAG_EUSAGE, "no trace and no program to record");
	if (!o->no_gpu)
		return frag_fail(err, FRAG_EUSAGE,
				 "a program is recorded here with --no-gpu; cufrag record has "
				 "other "
				 "ways");
	FRAG_TRY(frag_nogpu_record(cli, o, cli->program, true, &trace, &status, err));
	if (status)
		frag_cli_note(cli,
			      "the program ended with status %d; what it did until then counts",
			      status);
	rc = frag_record_name_after(trace, cli->program, err) ?: make_file(out, err);
	if (!rc) {
		rc = frag_trace_write_cft(trace, out->path, err);
		out->list[0] = out->path;
		out->cli = cli;
		out->before = cli->operands;
		cli->operands = out->list;
		cli->operands_count = 1;
	}
	frag_trace_destroy(trace);
	return rc;
}

void frag_record_operand_release(struct frag_record_operand *o)
{
	frag_scratch_remove(o->folder);
	o->folder = NULL;
	if (o->cli) { /* they belong to who parsed them */
		o->cli->operands = o->before;
		o->cli->operands_count = 0;
	}
	o->cli = NULL;
}
