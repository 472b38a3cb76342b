/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Outputs that would destroy something: `--json a.pickle b.pickle` is a slip of the fingers, and a
 * recording cannot be made again. Files are told apart by device and inode, those that are not
 * there yet by name.
 */
#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/cft/cft.h"

#define OUTPUTS_MAX 16

struct output {
	const struct frag_arg *row;
	const char *path;
	bool there;
	struct stat st; /* there */
};

static bool is_stdout(const char *path)
{
	return !strcmp(path, "-");
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && S_ISREG(a->st_mode);
}

/* Without "./" in front. */
static const char *plain(const char *path)
{
	return strncmp(path, "./", 2) ? path : plain(path + 2);
}

static bool same_output(const struct output *a, const struct output *b)
{
	if (is_stdout(a->path) || is_stdout(b->path))
		return is_stdout(a->path) && is_stdout(b->path);
	if (a->there || b->there)
		return a->there && b->there && same_file(&a->st, &b->st);
	return !strcmp(plain(a->path), plain(b->path));
}

/* "a pickle", …: an existing file that cannot be made again; NULL: none. */
static const char *precious(const struct output *o)
{
	unsigned char b[64];
	int fd = o->there && S_ISREG(o->st.st_mode) ? open(o->path, O_RDONLY | O_CLOEXEC) : -1;
	ssize_t n = fd < 0 ? 0 : read(fd, b, sizeof(b));

	if (fd >= 0)
		close(fd);
	if (n >= 6 && b[0] == 0x80 && b[1] >= 2 && b[1] <= 5)
		return o->row->file == FRAG_ARG_WRITES_PICKLE ? NULL : "a pickle";
	if (n >= 6 && (!memcmp(b, "PK\3\4", 4) || !memcmp(b, "\3757zXZ", 6) ||
		       !memcmp(b, "\x1f\x8b\x08", 3) || !memcmp(b, "\x28\xb5\x2f\xfd", 4)))
		return "a compressed file";
	return n > 0 && o->row->file != FRAG_ARG_WRITES_TRACE && frag_cft_is_magic(b, (size_t)n)
		       ? "a trace"
		       : NULL;
}

static int check_against_inputs(const struct frag_cli *cli, const struct frag_arg_table *tables,
				const struct output *o, struct frag_err *err)
{
	struct stat st;

	if (!o->there)
		return 0;
	for (size_t i = 0; i < cli->operands_count; i++)
		if (!stat(cli->operands[i], &st) && same_file(&st, &o->st))
			return FRAG_USAGE(
				err, "'%.150s' of option '--%s' is an input; write to another file",
				o->path, o->row->name);
	for (; tables->rows; tables++) {
		for (const struct frag_arg *a = tables->rows; a->type != FRAG_ARG_END; a++) {
			const char *path;

			if (a->type != FRAG_ARG_TEXT || a->file != FRAG_ARG_READS)
				continue;
			path = *(const char **)((char *)tables->base + a->offset);
			if (path && !stat(path, &st) && same_file(&st, &o->st))
				return FRAG_USAGE(err,
						  "'%.150s' of option '--%s' is also the input of "
						  "'--%s'; write to another file",
						  o->path, o->row->name, a->name);
		}
	}
	return 0;
}

static int check_one(const struct frag_cli *cli, const struct frag_arg_table *tables,
		     const struct output *all, size_t i, struct frag_err *err)
{
	const struct output *o = &all[i];
	const char *what;

	for (size_t k = 0; k < i; k++)
		if (same_output(&all[k], o))
			return FRAG_USAGE(err,
					  "options '--%s' and '--%s' write to the same place, %s",
					  all[k].row->name, o->row->name,
					  is_stdout(o->path) ? "standard output" : o->path);
	/* before hours of work, not behind them */
	if (o->there && S_ISDIR(o->st.st_mode))
		return FRAG_OUTPUT(err, "cannot write '%s': %s", o->path, strerror(EISDIR));
	FRAG_TRY(check_against_inputs(cli, tables, o, err));
	what = precious(o);
	if (what)
		return FRAG_USAGE(err,
				  "'%.150s' of option '--%s' is %s already; delete it first, or "
				  "write to another file",
				  o->path, o->row->name, what);
	return 0;
}

int frag_outputs_check(const struct frag_cli *cli, const struct frag_arg_table *tables,
		       struct frag_err *err)
{
	struct output all[OUTPUTS_MAX];
	size_t n = 0;

	for (const struct frag_arg_table *t = tables; t->rows; t++) {
		for (const struct frag_arg *a = t->rows; a->type != FRAG_ARG_END; a++) {
			const char *path = a->type == FRAG_ARG_TEXT && a->file != FRAG_ARG_READS
						   ? *(const char **)((char *)t->base + a->offset)
						   : NULL;

			if (!path || n == OUTPUTS_MAX)
				continue;
			all[n] = (struct output){ .row = a, .path = path };
			all[n].there = !stat(path, &all[n].st);
			n++;
		}
	}
	for (size_t i = 0; i < n; i++)
		FRAG_TRY(check_one(cli, tables, all, i, err));
	/* PAGE.html is a file */
	return cli->out && !strstr(cli->out, ".html") ? frag_can_make_dirs(cli->out, err) : 0;
}
