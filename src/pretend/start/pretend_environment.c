/* SPDX-License-Identifier: Apache-2.0 */
/* What a program on the pretended card finds in its environment, and checks of --values. */
#include "pretend_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/outfile.h"

#define ENTRIES_DEFAULT 10000000u /* as that of cufrag record */

const struct frag_gpu *frag_pretend_gpu(const struct frag_launch *l)
{
	return frag_gpu_find(l->gpu ? l->gpu : "h200");
}

static void put_card(const struct frag_launch *l, unsigned asked, unsigned needed)
{
	const struct frag_sim_config *card = &l->target.card;
	const struct frag_gpu *gpu = frag_pretend_gpu(l);
	const struct frag_gpu_chip *chip = gpu ? frag_gpu_chip_find(gpu->name) : NULL;
	char text[512];
	int n;

	/* with --context, the card holds only that besides the program's memory */
	n = snprintf(text, sizeof(text), "total=%llu;context=%llu;%s=%u;libraries=%d",
		     (unsigned long long)card->total_bytes, (unsigned long long)card->context_bytes,
		     asked || needed > 1 ? "count" : "least", asked ? asked : FRAG_MAX(needed, 1u),
		     gpu && card->context_bytes == gpu->context_bytes);
	if (chip)
		snprintf(text + n, sizeof(text) - (size_t)n,
			 ";name=%s;cc=%d.%d;sms=%d;l2=%llu;bus=%d;clock=%d;nvlink=%d", chip->shown,
			 chip->major, chip->minor, chip->multiprocessors,
			 (unsigned long long)chip->l2_mib * FRAG_MIB, chip->bus_bits,
			 chip->clock_mhz * 1000, chip->nvlink);
	setenv(CUFRAG_PRETEND, text, 1);
	if (chip) {
		snprintf(text, sizeof(text), "%.17g,%.17g,%.17g", chip->bytes_per_ns,
			 chip->tflops * 1000, chip->multiprocessors * chip->clock_mhz / 1000.0);
		setenv(CUFRAG_PRETEND_ROOF, text, 1);
	}
}

void frag_pretend_put_rank(const struct pretend_job *j, unsigned rank)
{
	frag_launch_put_number("RANK", rank);
	frag_launch_put_number("WORLD_SIZE", j->world);
	frag_launch_put_number("LOCAL_RANK", rank % j->gpus);
	frag_launch_put_number("LOCAL_WORLD_SIZE", FRAG_MIN(j->world, j->gpus));
	frag_launch_put_number("GROUP_RANK", rank / j->gpus);
	setenv(CUFRAG_PRETEND_LAUNCHED, "1", 1);
	setenv("MASTER_ADDR", "127.0.0.1", 0);
}

/* A port of its own for a run: others at the same moment may use the default. */
static void put_port(const char *name)
{
	if (!getenv(name))
		frag_launch_put_number(name, frag_launch_free_port() ?: 29500u);
}

void frag_pretend_environment(const struct frag_launch *l, const struct frag_inject_files *files,
			      unsigned asked, unsigned needed, const char *values)
{
	FRAG_AUTO_FREE char *programs = frag_path_join(files->folder, "bin");

	put_card(l, asked, needed);
	put_port("MASTER_PORT");
	put_port("PET_MASTER_PORT"); /* of torchrun */
	if (programs)
		frag_launch_prepend("PATH", programs);
	setenv(CUFRAG_PRETEND_CACHE, files->cache, 1);
	setenv(CUFRAG_PRETEND_VALUES, values, 1);
	frag_launch_put_number(CUFRAG_PRETEND_SEED, l->target.seed);
	/* it applies to the cards of this machine, unless pretended ones were counted */
	if (!asked)
		unsetenv("CUDA_VISIBLE_DEVICES");
	/* computed results are short-lived: in the heap, small long-lived blocks would pin them */
	setenv("MALLOC_MMAP_THRESHOLD_", "1048576", 0);
	/* NCCL's watchdogs have no communicator to watch */
	setenv("TORCH_NCCL_ENABLE_MONITORING", "0", 0);
	setenv("TORCH_NCCL_DUMP_ON_TIMEOUT", "0", 0);
}

void frag_pretend_put_all(const struct pretend_job *j)
{
	frag_launch_python(&j->files);
	setenv(CUFRAG_RECORD, j->folder, 1);
	frag_launch_put_number(CUFRAG_RECORD_ENTRIES,
			       j->l->max_entries ? j->l->max_entries : ENTRIES_DEFAULT);
	if (j->l->frames)
		setenv(CUFRAG_RECORD_FRAMES, "1", 1);
	if (frag_target_limit(&j->l->target) != UINT64_MAX)
		frag_launch_put_number(CUFRAG_RECORD_LIMIT, frag_target_limit(&j->l->target));
	frag_pretend_environment(j->l, &j->files, j->o->gpus, j->gpus, j->o->values);
	frag_launch_put_path(CUFRAG_PRETEND_CALLS, j->folder, "calls");
	if (j->o->vary)
		setenv(CUFRAG_PRETEND_VARIED, "1", 1);
	if (!j->o->warm_caches)
		frag_launch_put_path(CUFRAG_PRETEND_COMPILED, j->folder, "compiled");
	if (j->kept.stem)
		frag_launch_put_path(CUFRAG_READ_FILES, j->folder, "read");
	frag_held_put(&j->o->hold, j->folder, &j->files);
}

/* ---- cufrag run ------------------------------------------------------------------------------ */

static int begin_run(const void *options, const char *folder, const struct frag_inject_files *files,
		     struct frag_err *err)
{
	return frag_held_begin(&((const struct frag_pretend *)options)->hold, folder, files, err);
}

static void put_run(const struct frag_launch *l, const void *options, const char *folder,
		    const struct frag_inject_files *files)
{
	const struct frag_pretend *o = options;

	frag_pretend_environment(l, files, o->gpus, 1, "rules");
	frag_held_put(&o->hold, folder, files);
}

static void end_run(const void *options, const char *folder)
{
	frag_held_end(&((const struct frag_pretend *)options)->hold, folder);
}

const struct frag_launch_cards frag_pretend_cards = { begin_run, put_run, end_run };

/* ---- --values ---------------------------------------------------------------------------------- */

/* Names of ways to invent values, and files of lines "train.py:42 0.5 1", as cufrag_card.py reads them. */
#define VALUES_MAX (16 * FRAG_MIB) /* each process of the program reads it */

static bool is_number(const char *text)
{
	char *end;

	(void)strtod(text, &end);
	return end != text && !*end && !strpbrk(text, "xX("); /* 0x1p3, nan(7): not in Python */
}

static bool is_way(const char *values)
{
	return !strcmp(values, "rules") || !strcmp(values, "zeros") || !strcmp(values, "random") ||
	       !strcmp(values, "none") || !strcmp(values, "worst") || !strcmp(values, "computed");
}

/* A place and its values; a comment begins with #. */
static int check_line(char *line, const char *path, unsigned number, struct frag_err *err)
{
	char *rest = NULL, *word;

	line[strcspn(line, "#")] = '\0';
	strtok_r(line, " \t\v\f\r\n", &rest);
	while ((word = strtok_r(NULL, " \t\v\f\r\n", &rest)))
		if (!is_number(word))
			return frag_fail(err, FRAG_EINPUT,
					 "'%.200s': line %u: '%.60s' is no number (a line is a "
					 "place and its values, as \"train.py:42 0.5\")",
					 path, number, word);
	return 0;
}

static int check_file(const char *path, struct frag_err *err)
{
	FRAG_AUTO_FREE char *line = NULL;
	FRAG_AUTO_FILE FILE *f = NULL;
	struct stat st;
	size_t cap = 0;
	ssize_t n;
	int rc = 0;

	if (stat(path, &st))
		return frag_fail(err, FRAG_EINPUT,
				 "--values '%.200s' is neither a file nor rules, computed, "
				 "skewed=F, worst, zeros, random or none",
				 path);
	if (!S_ISREG(st.st_mode) || st.st_size > (off_t)VALUES_MAX || !(f = fopen(path, "re")))
		return frag_fail(err, FRAG_EINPUT,
				 "--values '%.200s' is no file of at most %s that can be read",
				 path, FRAG_BYTES(VALUES_MAX));
	for (unsigned number = 1; !rc && (n = getline(&line, &cap, f)) >= 0; number++)
		rc = strlen(line) != (size_t)n
			     ? frag_fail(err, FRAG_EINPUT, "'%.200s': line %u is no text", path,
					 number)
			     : check_line(line, path, number, err);
	return rc;
}

int frag_pretend_check_values(const char *values, struct frag_err *err)
{
	static const char skewed[] = "skewed=";
	const char *factor = values + sizeof(skewed) - 1;

	if (is_way(values))
		return 0;
	if (strncmp(values, skewed, sizeof(skewed) - 1) != 0)
		return check_file(values, err);
	if (!is_number(factor) || !isfinite(strtod(factor, NULL)) || strtod(factor, NULL) <= 0)
		return frag_fail(err, FRAG_EUSAGE,
				 "--values skewed=F: '%.60s' is no number above 0", factor);
	return 0;
}
