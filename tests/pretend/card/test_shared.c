/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the pretended card that processes share. */
#include "test.h"

#include <sys/wait.h>
#include <unistd.h>

#include "pretend/card/lent.h"
#include "nogpu_card.h"

/* CUDA's handle of memory, by value. */
struct handle {
	char bytes[64];
};
int frag_nogpu_cudaIpcGetMemHandle(struct handle *out, void *p);
int frag_nogpu_cudaIpcOpenMemHandle(void **out, struct handle h, unsigned flags);
int frag_nogpu_cudaIpcCloseMemHandle(void *p);

/* Another process finds `first` there, and stores 2, zeros behind it, and 3 at the end. 0: all of it went well. */
static int visit(struct handle h, int first, size_t bytes)
{
	unsigned char *p;
	void *opened;

	if (frag_nogpu_cudaIpcOpenMemHandle(&opened, h, 1))
		return 1;
	p = opened;
	if (p[0] != first || p[bytes - 1] != first)
		return 2;
	frag_nogpu_cudaMemset(p, 2, 100);
	frag_nogpu_cudaMemset(p + 100, 0, bytes - 200);
	frag_nogpu_cudaMemset(p + bytes - 100, 3, 100);
	return p[bytes - 1] != 3 || frag_nogpu_cudaIpcCloseMemHandle(p) ? 3 : 0;
}

TEST(processes_see_what_others_store_in_memory_that_they_lent)
{
	static const size_t sizes[] = { 1000, 1 << 20 };
	unsigned char *p, *neighbour;
	struct handle h;
	void *got;

	NEEDS_ADDRESSES();
	for (size_t i = 0; i < 2; i++) {
		size_t bytes = sizes[i];
		int status;
		pid_t child;

		OK(cudaMalloc(&got, bytes));
		p = got;
		OK(cudaMalloc(&got, bytes));
		neighbour = got;
		frag_nogpu_cudaMemset(p, 1, bytes);
		frag_nogpu_cudaMemset(neighbour, 7, bytes);
		OK(cudaIpcGetMemHandle(&h, p));
		OK(cudaIpcGetMemHandle(&h, p)); /* again */
		child = fork();
		if (!child)
			_exit(visit(h, 1, bytes));
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
		assert_int_equal(p[0], 2);
		assert_int_equal(p[bytes / 2], 0);
		assert_int_equal(p[bytes - 1], 3);
		assert_int_equal(neighbour[0], 7);
		assert_int_equal(neighbour[bytes - 1], 7);
		/* given back, it is this process's alone, and empty */
		frag_nogpu_cudaFree(p);
		OK(cudaMalloc(&got, bytes));
		assert_ptr_equal(got, p);
		if (bytes > 4096)
			assert_int_equal(p[bytes / 2] + p[4096], 0);
		frag_nogpu_cudaFree(got);
		frag_nogpu_cudaFree(neighbour);
	}
}

#define EXPORTED_BYTES (4u << 20)

/* 0: another process finds ones that were computed and zeros that were not, and leaves twos of another origin. */
static int visit_exported(int fd)
{
	const size_t bytes = EXPORTED_BYTES;
	uint64_t free_before, free_bytes, total, handle;
	uint32_t origin = 0;
	unsigned char *p;
	void *at;

	frag_nogpu_cudaMemGetInfo(&free_before, &total);
	if (frag_nogpu_cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)fd, FILES) ||
	    frag_nogpu_cuMemAddressReserve(&at, bytes, 0, 0, 0) ||
	    frag_nogpu_cuMemMap(at, bytes, 0, handle, 0))
		return 1;
	p = at;
	if (p[0] != 1 || p[999] != 1 || p[bytes - 1] || !frag_nogpu_foreign(p))
		return 2;
	if (!frag_nogpu_lent_origin(p, 1000, &origin) || origin != NOGPU_COMPUTED)
		return 3;
	if (!frag_nogpu_lent_origin(p, bytes, &origin) || origin != NOGPU_UNKNOWN)
		return 4;
	memset(p + bytes / 2, 2, 1000);
	frag_nogpu_lent_origin_set(p + bytes / 2, 1000, 3, false);
	frag_nogpu_cudaMemGetInfo(&free_bytes, &total);
	if (free_bytes != free_before)
		return 5; /* it takes nothing of the card */
	if (frag_nogpu_cuMemUnmap(p, bytes) || frag_nogpu_cuMemAddressFree(p, bytes))
		return 6;
	return p[0] || frag_nogpu_foreign(p) || frag_nogpu_cuMemRelease(handle) ? 7 : 0;
}

TEST(processes_see_what_others_store_in_handles_that_they_exported)
{
	struct kind kind = { 1, FABRIC, 1, 0, { 0 } };
	const size_t bytes = EXPORTED_BYTES;
	uint32_t origin = 0;
	uint64_t handle;
	unsigned char *p;
	int status, fd;
	pid_t child;
	void *at;

	NEEDS_ADDRESSES();
	assert_int_equal(frag_nogpu_cuMemCreate(&handle, bytes, &kind, 0), NOGPU_NOT_SUPPORTED);
	kind.handle_types = FILES;
	OK(cuMemCreate(&handle, bytes, &kind, 0));
	OK(cuMemAddressReserve(&at, bytes, 0, 0, 0));
	OK(cuMemMap(at, bytes, 0, handle, 0));
	p = at;
	frag_nogpu_cudaMemset(p, 1, 1000);
	OK(cuMemExportToShareableHandle(&fd, handle, FILES, 0));
	close(fd);
	frag_nogpu_lent_origin_set(p, 1000, NOGPU_COMPUTED, false);
	OK(cuMemExportToShareableHandle(&fd, handle, FILES, 0));
	child = fork();
	if (!child)
		_exit(visit_exported(fd));
	close(fd);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(p[0] + p[bytes / 2] + p[bytes / 2 + 999], 1 + 2 + 2);
	assert_true(frag_nogpu_lent_origin(p + bytes / 2, 1000, &origin));
	assert_int_equal(origin, 3);
	OK(cuMemUnmap(p, bytes));
	OK(cuMemRelease(handle));
	assert_int_equal(p[0] + p[bytes / 2], 0);
	assert_false(frag_nogpu_shared(p, bytes));
	OK(cuMemAddressFree(p, bytes));
}

TEST_GROUP(small_card, NULL)
