/* SPDX-License-Identifier: Apache-2.0 */
/* Cache of recordings; see pretend_internal.h. The lists of files come from the user's programs, so
 * they are parsed as untrusted input. */
#include "pretend_internal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <xxhash.h>

#include "base/oldest.h"
#include "base/outfile.h"
#include "recording/recording.h"

#define FILES_MAX 200000u
#define KEPT_BYTES (2ull << 30)
#define KEPT_MAX 4096u /* two for each recording */

extern char **environ;

/* ---- the key --------------------------------------------------------------------------- */

/* Variables of a terminal, session or fork server, which do not affect the program. */
static bool is_of_session(const char *variable)
{
	static const char *const names[] = {
		"_=",	"SHLVL=",    "OLDPWD=",	     "PWD=", "COLUMNS=", "LINES=",	  "TERM",
		"SSH_", "WINDOWID=", "XDG_SESSION_", "TMUX", "VSCODE_",	 "DBUS_SESSION_", "STY="
	};

	for (size_t i = 0; i < FRAG_ARRAY_LEN(names); i++)
		if (!strncmp(variable, names[i], strlen(names[i])))
			return true;
	return !strncmp(variable, CUFRAG_PRETEND_MODULES, strlen(CUFRAG_PRETEND_MODULES)) ||
	       !strncmp(variable, CUFRAG_PRETEND_FORKS, strlen(CUFRAG_PRETEND_FORKS));
}

static int64_t date_ns(const struct stat *st)
{
	return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

/* Independent of their order. */
static uint64_t environment_hash(void)
{
	uint64_t sum = 0;

	for (char **at = environ; *at; at++)
		if (!is_of_session(*at))
			sum += XXH3_64bits(*at, strlen(*at));
	return sum;
}

static void put_file_state(FILE *to, const struct stat *st)
{
	fprintf(to, "%ju %ju %jd %jd\n", (uintmax_t)st->st_dev, (uintmax_t)st->st_ino,
		(intmax_t)st->st_size, (intmax_t)date_ns(st));
}

/* What the program can read from standard input. False: unknown. */
static bool put_input(FILE *to)
{
	struct stat st;
	bool open = !fstat(STDIN_FILENO, &st);

	if (open && S_ISREG(st.st_mode)) {
		put_file_state(to, &st);
		fprintf(to, "at %jd\n", (intmax_t)lseek(STDIN_FILENO, 0, SEEK_CUR));
	}
	return !open || S_ISREG(st.st_mode) || S_ISCHR(st.st_mode);
}

static void put_options(FILE *to, const struct frag_launch *l, const struct frag_pretend *o)
{
	const char *const texts[] = { l->gpu, l->target.card.name, o->ranks, o->values };
	const uint64_t numbers[] = { l->target.card.total_bytes,
				     l->target.card.context_bytes,
				     frag_target_limit(&l->target),
				     l->target.seed,
				     l->frames,
				     l->max_entries,
				     o->gpus,
				     o->world,
				     o->memory_bytes,
				     o->again,
				     o->warm_caches };

	for (size_t i = 0; i < FRAG_ARRAY_LEN(texts); i++)
		fprintf(to, "%s%c", texts[i] ? texts[i] : "", 0);
	for (size_t i = 0; i < FRAG_ARRAY_LEN(numbers); i++)
		fprintf(to, "%ju\n", (uintmax_t)numbers[i]);
}

/* Writes all of which the key is a hash. False: something is unknown. */
static bool put_inputs(FILE *to, const struct frag_launch *l, const struct frag_pretend *o,
		       char **program, const struct frag_inject_files *files)
{
	FRAG_AUTO_FREE char *here = realpath(".", NULL);
	struct stat self;

	if (!here || stat("/proc/self/exe", &self) || getenv("PYTHONPYCACHEPREFIX"))
		return false;
	put_file_state(to, &self);
	fprintf(to, "%s%c%s%c%016jx", files->cache, 0, here, 0, (uintmax_t)environment_hash());
	for (; *program; program++)
		fprintf(to, "%s%c", *program, 0);
	put_options(to, l, o);
	return put_input(to);
}

void frag_kept_init(struct frag_kept *k, const struct frag_launch *l, const struct frag_pretend *o,
		    char **program, const struct frag_inject_files *files)
{
	FRAG_AUTO_FREE char *folder = frag_path_join(files->root, "recordings"), *text = NULL;
	size_t len;
	FILE *to = open_memstream(&text, &len);
	bool known = to && put_inputs(to, l, o, program, files);
	struct timespec now;
	XXH128_hash_t key;

	*k = (struct frag_kept){ 0 };
	if (to && !fclose(to) && known && folder &&
	    (!mkdir(folder, 0700) || !access(folder, W_OK | X_OK))) {
		key = XXH3_128bits(text, len);
		if (asprintf(&k->stem, "%s/%016llx%016llx", folder, (unsigned long long)key.high64,
			     (unsigned long long)key.low64) < 0)
			k->stem = NULL;
	}
	clock_gettime(CLOCK_REALTIME, &now);
	k->begun_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void frag_kept_release(struct frag_kept *k)
{
	free(k->stem);
	free(k->text);
	*k = (struct frag_kept){ 0 };
}

/* ---- files that a program read ------------------------------------------------------------ */

struct read_file {
	long long bytes, mtime_ns;
	char *path; /* in the line, which is the caller's */
};

static bool parse_line(char *line, struct read_file *f)
{
	char *at, *end;

	line[strcspn(line, "\n")] = '\0';
	f->bytes = strtoll(line, &at, 10);
	if (at == line || *at != ' ')
		return false;
	f->mtime_ns = strtoll(at + 1, &end, 10);
	if (end == at + 1 || end[0] != ' ' || end[1] != '/')
		return false;
	f->path = end + 1;
	return true;
}

static bool is_as_before(const struct read_file *f)
{
	struct stat st;

	return !stat(f->path, &st) && st.st_size == f->bytes && date_ns(&st) == f->mtime_ns;
}

/* Python reads the source again if its date differs from that in the compiled file: a/__pycache__/b.cpython-312.pyc -> a/b.py */
static void take_source(struct read_file *f)
{
	static const char folder[] = "/__pycache__/";
	char *at = strstr(f->path, folder), *name, *dot;
	char source[4200];
	struct stat st;

	if (!at)
		return;
	name = at + strlen(folder);
	dot = strchr(name, '.');
	if (!dot ||
	    snprintf(source, sizeof(source), "%.*s/%.*s.py", (int)(at - f->path), f->path,
		     (int)(dot - name), name) >= (int)sizeof(source) ||
	    stat(source, &st))
		return;
	memcpy(f->path, source, strlen(source) + 1); /* shorter than it was */
	f->bytes = st.st_size;
	f->mtime_ns = date_ns(&st);
}

static bool is_below(const char *path, const char *const *folders)
{
	for (; *folders; folders++)
		if (!strncmp(path, *folders, strlen(*folders)))
			return true;
	return !strncmp(path, "/proc/", 6) || !strncmp(path, "/sys/", 5) ||
	       !strncmp(path, "/dev/", 5);
}

/* Adds a file to the list. False: the recording must not be kept. */
static bool put_file(FILE *to, char *line, int64_t begun_ns, const char *const *own)
{
	struct read_file f;

	if (!parse_line(line, &f))
		return false;
	if (is_below(f.path, own))
		return true;
	take_source(&f);
	fprintf(to, "%lld %lld %s\n", f.bytes, f.mtime_ns, f.path);
	return f.mtime_ns < begun_ns && is_as_before(&f);
}

void frag_kept_read(struct frag_kept *k, const char *list, int status, const char *const *own)
{
	FRAG_AUTO_FILE FILE *from = k->stem ? fopen(list, "re") : NULL;
	FRAG_AUTO_FREE char *line = NULL;
	FILE *to;
	size_t room = 0, len, count = 0;
	bool good = true;

	if (!from)
		return;
	to = open_memstream(&k->text, &len);
	if (to)
		fprintf(to, "status %d\n", status);
	while (to && good && getline(&line, &room, from) > 0)
		good = count++ < FILES_MAX && put_file(to, line, k->begun_ns, own);
	if (!to || fclose(to) || !good || !count) {
		free(k->text);
		k->text = NULL;
	}
}

/* ---- the cache ------------------------------------------------------------------------------ */

static bool are_as_before(FILE *from, int *status)
{
	FRAG_AUTO_FREE char *line = NULL;
	size_t room = 0;
	bool good = getline(&line, &room, from) > 0 && sscanf(line, "status %d", status) == 1;
	struct read_file f;

	while (good && getline(&line, &room, from) > 0)
		good = parse_line(line, &f) && is_as_before(&f);
	return good;
}

static void say_when(const struct frag_launch *l, const char *path)
{
	struct stat st;
	struct tm day;
	char text[40];

	if (stat(path, &st) || !localtime_r(&st.st_mtime, &day) ||
	    !strftime(text, sizeof(text), "%F %H:%M", &day))
		return;
	frag_launch_note(l,
			 "recorded on %s with the same command, environment and files; --fresh "
			 "records again",
			 text);
}

bool frag_kept_get(const struct frag_kept *k, const struct frag_launch *l, struct frag_trace **out,
		   int *status)
{
	char path[4200], files[4200];
	FRAG_AUTO_FILE FILE *from = NULL;
	struct frag_err err = { 0 };

	if (!k->stem || snprintf(path, sizeof(path), "%s.cft", k->stem) >= (int)sizeof(path))
		return false;
	snprintf(files, sizeof(files), "%s.files", k->stem);
	from = fopen(files, "re");
	if (!from)
		return false;
	if (!are_as_before(from, status) || frag_recording_read(path, NULL, out, &err)) {
		unlink(files);
		unlink(path);
		return false;
	}
	say_when(l, path);
	return true;
}

void frag_kept_put(const struct frag_kept *k, const struct frag_trace *trace)
{
	char path[4200], files[4200];
	struct frag_err err = { 0 };

	if (!k->stem || !k->text)
		return;
	snprintf(path, sizeof(path), "%s.cft", k->stem);
	snprintf(files, sizeof(files), "%s.files", k->stem);
	unlink(files); /* until both files match */
	if (frag_trace_write_cft(trace, path, &err) ||
	    frag_outfile_put(files, k->text, strlen(k->text), &err))
		unlink(path);
	snprintf(path, sizeof(path), "%.*s", (int)(strrchr(k->stem, '/') - k->stem), k->stem);
	frag_remove_oldest(path, KEPT_MAX, KEPT_BYTES, 0);
}
