/* SPDX-License-Identifier: Apache-2.0 */
/* Which traces to sweep; see sweep.h. */
#include "sweep.h"

#include <errno.h>
#include <fts.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <xxhash.h>

#include <frag/base.h>

#include "lib/grow.h"

static int add_file(struct frag_sweep_files *f, const char *path, const struct stat *st, bool found,
		    struct frag_err *err)
{
	char *copy;

	FRAG_TRY(FRAG_GROW(f->list, f->count, f->cap, "list of traces", err));
	copy = frag_host_strdup(path);
	FRAG_CHECK_ALLOC(copy, "list of traces", err);
	f->list[f->count++] = (struct frag_sweep_file){ copy, (uint64_t)st->st_size, st->st_dev,
							st->st_ino, found };
	return 0;
}

/* Everything below a folder; what it cannot look into is an error, not a gap. */
static int add_folder(struct frag_sweep_files *f, const char *path, struct frag_err *err)
{
	char *const roots[] = { (char *)path, NULL };
	FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, NULL);
	struct stat st;
	FTSENT *e;
	int rc = 0;

	if (!walk)
		return FRAG_INPUT(err, "cannot open '%.200s': %s", path, strerror(errno));
	while (!rc && (errno = 0, e = fts_read(walk))) {
		if (e->fts_info == FTS_D && e->fts_level > 0 && e->fts_name[0] == '.')
			fts_set(walk, e, FTS_SKIP);
		else if (e->fts_info == FTS_F && e->fts_name[0] != '.')
			rc = add_file(f, e->fts_path, e->fts_statp, true, err);
		else if (e->fts_info == FTS_SL && e->fts_name[0] != '.' &&
			 !stat(e->fts_path, &st) && S_ISREG(st.st_mode))
			rc = add_file(f, e->fts_path, &st, true, err);
		else if (e->fts_info == FTS_DNR || e->fts_info == FTS_ERR || e->fts_info == FTS_NS)
			rc = FRAG_INPUT(err, "cannot read '%.200s': %s", e->fts_path,
					strerror(e->fts_errno));
	}
	if (!rc && errno)
		rc = FRAG_INPUT(err, "cannot read '%.200s': %s", path, strerror(errno));
	fts_close(walk);
	return rc;
}

static int add_path(struct frag_sweep_files *f, const char *path, struct frag_err *err)
{
	struct stat st;

	if (stat(path, &st))
		return FRAG_INPUT(err, "cannot open '%.200s': %s", path, strerror(errno));
	if (S_ISDIR(st.st_mode))
		return add_folder(f, path, err);
	if (!S_ISREG(st.st_mode))
		return FRAG_INPUT(err, "'%.200s' is neither a file nor a folder", path);
	return add_file(f, path, &st, false, err);
}

int frag_sweep_files_add(struct frag_sweep_files *f, const char *operand, struct frag_err *err)
{
	struct stat st;
	glob_t found;
	int rc = 0;

	/* a name with a star in it is a name first */
	if (!strpbrk(operand, "*?[") || !lstat(operand, &st))
		return add_path(f, operand, err);
	switch (glob(operand, 0, NULL, &found)) {
	case 0:
		break;
	case GLOB_NOMATCH:
		return FRAG_INPUT(err, "nothing matches '%.200s'", operand);
	default:
		return FRAG_INPUT(err, "cannot look for '%.200s'", operand);
	}
	for (size_t i = 0; !rc && i < found.gl_pathc; i++)
		rc = add_path(f, found.gl_pathv[i], err);
	globfree(&found);
	return rc;
}

int frag_sweep_files_add_list(struct frag_sweep_files *f, const char *path, struct frag_err *err)
{
	FRAG_AUTO_FILE FILE *file = strcmp(path, "-") ? fopen(path, "r") : NULL;
	FILE *in = strcmp(path, "-") ? file : stdin;
	FRAG_AUTO_FREE char *line = NULL;
	size_t cap = 0;
	ssize_t len;

	if (!in)
		return FRAG_INPUT(err, "cannot open '%.200s': %s", path, strerror(errno));
	while ((len = getline(&line, &cap, in)) >= 0) {
		while (len && (line[len - 1] == '\n' || line[len - 1] == '\r'))
			line[--len] = '\0';
		if (strlen(line) != (size_t)len)
			return FRAG_INPUT(err, "'%.200s' is not a list of paths", path);
		if (len && line[0] != '#')
			FRAG_TRY(frag_sweep_files_add(f, line, err));
	}
	return ferror(in) ? FRAG_INPUT(err, "cannot read '%.200s'", path) : 0;
}

FRAG_COMPARE(by_size, struct frag_sweep_file, FRAG_ORDER(y->bytes, x->bytes),
	     strcmp(x->path, y->path), (int)x->found - (int)y->found)

/* Keeps file k of those looked at, behind the *kept first, or drops it. */
static void keep_if(struct frag_sweep_files *f, size_t k, bool is_kept, size_t *kept)
{
	if (is_kept)
		f->list[(*kept)++] = f->list[k];
	else
		frag_host_free(f->list[k].path);
}

void frag_sweep_files_sort(struct frag_sweep_files *f)
{
	size_t kept = 0;

	if (f->count)
		qsort(f->list, f->count, sizeof(*f->list), by_size);
	for (size_t i = 0; i < f->count; i++)
		keep_if(f, i, !kept || strcmp(f->list[i].path, f->list[kept - 1].path) != 0, &kept);
	f->count = kept;
}

void frag_sweep_files_shard(struct frag_sweep_files *f, unsigned i, unsigned n)
{
	size_t kept = 0;

	for (size_t k = 0; k < f->count; k++)
		keep_if(f, k, k % n == i, &kept);
	f->count = kept;
}

void frag_sweep_files_tell(const struct frag_sweep_files *f, char *text)
{
	uint64_t hash = 0;

	for (size_t i = 0; i < f->count; i++)
		hash = XXH3_64bits_withSeed(f->list[i].path, strlen(f->list[i].path) + 1, hash);
	snprintf(text, 64, "%zu traces, %016llx", f->count, (unsigned long long)hash);
}

/* Results of a sweep, this one's or another's: a store, one that grows, or the CSV of one. */
static bool holds_results(const char *path)
{
	FRAG_AUTO(frag_store_close_at) struct frag_store *store = NULL;
	const char *part = strstr(path, ".part");
	FRAG_AUTO_FILE FILE *f = fopen(path, "re");
	char head[8] = "";
	bool csv = f && fgets(head, sizeof(head), f) && !strncmp(head, "path,n", 6);

	return csv || (part && (!part[5] || part[5] == '-')) ||
	       !frag_store_read(&store, path, NULL);
}

int frag_sweep_files_check(struct frag_sweep *s, struct frag_err *err)
{
	const char *const outputs[] = { s->output, s->csv };
	struct frag_sweep_files *f = &s->files;
	size_t kept = 0;
	struct stat st;

	for (size_t k = 0; k < f->count; k++)
		keep_if(f, k, !f->list[k].found || !holds_results(f->list[k].path), &kept);
	f->count = kept;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(outputs); i++)
		for (size_t k = 0; outputs[i] && !stat(outputs[i], &st) && k < kept; k++)
			if (st.st_dev == f->list[k].device && st.st_ino == f->list[k].inode)
				return FRAG_USAGE(err,
						  "output '%.150s' is one of the traces; write to "
						  "another file",
						  outputs[i]);
	return 0;
}

void frag_sweep_files_release(struct frag_sweep_files *f)
{
	for (size_t i = 0; i < f->count; i++)
		frag_host_free(f->list[i].path);
	frag_host_free(f->list);
	*f = (struct frag_sweep_files){ 0 };
}
