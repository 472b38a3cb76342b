/* SPDX-License-Identifier: Apache-2.0 */
/* record --torch: PyTorch's own recorder, switched on by scripts/record_torch.py around the program. */
#include "way.h"

#include <string.h>

#include "base/outfile.h"
#include "launch/inside_files.h"

struct options {
	bool torch;
};

static const struct frag_arg rows[] = {
	{ FRAG_ARG_FLAG, "torch", FRAG_ARG_AT(struct options, torch),
	  .help = "use PyTorch's own recorder, which sees requests, not segments; PROGRAM is "
		  "python or a .py file" },
	{ 0 },
};

static bool asked(const void *options)
{
	const struct options *o = options;

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

/* python record_torch.py -o FILE … PROGRAM ARG…; *out: the caller's array of borrowed strings. */
static int make_command(const struct frag_launch *l, char *script, char *output, char *entries,
			char **program, char ***out, struct frag_err *err)
{
	bool python = is_python(program[0]);
	size_t n = 0, count = 0;
	char **list;

	while (program[count])
		count++;
	FRAG_TRY_CALLOC(list, count + 8, "program", err);
	*out = list;
	list[n++] = python ? program[0] : (char *)"python3";
	list[n++] = script;
	list[n++] = (char *)"-o";
	list[n++] = output;
	list[n++] = (char *)"--max-entries";
	list[n++] = entries;
	if (l->frames)
		list[n++] = (char *)"--frames";
	for (size_t i = python; i < count; i++)
		list[n++] = program[i];
	return 0;
}

static int run_in(const struct frag_launch *l, const char *folder, char *script, char **program,
		  struct frag_trace **out, int *status, struct frag_err *err)
{
	FRAG_AUTO_FREE char **command = NULL;
	char output[4128], entries[16];

	snprintf(output, sizeof(output), "%s/run.pickle", folder);
	snprintf(entries, sizeof(entries), "%u", l->max_entries);
	FRAG_TRY(make_command(l, script, output, entries, program, &command, err));
	FRAG_TRY(frag_launch_run(command, prepare, NULL, status, err));
	return frag_launch_gather(l, folder, true, out, err);
}

static int run(const struct frag_launch *l, const void *options, char **program,
	       struct frag_trace **out, int *status, struct frag_err *err)
{
	FRAG_AUTO(frag_inside_files_release) struct frag_inside_files files = { 0 };
	FRAG_AUTO_FREE char *script = NULL;
	char folder[4096];
	size_t len = strlen(program[0]);
	int rc;

	(void)options;
	if (!is_python(program[0]) && (len < 3 || strcmp(program[0] + len - 3, ".py") != 0))
		return frag_fail(err, FRAG_EUSAGE,
				 "--torch needs a Python program: python train.py, or train.py");
	FRAG_TRY(frag_inside_files_open(&files, err));
	*status = 0;
	script = frag_path_join(files.folder, "record_torch.py");
	FRAG_CHECK_ALLOC(script, "path", err);
	FRAG_TRY(frag_launch_folder(folder, sizeof(folder), err));
	rc = run_in(l, folder, script, program, out, status, err);
	if (rc == FRAG_EINPUT && *status)
		frag_err_prefix(err, "the program ended with status %d", *status);
	frag_launch_folder_remove(folder);
	return rc;
}

const struct frag_record_way frag_record_way_torch = {
	.name = "--torch",
	.heading = "By PyTorch's own recorder",
	.rows = rows,
	.options_size = sizeof(struct options),
	.asked = asked,
	.run = run,
};
