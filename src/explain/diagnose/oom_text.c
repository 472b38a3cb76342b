/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of an out-of-memory error, alone or in a log: PyTorch's of all releases, those of the
 * BFC allocators (TensorFlow, JAX, ONNX Runtime) with their dumps, and the failed starts of vLLM
 * and SGLang. Of several in a file, the first one counts that has figures, of PyTorch's the first
 * of each GPU. Beside it, or alone, torch.cuda.memory_summary(): the last of each device.
 */
#include "diagnose.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/grow.h"
#include "trace/input/input.h"

#define LINE_BYTES 2048u    /* of longer lines, pieces */
#define MESSAGE_BYTES 4096u /* after its beginning; lines may be wrapped anywhere */
#define DUMP_MOST (16u << 20)
#define TEXT_MOST (256u << 20)
#define BYTES_MOST 0x1p62
#define ASKED_MOST 0x1p50
#define OTHERS_PART 0.005 /* figures are rounded */
#define LIMIT_FULL 0.9	  /* of one's own: more pieces would not help for long */
#define SPARE_PART 0.01	  /* as find_oom.c has it */
#define OTHERS_MANY 0.25  /* of the card: what else is on it is the reason */
#define PROCESSES_MOST 8u
#define DEVICES_MOST 64u
#define LOST_PART 0.1 /* of the most reserved */

enum producer { NONE, TORCH, BFC, ENGINE, DRIVER };

struct error {
	char *text; /* lines of dumps, then all from the message on, joined by blanks */
	size_t length, cap, begin;    /* begin: of the message; TensorFlow 1 dumps before it */
	char file[256], function[64]; /* of the traceback: the last frame of one's own */
	unsigned long line;
	struct {
		unsigned long pid;
		double bytes;
	} processes[PROCESSES_MOST];
	size_t processes_count;
	bool mixed;	   /* this process is one of them, but which? */
	const char *gpu;   /* "on GPU 5, " where a file has several errors */
	enum producer who; /* NONE: no such error so far */
	double asked, total, available, allocated, unallocated, pools, reserved, allowed, process;
	double others, context, largest_free, temporary, longest;
	unsigned said; /* which of these, also as 0 */
	struct summary {
		double now[3], most[3]; /* of metrics[] */
		unsigned long ooms, retries;
		bool there;
	} summaries[DEVICES_MOST], *summary; /* the one that is read */
};

static const struct {
	const char *words, *now, *most;
} metrics[] = {
	{ "| Allocated memory |", "allocated_bytes", "peak_allocated_bytes" },
	{ "| GPU reserved memory |", "reserved_bytes", "peak_reserved_bytes" },
	{ "| Non-releasable memory |", "nonreleasable_bytes", "peak_nonreleasable_bytes" },
};

#define AT(member) offsetof(struct error, member)
#define BIT(at) (1u << ((at)-AT(asked)) / sizeof(double))
#define SAID(member) (e->said & BIT(AT(member)))

/* An error begins with the first of these words that has a producer. A figure stands behind the
 * words, or before them. */
static const struct words {
	const char *words;
	enum { BEHIND, BEFORE, DUMP } where; /* DUMP: behind them, anywhere in the text */
	unsigned at;			     /* 0: no figure */
	enum producer who;
} table[] = {
	{ "ailed to allocate ", BEHIND, AT(asked), NONE },
	{ " buffer of size ", BEHIND, AT(asked), NONE }, /* llama.cpp, behind its device */
	{ "ut of memory. Tried to allocate ", BEHIND, AT(asked), TORCH },
	{ "Tried to allocate more than ", BEHIND, AT(asked), TORCH },
	{ "Allocation on device", BEHIND, 0, TORCH }, /* backend:cudaMallocAsync */
	{ "MPS backend out of memory", BEHIND, 0, TORCH },
	{ "). Tried to allocate ", BEHIND, AT(asked), NONE },
	{ "ut of memory to allocate ", BEHIND, AT(asked), BFC },
	{ "ut of memory while trying to allocate ", BEHIND, AT(asked), BFC },
	{ "ut of memory allocating ", BEHIND, AT(asked), BFC },
	{ "an out of memory trying to allocate ", BEHIND, AT(asked), BFC },
	{ "OOM when allocating tensor with shape", BEHIND, 0, BFC },
	{ "is smaller than requested bytes of ", BEHIND, AT(asked), BFC },
	{ "Failed to allocate memory for requested buffer of size ", BEHIND, AT(asked), BFC },
	{ "Free memory on device", BEHIND, 0, ENGINE },
	{ "No available memory for the cache blocks", BEHIND, 0, ENGINE },
	{ " KV cache is needed, which is larger than", BEFORE, AT(asked), ENGINE },
	{ "number of tokens that can be stored in KV cache (", BEHIND, AT(longest), ENGINE },
	{ "Please try to increase --mem-fraction-static", BEHIND, 0, ENGINE },
	{ "leave no GPU memory for the KV cache", BEHIND, 0, ENGINE },
	{ "ut of memory occurred when warming up sampler", BEHIND, 0, ENGINE },
	{ "alloc_buffer: allocating ", BEHIND, AT(asked), DRIVER }, /* llama.cpp */
	{ "Requested amount of GPU memory (", BEHIND, AT(asked), DRIVER },
	{ ": out of memory", BEHIND, 0, DRIVER },
	{ "(out of memory)", BEHIND, 0, DRIVER },
	{ "'out of memory'", BEHIND, 0, DRIVER }, /* NCCL */
	{ "_ALLOC_FAILED", BEHIND, 0, DRIVER },	  /* cuBLAS, cuDNN and the like */
	{ "rror out of memory", BEHIND, 0, DRIVER },
	{ "ut of memory. Try to", BEHIND, 0, DRIVER }, /* SGLang: "Decode …", "Prefill …" */
	{ "Out of memory", BEHIND, 0, DRIVER },
	{ "OutOfMemoryError", BEHIND, 0, DRIVER },
	{ "ERROR_OUT_OF_MEMORY", BEHIND, 0, DRIVER },
	{ "cudaErrorMemoryAllocation", BEHIND, 0, DRIVER },
	{ "Maximum pool size exceeded", BEHIND, 0, DRIVER },
	{ "(rounded to ", BEHIND, AT(asked), NONE },
	{ "Requested : ", BEHIND, AT(asked), NONE },
	{ "total capacity of ", BEHIND, AT(total), NONE },
	{ "total capacty of ", BEHIND, AT(total), NONE }, /* 2.1 */
	{ " total capacity;", BEFORE, AT(total), NONE },
	{ "Device limit : ", BEHIND, AT(total), NONE },
	{ "memory_limit_: ", DUMP, AT(total), NONE },
	{ "Limit: ", DUMP, AT(total), NONE },
	{ " is free.", BEFORE, AT(available), NONE },
	{ " free;", BEFORE, AT(available), NONE },
	{ "Free (according to CUDA): ", BEHIND, AT(available), NONE },
	{ "Available memory of ", BEHIND, AT(available), NONE },
	{ "KV cache memory (", BEHIND, AT(available), NONE },
	{ " allowed;", BEFORE, AT(allowed), NONE },
	{ "max allowed: ", BEHIND, AT(allowed), NONE }, /* MPS */
	{ "MPS allocated: ", BEHIND, AT(allocated), NONE },
	{ "other allocations: ", BEHIND, AT(context), NONE },
	{ " is allocated by PyTorch", BEFORE, AT(allocated), NONE },
	{ " already allocated;", BEFORE, AT(allocated), NONE },
	{ "Currently allocated : ", BEHIND, AT(allocated), NONE },
	{ "allocated so far: ", BEHIND, AT(allocated), NONE }, /* CuPy */
	{ " bytes (total ", BEHIND, AT(allocated), NONE },
	{ "limit set to: ", BEHIND, AT(total), NONE },
	{ "Sum Total of in-use chunks: ", DUMP, AT(allocated), NONE },
	{ "InUse: ", DUMP, AT(allocated), NONE },
	{ " allocated in private pools", BEFORE, AT(pools), NONE },
	{ " is reserved by PyTorch but unallocated", BEFORE, AT(unallocated), NONE },
	{ " cached)", BEFORE, AT(unallocated), NONE }, /* before 1.4 */
	{ " reserved in total by PyTorch", BEFORE, AT(reserved), NONE },
	{ "total_region_allocated_bytes_: ", DUMP, AT(reserved), NONE },
	{ "his process has ", BEHIND, AT(process), NONE },
	{ "preallocated temp allocation: ", DUMP, AT(temporary), NONE },
	{ "maximum model length is ", BEHIND, AT(longest), NONE },
};

/* The texts around each figure, in the order of the sentence. */
static const struct {
	size_t at;
	const char *name, *before, *after;
} shown[] = {
	{ AT(asked), "asked_bytes", "", " was asked for" },
	{ AT(total), "total_bytes", "; the card has ", "" },
	{ AT(available), "free_bytes", ", of which ", " is free" },
	{ AT(allowed), NULL, "; the process may reserve ", "" },
	{ AT(allocated), "allocated_bytes", "; ", " is allocated" },
	{ AT(pools), NULL, " (", " of it free in private pools, for their CUDA graphs only)" },
	{ AT(unallocated), "unallocated_bytes", ", ", " reserved but unallocated" },
	{ AT(context), NULL, "; the context and libraries take ", " of this process" },
	{ AT(others), "other_processes_bytes", "; other processes hold ", "" },
};

/* ---- figures -------------------------------------------------------------------------- */

/* "546.00 MiB", "15.00GiB", "16106127360 bytes", "25,600,000 bytes"; 0: no figure. */
static double bytes_at(const char *text)
{
	char *end;
	double n = isdigit((unsigned char)*text) ? strtod(text, &end) : 0;
	const char *at, *letters = " KMGTPE";

	if (!(n > 0))
		return 0;
	while (*end == ',' && isdigit((unsigned char)end[1]))
		n = n * 1000 + strtod(end + 1, &end);
	end += strspn(end, " ");
	if (n < 1024 && !isalpha((unsigned char)*end))
		return 0; /* cut before its unit */
	at = *end ? strchr(letters + 1, toupper((unsigned char)*end)) : NULL;
	if (at && (end[1] == 'i' || !isalpha((unsigned char)end[1]) || end[1] == 'B'))
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

static void take_figures(struct error *e)
{
	for (const struct words *w = table; w < table + FRAG_ARRAY_LEN(table); w++) {
		const char *message = e->text + e->begin;
		const char *at = strstr(w->where == DUMP ? e->text : message, w->words);
		const char *end = at ? at + strlen(w->words) : "";
		double v;

		/* after the message, another error may follow */
		if (!at || !w->at ||
		    (w->where == DUMP ? e->who != BFC : at > message + MESSAGE_BYTES))
			continue;
		v = w->where == BEFORE ? bytes_before(e->text, at)
				       : bytes_at(end + strspn(end, " "));
		e->said |= BIT(w->at);
		if (v > 0)
			*(double *)((char *)e + w->at) = v;
	}
	for (const char *at = e->text; (at = strstr(at, "Free ")); at++) {
		const char *size = strstr(at, " of size ");

		if (size && size < at + 60 && !strncmp(at + 5 + (at[5] == ' '), "at ", 3))
			e->largest_free = FRAG_MAX(e->largest_free, bytes_at(size + 9));
	}
}

/* "Process 4711 has 15.25 GiB memory in use.", of each process. */
static void take_processes(struct error *e)
{
	const char *at = e->text + e->begin, *end = at + MESSAGE_BYTES;

	while ((at = strstr(at, "Process ")) && at < end && e->processes_count < PROCESSES_MOST) {
		unsigned long pid = strtoul(at += 8, NULL, 10);
		const char *has = strstr(at, " has ");
		double v = has && has < at + 12 ? bytes_at(has + 5) : 0;

		if (!(v > 0))
			continue;
		e->processes[e->processes_count].pid = pid;
		e->processes[e->processes_count++].bytes = v;
		e->others += v;
	}
}

/* TensorFlow: "shape[256,1024] and type float". */
static void take_shape(struct error *e)
{
	const char *at = strstr(e->text, "with shape["), *type = at ? strstr(at, "type ") : NULL;
	char name[12] = "";
	double n;
	char *end;

	if (!at || e->asked > 0)
		return;
	if (type)
		sscanf(type, "type %11[a-z0-9]", name);
	n = strstr(name, "64") || !strcmp(name, "double") ? 8
	    : strstr(name, "16") || !strcmp(name, "half") ? 2
							  : 4;
	for (at += 10; *at == '[' || *at == ','; at = end)
		n *= (double)strtoul(at + 1, &end, 10);
	e->asked = n < BYTES_MOST ? n : 0;
}

/* vLLM: "Free memory on device (14.2/23.64 GiB) on startup is less than … (0.9, 21.28 GiB)". */
static void take_start(struct error *e)
{
	const char *at = strstr(e->text, "Free memory on device");
	double available, total, part;

	if (!at ||
	    sscanf(at,
		   "Free memory on device%*[^(](%lf/%lf GiB) on startup is less than desired GPU "
		   "memory utilization (%lf",
		   &available, &total, &part) != 3 ||
	    !(available < 1e6 && total < 1e6 && part > 0 && part <= 1))
		return;
	e->available = available * (double)FRAG_GIB;
	e->total = total * (double)FRAG_GIB;
	e->asked = part * e->total;
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
	    file[0] == '<' || strstr(file, "-packages") || strstr(file, "/lib/python") ||
	    strcasestr(file, "\\lib\\"))
		return;
	memcpy(e->file, file, sizeof(file));
	memcpy(e->function, function, sizeof(function));
	e->line = line;
}

/* A line of memory_summary(): "| Allocated memory | 1200 MiB | 1800 MiB | …": now, at most. */
static void take_summary(struct error *e, const char *text)
{
	const char *head = strstr(text, "CUDA memory summary, device ID "), *at;
	unsigned long device = head ? strtoul(head + 31, NULL, 10) : DEVICES_MOST;

	if (device < DEVICES_MOST) {
		e->summary = &e->summaries[device];
		*e->summary = (struct summary){ .there = true };
	}
	if (!e->summary)
		return;
	if ((at = strstr(text, "CUDA OOMs:")))
		sscanf(at, "CUDA OOMs: %lu | cudaMalloc retries: %lu", &e->summary->ooms,
		       &e->summary->retries);
	for (size_t i = 0; i < FRAG_ARRAY_LEN(metrics); i++)
		if ((at = strstr(text, metrics[i].words))) {
			at += strlen(metrics[i].words) + 1;
			e->summary->now[i] = bytes_at(at);
			at += strcspn(at, "|");
			e->summary->most[i] = bytes_at(at + strspn(at, "| "));
		}
}

static int take_line(struct error *e, const char *text, size_t n, struct frag_err *err)
{
	const bool vague = !e->who || e->who == DRIVER;

	for (size_t i = 0; vague && i < FRAG_ARRAY_LEN(table); i++)
		if (table[i].who && (!e->who || table[i].who != DRIVER) &&
		    strstr(text, table[i].words) && !strstr(text, "this is not a failure")) {
			e->who = table[i].who;
			e->begin = e->length;
			break;
		}
	if (vague)
		take_frame(e, text);
	if (e->length > DUMP_MOST || (!e->who && !strstr(text, "bfc_allocator.cc") &&
				      strncmp(text, "Limit:", 6) && strncmp(text, "InUse:", 6)))
		return 0;
	for (size_t i = 0; i <= n; i++) {
		FRAG_TRY(FRAG_GROW(e->text, e->length + 1, e->cap, "text", err));
		e->text[e->length++] = (char)(i < n ? text[i] : ' ');
	}
	e->text[e->length] = '\0';
	return 0;
}

static int read_text(struct frag_input *in, struct error *e, struct frag_err *err)
{
	char text[LINE_BYTES];
	size_t n = 0;
	int c = 0;

	while (c >= 0 && frag_input_offset(in) <= TEXT_MOST) {
		c = frag_input_get(in, err);
		if (c < 0 && c != FRAG_INPUT_EOF)
			return c;
		if (c > ' ' || (n && text[n - 1] != ' ' && (c == ' ' || c == '\t')))
			text[n++] = (char)(c == '\t' ? ' ' : c);
		if (c >= 0 && c != '\n' && c != '\r' && n + 1 < sizeof(text))
			continue;
		text[n] = '\0';
		take_summary(e, text);
		FRAG_TRY(take_line(e, text, n, err));
		n = 0;
	}
	return 0;
}

/* ---- what follows from it -------------------------------------------------------------- */

#define SIZE(v) FRAG_BYTES((uint64_t)((v) + 0.5))

/* cudaMallocAsync: what its pool holds unused is not said. */
static bool pools_unknown(const struct error *e)
{
	return strstr(e->text, "according to CUDA") != NULL;
}

/* PyTorch's text ends before what it says last: what is missing is not 0. */
static bool is_cut(const struct error *e)
{
	return e->who == TORCH && SAID(total) && !SAID(unallocated) && !SAID(reserved) &&
	       !pools_unknown(e);
}

/* In a container, the process may be called by its number, too: it holds what it has reserved. */
static void find_own(struct error *e)
{
	const double used = e->total - e->available;
	size_t own = 0, n = 0;

	e->mixed = is_cut(e) && !(e->process > 0);
	if (e->mixed)
		e->others = 0;
	if (e->process > 0 || !(e->others > 0) ||
	    (e->others + e->reserved <= (1 + OTHERS_PART) * used &&
	     !(e->others >= e->reserved && e->reserved > e->total / 2)))
		return;
	for (size_t i = 0; i < e->processes_count; i++)
		if (e->processes[i].bytes >= e->reserved) {
			own = i;
			n++;
		}
	e->mixed = n != 1;
	e->process = e->mixed ? 0 : e->processes[own].bytes;
	e->others = e->mixed ? 0 : FRAG_MAX(e->others - e->process, 0);
	if (!e->mixed)
		e->processes[own].bytes = 0;
}

static void derive(struct error *e)
{
	if (e->who == BFC && e->total > 0)
		e->available = FRAG_MAX(e->total - FRAG_MAX(e->reserved, e->allocated), 0);
	if (!(e->reserved > 0))
		e->reserved = e->allocated + e->unallocated;
	e->unallocated = FRAG_MAX(e->reserved - e->allocated, 0);
	find_own(e);
	if (e->who == TORCH && !(e->others > 0) && e->total > 0 && !pools_unknown(e) &&
	    (e->process > 0 || !is_cut(e)))
		e->others = e->total - e->available - FRAG_MAX(e->process, e->reserved);
	if (e->others < OTHERS_PART * e->total)
		e->others = 0;
	if (e->process > 0 && e->reserved > 0 && !is_cut(e))
		e->context = FRAG_MAX(e->process - e->reserved, 0);
	if (e->allowed > 0 && !(e->total > 0)) /* MPS */
		e->available = FRAG_MAX(e->allowed - e->allocated - e->context, 0);
}

static void say_sizes(const struct error *e, struct frag_finding *f)
{
	SAY("%s%s", e->gpu ?: "", e->asked > 0 ? "" : "a request was refused");
	for (size_t i = 0; i < FRAG_ARRAY_LEN(shown); i++) {
		double v = *(const double *)((const char *)e + shown[i].at);
		const char *before = shown[i].before;

		if (v > 0 && shown[i].name)
			frag_finding_number(f, shown[i].name, v);
		if (shown[i].at == AT(total) && e->who == BFC)
			before = "; the allocator has ";
		else if (shown[i].at == AT(others) &&
			 (e->mixed || !(e->process > 0 || e->processes_count)))
			before = "; the context, libraries and other processes take ";
		if (shown[i].at == AT(available)
			    ? e->total > 0 && (e->who != TORCH || SAID(available))
			    : v > 0)
			SAY("%s%s%s", before, SIZE(v), shown[i].after);
	}
}

/* What would be left with all free memory in one piece. */
static double spare(const struct error *e)
{
	return (e->who == BFC	 ? e->total - e->allocated
		: e->allowed > 0 ? e->allowed - e->allocated
				 : e->unallocated + e->available) -
	       e->asked;
}

/* Would the free memory, in all its pieces, have held it, and this part of the card more? */
static bool in_pieces(const struct error *e, double part)
{
	const bool torch = e->who == TORCH && e->unallocated > 0 &&
			   e->asked > (e->allowed > 0 ? 0 : e->available);

	return (torch || (e->who == BFC && e->asked > 0 && e->total > 0 && e->allocated > 0)) &&
	       spare(e) >= part * (e->allowed > 0 ? e->allowed : e->total);
}

static enum frag_finding_kind kind_of(const struct error *e)
{
	const double missing = e->asked - e->available;

	if (e->who == ENGINE)
		return strstr(e->text, "Free memory on device") ? FRAG_FOUND_OOM_OTHERS
								: FRAG_FOUND_OOM_NEEDED;
	if (missing > 0 && e->others > OTHERS_MANY * e->total &&
	    e->others >= FRAG_MAX(missing, e->unallocated))
		return FRAG_FOUND_OOM_OTHERS;
	if (in_pieces(e, SPARE_PART) &&
	    !(e->allowed > 0 && e->allocated + e->asked > LIMIT_FULL * e->allowed))
		return FRAG_FOUND_OOM_FRAGMENTATION;
	if (e->asked > ASKED_MOST || (e->allowed > 0 && missing <= 0) ||
	    (missing > 0 && (e->total > 0 || e->available > 0) &&
	     !((pools_unknown(e) || is_cut(e)) && e->allocated + e->asked <= e->total)) ||
	    (e->temporary > e->asked / 2 && !(e->total > 0)))
		return FRAG_FOUND_OOM_NEEDED;
	return FRAG_FOUND_OOM_UNCLEAR;
}

static void say_processes(const struct error *e, struct frag_finding *f, const char *before,
			  const char *after)
{
	for (size_t i = 0; i < e->processes_count; i++)
		if (e->processes[i].bytes > 0) {
			SAY("%sprocess %lu (%s)", before, e->processes[i].pid,
			    SIZE(e->processes[i].bytes));
			before = ", ";
		}
	SAY("%s", e->processes_count ? after : "");
}

/* What would have served the request, and why. */
static void say_torch(const struct error *e, struct frag_finding *f)
{
	double missing = FRAG_MAX(e->asked - e->available, 0);
	const bool pieces = in_pieces(e, SPARE_PART);

	if (e->allowed > 0 && !(e->total > 0))
		SAY(". PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 lifts the limit, at the system's risk");
	else if (e->allowed > 0 && e->available >= e->asked)
		SAY(". The limit refused it, not the card: of %s that the process may reserve it "
		    "holds %s: raise set_per_process_memory_fraction",
		    SIZE(e->allowed), is_cut(e) ? "most" : SIZE(e->reserved));
	else if (e->asked > 0 && e->available >= e->asked)
		SAY(". As much is free: either less was when it was refused, or a limit that the "
		    "text does not name refused it");
	if (pools_unknown(e))
		SAY(". The rest is held by the pool of backend:cudaMallocAsync, the context or "
		    "other processes; the text does not say which part");
	if (is_cut(e)) {
		SAY(". The text is cut before it says what PyTorch holds");
		if (e->mixed)
			say_processes(e, f, "; ", " may be this program itself");
	}
	if (e->others >= missing && missing > 0 &&
	    (e->process > 0 || e->processes_count || e->others > OTHERS_MANY * e->total)) {
		if (!e->processes_count)
			SAY(". If other processes hold it (nvidia-smi), ending them gives enough");
		say_processes(e, f, e->mixed ? ". One of " : ". Ending ",
			      e->mixed ? " is this one; ending the others gives enough"
				       : " gives enough");
	}
	if (pools_unknown(e))
		missing = FRAG_MAX(e->allocated + e->asked - e->total, 0);
	if (pieces)
		SAY(". What lies unallocated%s would hold it, but is in pieces beside live blocks: "
		    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True (from PyTorch 2.1 on, unless "
		    "it is set) joins them, and leaves at most %s for what comes later",
		    e->unallocated < e->asked ? ", with what is free," : "", SIZE(spare(e)));
	else if (in_pieces(e, 0) && f->kind == FRAG_FOUND_OOM_NEEDED)
		SAY(". The card is full: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True would "
		    "leave only %s for what comes later",
		    SIZE(spare(e)));
	if (e->total > 0 && e->asked > e->total)
		SAY(". It alone exceeds the card: no setting serves it, only another shape");
	else if (missing > 0 && e->allocated > 0 && f->kind == FRAG_FOUND_OOM_NEEDED)
		SAY(". The program needs at least %s here: %s less live (a smaller batch, shorter "
		    "sequences, checkpointing, what is kept without need), or a larger card",
		    SIZE(e->allocated + e->asked), SIZE(missing));
}

#define SESSIONS ", a larger gpu_mem_limit, fewer sessions on the card"
#define ARENA "arena_extend_strategy=kSameAsRequested"
#define POOL "cupy.get_default_memory_pool().free_all_blocks()"
#define RECORD "cufrag record --frames -o run.cft -- "
#define NO_POOL "cufrag record --no-pool -o run.cft -- python train.py"
#define CUPY RECORD "python train.py # with cupy.cuda.set_allocator(None) in it"
#define SERVE "cufrag layout --serve --requests 1 --tokens 8192 -- "
#define SGLANG SERVE "python -m sglang.launch_server --model-path MODEL"
/* By what their texts say: remedies of fragmentation, and of a need; the command that goes on. */
static const struct framework {
	const char *mark, *pieces, *needed, *next; /* pieces: NULL: no BFC */
} frameworks[] = {
	{ "out of memory. Try to", NULL, NULL, SGLANG },
	{ "mem-fraction", NULL, NULL, SGLANG },
	{ "utilization", NULL, NULL, SERVE "vllm serve MODEL" },
	{ "ggml", NULL,
	  "fewer layers on the card (-ngl), a shorter context (-c), a smaller batch (-ub)",
	  RECORD "./llama-server -m MODEL.gguf" },
	{ "/rmm/", NULL, "rmm.mr.CudaAsyncMemoryResource(), which joins pieces; smaller partitions",
	  "cufrag explain rmm.csv # which rmm.enable_logging(log_file_name=\"rmm.csv\") writes" },
	{ "addle", NULL, NULL, RECORD "python train.py" },
	{ "cupy", POOL, POOL ", smaller arrays", CUPY },
	{ "allocated so far", POOL, POOL ", smaller arrays", CUPY },
	{ "onnxruntime", ARENA, "a smaller batch or shape, " ARENA SESSIONS,
	  RECORD "python infer.py" },
	{ "requested buffer", ARENA, "a smaller batch or shape" SESSIONS,
	  RECORD "python infer.py" },
	{ "tensor", "TF_GPU_ALLOCATOR=cuda_malloc_async", "a smaller batch", NO_POOL },
	{ "",
	  "TF_GPU_ALLOCATOR=cuda_malloc_async, or XLA_PYTHON_CLIENT_ALLOCATOR=platform (slower)",
	  "a smaller batch, jax.checkpoint, donated arguments, or a larger part of the card "
	  "(XLA_PYTHON_CLIENT_MEM_FRACTION)",
	  NO_POOL },
};

static const struct framework *framework_of(const struct error *e)
{
	const struct framework *r = frameworks;

	while (!strstr(e->text, r->mark) || (e->who == BFC && !r->pieces))
		r++;
	return r;
}

static void say_bfc(const struct error *e, struct frag_finding *f)
{
	const struct framework *r = framework_of(e);

	if (f->kind == FRAG_FOUND_OOM_FRAGMENTATION)
		SAY(". Enough is free, but in pieces%s: %s",
		    e->largest_free > 0
			    ? frag_answer_print(f->texts, " of at most %s", SIZE(e->largest_free))
			    : "",
		    r->pieces);
	else if (e->temporary > e->asked / 2)
		SAY(". %s is temporary within one compiled function: jax.checkpoint or a smaller "
		    "batch, for donated arguments do not lessen it",
		    SIZE(e->temporary));
	else
		SAY(". What would help: %s", r->needed);
}

static void say_engine(const struct error *e, struct frag_finding *f)
{
	const bool sglang = strstr(e->text, "mem-fraction") || strstr(e->text, "leave no GPU");

	if (strstr(e->text, "Free memory on device"))
		SAY(". vLLM wants its part of the card free at its start: end what else runs "
		    "there, or, where the model fits in it, --gpu-memory-utilization %.2f",
		    e->total > 0 ? floor(100 * e->available / e->total) / 100 : 0.5);
	else if (e->longest > 0 || strstr(e->text, "larger than"))
		SAY(". One request of the longest length does not fit the cache%s: "
		    "--max-model-len%s, or a larger --gpu-memory-utilization",
		    e->available > 0 ? frag_answer_print(f->texts, " of %s", SIZE(e->available))
				     : "",
		    e->longest > 0
			    ? frag_answer_print(f->texts, " %.0f (%.0f with --kv-cache-dtype fp8)",
						e->longest, 2 * e->longest)
		    : e->asked / 2 <= e->available ? ", --kv-cache-dtype fp8"
						   : "");
	else if (strstr(e->text, "warming up"))
		SAY(". What vLLM leaves beside its part of the card does not hold the sampler's "
		    "warm-up: a smaller --max-num-seqs or --gpu-memory-utilization");
	else
		SAY(". The weights leave nothing of the engine's part of the card for its cache: a "
		    "larger part (%s) where the card is otherwise free, else quantized weights or "
		    "more cards (%s)",
		    sglang ? "--mem-fraction-static" : "--gpu-memory-utilization",
		    sglang ? "--tp" : "--tensor-parallel-size");
}

static void tell(struct error *e, const char *about, struct frag_findings *out)
{
	struct frag_finding *f;

	derive(e);
	f = frag_findings_add(out, kind_of(e), about);
	say_sizes(e, f);
	if (e->asked > ASKED_MOST)
		SAY(". No card has that: a dimension of a tensor is wrong");
	else if (e->who == TORCH && (e->total > 0 || e->allocated > 0))
		say_torch(e, f);
	else if (e->who == BFC)
		say_bfc(e, f);
	else if (e->who == ENGINE)
		say_engine(e, f);
	else if (framework_of(e)->needed && *framework_of(e)->mark)
		SAY(". What would help: %s", framework_of(e)->needed);
	else if (strstr(e->text, "_ALLOC_FAILED") || strstr(e->text, "Cuda failure"))
		SAY(". A library found no memory beside PyTorch's, which keeps what it once "
		    "reserved: a smaller batch, or "
		    "torch.cuda.set_per_process_memory_fraction(0.9)");
	else
		SAY(". The text has no figures of the card: nvidia-smi tells what else holds it, a "
		    "recording what this program holds");
	if (e->who == BFC || (e->who != TORCH && *framework_of(e)->mark))
		f->next = framework_of(e)->next;
	if (e->line)
		f->line = frag_answer_print(out->texts, "%s:%lu %s", e->file, e->line, e->function);
	NOTE("%s: from the text of the error alone; a recording tells who holds the memory", about);
}

/* PyTorch's errors: the first of each GPU that has figures. Others: the first. */
static void tell_errors(struct error *e, const char *about, struct frag_findings *out)
{
	static const char again[] = "ut of memory. Tried to allocate ";
	char *at = e->text + e->begin, *next = NULL;
	uint64_t told = 0;

	for (struct error one = *e; at; at = next, one = *e, one.line = 0) {
		const char *gpu;
		unsigned long number;

		if (e->who == TORCH) {
			next = strstr(at, again);
			next = next ? strstr(next + 1, again) : NULL;
			one.text = at;
			one.begin = 0;
		}
		if (next)
			*next = '\0';
		gpu = strstr(at, "GPU ");
		number = gpu ? strtoul(gpu + 4, NULL, 10) % DEVICES_MOST : 0;
		take_figures(&one);
		if (!(told >> number & 1) && (one.total + one.allocated > 0 || !(next || told))) {
			take_processes(&one);
			take_shape(&one);
			take_start(&one);
			if (gpu && (next || told))
				one.gpu = frag_answer_print(out->texts, "on GPU %lu, ", number);
			tell(&one, about, out);
			told |= 1ull << number;
		}
		if (next)
			*next = again[0];
	}
}

static void tell_summary(const struct summary *m, size_t device, struct frag_findings *out)
{
	struct frag_finding *f = frag_findings_add(
		out, FRAG_FOUND_UNDECIDED, frag_answer_print(out->texts, "device %zu", device));
	const double lost = m->most[1] - m->most[0];

	SAY("PyTorch's memory summary of device %zu: %s is allocated of %s reserved, at their "
	    "peaks %s and %s; %s is free but not releasable",
	    device, SIZE(m->now[0]), SIZE(m->now[1]), SIZE(m->most[0]), SIZE(m->most[1]),
	    SIZE(m->now[2]));
	if (m->retries || m->ooms)
		SAY(". cudaMalloc failed %lu times, so that cached memory was given back; %lu "
		    "requests were refused",
		    m->retries, m->ooms);
	if (lost > LOST_PART * m->most[1])
		SAY(". The peaks differ by %s (%.0f %%): cached, or in pieces; a recording tells "
		    "which setting saves it",
		    SIZE(lost), 100 * lost / m->most[1]);
	for (size_t i = 0; i < FRAG_ARRAY_LEN(metrics); i++) {
		frag_finding_number(f, metrics[i].now, m->now[i]);
		frag_finding_number(f, metrics[i].most, m->most[i]);
	}
	frag_finding_number(f, "refused_count", (double)m->ooms);
	frag_finding_number(f, "retries_count", (double)m->retries);
}

int frag_diagnose_text(const char *path, struct frag_findings *out, struct frag_err *err)
{
	FRAG_AUTO(frag_input_close_at) struct frag_input *in = NULL;
	struct error e = { 0 };
	const char *slash = strrchr(path, '/');
	int rc = frag_input_open(path, &in, err) ?: read_text(in, &e, err);

	if (!rc && e.who)
		tell_errors(&e, slash ? slash + 1 : path, out);
	for (size_t i = 0; i < DEVICES_MOST && !rc; i++)
		if (e.summaries[i].there)
			tell_summary(&e.summaries[i], i, out);
	frag_host_free(e.text);
	return rc ?: e.who || e.summary;
}
