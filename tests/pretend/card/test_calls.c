/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of CUDA on the pretended card, each case in a process of its own. A line is a call with its arguments, and what it
 * returned if that is not 0; or a question with its answer. Of several in a line ("call; call") the last one answers, and those
 * before must succeed. Arguments are numbers, variables and &variable; a variable has room for eight numbers. Beside calls:
 *
 *	set NAME=VALUE · unset NAME	the environment; again: the card is what it says now
 *	v = 1 2 3			numbers of 32 bits; longs v 1 2 3: of 64
 *	v · v.2				what is in it; ints v N · byte v AT · float v · text v · null v
 *	left · total · used		bytes of the current card; used: MiB
 *	owner ADDR · visible · number N	the card of an address, cards that the program sees, their numbers in the machine
 *	group RANKS RANK		MiB that a group of NCCL's holds
 *	fill ADDR BYTE N		by the host; answer N, answer none: what a copy to the host brings
 *	N x CALL			so many times
 */
#include "test.h"

#include <dlfcn.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nogpu_card.h"

int frag_nogpu_cudnnDropoutGetStatesSize(void *h, size_t *bytes);
int frag_nogpu_cusparseSpMatGetSize(void *a, int64_t *rows, int64_t *cols, int64_t *elements);
uint64_t frag_nogpu_group_bytes(int ranks, int rank);
void frag_nogpu_card_again(void);
int frag_nogpu_cuPointerGetAttribute(void *out, int which, const void *p);

/* One of each file, so that it is linked: calls are found by name. */
__attribute__((used)) static void (*const linked[])(void) = {
	(void (*)(void))frag_nogpu_cudaFree,
	(void (*)(void))frag_nogpu_cuMemMap,
	(void (*)(void))frag_nogpu_cuPointerGetAttribute,
	(void (*)(void))frag_nogpu_cudaMemcpyAsync,
	(void (*)(void))frag_nogpu_cudaEventQuery,
	(void (*)(void))frag_nogpu_cufftMakePlan1d,
	(void (*)(void))frag_nogpu_ncclSend,
	(void (*)(void))frag_nogpu_cudaLaunchKernel,
	(void (*)(void))frag_nogpu_cublasCreate_v2,
	(void (*)(void))frag_nogpu_cusolverDnSgetrf_bufferSize,
	(void (*)(void))frag_nogpu_cusparseSpMatGetSize,
	(void (*)(void))frag_nogpu_cudnnDropoutGetStatesSize,
};

#define VARIABLES 20
#define WORDS 20

struct calls {
	struct cases_name names[VARIABLES];
	struct {
		char name[16];
		uint64_t v[8];
	} vars[VARIABLES];
	size_t count;
};

/* In a process of its own, where cmocka must not go on. */
__attribute__((noreturn)) static void wrong(const char *what, const char *word)
{
	fprintf(stderr, "%s: %s\n", word, what);
	_exit(1);
}

static uint64_t *variable(struct calls *c, const char *name)
{
	size_t i = 0;

	while (i < c->count && strcmp(c->vars[i].name, name))
		i++;
	if (i == VARIABLES || strlen(name) >= sizeof(c->vars[i].name))
		wrong("one variable too many", name);
	strcpy(c->vars[i].name, name);
	c->count = FRAG_MAX(c->count, i + 1);
	return c->vars[i].v;
}

static bool is_number(struct calls *c, const char *text, uint64_t *value)
{
	for (size_t i = 0; i < c->count; i++)
		c->names[i] = (struct cases_name){ c->vars[i].name, c->vars[i].v[0] };
	return cases_number(text, c->names, c->count, value);
}

static uint64_t number(struct calls *c, const char *text)
{
	char name[20];
	unsigned at;
	uint64_t value;

	if (text && *text == '&')
		return (uintptr_t)variable(c, text + 1);
	if (text && sscanf(text, "%15[a-z].%u", name, &at) == 2 && at < 8)
		return variable(c, name)[at];
	if (!text || !is_number(c, text, &value))
		wrong("no number", text ? text : "");
	return value;
}

/* Whatever its type is: an integer or a pointer takes a register, or a place of eight bytes. */
__attribute__((no_sanitize("undefined"))) static int call_entry(struct calls *c, char **w)
{
	typedef int entry(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
			  uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
			  uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
	uint64_t a[19] = { 0 };
	char symbol[100];
	entry *fn;

	snprintf(symbol, sizeof(symbol), "frag_nogpu_%s", w[0]);
	fn = (entry *)(uintptr_t)dlsym(RTLD_DEFAULT, symbol);
	if (!fn)
		wrong("no such call", w[0]);
	for (size_t i = 0; i < FRAG_ARRAY_LEN(a) && w[i + 1]; i++)
		a[i] = number(c, w[i + 1]);
	return fn(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12],
		  a[13], a[14], a[15], a[16], a[17], a[18]);
}

#define N(i) number(c, w[i])

/* The answer to a query for one number. False: not such a query. */
static bool asks(struct calls *c, char **w, uint64_t *value)
{
	const char *const memory[] = { "left", "total", "used" };
	size_t bytes[3], kind = 0;

	while (kind < 3 && strcmp(w[0], memory[kind]))
		kind++;
	if (kind < 3) {
		frag_nogpu_cudaMemGetInfo(&bytes[0], &bytes[1]);
		bytes[2] = (bytes[1] - bytes[0]) / FRAG_MIB;
		*value = bytes[kind];
		return true;
	}
	if (!strcmp(w[0], "owner"))
		*value = (uint64_t)frag_nogpu_owner((void *)(uintptr_t)N(1));
	else if (!strcmp(w[0], "visible"))
		*value = (uint64_t)frag_nogpu_visible();
	else if (!strcmp(w[0], "number"))
		*value = (uint64_t)frag_nogpu_number((int)N(1));
	else if (!strcmp(w[0], "group"))
		*value = frag_nogpu_group_bytes((int)N(1), (int)N(2)) / FRAG_MIB;
	else if (!strcmp(w[0], "byte"))
		*value = ((unsigned char *)variable(c, w[1]))[N(2)];
	else if (!w[1])
		*value = N(0);
	else
		return false;
	return true;
}

static bool says(struct calls *c, char **w, FILE *out)
{
	static const char *const kinds[] = { "text", "null", "float", "ints" };
	const uint64_t *v;
	size_t kind = 0;

	while (kind < FRAG_ARRAY_LEN(kinds) && strcmp(w[0], kinds[kind]))
		kind++;
	if (kind == FRAG_ARRAY_LEN(kinds))
		return false;
	v = variable(c, w[1]);
	if (kind == 0)
		fputs((const char *)v, out);
	else if (kind == 1)
		fputs(*v ? "no" : "yes", out);
	else if (kind == 2)
		fprintf(out, "%g", (double)*(const float *)v);
	for (uint64_t i = 0; kind == 3 && i < N(2); i++)
		fprintf(out, "%s%d", i ? " " : "", ((const int *)v)[i]);
	return true;
}

static bool prepares(struct calls *c, char **w)
{
	char *value = w[1] ? strchr(w[1], '=') : NULL;

	if (!strcmp(w[0], "set")) {
		*value = 0;
		setenv(w[1], value + 1, 1);
	} else if (!strcmp(w[0], "unset")) {
		unsetenv(w[1]);
	} else if (!strcmp(w[0], "again")) {
		frag_nogpu_card_again();
	} else if (!strcmp(w[0], "longs")) {
		for (size_t i = 0; w[i + 2]; i++)
			variable(c, w[1])[i] = N(i + 2);
	} else if (!strcmp(w[0], "answer")) {
		frag_nogpu_answer(strcmp(w[1], "none"), strtoull(w[1], NULL, 10));
	} else if (!strcmp(w[0], "fill")) {
		memset((void *)(uintptr_t)N(1), (int)N(2), N(3));
	} else if (value == w[1] && value) {
		for (size_t i = 0; w[i + 2]; i++)
			((int *)variable(c, w[0]))[i] = (int)N(i + 2);
	} else {
		return false;
	}
	return true;
}

/* What is expected stays as it is written if it is the same. */
static void say_number(struct calls *c, uint64_t value, const char *expected, FILE *out)
{
	uint64_t same;

	if (*expected && is_number(c, expected, &same) && same == value)
		fputs(expected, out);
	else
		fprintf(out, "%lld", (long long)value);
}

static void answer_one(struct calls *c, char *call, const char *expected, FILE *out)
{
	char *w[WORDS + 1] = { NULL }, **words = w;
	uint64_t value, times = 1;
	int rc = 0;

	for (size_t n = 0; n < WORDS && (w[n] = cases_word(&call));)
		n++;
	if (w[1] && !strcmp(w[1], "x")) {
		times = N(0);
		words += 2;
	}
	if (strstr(words[0], "cu") == words[0] || strstr(words[0], "nv") == words[0] ||
	    strstr(words[0], "nccl") == words[0]) {
		while (times--)
			rc = call_entry(c, words);
		if (rc && !out)
			wrong("it failed", words[0]);
		if (rc)
			fprintf(out, "%d", rc);
	} else if (!prepares(c, words) && !(out && says(c, words, out))) {
		if (!out || !asks(c, words, &value))
			wrong("no call", words[0]);
		say_number(c, value, expected, out);
	}
}

static void answer(void *ctx, char *call, const char *expected, FILE *out)
{
	for (char *one = call, *next; one; one = next) {
		next = strstr(one, "; ");
		if (next) {
			*next = 0;
			next += 2;
		}
		answer_one(ctx, one, expected, next ? NULL : out);
	}
}

static void run(const char *body, FILE *out)
{
	int ends[2], status;
	char piece[4096];
	pid_t pid;
	ssize_t n;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (!pid) {
		struct calls c = { .count = 0 };
		FILE *to = fdopen(ends[1], "w");

		close(ends[0]);
		signal(SIGSEGV, SIG_DFL);
		setenv("CUFRAG_NOGPU",
		       "name=Small card;total=4294967296;context=536870912;libraries=0;count=3;"
		       "cc=8.9;sms=58;nvlink=0",
		       1);
		setenv("CUDA_VISIBLE_DEVICES", "1,0,5", 1);
		cases_lines(body, to, &c, answer);
		fclose(to);
		_exit(0);
	}
	close(ends[1]);
	while ((n = read(ends[0], piece, sizeof(piece))) > 0)
		fwrite(piece, 1, (size_t)n, out);
	close(ends[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void run_with_memory(const char *body, FILE *out)
{
	NEEDS_ADDRESSES();
	run(body, out);
}

CASES("tests/pretend/card/calls.cases", run)
CASES("tests/pretend/card/workspaces.cases", run)
CASES("tests/pretend/card/memory.cases", run_with_memory)
CASES("tests/pretend/card/beside.cases", run_with_memory)
