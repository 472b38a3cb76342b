/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long reading a trace into memory takes, without the start of a process, as processor time
 * (one thread, the file in the page cache: on an idle machine the same as time that passes):
 *	bench_read RUNS FILE
 * prints seconds, events and plain bytes of each run. For scripts/bench.py.
 */
#include <frag/trace.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int main(int argc, char **argv)
{
	for (int i = 0; argc == 3 && i < atoi(argv[1]); i++) {
		clock_t begin = clock();
		unsigned long long events = 0;
		struct frag_trace *t;
		struct frag_err err;
		double seconds;

		if (frag_trace_read(argv[2], NULL, &t, &err)) {
			fprintf(stderr, "bench_read: %s\n", err.msg);
			return 1;
		}
		seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
		for (unsigned d = 0; d < t->devs_count; d++)
			events += t->devs[d].events_count;
		printf("%.9g\t%llu\t%llu\n", seconds, events, (unsigned long long)t->file_bytes);
		frag_trace_destroy(t);
	}
	return argc != 3;
}
