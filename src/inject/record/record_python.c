/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Python's lines in a host stack. A thread that asks the driver for memory has mostly let the
 * interpreter go (PyTorch, JAX and CuPy release its lock around such calls), and to take the lock
 * here could stop the job for good. So the frames of this very thread are read in place: no other
 * thread changes them until the call returns, and what they name is kept alive by them. Nothing is
 * counted, made or written in the interpreter. Of its functions only those are called that read (as
 * its own faulthandler does): which state the thread has, a line's number, a string's characters.
 *
 * Where things lie is known for CPython 3.10 to 3.13 (64 bit, with the lock), whose layouts are
 * settled. Every code object is recognised by its type before it is read.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/library.h"
#include "lib/addr_map.h"
#include "lib/random.h"
#include "recorder.h"

#define PLACES_MAX (1u << 17) /* in Python code */
#define NUMBER_BIT (1ull << 63)
#define NAME_BYTES 400
#define WALK_MAX 400 /* frames that are looked at, those that are no code included */
#define NO_FIELD UINT8_MAX
#define CODE_TYPE 8	/* where an object has its type */
#define OWNER_C_STACK 3 /* such a frame only marks that C called Python */

/* Offsets in bytes; NO_FIELD: there is none. */
struct layout {
	const char *version;
	uint8_t state_frame; /* thread state: its frame; or the struct that has it, at: */
	uint8_t struct_frame;
	uint8_t previous, code, owner; /* frame */
	uint8_t at;    /* frame: the instruction, a pointer, or an int that counts them */
	uint8_t first; /* code: its first instruction */
	uint8_t line, file, name; /* code: its first line, and strings */
};

static const struct layout layouts[] = {
	{ "3.10.", 24, NO_FIELD, 24, 32, NO_FIELD, 96, NO_FIELD, 40, 104, 112 },
	{ "3.11.", 56, 8, 48, 32, 69, 56, 184, 72, 112, 128 },
	{ "3.12.", 56, 0, 8, 0, 70, 56, 192, 68, 112, 128 },
	{ "3.13.", 72, NO_FIELD, 8, 0, 70, 56, 200, 68, 112, 128 },
};

static struct {
	const struct layout *layout; /* NULL: no Python that is known */
	const char *(*version)(void);
	const void *code_type;
	void *(*state)(void);
	int (*ending)(void);
	int (*line)(const void *code, int at);
	ssize_t (*length)(const void *text);
	uint32_t (*character)(const void *text, ssize_t i);
	uintptr_t begin, end;	     /* the interpreter's code in memory */
	struct frag_addr_map places; /* hash -> number */
} python;

static const void *pointer_at(const void *base, uint8_t offset)
{
	const void *p;

	memcpy(&p, (const char *)base + offset, sizeof(p));
	return p;
}

static int int_at(const void *base, uint8_t offset)
{
	int v;

	memcpy(&v, (const char *)base + offset, sizeof(v));
	return v;
}

/* ---- the interpreter ------------------------------------------------------------------ */

static const struct layout *layout_of(const char *version)
{
	if (sizeof(void *) != 8 || strstr(version, "free-threading"))
		return NULL;
	for (size_t i = 0; i < sizeof(layouts) / sizeof(*layouts); i++)
		if (!strncmp(version, layouts[i].version, strlen(layouts[i].version)))
			return &layouts[i];
	return NULL;
}

/* The loaded object that has the function: where its segments lie. */
static int find_range(struct dl_phdr_info *info, size_t size, void *unused)
{
	uintptr_t begin = UINTPTR_MAX, end = 0, inside;

	(void)size, (void)unused;
	memcpy(&inside, &python.line, sizeof(inside));
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		uintptr_t from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;

		if (info->dlpi_phdr[i].p_type != PT_LOAD)
			continue;
		begin = from < begin ? from : begin;
		end = from + info->dlpi_phdr[i].p_memsz > end ? from + info->dlpi_phdr[i].p_memsz
							      : end;
	}
	if (inside < begin || inside >= end)
		return 0;
	python.begin = begin;
	python.end = end;
	return 1;
}

#define NEEDED(member, name) FRAG_SYMBOL(__typeof__(python), member, name)

static const struct frag_symbol symbols[] = {
	NEEDED(version, "Py_GetVersion"),
	NEEDED(code_type, "PyCode_Type"),
	NEEDED(state, "PyGILState_GetThisThreadState"),
	NEEDED(line, "PyCode_Addr2Line"),
	NEEDED(length, "PyUnicode_GetLength"),
	NEEDED(character, "PyUnicode_ReadChar"),
	NEEDED(ending, "Py_IsFinalizing"),
};
static const struct frag_symbol ending_before_3_13[] = { NEEDED(ending, "_Py_IsFinalizing") };

void frag_rec_python_begin(void)
{
	const struct layout *layout;

	FRAG_SYMBOLS_FIND(RTLD_DEFAULT, ending_before_3_13, &python);
	if (FRAG_SYMBOLS_FIND(RTLD_DEFAULT, symbols, &python))
		return;
	layout = layout_of(python.version());
	if (!layout) {
		fprintf(stderr,
			"cufrag: stacks have no lines of Python: version %.20s is not known "
			"(CPython 3.10 to 3.13 are)\n",
			python.version());
		return;
	}
	if (dl_iterate_phdr(find_range, NULL))
		python.layout = layout;
}

bool frag_rec_python_has(const void *address)
{
	return (uintptr_t)address >= python.begin && (uintptr_t)address < python.end;
}

/* ---- frames --------------------------------------------------------------------------- */

static int offset_in_code(const void *frame, const void *code)
{
	const struct layout *l = python.layout;
	const char *at;

	if (l->first == NO_FIELD)
		return 2 * int_at(frame, l->at);
	at = pointer_at(frame, l->at);
	return (int)(at - ((const char *)code + l->first));
}

static bool is_code(const void *frame, const void *code)
{
	const struct layout *l = python.layout;

	if (!code || pointer_at(code, CODE_TYPE) != python.code_type)
		return false;
	return l->owner == NO_FIELD || ((const char *)frame)[l->owner] != OWNER_C_STACK;
}

int frag_rec_python_take(struct frag_rec_python_frame *out, int max)
{
	const struct layout *l = python.layout;
	const void *frame = l && !python.ending() ? python.state() : NULL;
	int count = 0;

	if (frame)
		frame = pointer_at(frame, l->state_frame);
	if (frame && l->struct_frame != NO_FIELD)
		frame = pointer_at(frame, l->struct_frame);
	for (int i = 0; frame && i < WALK_MAX && count < max; i++) {
		const void *code = pointer_at(frame, l->code);

		if (is_code(frame, code))
			out[count++] =
				(struct frag_rec_python_frame){ code, offset_in_code(frame, code) };
		frame = pointer_at(frame, l->previous);
	}
	return count;
}

/* ---- names ---------------------------------------------------------------------------- */

/* As UTF-8; what would break the line becomes '?'. */
static void read_text(const void *text, char *out)
{
	ssize_t length = python.length(text);
	char *at = out;

	for (ssize_t i = 0; i < length && at - out < NAME_BYTES - 5; i++) {
		uint32_t c = python.character(text, i);

		if (c < 0x80) {
			*at++ = c < ' ' || c == 0x7f ? '?' : (char)c;
			continue;
		}
		if (c >= 0x10000)
			*at++ = (char)(0xf0 | c >> 18);
		if (c >= 0x800)
			*at++ = (char)((c >= 0x10000 ? 0x80 : 0xe0) | (c >> 12 & 0x3f));
		*at++ = (char)((c >= 0x800 ? 0x80 : 0xc0) | (c >> 6 & 0x3f));
		*at++ = (char)(0x80 | (c & 0x3f));
	}
	*at = '\0';
}

static void write_place(uint64_t number, const void *code, int at, const void *of_file,
			const void *of_name)
{
	char file[NAME_BYTES], name[NAME_BYTES];
	int line = python.line(code, at);

	if (line <= 0)
		line = int_at(code, python.layout->line);
	read_text(of_file, file);
	read_text(of_name, name);
	frag_rec_remark("#frame 0x%llx\t%s\t%s\t:%d\n", (unsigned long long)number, name, file,
			line > 0 ? line : 0);
}

uint64_t frag_rec_python_number(const struct frag_rec_python_frame *f)
{
	/* with its strings, as another code may come to lie where it was */
	const void *file = pointer_at(f->code, python.layout->file);
	const void *name = pointer_at(f->code, python.layout->name);
	const uint64_t place[] = { (uintptr_t)f->code, (uint32_t)f->at, (uintptr_t)file,
				   (uintptr_t)name };
	struct frag_addr_cell *cell;
	uint64_t hash = 0;

	for (size_t i = 0; i < sizeof(place) / sizeof(*place); i++)
		hash = frag_random(&(uint64_t){ hash ^ place[i] });
	cell = frag_addr_map_find(&python.places, hash);
	if (cell)
		return NUMBER_BIT | cell->value;
	if (python.places.count == PLACES_MAX || frag_addr_map_reserve(&python.places))
		return 0;
	frag_addr_map_add(&python.places, hash, python.places.count + 1);
	write_place(NUMBER_BIT | python.places.count, f->code, f->at, file, name);
	return NUMBER_BIT | python.places.count;
}
