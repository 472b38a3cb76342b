/* SPDX-License-Identifier: Apache-2.0 */
/* Traces of any format: the registry of readers, detection by content, release. */
#include <frag/trace.h>

#include <string.h>

#include "base/clean.h"
#include "base/outfile.h"
#include "trace/build/build.h"
#include "trace/cft/cft.h"
#include "whole.h"
#include "source.h"
#include "strings.h"

#define FRAG_ENTRY(name) extern const struct frag_reader_ops frag_reader_##name;
#include "reader_list.inc"
#undef FRAG_ENTRY

static const struct frag_reader_ops *const readers[] = {
#define FRAG_ENTRY(name) &frag_reader_##name,
#include "reader_list.inc"
#undef FRAG_ENTRY
};

const struct frag_reader_ops *const *frag_reader_list(size_t *count)
{
	*count = FRAG_ARRAY_LEN(readers);
	return readers;
}

static size_t skipped = SIZE_MAX; /* of each path; SIZE_MAX: its folders */

void frag_trace_tell_apart(char *const *paths, size_t count)
{
	size_t shared = SIZE_MAX;
	bool alike = false;

	for (size_t i = 1; i < count; i++) {
		alike |= strcmp(paths[i], paths[0]) &&
			 !strcmp(basename(paths[i]), basename(paths[0]));
		shared = FRAG_MIN(shared, frag_path_shared(paths[0], paths[i]));
	}
	skipped = alike ? shared : SIZE_MAX;
}

char *frag_trace_short_name(const char *path)
{
	static const char *const endings[] = { ".gz", ".xz",  ".zst", ".pickle", ".pkl",
					       ".pt", ".cft", ".csv", ".json",	 ".txt" };
	char *name = frag_host_strdup(!strcmp(path, "-")       ? "stdin"
				      : skipped < strlen(path) ? path + skipped
							       : basename(path));
	bool again = name != NULL;

	while (again) {
		again = false;
		for (size_t i = 0; i < FRAG_ARRAY_LEN(endings) && !again; i++) {
			size_t n = frag_stem(name, endings[i]);

			again = n != 0;
			if (again)
				name[n] = 0;
		}
	}
	return name;
}

/* What people have in hand that is no trace: a mark of it, and what to do. */
static const struct {
	size_t at; /* ANYWHERE, else there */
	const char *mark, *what;
} others[] = {
#define ANYWHERE SIZE_MAX
#define SUMMARY "cufrag summary FILE"
	{ 0, "PK\x03\x04",
	  "a model or another archive; unpack a recording that is in it, or record a run" },
	{ 257, "ustar", "an archive; unpack the recordings that are in it" },
	{ 0, "#!", "a program; 'cufrag record -- PROGRAM' records it" },
	{ 0, "GGUF", "a model; record a run of the program that loads it" },
	{ 0, "\x89HDF", "a model; record a run of the program that loads it" },
	{ 8, "{\"", "a model; record a run of the program that loads it" }, /* safetensors */
	{ 1, "ELF", "a program; 'cufrag record -- PROGRAM' records it" },
	{ ANYWHERE, "\"segment_type\"",
	  "PyTorch's snapshot as JSON; it is read as a pickle, which this writes: python -c "
	  "\"import "
	  "json, pickle; pickle.dump(json.load(open('FILE')), open('run.pickle', 'wb'))\"" },
	{ ANYWHERE, "CUDA memory summary, device", "PyTorch's memory summary: " SUMMARY },
	{ 0, "[[", "a memory timeline: " SUMMARY },
	{ ANYWHERE, "ut of memory", "a text with an out-of-memory error: " SUMMARY },
	{ ANYWHERE, "OutOfMemoryError", "a text with an out-of-memory error: " SUMMARY },
	{ ANYWHERE, "KV cache size: ", "the log of an engine: cufrag kvcache --log FILE" },
	{ ANYWHERE, "KV Cache is allocated", "the log of an engine: cufrag kvcache --log FILE" },
	{ ANYWHERE, "memory.used", "a log of memory in use: cufrag diagnose FILE" },
	{ 0, "# gpu",
	  "a log of nvidia-smi: cufrag diagnose FILE (-s m logs memory)" }, /* dmon, pmon */
	{ ANYWHERE, "NVIDIA-SMI", "a log of memory in use: cufrag diagnose FILE" },
	{ ANYWHERE, "Traceback (most recent", "a screen log without a recording; record the run" },
	{ ANYWHERE, "loss", "a screen log without a recording; record the run" },
};

static const char *what_else(const unsigned char *bytes, size_t len)
{
	for (size_t i = 0; i < FRAG_ARRAY_LEN(others); i++) {
		size_t n = strlen(others[i].mark), at = others[i].at;

		if (at == ANYWHERE ? memmem(bytes, len, others[i].mark, n) != NULL
				   : len > at + n && !memcmp(bytes + at, others[i].mark, n))
			return others[i].what;
	}
	return NULL;
}

bool frag_trace_is_text(const struct frag_err *err)
{
	return frag_ends_with(err->msg, SUMMARY);
}

static int choose(struct frag_input *in, const struct frag_reader_ops **best, struct frag_err *err)
{
	const unsigned char *bytes;
	size_t len;
	int best_score = 0;

	FRAG_TRY(frag_input_peek(in, FRAG_INPUT_PEEK_MAX, &bytes, &len, err));
	for (size_t i = 0; i < FRAG_ARRAY_LEN(readers); i++) {
		int score = readers[i]->probe(bytes, len);

		if (score > best_score) {
			best_score = score;
			*best = readers[i];
		}
	}
	if (!best_score) {
		const char *what = what_else(bytes, len);

		if (what)
			return frag_fail(err, FRAG_EFORMAT, "'%s' is no recording, but %s",
					 frag_input_name(in), what);
		return frag_fail(err, FRAG_EFORMAT,
				 "'%s' has an unknown format (cufrag list formats)",
				 frag_input_name(in));
	}
	return 0;
}

static int check_sums(const struct frag_trace *trace, struct frag_err *err)
{
	for (uint32_t d = 0; d < trace->devs_count; d++) {
		struct frag_sums sums = { 0 };

		FRAG_TRY(frag_sums_add(&sums, trace->devs[d].events, trace->devs[d].events_count, 0,
				       err));
	}
	return 0;
}

int frag_trace_read_input(struct frag_input *in, const char *path, const char *options,
			  struct frag_trace **out, struct frag_err *err)
{
	const struct frag_reader_ops *reader = NULL;
	struct frag_trace *trace = NULL;
	int rc;

	FRAG_TRY(choose(in, &reader, err));
	rc = reader->read(in, options, &trace, err);
	if (!rc) {
		rc = check_sums(trace, err);
		if (rc)
			frag_trace_destroy(trace);
	}
	if (rc == FRAG_EINPUT && err && !strstr(err->msg, frag_input_name(in)))
		frag_err_prefix(err, "'%s'", frag_input_name(in));
	FRAG_TRY(rc);
	if (skipped != SIZE_MAX)
		frag_host_free(trace->name);
	if (!trace->name || skipped != SIZE_MAX)
		trace->name = frag_trace_short_name(path);
	if (trace->name)
		frag_clean_text(trace->name, strlen(trace->name));
	if (!trace->format)
		trace->format = frag_host_strdup(reader->name);
	if (!trace->file_bytes)
		trace->file_bytes = frag_input_offset(in);
	if (!trace->name || !trace->format) {
		frag_trace_destroy(trace);
		return frag_fail_nomem(err, "trace");
	}
	*out = trace;
	return 0;
}

int frag_trace_read(const char *path, const char *options, struct frag_trace **out,
		    struct frag_err *err)
{
	struct frag_input *in = NULL;
	int rc;

	FRAG_TRY(frag_input_open(path, &in, err));
	rc = frag_trace_read_input(in, path, options, out, err);
	frag_input_close(in);
	if (!rc && !strcmp((*out)->format, "torch-snapshot")) {
		rc = frag_sidecar_read(path, *out, err);
		if (rc) {
			frag_trace_destroy(*out);
			*out = NULL;
		}
	}
	return rc;
}

void frag_trace_destroy(struct frag_trace *trace)
{
	if (!trace)
		return;
	for (uint32_t i = 0; i < trace->devs_count; i++)
		frag_trace_dev_release(&trace->devs[i]);
	frag_host_free(trace->devs);
	frag_stacks_release(&trace->stacks);
	frag_strings_destroy(trace->strings);
	FRAG_FREE(trace->settings.conf, trace->name, trace->format, trace->estimate, trace);
}

const char *frag_trace_string(const struct frag_trace *trace, uint32_t i)
{
	return trace->strings ? frag_strings_get(trace->strings, i) : "";
}
