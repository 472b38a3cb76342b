/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of CUDA on the pretended card, each case in a process of its own. A line is a call with its arguments, and what it
 * returned if that is not 0; or a question with its answer. Of several in a line ("call; call") the last one answers, and those
 * before must succeed. A name is that of an entry, of a function in the table below, or of the C library. Arguments are numbers,
 * variables, &variable, @function, 'text, and 0.5f; a variable has room for eight numbers. Beside calls:
 *
 *	N x CALL · do CALL		so many times; whatever it returns
 *	times N: LINE			the line so many times
 *	define NAME LINE		"NAME A B" is this line with A for $1 and B for $2
 *	yes CALL · v <- CALL		it returns true, as 1; what it returns, of 64 bits
 *	set NAME=VALUE · unset NAME	the environment
 *	v = 1 2 3 · *ADDR = 1 2 3	numbers of 32 bits; longs ADDR 1 2 3: of 64
 *	v · v.2 · a < b			what is in it; 1 if it is less
 *	ints ADDR N · sizes ADDR N · byte ADDR AT · float ADDR · text ADDR · null v
 *	left · total · used		bytes of the current card; used: MiB
 *	group RANKS RANK		MiB that a group of NCCL's holds
 *	kernel ADDR 'NAME KIND ARCH FLAGS …	a function that launches a kernel, and the code of its source file
 *	rest MS · watchdog MS CALL	in the thread of NCCL's watchdog; with MS > 0 again, after a rest
 *
 * Cases of two ranks are two processes, with variables `me`, `peer` and `comm`. A line that begins with a rank is only for that
 * one. `elapsed` is the ms since the case began, `give v` sends a variable to the other, which says `take v`, and `theirs v` opens
 * the other's descriptor.
 */
#include "test.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <threads.h>
#include <unistd.h>

#include <frag/clock.h>

#include "nogpu_card.h"
#include "pretend/ranks/nccl.h"

/* One of each file, so that it is linked; its type does not matter here. */
#define LINKED(name) void frag_nogpu_##name(void)
LINKED(cudaFree);
LINKED(cuMemMap);
LINKED(cuPointerGetAttribute);
LINKED(cudaIpcCloseMemHandle);
LINKED(cudaEventQuery);
LINKED(cublasCreate_v2);
LINKED(cufftMakePlan1d);
LINKED(ncclSend);
LINKED(cusolverDnSgetrf_bufferSize);
LINKED(cusparseSpMatGetSize);
LINKED(cudnnDropoutGetStatesSize);
LINKED(cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize);

int frag_nogpu_cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes);
int frag_nogpu_ncclCommInitRankScalable(void **out, int ranks, int rank, int ids, void *id,
					void *config);
int frag_nogpu_ncclCommDestroy(void *comm);
void **frag_nogpu___cudaRegisterFatBinary(void *fatbin);
void frag_nogpu___cudaRegisterFunction(void **handle, const void *function, const char *mangled,
				       const char *name);

static void count_up(int *count)
{
	++*count;
}

/* Stands for values/origins.cpp: counts at the place itself, from a high number if it is known. */
static void set_origin(int *at, uint32_t origin)
{
	*at += 1 + 100 * (int)origin;
}

#define FUNCTION(name) \
	{ \
#name, (void (*)(void))frag_nogpu_##name \
	}
#define PLAIN(name) \
	{ \
#name, (void (*)(void))name \
	}
/* Functions that are not exported, as entries are. */
static const struct {
	const char *name;
	void (*function)(void);
} functions[] = {
	FUNCTION(arch_of),
	FUNCTION(asserts),
	FUNCTION(blocks_per_sm),
	FUNCTION(number),
	FUNCTION(owner),
	FUNCTION(registers_by_name),
	FUNCTION(shared),
	FUNCTION(symmetric_begin),
	FUNCTION(visible),
	PLAIN(count_up),
	PLAIN(set_origin),
	PLAIN(talk_circle),
	PLAIN(talk_join),
	PLAIN(talk_say),
	PLAIN(talk_waits),
	FUNCTION(cudaFree),
	FUNCTION(cuMemMap),
	FUNCTION(cuPointerGetAttribute),
	FUNCTION(cudaMemcpyAsync),
	FUNCTION(cudaIpcCloseMemHandle),
	FUNCTION(cudaEventQuery),
	FUNCTION(cufftMakePlan1d),
	FUNCTION(ncclSend),
	FUNCTION(cublasCreate_v2),
	FUNCTION(cusolverDnSgetrf_bufferSize),
	FUNCTION(cusparseSpMatGetSize),
	FUNCTION(cudnnDropoutGetStatesSize),
	FUNCTION(cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize),
};

#define VARIABLES 30
#define WORDS 30
#define DEFINED 2

struct calls {
	int rank; /* -1: a process alone */
	int in, out;
	int process; /* the other's, whose message was taken last */
	uint64_t begun_ns;
	struct cases_name names[VARIABLES];
	struct {
		char name[16];
		uint64_t v[8];
	} vars[VARIABLES];
	size_t count;
	struct {
		char name[16], *line;
	} defined[DEFINED];
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

static void *function_of(const char *name)
{
	char symbol[100];
	void *found;

	for (size_t i = 0; i < FRAG_ARRAY_LEN(functions); i++)
		if (!strcmp(functions[i].name, name))
			return (void *)(uintptr_t)functions[i].function;
	snprintf(symbol, sizeof(symbol), *name == '1' ? "frag_nogpu%s" : "frag_nogpu_%s", name);
	found = dlsym(RTLD_DEFAULT, symbol);
	return found ? found : dlsym(RTLD_DEFAULT, name);
}

static bool is_float(const char *text, float *value)
{
	char *end;

	*value = strtof(text, &end);
	return end > text && strchr(text, '.') && !strcmp(end, "f");
}

static uint64_t number(struct calls *c, const char *text)
{
	char name[20];
	unsigned at = 0;
	uint64_t value = 0;
	float real;

	if (text && *text == '&' && sscanf(text, "&%15[a-z0-9]+%u", name, &at) >= 1)
		return (uintptr_t)variable(c, name) + at;
	if (text && *text == '@')
		return (uintptr_t)function_of(text + 1);
	if (text && *text == '\'')
		return (uintptr_t)strdup(text + 1);
	if (text && sscanf(text, "%15[a-z].%u", name, &at) == 2 && at < 8)
		return variable(c, name)[at];
	if (text && is_float(text, &real))
		return memcpy(&value, &real, sizeof(real)), value;
	if (!text || !is_number(c, text, &value))
		wrong("no number", text ? text : "");
	return value;
}

#define N(i) number(c, w[i])

/* Whatever its type is: an integer or a pointer takes a register, or a place of eight bytes. */
__attribute__((no_sanitize("undefined"))) static uint64_t call(struct calls *c, char **w)
{
	typedef uint64_t entry(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
			       uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
			       uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, float);
	entry *fn = (entry *)(uintptr_t)function_of(w[0]);
	uint64_t a[19] = { 0 };
	float real = 0;

	if (!fn)
		wrong("no such call", w[0]);
	for (size_t i = 1, to = 0; to < FRAG_ARRAY_LEN(a) && w[i]; i++)
		if (!is_float(w[i], &real))
			a[to++] = N(i);
	return fn(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12],
		  a[13], a[14], a[15], a[16], a[17], a[18], real);
}

/* ---- questions ------------------------------------------------------------------ */

/* The answer to a query for one number. False: not such a query. */
static bool asks(struct calls *c, char **w, uint64_t *value)
{
	static const char *const memory[] = { "left", "total", "used" };
	size_t bytes[3], kind = 0;

	while (kind < 3 && strcmp(w[0], memory[kind]))
		kind++;
	if (kind < 3) {
		frag_nogpu_cudaMemGetInfo(&bytes[0], &bytes[1]);
		bytes[2] = (bytes[1] - bytes[0]) / FRAG_MIB;
		*value = bytes[kind];
	} else if (!strcmp(w[0], "group")) {
		*value = frag_nogpu_group_bytes((int)N(1), (int)N(2)) / FRAG_MIB;
	} else if (!strcmp(w[0], "byte")) {
		*value = ((unsigned char *)(uintptr_t)N(1))[N(2)];
	} else if (!w[1]) {
		*value = N(0);
	} else {
		*value = N(0) < N(2);
		return !strcmp(w[1], "<");
	}
	return true;
}

static bool says(struct calls *c, char **w, FILE *out)
{
	static const char *const kinds[] = { "text", "float", "null", "ints", "sizes" };
	const int *at;
	size_t kind = 0;

	while (kind < FRAG_ARRAY_LEN(kinds) && strcmp(w[0], kinds[kind]))
		kind++;
	if (kind == FRAG_ARRAY_LEN(kinds))
		return false;
	at = (const int *)(uintptr_t)N(1);
	if (kind == 0)
		fputs((const char *)at, out);
	else if (kind == 1)
		fprintf(out, "%g", (double)*(const float *)at);
	else if (kind == 2)
		fputs(at ? "no" : "yes", out);
	for (uint64_t i = 0; kind > 2 && i < N(2); i++)
		fprintf(out, "%s%lld", i ? " " : "",
			kind == 3 ? (long long)at[i] : ((const long long *)(const void *)at)[i]);
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

/* ---- other lines ---------------------------------------------------------------- */

static void add_kernel(struct calls *c, char **w)
{
	uint32_t *code = calloc(1, 1024); /* stays, as the code of a library does */
	struct frag_nogpu_fatbin file = { .list = (const unsigned char *)code };
	size_t count = 0;

	for (; w[3 * count + 3]; count++) {
		uint32_t *entry = code + 4 + 12 * count;

		entry[0] = (uint32_t)N(3 * count + 3);
		entry[1] = 48; /* bytes of its head */
		entry[7] = (uint32_t)N(3 * count + 4);
		entry[10] = (uint32_t)N(3 * count + 5);
	}
	code[0] = 0xba55ed50;
	code[2] = 48 * (uint32_t)count;
	frag_nogpu___cudaRegisterFunction(frag_nogpu___cudaRegisterFatBinary(&file),
					  (void *)(uintptr_t)N(1), "",
					  (const char *)(uintptr_t)N(2));
}

struct letter {
	int process;
	uint64_t v[8];
};

static bool talks(struct calls *c, char **w)
{
	struct letter letter = { .process = getpid() };
	char path[64];

	if (!strcmp(w[0], "give")) {
		memcpy(letter.v, variable(c, w[1]), sizeof(letter.v));
		if (write(c->out, &letter, sizeof(letter)) != sizeof(letter))
			wrong("not given", w[1]);
	} else if (!strcmp(w[0], "take")) {
		if (read(c->in, &letter, sizeof(letter)) != sizeof(letter))
			wrong("not taken", w[1]);
		memcpy(variable(c, w[1]), letter.v, sizeof(letter.v));
		c->process = letter.process;
	} else if (!strcmp(w[0], "theirs")) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", c->process, (int)N(1));
		variable(c, w[1])[0] = (uint64_t)open(path, O_RDWR | O_CLOEXEC);
	} else {
		return false;
	}
	return true;
}

static void rest(uint64_t ms)
{
	nanosleep(&(struct timespec){ (time_t)ms / 1000, (long)ms % 1000 * 1000000 }, NULL);
}

static bool prepares(struct calls *c, char **w)
{
	char *value = w[1] ? strchr(w[1], '=') : NULL;

	if (!strcmp(w[0], "set")) {
		*value = 0;
		setenv(w[1], value + 1, 1);
	} else if (!strcmp(w[0], "unset")) {
		unsetenv(w[1]);
	} else if (!strcmp(w[0], "rest")) {
		rest(N(1));
	} else if (!strcmp(w[0], "kernel")) {
		add_kernel(c, w);
	} else if (!strcmp(w[0], "longs")) {
		for (size_t i = 0; w[i + 2]; i++)
			((uint64_t *)(uintptr_t)N(1))[i] = N(i + 2);
	} else if (value && !strcmp(w[1], "=")) {
		int *to = *w[0] == '*' ? (int *)(uintptr_t)number(c, w[0] + 1)
				       : (int *)variable(c, w[0]);

		for (size_t i = 0; w[i + 2]; i++)
			to[i] = (int)N(i + 2);
	} else {
		return talks(c, w);
	}
	return true;
}

struct watch {
	struct calls *c;
	char **call;
	uint64_t rest_ms, answer;
};

static int look(void *of)
{
	struct watch *w = of;

	prctl(PR_SET_NAME, "pt_nccl_watchdg");
	w->answer = call(w->c, w->call);
	rest(w->rest_ms);
	if (w->rest_ms)
		w->answer = call(w->c, w->call);
	return 0;
}

static uint64_t watchdog(struct calls *c, char **w)
{
	struct watch watch = { c, w + 2, N(1), 0 };
	thrd_t thread;

	thrd_create(&thread, look, &watch);
	thrd_join(thread, NULL);
	return watch.answer;
}

/* Words of a call. The answer that is wanted: 0 for "v <- ", whose variable gets it. */
static int answer_of_call(struct calls *c, char **w)
{
	uint64_t times = 1, got = 0;

	if (w[1] && !strcmp(w[1], "<-")) {
		got = call(c, w + 2);
		variable(c, w[0])[0] = got;
		return 0;
	}
	if (!strcmp(w[0], "do"))
		return answer_of_call(c, w + 1), 0;
	if (!strcmp(w[0], "yes"))
		return call(c, w + 1) & 1;
	if (!strcmp(w[0], "watchdog"))
		return (int)watchdog(c, w);
	if (w[1] && !strcmp(w[1], "x")) {
		times = N(0);
		w += 2;
	}
	while (times--)
		got = call(c, w);
	return (int)got;
}

static bool is_call(struct calls *c, char **w)
{
	uint64_t value;

	static const char *const words[] = { "do", "yes", "watchdog" };

	for (size_t i = 0; i < FRAG_ARRAY_LEN(words); i++)
		if (!strcmp(w[0], words[i]))
			return true;
	if (w[1] && (!strcmp(w[1], "x") || !strcmp(w[1], "<-")))
		return true;
	return !(w[1] ? !strcmp(w[1], "<") : is_number(c, w[0], &value)) && function_of(w[0]);
}

static void answer_one(struct calls *c, char *line, const char *expected, FILE *out)
{
	char *w[WORDS + 1] = { NULL };
	uint64_t value;
	int rc;

	for (size_t n = 0; n < WORDS && (w[n] = cases_word(&line));)
		n++;
	variable(c, "elapsed")[0] = (frag_clock_ns() - c->begun_ns) / 1000000;
	if (prepares(c, w))
		return;
	if (is_call(c, w)) {
		rc = answer_of_call(c, w);
		if (rc && !out)
			wrong("it failed", w[0]);
		if (rc)
			fprintf(out, "%d", rc);
	} else if (!(out && says(c, w, out))) {
		if (!out || !asks(c, w, &value))
			wrong("no call", w[0]);
		say_number(c, value, expected, out);
	}
}

/* The line of a word that was defined, with the words of this one. NULL: it was not. */
static char *expanded(const struct calls *c, const char *line)
{
	char *text = strdup(line), *rest = text, *w[WORDS + 1] = { NULL }, *out = NULL;
	const char *from = NULL;
	FILE *to = open_memstream(&out, &(size_t){ 0 });

	for (size_t n = 0; n < WORDS && (w[n] = cases_word(&rest));)
		n++;
	for (size_t i = 0; i < DEFINED; i++)
		if (!strcmp(c->defined[i].name, w[0]))
			from = c->defined[i].line;
	for (const char *at = from; at && *at;)
		if (*at == '$')
			fputs(w[strtoul(at + 1, (char **)&at, 10)], to);
		else
			fputc(*at++, to);
	fclose(to);
	return from ? out : NULL;
}

static void answer_all(struct calls *c, const char *line, const char *expected, FILE *out)
{
	char *text = expanded(c, line);

	text = text ? text : strdup(line);
	for (char *one = text, *next; one; one = next) {
		next = strstr(one, "; ");
		if (next) {
			*next = 0;
			next += 2;
		}
		answer_one(c, one, expected, next ? NULL : out);
	}
	free(text);
}

static void answer(void *ctx, char *line, const char *expected, FILE *out)
{
	struct calls *c = ctx;
	unsigned times = 1;
	int skipped = 0;
	size_t n = 0;

	if (line[1] == ':') {
		if (*line - '0' != c->rank) {
			fputs(expected, out);
			return;
		}
		line += 3;
	}
	while (n < DEFINED && c->defined[n].line)
		n++;
	if (n < DEFINED && sscanf(line, "define %15s %n", c->defined[n].name, &skipped) == 1) {
		c->defined[n].line = strdup(line + skipped);
		return;
	}
	sscanf(line, "times %u: %n", &times, &skipped);
	while (times--)
		answer_all(c, line + skipped, expected, out);
}

/* ---- processes ------------------------------------------------------------------ */

static struct calls calls; /* of a process */

static void one_alone(const char *body, FILE *out)
{
	calls.rank = -1;
	setenv("CUFRAG_NOGPU",
	       "name=Small card;total=4294967296;context=536870912;libraries=0;count=3;"
	       "cc=8.9;sms=58;nvlink=0",
	       1);
	setenv("CUDA_VISIBLE_DEVICES", "1,0,5", 1);
	cases_lines(body, out, &calls, answer);
}

/* On no card that is counted for groups (beside.c), so that none is opened. */
static void one_of_two(const char *body, FILE *out)
{
	static unsigned char id[128] = { 42 };
	void **comm = (void **)variable(&calls, "comm");

	alarm(100); /* the other may have failed */
	setenv("CUFRAG_NOGPU", "total=1073741824;name=c;cc=8.0;sms=10;libraries=0", 1);
	calls.begun_ns = frag_clock_ns();
	variable(&calls, "me")[0] = (uint64_t)calls.rank;
	variable(&calls, "peer")[0] = (uint64_t)(1 - calls.rank);
	if (frag_nogpu_ncclCommInitRankScalable(comm, 2, calls.rank, 1, id, NULL))
		wrong("no communicator", "comm");
	cases_lines(body, out, &calls, answer);
	frag_nogpu_ncclCommDestroy(*comm);
}

static void run(const char *body, FILE *out)
{
	assert_int_equal(cases_finish(cases_start(body, one_alone), out), 0);
}

/* The text is rank 0's, but rank 1's if that is another. */
static void run_two(const char *body, FILE *out)
{
	FRAG_AUTO(free_at) char *texts[2] = { NULL };
	struct cases_process both[2];
	int ways[2][2];

	assert_int_equal(pipe(ways[0]) + pipe(ways[1]), 0);
	setenv("CUFRAG_NOGPU_TALK", test_folder("talk"), 1);
	for (int i = 0; i < 2; i++) {
		calls = (struct calls){ .rank = i, .in = ways[i][0], .out = ways[1 - i][1] };
		both[i] = cases_start(body, one_of_two);
	}
	for (int i = 0; i < 2; i++) {
		FILE *to = open_memstream(&texts[i], &(size_t){ 0 });

		assert_int_equal(cases_finish(both[i], to), 0);
		fclose(to);
		close(ways[i][0]);
		close(ways[i][1]);
	}
	fputs(texts[strncmp(texts[1], body, strlen(body)) ? 1 : 0], out);
	free(texts[1]);
}

static void run_with_memory(const char *body, FILE *out)
{
	NEEDS_ADDRESSES();
	run(body, out);
}

static void run_two_with_memory(const char *body, FILE *out)
{
	NEEDS_ADDRESSES();
	run_two(body, out);
}

CASES("tests/pretend/card/calls.cases", run)
CASES("tests/pretend/card/workspaces.cases", run)
CASES("tests/pretend/card/memory.cases", run_with_memory)
CASES("tests/pretend/card/beside.cases", run_with_memory)
CASES("tests/pretend/card/talk.cases", run_two)
CASES("tests/pretend/card/shared.cases", run_two_with_memory)
