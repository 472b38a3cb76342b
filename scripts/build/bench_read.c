/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long reading a trace into memory takes, without the start of a process, as processor time
 * (one thread, the file in the page cache: on an idle machine the same as time that passes):
 *	bench_read RUNS FILE
 * prints the median of RUNS in seconds after one warm-up, (largest - smallest) / median, events and
 * plain bytes, tab separated. For scripts/bench.py; linked with the library that the program is made of.
 */
#include <frag/trace.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	size_t runs = argc == 3 ? strtoul(argv[1], NULL, 10) : 0;
	double *seconds = calloc(runs + 1, sizeof(*seconds));
	unsigned long long events = 0, bytes = 0;

	if (!runs || !seconds) {
		fputs("usage: bench_read RUNS FILE\n", stderr);
		return 2;
	}
	for (size_t i = 0; i <= runs; i++) {
		struct frag_trace *t;
		struct frag_err err;
		double begin = now();

		if (frag_trace_read(argv[2], NULL, &t, &err)) {
			fprintf(stderr, "bench_read: %s\n", err.msg);
			return 1;
		}
		seconds[i] = now() - begin;
		events = 0;
		for (unsigned d = 0; d < t->devs_count; d++)
			events += t->devs[d].events_count;
		bytes = t->file_bytes;
		frag_trace_destroy(t);
	}
	qsort(seconds + 1, runs, sizeof(*seconds), compare);
	printf("%.9g\t%.3f\t%llu\t%llu\n", seconds[1 + runs / 2],
	       (seconds[runs] - seconds[1]) / seconds[1 + runs / 2], events, bytes);
	free(seconds);
	return 0;
}
