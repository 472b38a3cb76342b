/* SPDX-License-Identifier: Apache-2.0 */
/* Roles of ranks; see pretend_internal.h. */
#include "pretend_internal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/outfile.h"
#include "lib/grow.h"

void frag_roles_path(char *path, size_t room, const char *folder)
{
	snprintf(path, room, "%s/roles", folder);
}

void frag_roles_release(struct frag_roles *r)
{
	for (size_t i = 0; i < r->count; i++) {
		frag_host_free(r->list[i].stands);
		frag_host_free(r->list[i].alike);
		frag_host_free(r->list[i].unlike);
	}
	frag_host_free(r->runs);
	frag_host_free(r->order);
	frag_host_free(r->list);
	frag_host_free(r->checks);
}

static int add_role(struct frag_roles *r, unsigned rank, const char *stands, struct frag_err *err)
{
	struct frag_role *role;

	FRAG_TRY(FRAG_GROW(r->list, r->count, r->room, "roles", err));
	role = &r->list[r->count++];
	*role = (struct frag_role){ rank, frag_host_strdup(stands), frag_host_strdup(""),
				    frag_host_strdup("") };
	FRAG_CHECK_ALLOC(role->stands && role->alike && role->unlike, "roles", err);
	return 0;
}

/* "runs RANK", "next RANK", "stands RANK RANKS", "checks RANK ROLE" */
static int read_line(struct frag_roles *r, char *line, struct frag_err *err)
{
	char *rest = NULL, *kind = strtok_r(line, " \n", &rest);
	char *first = strtok_r(NULL, " \n", &rest), *second = strtok_r(NULL, " \n", &rest);
	unsigned rank = first ? (unsigned)strtoul(first, NULL, 10) : 0;

	if (kind && first && !strcmp(kind, "runs")) {
		FRAG_TRY(FRAG_GROW(r->runs, r->runs_count, r->runs_room, "roles", err));
		r->runs[r->runs_count++] = rank;
	} else if (kind && first && !strcmp(kind, "next")) {
		FRAG_TRY(FRAG_GROW(r->order, r->order_count, r->order_room, "roles", err));
		r->order[r->order_count++] = rank;
	} else if (kind && second && !strcmp(kind, "checks")) {
		FRAG_TRY(FRAG_GROW(r->checks, r->checks_count, r->checks_room, "roles", err));
		r->checks[r->checks_count++] =
			(struct frag_role_check){ rank, (unsigned)strtoul(second, NULL, 10) };
	} else if (kind && second && !strcmp(kind, "stands")) {
		return add_role(r, rank, second, err);
	} else if (kind && second && !strcmp(kind, "groups")) {
		snprintf(r->groups, sizeof(r->groups), "%u %.40s", rank, second);
	}
	return 0;
}

static int read_file(const char *path, struct frag_roles *out, struct frag_err *err)
{
	FRAG_AUTO_FILE FILE *f = fopen(path, "re");
	FRAG_AUTO_FREE char *line = NULL;
	size_t room = 0;

	while (f && getline(&line, &room, f) > 0)
		FRAG_TRY(read_line(out, line, err));
	return 0;
}

int frag_roles_read(const char *folder, struct frag_roles *out, struct frag_err *err)
{
	char path[4200];

	frag_roles_path(path, sizeof(path), folder);
	return read_file(path, out, err);
}

bool frag_roles_know(struct frag_roles *out, const char *path)
{
	struct frag_err err;

	if (access(path, R_OK) || read_file(path, out, &err))
		return false;
	out->runs_count = 0;
	for (size_t i = 0; i < out->count; i++) /* no more than there were with checks */
		out->runs[out->runs_count++] = out->list[i].rank;
	out->checks_count = 0;
	return true;
}

int frag_roles_read_alone(const char *folder, struct frag_roles *out, struct frag_err *err)
{
	char path[4200], alone[4240];

	frag_roles_path(path, sizeof(path), folder);
	snprintf(alone, sizeof(alone), "%s.alone", path);
	(void)rename(alone, path);
	return read_file(path, out, err);
}

void frag_roles_pass_on(const char *folder, const char *note, const char *path)
{
	char from[4200], unlike[3], text[65536];
	FRAG_AUTO_FILE FILE *f = NULL;
	struct frag_err err;
	size_t bytes;

	for (const char *at = note; at && (at = strstr(at, "\nrole ")); at++)
		if (sscanf(at, " role %*u %*s %*s %2s", unlike) != 1 || strcmp(unlike, "-") != 0)
			return;
	frag_roles_path(from, sizeof(from), folder);
	f = fopen(from, "re");
	bytes = f ? fread(text, 1, sizeof(text), f) : 0;
	if (bytes && bytes < sizeof(text)) /* else each job finds its own */
		(void)frag_outfile_put(path, text, bytes, &err);
}

int frag_roles_write(const struct frag_roles *r, const char *folder, const unsigned *ranks,
		     size_t count, struct frag_err *err)
{
	char path[4200];
	FILE *f;

	frag_roles_path(path, sizeof(path), folder);
	f = fopen(path, "w");
	for (size_t i = 0; f && i < count; i++)
		fprintf(f, "runs %u\n", ranks[i]);
	for (size_t i = 0; f && i < r->count; i++)
		fprintf(f, "stands %u %s\n", r->list[i].rank, r->list[i].stands);
	if (f && *r->groups)
		fprintf(f, "groups %s\n", r->groups);
	return f && !fclose(f) ? 0 : frag_fail(err, FRAG_EOUTPUT, "cannot write '%.200s'", path);
}

long frag_roles_checked(const struct frag_roles *r, long rank)
{
	for (size_t i = 0; i < r->checks_count; i++)
		if (r->checks[i].rank == rank)
			return r->checks[i].role;
	return -1;
}

int frag_roles_found(struct frag_roles *r, unsigned rank, unsigned role, bool same,
		     struct frag_err *err)
{
	for (size_t i = 0; i < r->count; i++) {
		char **to = same ? &r->list[i].alike : &r->list[i].unlike;
		char *text;

		if (r->list[i].rank != role)
			continue;
		if (asprintf(&text, "%s%s%u", *to, **to ? "," : "", rank) < 0)
			return frag_fail_nomem(err, "roles");
		frag_host_free(*to);
		*to = text;
	}
	return 0;
}

void frag_roles_tell(const struct frag_launch *l, const struct frag_roles *r)
{
	for (size_t i = 0; i < r->count; i++) {
		const struct frag_role *role = &r->list[i];

		frag_launch_note(l, "rank %u stands for ranks %.200s%s%.200s%s%.200s%s", role->rank,
				 role->stands, *role->alike ? "; the same ran: " : "", role->alike,
				 *role->unlike ? "; others: " : "", role->unlike,
				 *role->unlike ? ", recorded, too" : "");
	}
}

static const char *or_dash(const char *text)
{
	return *text ? text : "-";
}

void frag_roles_put(FILE *to, const struct frag_roles *r)
{
	for (size_t i = 0; i < r->count; i++)
		fprintf(to, "role %u %s %s %s\n", r->list[i].rank, r->list[i].stands,
			or_dash(r->list[i].alike), or_dash(r->list[i].unlike));
}
