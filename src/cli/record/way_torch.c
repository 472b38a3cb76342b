/* SPDX-License-Identifier: Apache-2.0 */
/* record --torch: PyTorch's own recorder, switched on by scripts/record_torch.py around the program. */
#include "record.h"

#include <string.h>

static bool asked(const struct frag_record_options *o)
{
	return o->torch;
}

static void prepare(const void *ctx)
{
	(void)ctx;
}

static bool is_python(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	return !strncmp(name, "python", 6);
}

/* python record_torch.py -o FILE … PROGRAM ARG…; the caller's array, its strings are borrowed. */
static char **command(const struct frag_record_options *o, char *script, char *output,
		      char *entries, char **program, struct frag_err *err)
{
	bool python = is_python(program[0]);
	size_t n = 0, count = 0;
	char **list;

	while (program[count])
		count++;
	list = frag_host_calloc(count + 8, sizeof(*list));
	if (!list) {
		frag_fail_nomem(err, "program");
		return NULL;
	}
	list[n++] = python ? program[0] : (char *)"python3";
	list[n++] = script;
	list[n++] = (char *)"-o";
	list[n++] = output;
	list[n++] = (char *)"--max-entries";
	list[n++] = entries;
	if (o->frames)
		list[n++] = (char *)"--frames";
	for (size_t i = python; i < count; i++)
		list[n++] = program[i];
	return list;
}

static int run(const struct frag_cli *cli, const struct frag_record_options *o, char **program,
	       struct frag_trace **out, int *status, struct frag_err *err)
{
	char folder[4096] = "", output[4128], entries[16], *script = NULL, **list = NULL;
	FRAG_AUTO(frag_nogpu_home_release) struct frag_nogpu_home home = { 0 };
	size_t len = strlen(program[0]);
	int rc;

	if (!is_python(program[0]) && (len < 3 || strcmp(program[0] + len - 3, ".py") != 0))
		return frag_fail(err, FRAG_EUSAGE,
				 "--torch runs Python programs: python train.py, or train.py");
	FRAG_TRY(frag_nogpu_home_open(&home, err));
	*status = 0;
	script = frag_path_join(home.home, "record_torch.py");
	rc = script ? frag_record_folder(folder, sizeof(folder), err)
		    : frag_fail_nomem(err, "path");
	snprintf(output, sizeof(output), "%s/run.pickle", folder);
	snprintf(entries, sizeof(entries), "%u", o->max_entries);
	if (!rc) {
		list = command(o, script, output, entries, program, err);
		rc = list ? frag_record_launch(list, prepare, NULL, status, err) : FRAG_ENOMEM;
	}
	if (!rc)
		rc = frag_record_gather(cli, folder, true, out, err);
	if (rc == FRAG_EINPUT && *status)
		frag_err_prefix(err, "the program ended with status %d", *status);
	frag_record_folder_remove(folder);
	FRAG_FREE(list, script);
	return rc;
}

const struct frag_record_way frag_record_way_torch = {
	.name = "--torch",
	.summary = "PyTorch's own recorder",
	.asked = asked,
	.run = run,
};
