/* SPDX-License-Identifier: Apache-2.0 */
/* The pretended card as a CUDA program meets it: memory, copies, streams, captures, unknown calls. */
#include "test.h"

#include <unistd.h>

#include "nogpu_card.h"

int frag_nogpu_cudaPointerGetAttributes(void *out, const void *p);
int frag_nogpu12_cudaGetDeviceProperties_v2(void *out, int device);
int frag_nogpu13_cudaGetDeviceProperties(void *out, int device);
int frag_nogpu_cudaFuncGetAttributes(void *out, const void *function);
void **frag_nogpu___cudaRegisterFatBinary(void *fatbin);
void frag_nogpu___cudaRegisterFunction(void **handle, const void *function);
int frag_nogpu_cuMemCreate(uint64_t *out, size_t bytes, const void *prop, uint64_t flags);

int frag_nogpu_cusparseCreateCsr(void **out, int64_t rows, int64_t cols, int64_t elements, void *s,
				 void *c, void *v, int st, int ct, int base, int type);
int frag_nogpu_cusparseSpGEMM_workEstimation(void *h, int op_a, int op_b, void *alpha, void *a,
					     void *b, void *beta, void *c, int type, int algorithm,
					     void *info, size_t *bytes, void *buffer);
int frag_nogpu_cusparseSpMatGetSize(void *a, int64_t *rows, int64_t *cols, int64_t *elements);

int frag_nogpu_cufftMakePlanMany(int plan, int rank, const int *n, const int *inembed, int istride,
				 int idist, const int *onembed, int ostride, int odist, int type,
				 int batch, size_t *bytes);

void frag_nogpu_card_again(void);

#define OK(call) assert_int_equal(frag_nogpu_##call, 0)

static size_t left_bytes(void)
{
	size_t left, total;

	OK(cudaMemGetInfo(&left, &total));
	assert_true(total == 4 * FRAG_GIB);
	return left;
}

/* A forked run has a description of its own: cards of another number, of which the environment may show some. */
TEST(card_again)
{
	char given[200];
	int count;

	OK(cudaGetDeviceCount(&count));
	snprintf(given, sizeof(given), "%s", getenv("CUFRAG_NOGPU"));
	setenv("CUFRAG_NOGPU", "total=4294967296;count=5", 1);
	unsetenv("CUDA_VISIBLE_DEVICES");
	OK(cudaGetDeviceCount(&count));
	assert_int_equal(count, 2);
	frag_nogpu_card_again();
	OK(cudaGetDeviceCount(&count));
	assert_int_equal(count, 5);
	setenv("CUDA_VISIBLE_DEVICES", "3,4", 1);
	frag_nogpu_card_again();
	OK(cudaGetDeviceCount(&count));
	assert_int_equal(count, 2);
	assert_int_equal(frag_nogpu_number(1), 4);
	/* nobody counted them: as many as the program uses */
	setenv("CUFRAG_NOGPU", "total=4294967296;least=1", 1);
	frag_nogpu_card_again();
	OK(cudaGetDeviceCount(&count));
	assert_int_equal(count, 2);
	unsetenv("CUDA_VISIBLE_DEVICES");
	setenv("LOCAL_WORLD_SIZE", "3", 1);
	frag_nogpu_card_again();
	OK(cudaGetDeviceCount(&count));
	assert_int_equal(count, 3);
	unsetenv("LOCAL_WORLD_SIZE");
	frag_nogpu_card_again();
	OK(cudaGetDeviceCount(&count));
	assert_int_equal(count, 1);
	setenv("CUFRAG_NOGPU", given, 1);
	setenv("CUDA_VISIBLE_DEVICES", "1,0,5", 1);
	frag_nogpu_card_again();
	OK(cudaGetDeviceCount(&count));
	assert_int_equal(count, 2);
}

TEST(card_is_the_one_described)
{
	unsigned char p12[1032], p13[1008];
	char bus[16];
	int value, major12, major13;

	OK(cudaGetDeviceCount(&value));
	assert_int_equal(value, 2);
	OK(cudaDeviceGetAttribute(&value, 16, 0));
	assert_int_equal(value, 58);
	OK(cudaDeviceGetAttribute(&value, 97, 0));
	assert_int_equal(value, 99 * 1024); /* of 8.9 */
	assert_int_equal(frag_nogpu_cudaDeviceGetAttribute(&value, 16, 2), 101);
	assert_int_equal(frag_nogpu_cudaGetLastError(), 101);
	OK(cudaGetLastError());
	assert_int_equal(frag_nogpu12_cudaGetDeviceProperties_v2(p12, 1), 0);
	assert_int_equal(frag_nogpu13_cudaGetDeviceProperties(p13, 1), 0);
	assert_string_equal((char *)p12, "Small card");
	assert_memory_equal(p12, p13, 344); /* up to there they are alike */
	memcpy(&major12, p12 + 360, sizeof(major12));
	memcpy(&major13, p13 + 360, sizeof(major13));
	assert_int_equal(major12, 8);
	assert_int_equal(major13, 8);
	OK(cuDeviceGetPCIBusId(bus, sizeof(bus), 1));
	assert_string_equal(bus,
			    "0000:01:00.0"); /* the machine's first card, by CUDA_VISIBLE_DEVICES */
}

TEST(memory_runs_out_as_on_the_card)
{
	uint64_t memory[3];
	void *a, *b, *handle;
	size_t before;

	NEEDS_ADDRESSES();
	before = left_bytes();
	assert_true(before == 4 * FRAG_GIB - 512 * FRAG_MIB);
	OK(cudaMalloc(&a, 3 * FRAG_GIB));
	assert_true(left_bytes() == before - 3 * FRAG_GIB);
	/* NVML says the same; the machine's second card is the first that the program sees */
	frag_nogpu_nvmlDeviceGetHandleByIndex_v2(1, &handle);
	OK(nvmlDeviceGetMemoryInfo(handle, memory));
	assert_true(memory[0] == 4 * FRAG_GIB && memory[1] == left_bytes() &&
		    memory[2] == memory[0] - memory[1]);
	assert_int_equal(frag_nogpu_cudaMalloc(&b, FRAG_GIB), 2);
	assert_null(b);
	assert_int_equal(frag_nogpu_cudaGetLastError(), 2);
	/* the other card has its own */
	OK(cudaSetDevice(1));
	OK(cudaMalloc(&b, FRAG_GIB));
	assert_int_equal(frag_nogpu_owner(b), 1);
	assert_int_equal(frag_nogpu_owner(a), 0);
	assert_int_equal(frag_nogpu_owner(&a), -1);
	OK(cudaFree(a));
	OK(cudaFree(b));
	assert_int_equal(frag_nogpu_cudaFree(b), 1);
	OK(cudaSetDevice(0));
	assert_true(left_bytes() == before);
	frag_nogpu_cudaGetLastError();
}

TEST(managed_memory_gives_way)
{
	struct {
		int type, device;
		void *on_card, *on_host;
	} what;
	void *a, *b, *c;
	size_t before;

	NEEDS_ADDRESSES();
	before = left_bytes();
	OK(cudaMallocManaged(&a, 3 * FRAG_GIB, 1));
	assert_true(left_bytes() == before - 3 * FRAG_GIB);
	memset(a, 7, 16); /* the host has it, too */
	OK(cudaPointerGetAttributes(&what, a));
	assert_int_equal(what.type, 3);
	assert_ptr_equal(what.on_host, a);
	/* of other memory the card has as much as without it; of this there is more than the card has */
	OK(cudaMalloc(&b, 3 * FRAG_GIB));
	assert_true(left_bytes() < FRAG_GIB);
	OK(cudaMallocManaged(&c, 8 * FRAG_GIB, 1));
	OK(cudaFree(c));
	OK(cudaFree(b));
	OK(cudaFree(a));
	assert_true(left_bytes() == before);
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
	/* what lies there next begins with zeros */
	OK(cudaMalloc(&p, sizeof(host)));
	frag_nogpu_cudaMemcpy(back, p, 16, 2);
	assert_int_equal(back[0], 0);
	frag_nogpu_cudaFree(p);
}

TEST(an_answer_is_brought_until_withdrawn)
{
	int small = 1;
	uint64_t wide = 1;
	void *p;

	NEEDS_ADDRESSES();
	OK(cudaMalloc(&p, 64));
	frag_nogpu_answer(true, 42);
	frag_nogpu_cudaMemcpy(&small, p, 4, 2);
	frag_nogpu_cudaMemcpy(&wide, p, 8, 2);
	assert_int_equal(small, 42);
	assert_true(wide == 42);
	frag_nogpu_answer(false, 0);
	frag_nogpu_cudaMemcpy(&small, p, 4, 2);
	assert_int_equal(small, 0);
	frag_nogpu_cudaFree(p);
}

TEST(mappings_follow_the_driver)
{
	const int prop[8] = { 1, 0, 1, 0 }; /* pinned, location: device 0 */
	uint64_t handle;
	size_t before;
	void *range;

	NEEDS_ADDRESSES();
	before = left_bytes();
	OK(cuMemAddressReserve(&range, 64 * FRAG_MIB, 0, 0, 0));
	OK(cuMemCreate(&handle, 20 * FRAG_MIB, prop, 0));
	assert_true(left_bytes() == before - 20 * FRAG_MIB);
	OK(cuMemMap(range, 20 * FRAG_MIB, 0, handle, 0));
	assert_int_not_equal(frag_nogpu_cuMemMap(range, 20 * FRAG_MIB, 0, handle, 0), 0);
	OK(cuMemRelease(handle));
	frag_nogpu_cudaMemset(range, 1, 100);
	OK(cuMemUnmap(range, 20 * FRAG_MIB));
	assert_true(left_bytes() == before);
	OK(cuMemAddressFree(range, 64 * FRAG_MIB));
	assert_int_not_equal(frag_nogpu_cuMemAddressFree(range, 64 * FRAG_MIB), 0);
	assert_int_equal(frag_nogpu_cuMemCreate(&handle, 5 * FRAG_GIB, prop, 0), 2);
}

static int capturing(void *stream)
{
	int status;

	OK(cudaStreamIsCapturing(stream, &status));
	return status;
}

TEST(the_driver_copies_and_fills)
{
	uint32_t words[4] = { 1, 2, 3, 4 }, back[4];
	unsigned char uuid[16];
	void *a, *b;

	NEEDS_ADDRESSES();
	OK(cudaMalloc(&a, FRAG_MIB));
	OK(cuMemAllocAsync(&b, FRAG_MIB, NULL));
	OK(cuMemcpyHtoDAsync_v2(a, words, sizeof(words), NULL));
	OK(cuMemsetD32_v2(a, 7, 2));
	OK(cuMemcpyDtoD_v2(b, a, sizeof(words)));
	OK(cuMemcpyDtoH_v2(back, b, sizeof(back)));
	assert_true(back[0] == 7 && back[1] == 7 && back[2] == 3 && back[3] == 4);
	OK(cuMemFreeAsync(b, NULL));
	OK(cudaFree(a));
	/* CUDA_VISIBLE_DEVICES=1,0: NVML's number of the first is 1 */
	OK(cuDeviceGetUuid_v2(uuid, 0));
	assert_int_equal(uuid[15], 1);
}

TEST(a_capture_spreads_by_events)
{
	void *a, *b, *event, *graph;

	NEEDS_ADDRESSES();
	frag_nogpu_cudaStreamCreate(&a);
	frag_nogpu_cudaStreamCreate(&b);
	frag_nogpu_cudaEventCreate(&event);
	frag_nogpu_cudaEventRecord(event, a);
	frag_nogpu_cudaStreamWaitEvent(b, event, 0);
	assert_false(capturing(b));
	frag_nogpu_cudaStreamBeginCapture(a, 0);
	frag_nogpu_cudaEventRecord(event, a);
	frag_nogpu_cudaStreamWaitEvent(b, event, 0);
	assert_true(capturing(a) && capturing(b));
	assert_false(capturing(NULL));
	frag_nogpu_cudaStreamEndCapture(a, &graph);
	assert_non_null(graph);
	assert_false(capturing(a) || capturing(b));
	frag_nogpu_cudaStreamWaitEvent(b, event, 0); /* that capture is over */
	assert_false(capturing(b));
}

TEST(who_waits_for_a_capture_is_refused_and_it_is_lost)
{
	void *a, *b, *event, *graph;

	NEEDS_ADDRESSES();
	frag_nogpu_cudaStreamCreate(&a);
	frag_nogpu_cudaStreamCreate(&b);
	frag_nogpu_cudaEventCreate(&event);
	for (int way = 0; way < 5; way++) {
		frag_nogpu_cudaStreamBeginCapture(a, 0);
		frag_nogpu_cudaEventRecord(event, a);
		frag_nogpu_cudaStreamWaitEvent(b, event, 0);
		OK(cudaStreamSynchronize(NULL));
		switch (way) {
		case 0:
			break;
		case 1:
			assert_int_equal(frag_nogpu_cudaStreamSynchronize(b), 900);
			break;
		case 2:
			assert_int_equal(frag_nogpu_cudaDeviceSynchronize(), 900);
			break;
		case 3:
			assert_int_equal(frag_nogpu_cudaEventSynchronize(event), 907);
			break;
		case 4:
			assert_int_equal(frag_nogpu_cudaEventQuery(event), 907);
			break;
		}
		assert_true(capturing(a) && capturing(b));
		assert_int_equal(frag_nogpu_cudaStreamEndCapture(a, &graph), way ? 901 : 0);
		assert_int_equal(graph == NULL, way > 0);
		assert_false(capturing(a) || capturing(b));
		OK(cudaEventSynchronize(event));
		OK(cudaStreamSynchronize(b));
		OK(cudaDeviceSynchronize());
	}
}

/* Plans of an H200: type 0x29 is C2C, 0x2a is R2C. */
static const struct {
	int rank, n[2], type, batch;
	size_t bytes;
} plans[] = {
	{ 1, { 1048576 }, 0x2a, 1, 4194312 },  { 1, { 2000 }, 0x2a, 64, 512000 },
	{ 1, { 512 }, 0x2a, 100, 0 },	       { 1, { 4096 }, 0x29, 1000, 0 },
	{ 2, { 2000, 33 }, 0x29, 1, 528000 },  { 2, { 256, 256 }, 0x2a, 8, 0 },
	{ 2, { 65536, 3 }, 0x29, 1, 1572864 },
};

TEST(other_libraries_answer)
{
	int64_t rows, cols, elements;
	void *a, *c, *record = &a, *events[2];
	const char *text = NULL;
	float ms = 0;
	size_t bytes = 1;
	int work = -1;

	/* 2^15 complex numbers work in as many again */
	OK(cufftMakePlan1d(1, 32768, 0x29, 2, &bytes));
	assert_true(bytes == 2 * 32768 * 8);
	for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
		OK(cufftMakePlanMany(1, plans[i].rank, plans[i].n, NULL, 1, 0, NULL, 1, 0,
				     plans[i].type, plans[i].batch, &bytes));
		assert_true(bytes == plans[i].bytes);
	}
	OK(nvrtcGetNumSupportedArchs(&work));
	assert_true(work > 0);
	OK(cuptiGetResultString(8, &text));
	assert_non_null(text);
	assert_int_not_equal(frag_nogpu_cuptiActivityGetNextRecord(NULL, 0, &record), 0);
	assert_null(record);
	OK(cusolverDnSgetrf_bufferSize(NULL, 300, 300, NULL, 300, &work));
	assert_int_equal(work, 1728);
	/* kernels that are tried inside of an operator are equally fast */
	for (int i = 0; i < 2; i++) {
		frag_nogpu_cudaEventCreateWithFlags(&events[i], 0);
		frag_nogpu_cudaEventRecord(events[i], NULL);
	}
	frag_nogpu_cudaEventElapsedTime(&ms, events[0], events[1]);
	assert_true(ms == 0.02f);
	free(events[0]);
	free(events[1]);
	/* a product of 1,000 by 1,000 with 5,000 elements each has 25 a row */
	frag_nogpu_cusparseCreateCsr(&a, 1000, 1000, 5000, NULL, NULL, NULL, 0, 0, 0, 0);
	frag_nogpu_cusparseCreateCsr(&c, 1000, 1000, 0, NULL, NULL, NULL, 0, 0, 0, 0);
	frag_nogpu_cusparseSpGEMM_workEstimation(NULL, 0, 0, NULL, a, a, NULL, c, 0, 0, NULL,
						 &bytes, NULL);
	frag_nogpu_cusparseSpMatGetSize(c, &rows, &cols, &elements);
	assert_true(rows == 1000 && cols == 1000 && elements == 25000);
	free(a);
	free(c);
}

TEST(cards_are_those_that_the_user_chose)
{
	unsigned all = 0;
	int bus;

	assert_int_equal(frag_nogpu_visible(), 2); /* of "1,0,5": the third there is not */
	assert_int_equal(frag_nogpu_number(0), 1);
	assert_int_equal(frag_nogpu_number(1), 0);
	OK(cudaDeviceGetAttribute(&bus, 33, 0));
	assert_int_equal(bus, 2);
	OK(nvmlDeviceGetCount(&all));
	assert_int_equal(all, 3);
}

/* Rank 1 of 3: what single calls gather and exchange is what this rank gives. */
TEST(a_group_brings_what_one_call_would)
{
	int given = 7, got[3] = { 0, 0, 0 }, other = 5, received = 0, alone = 0;
	FRAG_AUTO(free_at) void *comm = NULL;

	OK(ncclCommInitRankScalable(&comm, 3, 1, 1, NULL, NULL));
	frag_nogpu_ncclBroadcast(&alone, &alone, 1, 2, 0, comm, NULL);
	assert_int_equal(alone, 0);
	frag_nogpu_ncclGroupStart();
	frag_nogpu_ncclGroupStart();
	for (int root = 0; root < 3; root++)
		frag_nogpu_ncclBroadcast(root == 1 ? &given : &got[root], &got[root], 1, 2, root,
					 comm, NULL);
	frag_nogpu_ncclGroupEnd();
	assert_int_equal(got[2], 0); /* the outer group is open */
	frag_nogpu_ncclGroupEnd();
	assert_true(got[0] == 7 && got[1] == 7 && got[2] == 7);
	frag_nogpu_ncclGroupStart();
	frag_nogpu_ncclSend(&given, 1, 2, 0, comm, NULL);
	frag_nogpu_ncclRecv(&received, 1, 2, 2, comm, NULL);
	frag_nogpu_ncclRecv(&alone, 1, 4, 0, comm, NULL); /* another size */
	frag_nogpu_ncclSend(&other, 1, 2, 2, comm, NULL);
	frag_nogpu_ncclGroupEnd();
	assert_int_equal(received, 5);
	assert_int_equal(alone, 0);
}

TEST(who_takes_memory_leaves_a_mark)
{
	char folder[] = "/tmp/nogpu_begunXXXXXX", path[100];
	void *p;

	NEEDS_ADDRESSES();
	assert_non_null(mkdtemp(folder));
	setenv("CUFRAG_RECORD", folder, 1);
	snprintf(path, sizeof(path), "%s/%d.begun", folder, getpid());
	assert_int_not_equal(access(path, F_OK), 0);
	OK(cudaMalloc(&p, 1000));
	assert_int_equal(access(path, F_OK), 0);
	frag_nogpu_cudaFree(p);
	unlink(path);
	rmdir(folder);
	unsetenv("CUFRAG_RECORD");
}

/* ---- kernels */

#define PTX 1u
#define CODE 2u
#define THIS_ONLY (1u << 20)

/* What nvcc writes for one source file, with 32 bytes of code for each architecture. */
struct code {
	uint32_t magic;
	uint16_t version, head_bytes;
	uint64_t bytes;
	struct {
		uint16_t kind, other;
		uint32_t head_bytes;
		uint64_t bytes;
		uint32_t more[3], arch, names[2];
		uint64_t flags, rest[2];
		unsigned char code[32];
	} entries[4];
};

static struct code code_of(const uint32_t (*rows)[3], size_t count)
{
	struct code c = { .magic = 0xba55ed50, .version = 1, .head_bytes = 16 };

	c.bytes = count * sizeof(c.entries[0]);
	for (size_t i = 0; i < count; i++) {
		c.entries[i].kind = (uint16_t)rows[i][0];
		c.entries[i].head_bytes = sizeof(c.entries[0]) - 32;
		c.entries[i].bytes = 32;
		c.entries[i].arch = rows[i][1];
		c.entries[i].flags = rows[i][2];
	}
	return c;
}

/* ptxVersion and binaryVersion of a kernel. */
static int architecture(const void *function)
{
	int values[14];

	OK(cudaFuncGetAttributes(values, function));
	assert_int_equal(values[8], values[9]);
	return values[8];
}

TEST(kernels_are_those_that_the_card_runs)
{
	static const struct {
		uint32_t rows[4][3];
		int arch; /* that a card of 8.9 runs */
	} cases[] = {
		{ { { CODE, 75, 0 }, { CODE, 80, 0 }, { CODE, 86, 0 }, { CODE, 90, 0 } }, 86 },
		{ { { CODE, 80, 0 }, { PTX, 80, 0 }, { CODE, 89, 0 }, { CODE, 90, 0 } }, 89 },
		{ { { CODE, 75, 0 }, { PTX, 75, 0 }, { PTX, 90, 0 }, { CODE, 100, 0 } }, 75 },
		{ { { CODE, 86, THIS_ONLY },
		    { CODE, 80, 0 },
		    { CODE, 90, THIS_ONLY },
		    { PTX, 87, 0 } },
		  80 },
		/* none: the oldest */
		{ { { CODE, 120, 0 }, { CODE, 100, 0 }, { CODE, 90, 0 }, { PTX, 100, 0 } }, 90 },
	};
	struct code none = { .magic = 1 }, cut = code_of(cases[0].rows, 4);
	struct frag_nogpu_fatbin f = { .list = NULL };
	char functions[5] = { 0 };

	assert_int_equal(architecture(functions), 89); /* of nothing that is known */
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct code code = code_of(cases[i].rows, 4);

		f.list = (const void *)&code;
		frag_nogpu___cudaRegisterFunction(frag_nogpu___cudaRegisterFatBinary(&f),
						  functions + i);
		assert_int_equal(architecture(functions + i), cases[i].arch);
	}
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(architecture(functions + i), cases[i].arch);
	/* what cannot be read says nothing */
	f.list = (const void *)&none;
	assert_int_equal(frag_nogpu_arch_of(&f), 0);
	f.list = NULL;
	assert_int_equal(frag_nogpu_arch_of(&f), 0);
	f.list = (const void *)&cut;
	cut.entries[1].bytes = UINT64_MAX - 8;
	assert_int_equal(frag_nogpu_arch_of(&f), 75);
	cut.entries[0].head_bytes = 0;
	assert_int_equal(frag_nogpu_arch_of(&f), 0);
}

TEST(unknown_calls_are_errors_and_listed_once)
{
	char path[] = "/tmp/nogpu_callsXXXXXX", text[200] = "";
	int fd = mkstemp(path);

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
	unlink(path);
}

static int choose_card(void **state)
{
	(void)state;
	setenv("CUFRAG_NOGPU",
	       "name=Small "
	       "card;total=4294967296;context=536870912;libraries=0;count=3;cc=8.9;sms=58",
	       1);
	return setenv("CUDA_VISIBLE_DEVICES", "1,0,5", 1);
}
TEST_GROUP(choose_card, NULL)
