/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks in a log, see log.h. */
#include "log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/addr_map.h"
#include "lib/grow.h"
#include "trace/strings.h"

#define COUNT_MAX ((1u << 24) - 1)
#define DEPTH_MAX 256u

struct frame {
	uint32_t name, file; /* strings */
	uint32_t line;	     /* of Python; 0: not known */
	bool passed;	     /* of the recorder, CUPTI or the driver */
};

struct frag_log_stacks {
	struct frag_strings *strings;	 /* of the trace, once it has them */
	struct frag_addr_map by_address; /* -> frames */
	struct frame *frames;
	size_t frames_count, frames_cap;
	uint64_t *addresses; /* of all stacks */
	size_t addresses_count, addresses_cap;
	size_t *first; /* [count]: where a stack begins */
	size_t count, first_cap;
};

void frag_log_stacks_destroy(struct frag_log_stacks *s)
{
	if (!s)
		return;
	frag_strings_destroy(s->strings);
	frag_addr_map_release(&s->by_address);
	FRAG_FREE(s->frames, s->addresses, s->first, s);
}

uint32_t frag_log_stacks_count(const struct frag_log_stacks *s)
{
	return s ? (uint32_t)s->count : 0;
}

/* ---- lines ---------------------------------------------------------------------------- */

static int take_stack(struct frag_log_stacks *s, char *text, uint64_t line, struct frag_err *err)
{
	size_t depth = 0;
	char *end;

	if (strtoull(text, &end, 10) != s->count + 1 || s->count == COUNT_MAX)
		return frag_log_fail(err, "line", line, "stack numbers are out of order");
	FRAG_TRY(FRAG_GROW(s->first, s->count, s->first_cap, "stacks", err));
	s->first[s->count] = s->addresses_count;
	for (text = end; *text; text = end) {
		uint64_t address = strtoull(text, &end, 16);

		if (end == text || !address || ++depth > DEPTH_MAX)
			return frag_log_fail(err, "line", line, "malformed stack line");
		FRAG_TRY(FRAG_GROW(s->addresses, s->addresses_count, s->addresses_cap, "stacks",
				   err));
		s->addresses[s->addresses_count++] = address;
	}
	s->count++;
	return 0;
}

static bool is_passed(const char *file)
{
	static const char *const names[] = { "libcufrag_record.so", "libcupti.so", "libcuda.so",
					     "libcudart.so", "libnvperf" };
	const char *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file;

	for (size_t i = 0; i < FRAG_ARRAY_LEN(names); i++)
		if (!strncmp(name, names[i], strlen(names[i])))
			return true;
	return false;
}

/* ADDRESS NAME FILE OFFSET, between tabs; OFFSET becomes a part of the name, or is ":LINE". */
static int take_frame(struct frag_log_stacks *s, char *text, uint64_t line, struct frag_err *err)
{
	char *field[4] = { text }, name[1024];
	struct frame *f;
	uint64_t address;
	uint64_t number;
	int n;

	for (size_t i = 1; i < 4; i++) {
		field[i] = strchr(field[i - 1], '\t');
		if (!field[i])
			return frag_log_fail(err, "line", line,
					     "malformed frame line: name, file and offset "
					     "expected");
		*field[i]++ = '\0';
	}
	address = strtoull(field[0], NULL, 16);
	if (!address)
		return frag_log_fail(err, "line", line, "frame without an address");
	if (frag_addr_map_find(&s->by_address, address))
		return 0; /* of a library that was unloaded, perhaps: the first one holds */
	FRAG_TRY(FRAG_GROW(s->frames, s->frames_count, s->frames_cap, "frames", err));
	f = &s->frames[s->frames_count];
	number = strtoull(field[3] + (*field[3] == ':'), NULL, *field[3] == ':' ? 10 : 16);
	f->line = *field[3] == ':' && number <= INT32_MAX ? (uint32_t)number : 0;
	if (*field[3] == ':')
		n = snprintf(name, sizeof(name), "%.900s", field[1]);
	else
		n = snprintf(name, sizeof(name), "%.900s+0x%llx", field[1],
			     (unsigned long long)number);
	f->passed = is_passed(field[2]);
	FRAG_TRY(frag_strings_intern(s->strings, name, (size_t)n, &f->name, err));
	FRAG_TRY(frag_strings_intern(s->strings, field[2], strlen(field[2]), &f->file, err));
	FRAG_CHECK_ALLOC(!frag_addr_map_number(&s->by_address, address, s->frames_count), "frames",
			 err);
	s->frames_count++;
	return 0;
}

int frag_log_stacks_line(struct frag_log *log, struct frag_err *err)
{
	char *text = log->lines.text;
	bool stack = !strncmp(text, "#stack ", 7);

	if (!stack && strncmp(text, "#frame ", 7) != 0)
		return 0;
	if (!log->stacks) {
		FRAG_TRY_CALLOC(log->stacks, 1, "stacks", err);
		FRAG_TRY(frag_strings_create(&log->stacks->strings, err));
	}
	return stack ? take_stack(log->stacks, text + 7, log->lines.line, err)
		     : take_frame(log->stacks, text + 7, log->lines.line, err);
}

/* ---- the trace ------------------------------------------------------------------------ */

static int add_frame(const struct frag_log_stacks *s, uint64_t address, bool *passing,
		     struct frag_trace *trace, struct frag_stack_table *table, uint32_t *out,
		     struct frag_err *err)
{
	const struct frag_addr_cell *cell = frag_addr_map_find(&s->by_address, address);
	struct frag_frame frame = { 0 };
	char name[24];

	if (cell) {
		const struct frame *f = &s->frames[frag_addr_number(cell)];

		*passing &= f->passed;
		frame.name = f->name;
		frame.file = f->file;
		frame.line = f->line;
	} else { /* the program was killed before it was named */
		int n = snprintf(name, sizeof(name), "0x%llx", (unsigned long long)address);

		*passing = false;
		FRAG_TRY(frag_strings_intern(trace->strings, name, (size_t)n, &frame.name, err));
	}
	return *passing ? 0 : frag_stack_table_frame(table, frame, out, err);
}

/* numbers[i]: the trace's number of stack i of the log. */
static int add_stacks(const struct frag_log_stacks *s, struct frag_trace *trace,
		      struct frag_stack_table *table, uint32_t *numbers, struct frag_err *err)
{
	uint32_t frames[DEPTH_MAX];

	for (size_t i = 0; i < s->count; i++) {
		size_t end = i + 1 < s->count ? s->first[i + 1] : s->addresses_count, n = 0;
		bool passing = true;

		for (size_t k = s->first[i]; k < end; k++) {
			FRAG_TRY(add_frame(s, s->addresses[k], &passing, trace, table, &frames[n],
					   err));
			n += !passing;
		}
		FRAG_TRY(frag_stack_table_stack(table, frames, n, &numbers[i + 1], err));
	}
	return 0;
}

int frag_log_stacks_finish(struct frag_log_stacks *s, struct frag_trace *trace,
			   struct frag_err *err)
{
	FRAG_AUTO(frag_stack_table_destroy_at) struct frag_stack_table *table = NULL;
	FRAG_AUTO_FREE uint32_t *numbers = NULL;

	if (!s)
		return 0;
	trace->strings = FRAG_GIVE(s->strings);
	FRAG_TRY_CALLOC(numbers, s->count + 1, "stacks", err);
	FRAG_TRY(frag_stack_table_create(&table, err));
	FRAG_TRY(add_stacks(s, trace, table, numbers, err));
	FRAG_TRY(frag_stack_table_take(table, &trace->stacks, err));
	for (uint32_t d = 0; d < trace->devs_count; d++)
		for (size_t i = 0; i < trace->devs[d].events_count; i++)
			trace->devs[d].events[i].stack = numbers[trace->devs[d].events[i].stack];
	return 0;
}
