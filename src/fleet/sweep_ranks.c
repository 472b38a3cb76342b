/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sweep over the ranks of an mpirun. Rank 0 hands out; every rank, 0 too, has one worker process
 * for each trace, so that a trace that kills its worker leaves the rank alive.
 *
 * MPI itself is behind a shared object beside the program (cufrag_mpi.so, src/fleet), opened only
 * by a process that mpirun or srun has started: nothing else of cufrag needs an MPI at run time.
 *
 * Messages. To a rank: the task (uint64_t) and the path; the task alone ends it. Back: the task,
 * whether it failed (uint64_t), then the answer or why there is none.
 */
#include "sweep.h"

#include <dlfcn.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/interrupt.h"

#define MODULE "cufrag_mpi.so"

/* Beside the program, or where make install puts it. */
static void *open_module(char *tried, size_t cap)
{
	static const char *const places[] = { "", "../lib/cufrag/" };
	char self[PATH_MAX], path[PATH_MAX + 64];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	void *module = NULL;
	char *slash;

	self[n > 0 ? n : 0] = '\0';
	slash = strrchr(self, '/');
	if (slash)
		slash[1] = '\0';
	for (size_t i = 0; !module && i < FRAG_ARRAY_LEN(places); i++) {
		snprintf(path, sizeof(path), "%s%s" MODULE, self, places[i]);
		module = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	}
	snprintf(tried, cap, "%.300s", module ? "" : dlerror());
	return module;
}

int frag_sweep_ranks_open(const struct frag_ranks **out, struct frag_err *err)
{
	static const char *const signs[] = { "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
					     "MPI_LOCALNRANKS" };
	const struct frag_ranks *ranks;
	const char *size = NULL;
	char why[301];
	void *module;

	*out = NULL;
	for (size_t i = 0; !size && i < FRAG_ARRAY_LEN(signs); i++)
		size = getenv(signs[i]);
	if (!size || strtol(size, NULL, 10) < 2)
		return 0;
	module = open_module(why, sizeof(why));
	if (!module)
		return frag_fail(err, FRAG_EUSAGE,
				 "this is a rank of an mpirun, but " MODULE
				 " cannot be opened (%.200s); it is built where mpi.h is found",
				 why);
	ranks = dlsym(module, "frag_ranks_mpi");
	if (!ranks || ranks->abi != FRAG_RANKS_ABI)
		return frag_fail(err, FRAG_EUSAGE, MODULE " is of another version of cufrag");
	*out = ranks;
	return 0;
}

unsigned frag_sweep_rank_pause_us(unsigned idle)
{
	return 50u << FRAG_MIN(idle / 4, 5u); /* up to 1.6 ms */
}

/* ---- messages ------------------------------------------------------------------------ */

static int send_text(const struct frag_ranks *ranks, int rank, const uint64_t *head, size_t words,
		     const char *text)
{
	size_t len = text ? strlen(text) : 0, front = words * sizeof(*head);
	FRAG_AUTO_FREE char *message = frag_host_alloc(front + len + 1);

	if (!message)
		return FRAG_ENOMEM;
	memcpy(message, head, front);
	if (len)
		memcpy(message + front, text, len);
	return ranks->send(rank, message, front + len);
}

int frag_sweep_rank_give(const struct frag_ranks *ranks, int rank, size_t task, const char *path)
{
	uint64_t head = task;

	return send_text(ranks, rank, &head, 1, path);
}

int frag_sweep_rank_take(const struct frag_ranks *ranks, int *rank, size_t *task, bool *failed,
			 char **text)
{
	uint64_t head[2];
	void *message;
	size_t len;

	if (!ranks->poll(-1, rank, &message, &len))
		return 0;
	*text = len >= sizeof(head) ? frag_host_alloc(len - sizeof(head) + 1) : NULL;
	if (!*text) {
		free(message);
		return 0;
	}
	memcpy(head, message, sizeof(head));
	memcpy(*text, (char *)message + sizeof(head), len - sizeof(head));
	(*text)[len - sizeof(head)] = '\0';
	free(message);
	*task = head[0];
	*failed = head[1] != 0;
	return 1;
}

/* ---- a rank above 0 ------------------------------------------------------------------- */

/* The answer, or why there is none: *failed. */
static const char *wait_answer(struct frag_sweep_worker *w, bool *failed, char *why)
{
	struct pollfd p = { .fd = w->from, .events = POLLIN };
	int rc;

	while (!(rc = frag_sweep_worker_take(w, why)))
		poll(&p, 1, 1000);
	*failed = rc < 0;
	return *failed ? why : w->answer;
}

int frag_sweep_rank_serve(const struct frag_sweep *s, const struct frag_ranks *ranks,
			  struct frag_sweep_worker *w, struct frag_err *err)
{
	for (;;) {
		uint64_t head[2] = { 0 };
		char path[PATH_MAX + 1], why[120];
		void *message;
		size_t len;
		unsigned idle = 0;
		const char *text;
		int from;
		bool failed;

		while (!ranks->poll(0, &from, &message, &len)) {
			if (frag_interrupted())
				return 0;
			usleep(frag_sweep_rank_pause_us(idle++));
		}
		if (len <= sizeof(*head) || len - sizeof(*head) > PATH_MAX) {
			free(message);
			return 0;
		}
		memcpy(head, message, sizeof(*head));
		memcpy(path, (char *)message + sizeof(*head), len - sizeof(*head));
		path[len - sizeof(*head)] = '\0';
		free(message);
		FRAG_TRY(frag_sweep_worker_start(w, s, (size_t)head[0], path, err));
		text = wait_answer(w, &failed, why);
		head[1] = failed;
		if (send_text(ranks, 0, head, 2, text))
			return frag_fail(err, FRAG_EOUTPUT, "an answer did not reach rank 0");
	}
}
