/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of an out-of-memory error, alone or in a log: PyTorch's of all releases, those of the
 * BFC allocators (TensorFlow, JAX, ONNX Runtime) with their dumps, and the failed starts of vLLM
 * and SGLang. What is said of it follows from its own figures. Several in a file: the first counts.
 */
#include "diagnose.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/input/input.h"

#define LINE_BYTES 2048u    /* of longer lines, pieces */
#define MESSAGE_BYTES 4096u /* after its beginning; lines may be wrapped anywhere */
#define TEXT_MOST (256u << 20)
#define BYTES_MOST 0x1p62
#define ASKED_MOST 0x1p50
#define OTHERS_PART 0.005 /* figures are rounded */

enum { NONE, TORCH, BFC, ENGINE, DRIVER };

struct error {
	char message[MESSAGE_BYTES + LINE_BYTES];
	char file[256], function[64]; /* of the traceback: the last frame of one's own */
	unsigned long line;
	size_t length;
	unsigned who; /* NONE: no such error so far */
	double asked, total, available, allocated, unallocated, pools, reserved, allowed, process;
	double others, largest_free, temporary; /* 0: the text does not say */
	unsigned long other_pid;
};

#define AT(member) offsetof(struct error, member)

/* What an error begins with; the first one in the text decides. */
static const struct {
	const char *mark;
	unsigned who;
} begins[] = {
	{ "ut of memory. Tried to allocate", TORCH },
	{ "backend out of memory (", TORCH },
	{ "ut of memory while trying to allocate ", BFC },
	{ "ut of memory allocating ", BFC },
	{ "ran out of memory trying to allocate ", BFC },
	{ "OOM when allocating tensor with shape", BFC },
	{ "is smaller than requested bytes of ", BFC },
	{ "Failed to allocate memory for requested buffer of size ", BFC },
	{ "Free memory on device", ENGINE },
	{ "No available memory for the cache blocks", ENGINE },
	{ "KV cache is needed, which is larger than", ENGINE },
	{ "is larger than the maximum number of tokens that can be stored in KV cache", ENGINE },
	{ "Please try to increase --mem-fraction-static", ENGINE },
	{ "leave no GPU memory for the KV cache", ENGINE },
	{ "CUDA error: out of memory", DRIVER },
	{ "CUDA_ERROR_OUT_OF_MEMORY", DRIVER },
};

/* A figure stands behind these words, or before them. */
static const struct figure {
	const char *words;
	bool before;
	size_t at;
} message_figures[] = {
	{ "ried to allocate ", false, AT(asked) },
	{ "rying to allocate ", false, AT(asked) },
	{ "ut of memory allocating ", false, AT(asked) },
	{ "requested bytes of ", false, AT(asked) },
	{ "requested buffer of size ", false, AT(asked) },
	{ "(rounded to ", false, AT(asked) },
	{ "total capacity of ", false, AT(total) },
	{ "total capacty of ", false, AT(total) }, /* 2.1 */
	{ " total capacity;", true, AT(total) },
	{ " is free.", true, AT(available) },
	{ " free;", true, AT(available) },
	{ "Available memory of ", false, AT(available) },
	{ " allowed;", true, AT(allowed) },
	{ "max allowed: ", false, AT(allowed) },
	{ " is allocated by PyTorch", true, AT(allocated) },
	{ " already allocated;", true, AT(allocated) },
	{ "MPS allocated: ", false, AT(allocated) },
	{ " allocated in private pools", true, AT(pools) },
	{ " is reserved by PyTorch but unallocated", true, AT(unallocated) },
	{ " cached)", true, AT(unallocated) }, /* before 1.4 */
	{ " reserved in total by PyTorch", true, AT(reserved) },
	{ "his process has ", false, AT(process) },
	{ "other allocations: ", false, AT(others) },
}, dump_figures[] = {
	{ "memory_limit_: ", false, AT(total) },
	{ "Limit: ", false, AT(total) },
	{ "Sum Total of in-use chunks: ", false, AT(allocated) },
	{ "InUse: ", false, AT(allocated) },
	{ "total_region_allocated_bytes_: ", false, AT(reserved) },
	{ "preallocated temp allocation: ", false, AT(temporary) },
};

/* "546.00 MiB", "15.00GiB", "16106127360 bytes"; 0: no figure. */
static double bytes_at(const char *text)
{
	char *end;
	double n = isdigit((unsigned char)*text) ? strtod(text, &end) : 0;
	const char *at, *letters = " KMGTPE";

	if (!(n > 0))
		return 0;
	end += strspn(end, " ");
	at = *end ? strchr(letters + 1, toupper((unsigned char)*end)) : NULL;
	if (at && (end[1] == 'i' || end[1] == 'B'))
		for (; at > letters; at--)
			n *= 1024;
	return n < BYTES_MOST ? n : 0;
}

/* The figure that ends before `end`. */
static double bytes_before(const char *text, const char *end)
{
	while (end > text && isalpha((unsigned char)end[-1]))
		end--;
	while (end > text && end[-1] == ' ')
		end--;
	while (end > text && (isdigit((unsigned char)end[-1]) || end[-1] == '.'))
		end--;
	return bytes_at(end);
}

static void take_figures(struct error *e, const char *text, const struct figure *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		double *to = (double *)((char *)e + rows[i].at), v;
		const char *at = strstr(text, rows[i].words);

		if (!at)
			continue;
		v = rows[i].before ? bytes_before(text, at) : bytes_at(at + strlen(rows[i].words));
		if (v > 0)
			*to = v;
	}
}

/* "Process 4711 has 15.25 GiB memory in use.", of each process. */
static void take_processes(struct error *e)
{
	double most = 0;

	for (const char *at = e->message; (at = strstr(at, "Process ")); at++) {
		const char *has = strstr(at, " has ");
		double v = has && has < at + 20 ? bytes_at(has + 5) : 0;

		e->others += v;
		if (v > most)
			e->other_pid = strtoul(at + 8, NULL, 10);
		most = FRAG_MAX(most, v);
	}
}

/* TensorFlow: "shape[256,1024] and type float". */
static void take_shape(struct error *e)
{
	static const char *const wide[] = { "double", "int64", "complex" };
	const char *at = strstr(e->message, "with shape["), *type;
	double n = 4;
	char *end;

	if (!at || e->asked > 0)
		return;
	type = strstr(at, "type ");
	for (size_t i = 0; type && i < FRAG_ARRAY_LEN(wide); i++)
		n = strncmp(type + 5, wide[i], strlen(wide[i])) ? n : 8;
	n = type && (!strncmp(type + 5, "half", 4) || !strncmp(type + 5, "bfloat16", 8)) ? 2 : n;
	for (at += 10; *at == '[' || *at == ','; at = end)
		n *= (double)strtoul(at + 1, &end, 10);
	e->asked = n < BYTES_MOST ? n : 0;
}

/* vLLM: "Free memory on device (14.2/23.64 GiB) on startup is less than … (0.9, 21.28 GiB)". */
static void take_engine(struct error *e)
{
	const char *at = strstr(e->message, "Free memory on device"), *wants;
	double available, total, part;

	if (at && (at = strchr(at, '(')) && (wants = strstr(at, "utilization (")) &&
	    sscanf(at, "(%lf/%lf", &available, &total) == 2 && available < 1e6 && total < 1e6) {
		e->available = available * (double)FRAG_GIB;
		e->total = total * (double)FRAG_GIB;
		if (sscanf(wants, "utilization (%lf", &part) == 1 && part > 0 && part <= 1)
			e->asked = part * e->total;
	}
	at = strstr(e->message, " KV cache is needed");
	wants = at ? strstr(at, "KV cache memory (") : NULL;
	if (wants) {
		e->asked = bytes_before(e->message, at);
		e->available = bytes_at(wants + strlen("KV cache memory ("));
	}
}

/* ---- the text ------------------------------------------------------------------------ */

/* File "train.py", line 61, in main */
static void take_frame(struct error *e, const char *text)
{
	char file[sizeof(e->file)], function[sizeof(e->function)];
	unsigned long line;
	const char *at = strstr(text, "File \"");

	if (!at ||
	    sscanf(at, "File \"%255[^\"]\", line %lu, in %63s", file, &line, function) != 3 ||
	    file[0] == '<' || strstr(file, "-packages/") || strstr(file, "/lib/python"))
		return;
	memcpy(e->file, file, sizeof(file));
	memcpy(e->function, function, sizeof(function));
	e->line = line;
}

static void take_dump(struct error *e, const char *text)
{
	const char *at = strstr(text, "Free  at "), *size = at ? strstr(at, " of size ") : NULL;

	take_figures(e, text, dump_figures, FRAG_ARRAY_LEN(dump_figures));
	if (size)
		e->largest_free = FRAG_MAX(e->largest_free, bytes_at(size + 9));
}

static void take_line(struct error *e, const char *text)
{
	size_t n = strlen(text);

	for (size_t i = 0; !e->who && i < FRAG_ARRAY_LEN(begins); i++)
		if (strstr(text, begins[i].mark))
			e->who = begins[i].who;
	if (!e->who) {
		take_frame(e, text);
		return;
	}
	take_dump(e, text);
	if (e->length && n)
		e->message[e->length++] = ' ';
	if (e->length + n + 2 < sizeof(e->message)) {
		memcpy(e->message + e->length, text, n + 1);
		e->length += n;
	}
}

static int read_text(struct frag_input *in, struct error *e, struct frag_err *err)
{
	char text[LINE_BYTES];
	size_t n = 0;
	int c = 0;

	while (c >= 0) {
		c = frag_input_get(in, err);
		if (c < 0 && c != FRAG_INPUT_EOF)
			return c;
		if (c >= ' ' || c == '\t')
			text[n++] = (char)(c == '\t' ? ' ' : c);
		if (c >= 0 && c != '\n' && c != '\r' && n + 1 < sizeof(text))
			continue;
		text[n] = '\0';
		n = 0;
		take_line(e, text + strspn(text, " "));
		if (frag_input_offset(in) > TEXT_MOST)
			break;
	}
	take_figures(e, e->message, message_figures, FRAG_ARRAY_LEN(message_figures));
	take_processes(e);
	take_shape(e);
	take_engine(e);
	return 0;
}

/* ---- what follows from it -------------------------------------------------------------- */

#define SIZE(v) FRAG_BYTES((uint64_t)((v) + 0.5))

static void derive(struct error *e)
{
	if (e->who == BFC && e->total > 0)
		e->available = FRAG_MAX(e->total - FRAG_MAX(e->reserved, e->allocated), 0);
	if (!(e->reserved > 0))
		e->reserved = e->allocated + e->unallocated + e->pools;
	e->unallocated = FRAG_MAX(e->reserved - e->allocated - e->pools, 0);
	/* in a container, the process may be called by its number, too */
	if (!(e->process > 0) && e->others >= e->reserved && e->reserved > e->total / 2) {
		e->process = e->others;
		e->others = 0;
	}
	if (e->who == TORCH && !(e->others > 0) && e->total > 0)
		e->others = e->total - e->available - FRAG_MAX(e->process, e->reserved);
	if (e->others < OTHERS_PART * e->total)
		e->others = 0;
}

static void say_sizes(const struct error *e, struct frag_finding *f)
{
	const bool known = e->process > 0 || e->other_pid;

	if (e->asked > 0)
		frag_finding_say(f, "%s was asked for", SIZE(e->asked));
	else
		frag_finding_say(f, "a request was refused");
	if (e->total > 0)
		frag_finding_say(f, "; %s has %s, of which %s is free",
				 e->who == BFC ? "the allocator" : "the card", SIZE(e->total),
				 SIZE(e->available));
	if (e->allowed > 0)
		frag_finding_say(f, "; the process may reserve %s", SIZE(e->allowed));
	if (e->allocated > 0)
		frag_finding_say(f, "; %s is allocated", SIZE(e->allocated));
	if (e->unallocated > 0)
		frag_finding_say(f, ", %s reserved but unallocated", SIZE(e->unallocated));
	if (e->pools > 0)
		frag_finding_say(f,
				 ", %s unallocated in private pools, which only their CUDA graphs "
				 "can use",
				 SIZE(e->pools));
	if (e->process > e->reserved && e->reserved > 0)
		frag_finding_say(f, "; the context and libraries take %s of this process",
				 SIZE(e->process - e->reserved));
	if (e->others > 0)
		frag_finding_say(f, "; %s %s",
				 known ? "other processes hold"
				       : "the context, libraries and other processes take",
				 SIZE(e->others));
}

/* What would have served the request, and why. */
static void say_torch(const struct error *e, struct frag_finding *f)
{
	double missing = FRAG_MAX(e->asked - e->available, 0);
	const bool pieces = f->kind == FRAG_FOUND_OOM_FRAGMENTATION;

	if (e->allowed > 0 && e->available >= e->asked)
		frag_finding_say(f, ". The limit refused it, not the card: a larger "
				    "set_per_process_memory_fraction serves it");
	if (e->others >= missing && missing > 0 && (e->process > 0 || e->other_pid))
		frag_finding_say(f, ". Ending the other processes%s gives enough",
				 e->other_pid ? frag_answer_print(f->texts, " (%lu holds most)",
								  e->other_pid)
					      : "");
	if (pieces)
		frag_finding_say(
			f,
			". What lies unallocated would hold it, but is in pieces beside live "
			"blocks: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True (from PyTorch "
			"2.1 on, unless it is set) joins them, and leaves at most %s for what "
			"comes later",
			SIZE(e->unallocated + e->available - e->asked));
	else if (e->unallocated >= missing && missing > 0)
		frag_finding_say(f, ". expandable_segments:True might serve it, from what lies "
				    "unallocated and what is free");
	if (e->total > 0 && e->asked > e->total)
		frag_finding_say(f, ". It alone exceeds the card: no setting serves it, only "
				    "another shape");
	else if (missing > 0 && e->allocated > 0 && !pieces)
		frag_finding_say(f,
				 ". The program needs at least %s here: %s less live (a smaller "
				 "batch, shorter sequences, checkpointing, what is kept without "
				 "need), or a larger card",
				 SIZE(e->allocated + e->asked), SIZE(missing));
}

/* Of each framework with such an allocator: how a log of it is told, and its own remedies. */
static const struct {
	const char *mark, *pieces, *needed;
} frameworks[] = {
	{ "onnxruntime", "arena_extend_strategy=kSameAsRequested",
	  "a smaller batch or shape, arena_extend_strategy=kSameAsRequested, a larger "
	  "gpu_mem_limit, fewer sessions on the card" },
	{ "buffer of size", "arena_extend_strategy=kSameAsRequested",
	  "a smaller batch or shape, a larger gpu_mem_limit, fewer sessions on the card" },
	{ "tensorflow", "TF_GPU_ALLOCATOR=cuda_malloc_async", "a smaller batch" },
	{ "OOM when allocating tensor", "TF_GPU_ALLOCATOR=cuda_malloc_async", "a smaller batch" },
	{ "",
	  "TF_GPU_ALLOCATOR=cuda_malloc_async, or XLA_PYTHON_CLIENT_ALLOCATOR=platform "
	  "(slower)",
	  "a smaller batch, jax.checkpoint, donated arguments, or a larger part of the card "
	  "(XLA_PYTHON_CLIENT_MEM_FRACTION)" },
};

static void say_bfc(const struct error *e, struct frag_finding *f)
{
	size_t i = 0;

	while (!strstr(e->message, frameworks[i].mark))
		i++;
	if (f->kind == FRAG_FOUND_OOM_FRAGMENTATION)
		frag_finding_say(f, ". Enough is free, but in pieces%s: %s",
				 e->largest_free > 0 ? frag_answer_print(f->texts, " of at most %s",
									 SIZE(e->largest_free))
						     : "",
				 frameworks[i].pieces);
	else
		frag_finding_say(f, ". What would help: %s", frameworks[i].needed);
	if (e->temporary > 0)
		frag_finding_say(f, "; %s is temporary within one compiled function",
				 SIZE(e->temporary));
}

static void say_engine(const struct error *e, struct frag_finding *f)
{
	const char *most = strstr(e->message, "maximum model length is ");
	const char *cache = strstr(e->message, "stored in KV cache (");

	most = most ? most + strlen("maximum model length is ")
		    : (cache ? cache + strlen("stored in KV cache (") : NULL);
	if (strstr(e->message, "Free memory on device"))
		frag_finding_say(f,
				 ". vLLM wants its part of the card free at its start: end what "
				 "else runs there, or --gpu-memory-utilization %.2f",
				 e->total > 0 ? floor(100 * e->available / e->total) / 100 : 0.5);
	else if (most || strstr(e->message, "larger than"))
		frag_finding_say(f,
				 ". One request of the longest length does not fit the cache%s: "
				 "--max-model-len%s%.*s, --kv-cache-dtype fp8, or a larger "
				 "--gpu-memory-utilization",
				 e->available > 0
					 ? frag_answer_print(f->texts, " of %s", SIZE(e->available))
					 : "",
				 most ? " " : "", most ? (int)strspn(most, "0123456789") : 0,
				 most ? most : "");
	else
		frag_finding_say(
			f,
			". The weights leave nothing of the engine's part of the card for "
			"its cache: a larger part (%s) where the card is otherwise free, "
			"else quantized weights or more cards (%s)",
			strstr(e->message, "mem-fraction") || strstr(e->message, "leave no GPU")
				? "--mem-fraction-static"
				: "--gpu-memory-utilization",
			strstr(e->message, "mem-fraction") ? "--tp" : "--tensor-parallel-size");
}

static bool in_pieces(const struct error *e)
{
	if (e->who == TORCH)
		return e->asked > 0 && e->unallocated >= e->asked;
	return e->who == BFC && e->asked > 0 && e->total - e->allocated >= e->asked &&
	       e->total > 0 && e->allocated > 0;
}

static void tell(struct error *e, const char *about, struct frag_findings *out)
{
	static const struct {
		const char *name;
		size_t at;
	} numbers[] = { { "asked_bytes", AT(asked) },
			{ "total_bytes", AT(total) },
			{ "free_bytes", AT(available) },
			{ "allocated_bytes", AT(allocated) },
			{ "unallocated_bytes", AT(unallocated) },
			{ "other_processes_bytes", AT(others) } };
	struct frag_finding *f;

	derive(e);
	f = frag_findings_add(
		out, in_pieces(e) ? FRAG_FOUND_OOM_FRAGMENTATION : FRAG_FOUND_OOM_NEEDED, about);
	say_sizes(e, f);
	if (e->asked > ASKED_MOST)
		frag_finding_say(f, ". No card has that: a dimension of a tensor is wrong");
	else if (e->who == TORCH)
		say_torch(e, f);
	else if (e->who == BFC)
		say_bfc(e, f);
	else if (e->who == ENGINE)
		say_engine(e, f);
	else
		frag_finding_say(f, ". The driver refused it, and its error has no figures: "
				    "nvidia-smi tells what else holds the card");
	for (size_t i = 0; i < FRAG_ARRAY_LEN(numbers); i++) {
		double v = *(const double *)((const char *)e + numbers[i].at);

		if (v > 0)
			frag_finding_number(f, numbers[i].name, v);
	}
	if (e->line)
		f->line = frag_answer_print(out->texts, "%s:%lu %s", e->file, e->line, e->function);
	frag_findings_note(out,
			   "%s: from the text of the error alone; a recording tells who holds "
			   "the memory",
			   about);
}

int frag_diagnose_text(const char *path, struct frag_findings *out, struct frag_err *err)
{
	FRAG_AUTO(frag_input_close_at) struct frag_input *in = NULL;
	FRAG_AUTO_FREE struct error *e = NULL;
	const char *slash = strrchr(path, '/');

	FRAG_TRY_CALLOC(e, 1, "text", err);
	FRAG_TRY(frag_input_open(path, &in, err));
	FRAG_TRY(read_text(in, e, err));
	if (e->who)
		tell(e, slash ? slash + 1 : path, out);
	return e->who != 0;
}
