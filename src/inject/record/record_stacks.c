/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host stacks of allocations. Equal stacks have one number and are written once, as addresses; what
 * an address is called is written later, by the thread that writes the file, as the loader's lock
 * must not be taken under ours:
 *
 *	#stack NUMBER ADDRESS…		innermost first; numbers ascend from 1
 *	#frame ADDRESS<tab>NAME<tab>FILE<tab>OFFSET	NAME may be empty; OFFSET within FILE
 *	#frame ADDRESS<tab>NAME<tab>FILE<tab>:LINE	of Python (record_python.c)
 *
 * Python's frames stand in place of the interpreter's own, and of what called it.
 */
#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/addr_map.h"
#include "lib/grow.h"
#include "lib/random.h"
#include "recorder.h"

#define ORIGIN_FRAMES 24 /* the recorder's, CUPTI's, the driver's and the runtime's are fewer */
#define STACKS_MAX (1u << 20)
#define FRAMES_MAX (1u << 19)
#define NAME_BYTES 400

static struct {
	bool on, apart;		     /* stacks are kept; libraries' own requests are told */
	struct frag_addr_map stacks; /* hash -> number */
	struct frag_addr_map frames; /* a set of addresses */
	void **list;		     /* the same, in order */
	size_t list_count, list_cap, named;
	char *(*demangle)(const char *, char *, size_t *, int *);
} table;

/* ---- callers ----
 * cuDNN and cuBLAS allocate from the driver when a handle is made (cuBLAS 64 MiB on an H200), outside
 * of a framework's pool, so a recording of the framework's requests must leave that out. After the
 * frames of the recorder, CUPTI, the driver and the runtime, the stack has the caller: one of these
 * libraries, or other code. A library linked statically into a program cannot be recognized. */

enum kind {
	KIND_OTHER,
	KIND_PASSED, /* between the caller and us */
	KIND_LIBRARY,
};

static const char *const passed[] = { "libcufrag_record.", "libcupti.", "libcuda.", "libcudart.",
				      "libnvperf" };
static const char *const libraries[] = { "libcublas",	"libcudnn",    "libcufft",    "libcurand",
					 "libcusolver", "libcusparse", "libcutensor", "libnccl.",
					 "libnvinfer",	"libnvjpeg",   "libnvshmem" };

static bool begins_with_one(const char *name, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!strncmp(name, list[i], strlen(list[i])))
			return true;
	return false;
}

static enum kind look_up(void *frame, const char **path)
{
	const char *slash, *name;
	Dl_info info;

	*path = "";
	if (!dladdr((char *)frame - 1, &info) || !info.dli_fname)
		return KIND_OTHER;
	slash = strrchr(info.dli_fname, '/');
	name = slash ? slash + 1 : info.dli_fname;
	*path = info.dli_fname;
	if (begins_with_one(name, passed, sizeof(passed) / sizeof(*passed)))
		return KIND_PASSED;
	return begins_with_one(name, libraries, sizeof(libraries) / sizeof(*libraries))
		       ? KIND_LIBRARY
		       : KIND_OTHER;
}

/* The library that asked for itself, its path while it is loaded; NULL: the program or its
 * framework did. frames: innermost first. Not under the lock. */
static const char *origin_library(void *const *frames, int count)
{
	enum kind kind = KIND_PASSED;
	const char *path = NULL;

	for (int i = 0; i < count && kind == KIND_PASSED; i++)
		kind = look_up(frames[i], &path);
	return kind == KIND_LIBRARY ? path : NULL;
}

/* ---- stacks ---- */

void frag_rec_stacks_begin(void)
{
	const char *wanted = getenv(CUFRAG_RECORD_STACKS), *apart = getenv(CUFRAG_RECORD_APART);
	void *frame;

	table.apart = apart && *apart == '1';
	if (table.apart || (wanted && *wanted == '1'))
		backtrace(&frame, 1); /* loads what it needs now */
	if (!wanted || *wanted != '1')
		return;
	*(void **)&table.demangle = dlsym(RTLD_DEFAULT, "__cxa_demangle"); /* C++ programs */
	table.on = true;
	frag_rec_python_begin();
}

void frag_rec_stack_take(struct frag_rec_stack *s)
{
	int kept = 0;

	s->count = s->python_count = 0;
	s->library = NULL;
	if (!table.on && !table.apart)
		return;
	s->count = backtrace(s->frames, table.on ? REC_FRAMES : ORIGIN_FRAMES);
	if (table.apart)
		s->library = origin_library(s->frames, s->count);
	if (!table.on)
		s->count = 0;
	if (!s->count)
		return;
	s->python_count = frag_rec_python_take(s->python, REC_FRAMES);
	if (!s->python_count)
		return;
	while (kept < s->count && !frag_rec_python_has(s->frames[kept]))
		kept++;
	s->count = kept;
}

/* Each address once. What is too much stays without a name. */
static void note_frame(void *frame)
{
	if (table.list_count < FRAMES_MAX && !frag_addr_map_reserve(&table.frames) &&
	    !FRAG_GROW(table.list, table.list_count, table.list_cap, "frames", NULL) &&
	    frag_addr_map_add(&table.frames, (uintptr_t)frame, 1))
		table.list[table.list_count++] = frame;
}

static void write_stack(uint64_t number, const struct frag_rec_stack *s, const uint64_t *python)
{
	char text[40 * REC_FRAMES + 1], *at = text;

	*at = '\0';
	for (int i = 0; i < s->count; i++) {
		at += sprintf(at, " %p", s->frames[i]);
		note_frame(s->frames[i]);
	}
	for (int i = 0; i < s->python_count; i++)
		if (python[i])
			at += sprintf(at, " 0x%llx", (unsigned long long)python[i]);
	frag_rec_remark("#stack %llu%s\n", (unsigned long long)number, text);
}

uint32_t frag_rec_stack_number(const struct frag_rec_stack *s)
{
	uint64_t hash = 0, python[REC_FRAMES];
	struct frag_addr_cell *cell;

	if (!s->count && !s->python_count)
		return 0;
	for (int i = 0; i < s->count; i++)
		hash = frag_random(&(uint64_t){ hash ^ (uintptr_t)s->frames[i] });
	for (int i = 0; i < s->python_count; i++) {
		python[i] = frag_rec_python_number(&s->python[i]);
		hash = frag_random(&(uint64_t){ hash ^ python[i] });
	}
	cell = frag_addr_map_find(&table.stacks, hash);
	if (cell)
		return (uint32_t)cell->value;
	if (table.stacks.count == STACKS_MAX || frag_addr_map_reserve(&table.stacks))
		return 0;
	frag_addr_map_add(&table.stacks, hash, table.stacks.count + 1);
	write_stack(table.stacks.count, s, python);
	return (uint32_t)table.stacks.count;
}

/* Names of a program are its own: what would break the line goes. */
static void clean(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ')
			*text = '?';
}

static void name_frame(void *frame)
{
	char name[NAME_BYTES] = "", file[NAME_BYTES] = "";
	char *plain = NULL;
	struct link_map *map = NULL;
	Dl_info info = { 0 };
	int status;

	/* a return address is behind its call, perhaps in the next function */
	if (dladdr1((char *)frame - 1, &info, (void **)&map, RTLD_DL_LINKMAP) && info.dli_fname) {
		ssize_t n = map && !*map->l_name
				    ? readlink("/proc/self/exe", file, sizeof(file) - 1)
				    : -1; /* of the program itself the loader has no path */

		if (n < 0)
			snprintf(file, sizeof(file), "%s", info.dli_fname);
		if (info.dli_sname && table.demangle)
			plain = table.demangle(info.dli_sname, NULL, NULL, &status);
		snprintf(name, sizeof(name), "%s",
			 plain		  ? plain
			 : info.dli_sname ? info.dli_sname
					  : "");
		free(plain);
	}
	clean(name);
	clean(file);
	FRAG_REC_LOCKED;
	frag_rec_remark("#frame %p\t%s\t%s\t0x%llx\n", frame, name, file,
			(unsigned long long)((uintptr_t)frame - 1 - (map ? map->l_addr : 0)));
}

static void *next_frame(void)
{
	FRAG_REC_LOCKED;

	return table.named < table.list_count ? table.list[table.named++] : NULL;
}

void frag_rec_stacks_name(void)
{
	void *frame;

	while ((frame = next_frame()))
		name_frame(frame);
}
