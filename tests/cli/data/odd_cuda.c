/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of record: programs that do what recorders do not expect, over the libcuda.so.1 of fake_cuda.c. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int (*take)(uint64_t *, uint64_t);

static void begin(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);

	if (!driver)
		exit(9);
	((int (*)(unsigned))dlsym(driver, "cuInit"))(0);
	take = (int (*)(uint64_t *, uint64_t))dlsym(driver, "cuMemAlloc_v2");
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	uint64_t p;
	FILE *f;

	if (!strcmp(what, "dies"))
		raise(SIGKILL);
	begin();
	take(&p, 1000);
	if (!strcmp(what, "exec")) /* the same process becomes another program */
		execl(argv[0], argv[0], "plain", (char *)NULL);
	if (!strcmp(what, "child") && !fork())
		execl(argv[0], argv[0], "plain", (char *)NULL);
	if (!strcmp(what, "child"))
		wait(NULL);
	if (!strcmp(what, "late")) { /* when it has a shared page */
		char page[64];

		printf("%d\n", (int)getpid());
		fflush(stdout);
		snprintf(page, sizeof(page), "/dev/shm/cufrag-%d", (int)getpid());
		for (int i = 0; i < 100 && access(page, F_OK); i++)
			usleep(100000);
		raise(SIGKILL);
	}
	if (!strcmp(what, "garbage")) { /* in a file of the recording */
		char path[4200];

		snprintf(path, sizeof(path), "%s.%d.csv", getenv("CUFRAG_RECORD_CUDA"),
			 (int)getpid());
		f = fopen(path, "a");
		fprintf(f, "alloc,x\n");
		fclose(f);
		_exit(0);
	}
	if (!strcmp(what, "kill"))
		raise(SIGKILL);
	if (!strcmp(what, "abort"))
		abort();
	if (!strcmp(what, "_exit"))
		_exit(0);
	if (!strcmp(what, "close")) { /* and its own file gets the number of another */
		for (int fd = 3; fd < 1024; fd++)
			close(fd);
		f = fopen("mine.txt", "w");
		for (int i = 0; f && i < 20000; i++)
			take(&p, 3000);
		fprintf(f, "mine\n");
		fclose(f);
	}
	if (!strcmp(what, "chdir"))
		return chdir("/") || take(&p, 2000);
	return 0;
}
