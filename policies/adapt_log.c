/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adaptor: a log of every alloc and free in the format of RMM's
 * logging_resource_adaptor (rapidsai/rmm
 * cpp/src/mr/detail/logging_resource_adaptor_impl.cpp, 2026), which RMM's replay
 * benchmark reads:
 *
 *	Thread,Time,Action,Pointer,Size,Stream
 *	1,00:00:12.000345,allocate,0x7f0000000000,1024,0
 *	1,00:00:12.000400,allocate failure,(nil),99999999,0
 *	1,00:00:12.000512,free,0x7f0000000000,1024,0
 *
 * Time is the recorded time since the trace began, Size what was requested, Stream
 * the index of the stream. Without a file the events are only counted.
 *
 * The file is complete or absent (base/outfile.h). A failed write is the error of the call. Devices
 * but the first have a file of their own, with their number before the ending: run.csv, run.1.csv.
 */
#include <frag/policy.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <adaptor.h>
#include "base/outfile.h"

struct params {
	char file[FRAG_OPT_STRING_MAX];
};

static const struct frag_opt opts[] = {
	FRAG_OPT_STRING("file", struct params, file, "",
			"CSV file to write; devices after the first add their number to its name; "
			"without it events are only counted"),
	FRAG_OPT_END,
};

struct log {
	struct frag_adaptor a;	 /* first: see adaptor.h */
	struct frag_outfile out; /* out.to NULL: nothing is written */
	bool failed;
	int64_t allocs_count, frees_count, failures_count;
};

/* ---- the file ------------------------------------------------------------------------ */

static char *path_of(const char *file, uint32_t ordinal)
{
	const char *slash = strrchr(file, '/'), *dot = strrchr(slash ? slash + 1 : file, '.');
	size_t stem =
		dot && dot != (slash ? slash + 1 : file) ? (size_t)(dot - file) : strlen(file);
	struct stat st;
	char *path;

	if (!*file || !ordinal || (!stat(file, &st) && !S_ISREG(st.st_mode)))
		return frag_host_strdup(file);
	path = frag_host_alloc(strlen(file) + 16);
	if (path)
		snprintf(path, strlen(file) + 16, "%.*s.%" PRIu32 "%s", (int)stem, file, ordinal,
			 file + stem);
	return path;
}

static int write_line(struct log *l, const char *action, frag_addr_t addr, uint64_t bytes,
		      uint32_t stream, struct frag_err *err)
{
	uint64_t us = l->a.env.dev->now_ns / 1000, s = us / 1000000;
	char pointer[24] = "(nil)";

	if (!l->out.to)
		return 0;
	if (addr)
		snprintf(pointer, sizeof(pointer), "0x%" PRIx64, addr);
	if (fprintf(l->out.to,
		    "1,%02" PRIu64 ":%02" PRIu64 ":%02" PRIu64 ".%06" PRIu64 ",%s,%s,%" PRIu64
		    ",%" PRIu32 "\n",
		    s / 3600, s / 60 % 60, s % 60, us % 1000000, action, pointer, bytes,
		    stream) >= 0)
		return 0;
	l->failed = true;
	return FRAG_OUTPUT(err, "cannot write '%s': %s", l->out.path, strerror(errno));
}

/* ---- the policy ----------------------------------------------------------------------- */

static int log_alloc(void *self, const struct frag_request *req, struct frag_block *out,
		     struct frag_err *err)
{
	struct log *l = self;
	int rc = frag_adaptor_alloc(l, req, out, err);

	if (rc) {
		l->failures_count++;
		/* an error of the inner policy comes first */
		if (write_line(l, "allocate failure", 0, req->bytes, req->stream,
			       rc < 0 ? NULL : err) &&
		    rc > 0)
			return FRAG_EOUTPUT;
		return rc;
	}
	l->allocs_count++;
	rc = write_line(l, "allocate", out->addr, req->bytes, req->stream, err);
	if (rc) {
		out->stream = req->stream;
		out->requested = req->bytes;
		frag_adaptor_free(l, out, NULL);
	}
	return rc;
}

static int log_free(void *self, const struct frag_block *block, struct frag_err *err)
{
	struct log *l = self;
	int written, rc;

	l->frees_count++;
	written = write_line(l, "free", block->addr, block->requested, block->stream, err);
	rc = frag_adaptor_free(l, block, err);
	return rc ? rc : written;
}

static void log_counters(void *self, frag_counter_fn fn, void *ctx)
{
	struct log *l = self;

	frag_adaptor_counters(l, fn, ctx);
	fn(ctx, "log.allocs", l->allocs_count);
	fn(ctx, "log.frees", l->frees_count);
	fn(ctx, "log.failures", l->failures_count);
}

static void destroy(void *self)
{
	struct log *l = self;

	if (l->out.to && !l->failed)
		frag_outfile_commit(&l->out, NULL);
	else
		frag_outfile_abort(&l->out);
	frag_adaptor_destroy(l);
}

static int create(const struct frag_policy_env *env, const void *params, void **self,
		  struct frag_err *err)
{
	const struct params *p = params;
	FRAG_AUTO_FREE char *path = path_of(p->file, env->ordinal);
	struct log *l;
	int rc = 0;

	FRAG_CHECK_ALLOC(path, "log", err);
	FRAG_TRY(frag_adaptor_create(env, env, sizeof(*l), "log", self, err));
	l = *self;
	if (*path)
		rc = frag_outfile_open(&l->out, path, err);
	if (l->out.to)
		fputs("Thread,Time,Action,Pointer,Size,Stream\n", l->out.to);
	if (rc)
		destroy(l);
	return rc;
}

const struct frag_policy_ops frag_policy_adapt_log = {
	.abi = FRAG_POLICY_ABI,
	.name = "log",
	.summary = "adaptor: writes every alloc and free into a csv file in RMM's format",
	.source = "rapidsai/rmm cpp/src/mr/detail/logging_resource_adaptor_impl.cpp, 2026",
	.checked = "RMM 26.08 (2026-07-02), read",
	FRAG_ADAPTOR_OPS,
	FRAG_POLICY_PARAMS(struct params),
	.create = create,
	.destroy = destroy,
	.alloc = log_alloc,
	.free = log_free,
	.trim = frag_adaptor_trim,
	.synced = frag_adaptor_synced,
	.counters = log_counters,
};
