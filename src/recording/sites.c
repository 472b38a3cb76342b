/* SPDX-License-Identifier: Apache-2.0 */
/* Call sites of stacks; see sites.h. */
#include "sites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answer/textbuf.h"
#include "base/clean.h"
#include "trace/strings.h"

const char *const frag_site_by_words[] = {
	[FRAG_BY_LINE] = "line",     [FRAG_BY_FUNCTION] = "function", [FRAG_BY_FILE] = "file",
	[FRAG_BY_MODULE] = "module", [FRAG_BY_STACK] = "stack",	      NULL
};

/* ---- which frames are the user's --------------------------------------------------- */

/* Lists of words, each with a '|' behind it. */

/* Parts of a path that only installed code has. */
static const char library_parts[] =
	"site-packages/|dist-packages/|/lib/python3|/lib64/python3|importlib/|<frozen "
	"|/torch/nn/|/torch/autograd/|/torch/optim/|/torch/utils/|/torch/distributed/|/torch/cuda/"
	"|/torch/_|/torch/amp/|/torch/fx/|/torch/csrc/|/torchgen/|torchinductor_|/aten/src/|/c10/|/"
	"runpy.py|multiprocessing/|/threading.py|contextlib.py|";
/* Of sources that are below every program: CPython, compilers and libc; and of cufrag itself. */
static const char machinery_parts[] = "Objects/|Python/|Modules/|Programs/|cpython|/include/|/nptl/"
				      "|/csu/|sysdeps/|glibc|/libcufrag|";
/* How the names of functions begin that are below every program: the unwinder, the allocator and
 * the interpreter, whose names are all that is known where PyTorch records C++, too. */
static const char machinery_names[] =
	"torch::unwind|torch::CapturedTraceback|torch::gather|c10::|std::|at::detail::|_Py|"
	"PyObject_|PyEval_|PyVectorcall_|PyRun_|Py_|pymain_|cfunction_|method_vectorcall|run_mod|"
	"run_eval_code|__libc_start|_start|?\?|";
/* C and C++ of PyTorch and of what it stands on: how names begin; parts of files, with and without
 * debug information. */
static const char inner_names[] = "at::|torch::|caffe2::|THP|pybind11::|";
static const char inner_parts[] =
	"/libtorch|/libc10|/libpython|/libcu|/libnccl|/libc.so|/libstdc++|/ld-linux|";
/* First folders of paths that are cut to the package-relative part. */
static const char library_roots[] =
	" torch torchvision torchaudio transformers accelerate peft timm deepspeed lightning "
	"torch_geometric diffusers datasets triton numpy xformers flash_attn apex bitsandbytes "
	"megatron trl torchtitan fairscale tqdm pytorch_lightning ignite fastai jax cupy asyncio "
	"concurrent ";

/* Does the text have one of the words, or (begins) begin with it? */
static bool has(const char *text, const char *words, bool begins)
{
	const size_t len = strlen(text);

	for (size_t n; *words; words += n + 1) {
		n = strcspn(words, "|");
		if (n <= len &&
		    (begins ? !memcmp(text, words, n) : memmem(text, len, words, n) != NULL))
			return true;
	}
	return false;
}

static bool is_library(const char *file)
{
	size_t n = strcspn(file, "/");
	char root[32];

	if (has(file, library_parts, false))
		return true;
	if (file[n] != '/' || !n || n > sizeof(root) - 3 || memchr(file, ' ', n))
		return false;
	snprintf(root, sizeof(root), " %.*s ", (int)n, file);
	return strstr(library_roots, root) != NULL;
}

static bool is_python(const char *file)
{
	return frag_ends_with(file, ".py") || strstr(file, "ipython") ||
	       strstr(file, "ipykernel") || !strcmp(file, "<stdin>") || !strcmp(file, "<string>");
}

/* Plus one in frag_sites.frame_own: which of a stack's frames counts most. */
enum { NOT_LOOKED, MACHINERY, INNER, OTHER, LIBRARY, PROGRAM_WITH_LINE, PROGRAM };

/* What torch.compile wrote, named by its content, wherever its cache is: "…/f2/cf2r7mz….py". */
static bool is_compiled(const char *file, const char *slash)
{
	return slash && slash - file > 2 && slash[-3] == '/' && strlen(slash) > 40 &&
	       !strncmp(slash - 2, slash + 2, 2);
}

/* C and C++ frames of a program: a source file with a line that is no library's. Paths of those who
 * built a library with debug information look the same, so the user's Python comes before. */
static uint8_t kind_of(const char *file)
{
	const char *slash = strrchr(file, '/');

	if (!strncmp(slash ? slash + 1 : file, "cufrag_", 7) || strstr(file, "/cufrag/inject/"))
		return MACHINERY;
	if (is_python(file))
		return is_library(file) || is_compiled(file, slash) ? LIBRARY : PROGRAM;
	if (has(file, machinery_parts, false))
		return MACHINERY;
	if (is_library(file) || has(file, inner_parts, false))
		return INNER;
	return slash && *file != '<' ? PROGRAM_WITH_LINE : OTHER;
}

/* By a C++ name without its result: "at::native::zero" of "at::Tensor& at::native::zero<T>(…)". */
static uint8_t kind_of_name(const char *name)
{
	int depth = 0;

	for (const char *p = name; *p && (depth || *p != '('); p++) {
		depth += (*p == '<') - (*p == '>');
		if (*p == ' ' && !depth)
			name = p + 1;
	}
	return has(name, machinery_names, true) ? MACHINERY
	       : has(name, inner_names, true)	? INNER
						: OTHER;
}

/* Each name is classified once: many frames may share a very long one. */
static int fill_own(struct frag_sites *s, const struct frag_trace *t, struct frag_err *err)
{
	uint32_t names = t->strings ? frag_strings_count(t->strings) : 0;
	FRAG_AUTO_FREE uint8_t *kinds = frag_host_calloc(names + 1, 2);

	FRAG_CHECK_ALLOC(kinds, "call sites", err);
	for (size_t i = 0; i < t->stacks.frames_count; i++) {
		const struct frag_frame *f = &t->stacks.frames[i];
		uint8_t *kind = &kinds[FRAG_MIN(f->file, names)];
		uint8_t *named = &kinds[names + 1 + FRAG_MIN(f->name, names)];

		if (!*kind)
			*kind = kind_of(frag_trace_string(t, f->file));
		s->frame_own[i] = *kind - 1;
		if (*kind != OTHER && *kind != INNER && (*kind != PROGRAM_WITH_LINE || f->line))
			continue;
		if (!*named)
			*named = kind_of_name(frag_trace_string(t, f->name));
		s->frame_own[i] = FRAG_MIN(*kind == INNER ? INNER : OTHER, *named) - 1;
	}
	return 0;
}

const uint32_t *frag_stack_frames(const struct frag_trace *t, uint32_t stack, size_t *count)
{
	const struct frag_stacks *s = &t->stacks;

	*count = 0;
	if (!stack || stack >= s->count)
		return NULL;
	*count = (size_t)(s->first[stack + 1] - s->first[stack]);
	return s->index + s->first[stack];
}

const uint32_t *frag_sites_frames(const struct frag_sites *s, uint32_t stack, size_t *count)
{
	*count = stack < s->stacks_count ? s->shown_first[stack + 1] - s->shown_first[stack] : 0;
	return s->shown + (*count ? s->shown_first[stack] : 0);
}

/* A stack that is machinery alone keeps its frames. */
static int fill_shown(struct frag_sites *s, struct frag_err *err)
{
	size_t at = 0;

	FRAG_TRY_CALLOC(s->shown, s->trace->stacks.index_count + 1, "call sites", err);
	FRAG_TRY_CALLOC(s->shown_first, s->stacks_count + 1, "call sites", err);
	for (uint32_t i = 0; i < s->stacks_count; i++) {
		size_t n, from = at;
		const uint32_t *f = frag_stack_frames(s->trace, i, &n);

		for (size_t k = 0; k < n; k++)
			if (s->frame_own[f[k]] != MACHINERY - 1)
				s->shown[at++] = f[k];
		if (at == from && n) {
			memcpy(s->shown + at, f, n * sizeof(*f));
			at += n;
		}
		s->shown_first[i + 1] = at;
	}
	return 0;
}

/* The frame that stands for a stack; UINT32_MAX for an empty one. */
static uint32_t choose(const struct frag_sites *s, uint32_t stack, const char *frame)
{
	size_t n;
	const uint32_t *f = frag_stack_frames(s->trace, stack, &n);
	uint32_t best = UINT32_MAX;
	uint8_t rank = 0;

	if (!n)
		return UINT32_MAX;
	if (frame && !strcmp(frame, "inner"))
		return f[0];
	if (frame && !strcmp(frame, "outer"))
		return f[n - 1];
	if (frame && strcmp(frame, "user") != 0) {
		for (size_t i = 0; i < n; i++)
			if (strstr(frag_trace_string(s->trace, s->trace->stacks.frames[f[i]].file),
				   frame))
				return f[i];
	}
	for (size_t i = 0; i < n; i++) {
		if (best != UINT32_MAX && s->frame_own[f[i]] <= rank)
			continue;
		best = f[i];
		rank = s->frame_own[f[i]];
	}
	return best;
}

/* ---- names --------------------------------------------------------------------------- */

/* The text without control characters, for frag_host_free; NULL when memory is short. */
static char *finish(struct frag_text *t)
{
	if (t->failed || !t->len)
		frag_text_add(t, "");
	if (!t->failed)
		return frag_clean_text(t->s, t->len);
	frag_text_release(t);
	return NULL;
}

static void add_frame(const struct frag_trace *t, uint32_t frame, struct frag_text *out)
{
	const struct frag_frame *f = &t->stacks.frames[frame];
	const char *file = frag_trace_string(t, f->file), *name = frag_trace_string(t, f->name);

	frag_text_addf(out, "%s:%u%s%s", *file ? file : "?", f->line, *name ? " " : "", name);
}

char *frag_frame_name(const struct frag_trace *t, uint32_t frame)
{
	struct frag_text name = { 0 };

	add_frame(t, frame, &name);
	return finish(&name);
}

/* The folders of a file, as Python names modules: torch.nn.modules of torch/nn/modules/linear.py. */
static void add_module(const char *file, struct frag_text *out)
{
	const char *slash = strrchr(file, '/');

	frag_text_addn(out, file, slash ? (size_t)(slash - file) : strlen(file));
	if (*file != '/' && slash)
		for (char *p = out->s; p && *p; p++)
			*p = *p == '/' ? '.' : *p;
}

/* Outermost first. */
static void add_stack(const struct frag_sites *s, uint32_t stack, struct frag_text *out)
{
	size_t n;
	const uint32_t *f = frag_sites_frames(s, stack, &n);

	while (n-- > 0) {
		add_frame(s->trace, f[n], out);
		frag_text_add(out, n ? " > " : "");
	}
}

static char *site_name(const struct frag_sites *s, uint32_t stack, uint32_t frame)
{
	const struct frag_trace *t = s->trace;
	const struct frag_frame *f = &t->stacks.frames[frame];
	const char *file = frag_trace_string(t, f->file);
	struct frag_text name = { 0 };

	switch (s->by) {
	case FRAG_BY_LINE:
		add_frame(t, frame, &name);
		break;
	case FRAG_BY_FUNCTION:
		if (!strcmp(frag_trace_string(t, f->name), "<module>")) /* all of a script */
			add_frame(t, frame, &name);
		else
			frag_text_addf(&name, "%s %s", file, frag_trace_string(t, f->name));
		break;
	case FRAG_BY_FILE:
		frag_text_add(&name, file);
		break;
	case FRAG_BY_MODULE:
		add_module(file, &name);
		break;
	case FRAG_BY_STACK:
		add_stack(s, stack, &name);
		break;
	}
	return finish(&name);
}

/* ---- the table -------------------------------------------------------------------------- */

struct named {
	char *name;
	uint32_t stack;
};

FRAG_COMPARE(by_name, struct named, strcmp(x->name, y->name), FRAG_ORDER(x->stack, y->stack))

/* Equal names become one site; in order of name, so that the numbers are those of any run. */
static int merge(struct frag_sites *s, struct named *list, size_t n, struct frag_err *err)
{
	bool torch = s->trace->format && !strcmp(s->trace->format, "torch-snapshot");
	const char *none = torch ? "(no stack, as in backward)" : "(no stack)";

	s->names = frag_host_calloc(n + 1, sizeof(*s->names));
	FRAG_CHECK_ALLOC(s->names && (s->names[0] = frag_host_strdup(none)), "call sites", err);
	s->count = 1;
	qsort(list, n, sizeof(*list), by_name);
	for (size_t i = 0; i < n; i++) {
		if (!i || strcmp(list[i].name, s->names[s->count - 1]) != 0) {
			s->names[s->count++] = list[i].name;
			list[i].name = NULL;
		}
		s->of_stack[list[i].stack] = (uint32_t)(s->count - 1);
	}
	return 0;
}

static int name_all(struct frag_sites *s, const char *frame, struct frag_err *err)
{
	FRAG_AUTO_FREE struct named *list = frag_host_calloc(s->stacks_count, sizeof(*list));
	size_t n = 0;
	int rc = list ? 0 : frag_fail_nomem(err, "call sites");

	for (uint32_t i = 1; !rc && i < s->stacks_count; i++) {
		uint32_t f = choose(s, i, frame);

		if (f == UINT32_MAX)
			continue;
		list[n] = (struct named){ site_name(s, i, f), i };
		if (!list[n].name)
			rc = frag_fail_nomem(err, "call sites");
		else
			n++;
	}
	if (!rc)
		rc = merge(s, list, n, err);
	for (size_t i = 0; list && i < n; i++)
		frag_host_free(list[i].name);
	return rc;
}

int frag_sites_init(struct frag_sites *s, const struct frag_trace *trace, enum frag_site_by by,
		    const char *frame, struct frag_err *err)
{
	*s = (struct frag_sites){ .trace = trace, .by = by };
	s->stacks_count = FRAG_MAX(trace->stacks.count, (size_t)1);
	FRAG_TRY_CALLOC(s->of_stack, s->stacks_count, "call sites", err);
	FRAG_TRY_CALLOC(s->frame_own, trace->stacks.frames_count + 1, "call sites", err);
	return fill_own(s, trace, err) ?: fill_shown(s, err) ?: name_all(s, frame, err);
}

void frag_sites_release(struct frag_sites *s)
{
	for (size_t i = 0; s->names && i < s->count; i++)
		frag_host_free(s->names[i]);
	FRAG_FREE(s->names, s->of_stack, s->frame_own, s->shown, s->shown_first);
	*s = (struct frag_sites){ 0 };
}

char *frag_sites_line(const struct frag_sites *sites, uint32_t stack)
{
	const struct frag_trace *t = sites->trace;
	uint32_t frame = choose(sites, stack, NULL);

	/* PyTorch names its own C++ functions without a file */
	if (frame == UINT32_MAX ||
	    (sites->frame_own[frame] < LIBRARY - 1 &&
	     !strchr(frag_trace_string(t, t->stacks.frames[frame].file), '/')))
		return NULL;
	return frag_frame_name(t, frame);
}

bool frag_sites_known(const struct frag_sites *s)
{
	return s->trace->stacks.count > 1;
}

/* ---- blame ---------------------------------------------------------------------------------- */

struct through { /* one frame */
	double gain, flow, depth;
	uint32_t seen; /* stack that counted it last: a frame of a recursion counts once */
};

static void count_stack(const struct frag_sites *s, uint32_t stack, double gain, double flow,
			uint8_t least, struct through *frames)
{
	size_t n;
	const uint32_t *f = frag_stack_frames(s->trace, stack, &n);

	for (size_t i = 0; i < n; i++) {
		struct through *t = &frames[f[i]];

		if (s->frame_own[f[i]] < least || t->seen == stack)
			continue;
		t->seen = stack;
		t->gain += gain;
		t->flow += flow;
		t->depth += gain > 0 ? gain * (double)i : 0;
	}
}

/* Of all growth what goes through a frame, times what of the frame's own flow grew. */
static double score_of(const struct through *t, double total)
{
	return t->gain > 0 && t->flow > 0 ? t->gain / total * FRAG_MIN(t->gain / t->flow, 1.0) : 0;
}

/* The innermost of those whose score is at least this. */
static uint32_t innermost(const struct through *frames, size_t count, double total, double score)
{
	uint32_t pick = UINT32_MAX;

	for (uint32_t i = 0; i < count; i++) {
		const struct through *t = &frames[i];

		if (t->gain > 0 && score_of(t, total) >= score &&
		    (pick == UINT32_MAX ||
		     t->depth / t->gain < frames[pick].depth / frames[pick].gain))
			pick = i;
	}
	return pick;
}

/*
 * The best, and of those as good within slack the innermost: what calls the line to blame has
 * its growth, too. A frame that the whole program goes through (main(), the call of train()) has
 * all growth and says nothing: a fifth less than its score will do for another.
 */
static uint32_t pick_frame(const struct through *frames, size_t count, double total, double flow,
			   double slack)
{
	double best = 0, others = 0;

	for (size_t i = 0; i < count; i++) {
		double score = score_of(&frames[i], total);

		best = FRAG_MAX(best, score);
		if (frames[i].flow < 0.99 * flow)
			others = FRAG_MAX(others, score);
	}
	if (best <= 0)
		return UINT32_MAX;
	return innermost(frames, count, total,
			 (1 - slack) * (others >= 0.8 * best ? others : best));
}

uint32_t frag_blame(const struct frag_sites *s, const double *gain, const double *flow,
		    double slack, double *share, struct frag_err *err)
{
	size_t frames_count = s->trace->stacks.frames_count;
	FRAG_AUTO_FREE struct through *frames = frag_host_calloc(frames_count + 1, sizeof(*frames));
	uint32_t pick = UINT32_MAX;
	double total = 0, all = 0;

	*share = 0;
	if (!frames) {
		frag_fail_nomem(err, "call sites");
		return UINT32_MAX;
	}
	for (size_t i = 0; i < s->stacks_count; i++) {
		total += gain[i] > 0 ? gain[i] : 0;
		all += i ? flow[i] : 0; /* 0: without a stack */
	}
	for (uint8_t least = PROGRAM_WITH_LINE; pick == UINT32_MAX && least-- > LIBRARY - 1;) {
		memset(frames, 0, frames_count * sizeof(*frames));
		for (uint32_t i = 1; i < s->stacks_count; i++)
			if (gain[i] != 0 || flow[i] != 0)
				count_stack(s, i, gain[i], flow[i], least, frames);
		pick = pick_frame(frames, frames_count, total, all, slack);
	}
	if (pick != UINT32_MAX)
		*share = FRAG_MIN(frames[pick].gain / total, 1.0);
	return pick;
}
