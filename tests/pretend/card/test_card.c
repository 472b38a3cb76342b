/* SPDX-License-Identifier: Apache-2.0 */
/* The pretended card where lines of calls (test_calls.c) do not do: properties, copies, unknown calls. */
#include "test.h"

#include <fcntl.h>
#include <unistd.h>

#include "nogpu_card.h"

int frag_nogpu12_cudaGetDeviceProperties_v2(void *out, int device);
int frag_nogpu13_cudaGetDeviceProperties(void *out, int device);

TEST(properties_are_those_of_the_card)
{
	unsigned char p12[1032], p13[1008];
	int major12, major13;

	assert_int_equal(frag_nogpu12_cudaGetDeviceProperties_v2(p12, 1), 0);
	assert_int_equal(frag_nogpu13_cudaGetDeviceProperties(p13, 1), 0);
	assert_string_equal((char *)p12, "Small card");
	assert_memory_equal(p12, p13, 344); /* up to there they are alike */
	memcpy(&major12, p12 + 360, sizeof(major12));
	memcpy(&major13, p13 + 360, sizeof(major13));
	assert_int_equal(major12, 8);
	assert_int_equal(major13, 8);
}

TEST(small_copies_are_real_and_large_ones_leave_zeros)
{
	static unsigned char host[10 << 20], back[10 << 20];
	void *p;

	NEEDS_ADDRESSES();
	memset(host, 7, sizeof(host));
	OK(cudaMalloc(&p, sizeof(host)));
	frag_nogpu_cudaMemcpy(p, host, 1000, 1);
	frag_nogpu_cudaMemset((char *)p + 1000, 9, 10);
	frag_nogpu_cudaMemcpy(back, p, 2000, 2);
	assert_memory_equal(back, host, 1000);
	assert_int_equal(back[1009], 9);
	assert_int_equal(back[1010], 0);
	frag_nogpu_cudaMemcpy(p, host, sizeof(host), 1);
	frag_nogpu_cudaMemcpy(back, p, sizeof(back), 2);
	assert_int_equal(back[3000], 0);
	frag_nogpu_cudaFree(p);
	/* reused memory begins with zeros */
	OK(cudaMalloc(&p, sizeof(host)));
	frag_nogpu_cudaMemcpy(back, p, 16, 2);
	assert_int_equal(back[0], 0);
	frag_nogpu_cudaFree(p);
}

TEST(who_takes_memory_leaves_a_mark)
{
	const char *folder = test_folder("begun");
	char path[100];
	void *p;

	NEEDS_ADDRESSES();
	setenv("CUFRAG_RECORD", folder, 1);
	snprintf(path, sizeof(path), "%s/%d.begun", folder, getpid());
	assert_int_not_equal(access(path, F_OK), 0);
	OK(cudaMalloc(&p, 1000));
	assert_int_equal(access(path, F_OK), 0);
	frag_nogpu_cudaFree(p);
	unsetenv("CUFRAG_RECORD");
}

TEST(unknown_calls_are_errors_and_listed_once)
{
	const char *path = test_make_file("calls", "", 0);
	int fd = open(path, O_RDONLY);
	char text[200] = "";

	assert_true(fd >= 0);
	setenv("CUFRAG_NOGPU_CALLS", path, 1);
	assert_true(frag_nogpu_is_nothing("cudaLaunchKernel"));
	assert_true(frag_nogpu_is_nothing("cublasGemmEx"));
	assert_false(frag_nogpu_is_nothing("cublasGetSomething"));
	assert_false(frag_nogpu_is_nothing("cudaNeverHeardOf"));
	assert_false(frag_nogpu_is_nothing("cusparseLtInit"));
	assert_int_equal(frag_nogpu_unknown("cudaNeverHeardOf"), 801);
	assert_null(frag_nogpu_find("cuNeverHeardOf")); /* only looked for */
	assert_int_equal(frag_nogpu_unknown("cublasGetSomething"), 15);
	assert_int_equal(frag_nogpu_unknown("cudaNeverHeardOf"), 801);
	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	assert_string_equal(text, "cudaNeverHeardOf\ncublasGetSomething\n");
	close(fd);
}

TEST_GROUP(small_card, NULL)
