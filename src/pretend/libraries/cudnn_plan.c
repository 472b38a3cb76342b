/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolutions as the user's own cuDNN plans them, where there is one (CUFRAG_PRETEND_PLANNER, set
 * by cufrag_card.py: the interpreter, cufrag_planner.py and the library, a line each). Another
 * process asks it, since in this one the names of cuDNN lead here. It starts with the first
 * convolution and ends with this process.
 */
#include "pretend/card/card.h"

#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cudnn.h"

extern char **environ;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int to = -1; /* -1: no planner */
static FILE *from;
static pid_t owner; /* a child of fork has none, and starts its own */
static int version; /* of the library that plans, as 91900; 0: none does */
static int known;   /* what a card adds to its plans is known */
static bool asked;

/* No signal where the planner has ended. */
static bool say(const char *line)
{
	for (ssize_t n; *line; line += n) {
		n = send(to, line, strlen(line), MSG_NOSIGNAL);
		if (n <= 0)
			return false;
	}
	return true;
}

/* The card, as cufrag_planner.py reads it; to be freed. NULL: no memory. */
static char *describe_card(void)
{
	const struct pretend_card *c = frag_pretend_card();
	char *text;
	int n = asprintf(&text, "%d %llu %d %d %llu %d %llu %d %s\n", c->sms,
			 (unsigned long long)c->shared_per_block_bytes, c->blocks_per_sm,
			 c->threads_per_sm, (unsigned long long)c->total_bytes, c->clock_khz,
			 (unsigned long long)c->l2_bytes, c->major * 100 + c->minor * 10, c->name);

	return n < 0 ? NULL : text;
}

/* Its cuDNN sees no card of this machine: by its answers it would plan other kernels. */
static void spawn(char *argv[], int end)
{
	posix_spawn_file_actions_t files;
	const char *path = getenv(CUFRAG_PRETEND_PLANNER_PATH);
	char *text = NULL, *env[3] = { "CUDA_VISIBLE_DEVICES=" };
	pid_t pid;

	if (path && asprintf(&text, "LD_LIBRARY_PATH=%s", path) >= 0)
		env[1] = text;
	if (!posix_spawn_file_actions_init(&files)) {
		if (!posix_spawn_file_actions_adddup2(&files, end, STDIN_FILENO) &&
		    !posix_spawn_file_actions_adddup2(&files, end, STDOUT_FILENO) &&
		    !posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY,
						      0))
			(void)posix_spawn(&pid, argv[0], &files, NULL, argv, env);
		posix_spawn_file_actions_destroy(&files);
	}
	free(text);
}

static void start(void)
{
	const char *setting = getenv(CUFRAG_PRETEND_PLANNER);
	char *python = NULL, *script = NULL, *library = NULL, line[64], *card;
	int ends[2];

	owner = getpid();
	to = -1;
	if (setting &&
	    sscanf(setting, "%m[^\n]\n%m[^\n]\n%m[^\n]", &python, &script, &library) == 3 &&
	    !socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) {
		/* -I -S: not the program's Python files */
		spawn((char *[]){ python, "-I", "-S", script, library, getenv(CUFRAG_PRETEND_CUDNN),
				  NULL },
		      ends[1]);
		close(ends[1]);
		to = ends[0];
		from = fdopen(to, "r");
		card = describe_card();
		if (!from || !card || !say(card) || !fgets(line, sizeof(line), from) ||
		    sscanf(line, "%d %d", &version, &known) != 2)
			to = -1;
		free(card);
	}
	free(python);
	free(script);
	free(library);
}

static void put(FILE *q, const int64_t *values, int64_t count)
{
	for (int64_t i = 0; i < count; i++)
		fprintf(q, " %lld", (long long)values[i]);
}

/* A line, to be freed. NULL: no memory. */
static char *question(const char *before, const struct pretend_cudnn *op)
{
	const struct pretend_cudnn *parts[3] = { op->x_part, op->w_part, op->y_part };
	int64_t dims = op->x_part->dims_count;
	char *line = NULL;
	FILE *q = open_memstream(&line, &(size_t){ 0 });

	if (!q)
		return NULL;
	fprintf(q, "%s%d %d %lld", before, op->kind, op->x_part->type, (long long)dims);
	for (int i = 0; i < 3; i++) {
		put(q, parts[i]->dims, dims);
		put(q, parts[i]->strides, dims);
	}
	put(q, op->conv->conv_pads, dims - 2);
	put(q, op->conv->conv_strides, dims - 2);
	put(q, op->conv->conv_dilations, dims - 2);
	fputc('\n', q);
	fclose(q);
	return line;
}

static void take_answer(const char *at, struct pretend_plans *plans)
{
	char *end;

	for (plans->count = 0; plans->count < PRETEND_PLANS; plans->count++) {
		struct pretend_plan *p = &plans->at[plans->count];

		p->bytes = strtoll(at, &end, 10);
		if (end == at)
			break;
		p->notes = (int)strtol(end, &end, 10);
		at = end;
	}
}

/* Asked several times in a row, for each attribute. The second: all of a convolution's plans. */
static struct answered {
	char *question;
	struct pretend_plans plans;
} first, largest;

/* q is freed. false: this cuDNN cannot do it, or is none. */
static bool ask(struct answered *last, char *q, struct pretend_plans *plans)
{
	FRAG_LOCKED(&lock);
	char answer[200];

	asked = true;
	if (owner != getpid())
		start();
	if (to >= 0 && !(q && last->question && !strcmp(q, last->question))) {
		if (q && say(q) && fgets(answer, sizeof(answer), from))
			take_answer(answer, &last->plans);
		else
			to = -1; /* it ended */
		free(last->question);
		last->question = q;
	} else {
		free(q);
	}
	*plans = last->plans;
	if (to < 0)
		plans->count = 0;
	plans->planned = plans->count > 0;
	plans->known = known;
	return plans->planned;
}

/* The cuDNN that planned, as 91900; below 0: the program's, as none planned; 0: none was asked. */
__attribute__((visibility("default"))) int frag_pretend_conv_planner(void);
int frag_pretend_conv_planner(void)
{
	FRAG_LOCKED(&lock);

	return !asked ? 0 : version ? version : -(int)frag_pretend_cudnnGetVersion();
}

bool frag_pretend_conv_planned(const struct pretend_cudnn *op, struct pretend_plans *plans)
{
	const struct pretend_cudnn *x = op->x_part, *w = op->w_part, *y = op->y_part;

	if (!x || !w || !y || !op->conv || x->dims_count < 3 || x->dims_count > 5 ||
	    w->dims_count != x->dims_count || y->dims_count != x->dims_count)
		return false;
	return ask(&first, question("", op), plans);
}

int64_t frag_pretend_conv_largest(const struct pretend_cudnn *op, const struct pretend_plan *plan)
{
	struct pretend_plans plans;
	int64_t bytes = plan->bytes;

	if (ask(&largest, question("all ", op), &plans))
		for (int i = 0; i < plans.count; i++)
			if (plans.at[i].notes == plan->notes)
				bytes = FRAG_MAX(bytes, plans.at[i].bytes);
	return bytes;
}

int64_t frag_pretend_cudnn_element_bytes(int type)
{
	/* cudnnDataType_t: float, double, half, int8, int32, int8x4, …, bfloat16 = 9, int64 */
	switch (type) {
	case 0:
	case 4:
		return 4;
	case 1:
	case 10:
		return 8;
	case 2:
	case 9:
		return 2;
	}
	return 1;
}
