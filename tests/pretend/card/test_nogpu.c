/* SPDX-License-Identifier: Apache-2.0 */
/* The pretended card as a CUDA program meets it, where lines of calls (test_calls.c) do not do: copies, captures, kernels, unknown calls. */
#include "test.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pretend/card/lent.h"
#include "nogpu_card.h"
#include "nogpu_exports.h"

int frag_nogpu12_cudaGetDeviceProperties_v2(void *out, int device);
int frag_nogpu13_cudaGetDeviceProperties(void *out, int device);
int frag_nogpu_cudaFuncGetAttributes(void *out, const void *function);
void **frag_nogpu___cudaRegisterFatBinary(void *fatbin);
void frag_nogpu___cudaRegisterFunction(void **handle, const void *function, const char *mangled,
				       const char *name);

int frag_nogpu_ncclCommInitAll(void **out, int ranks, const int *devices);

int frag_nogpu_cuModuleLoad(void **out, const char *path);
int frag_nogpu_cuModuleLoadData(void **out, const void *image);
int frag_nogpu_cuModuleGetFunction(void **out, void *module, const char *name);
int frag_nogpu_cuFuncGetAttribute(int *value, int which, void *function);

#define OK(call) assert_int_equal(frag_nogpu_##call, 0)

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

static int capturing(void *stream)
{
	int status;

	OK(cudaStreamIsCapturing(stream, &status));
	return status;
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

/* 300 us of work on a stream, and 45 of the host to hand it out: two segments take the host more than that. */
TEST(segments_and_copies_take_time)
{
	static unsigned char host[8 << 20];
	void *stream, *event, *p, *q, *pinned;

	NEEDS_ADDRESSES();
	OK(cudaStreamCreate(&stream));
	OK(cudaEventCreateWithFlags(&event, 0));
	frag_nogpu_work(stream, 300000, 0, false);
	OK(cudaEventRecord(event, stream));
	OK(cudaMalloc(&p, sizeof(host)));
	assert_int_equal(frag_nogpu_cudaEventQuery(event), 600);
	OK(cudaMalloc(&q, sizeof(host)));
	OK(cudaEventQuery(event));
	OK(cudaMemcpyAsync(p, host, sizeof(host), 1, stream));
	OK(cudaEventRecord(event, stream));
	OK(cudaEventQuery(event));
	OK(cudaHostAlloc(&pinned, sizeof(host), 0));
	OK(cudaMemcpyAsync(p, pinned, sizeof(host), 1, stream));
	OK(cudaEventRecord(event, stream));
	assert_int_equal(frag_nogpu_cudaEventQuery(event), 600);
	OK(cudaStreamSynchronize(stream));
	OK(cudaEventQuery(event));
	OK(cudaFreeHost(pinned));
	OK(cudaFree(p));
	OK(cudaFree(q));
}

static void count_up(void *count)
{
	++*(int *)count;
}

/* as NCCL's groups do it: given to a graph while it is captured; of another graph, lost while its capture goes on, at once */
TEST(what_a_graph_holds_goes_with_the_last_that_can_be_launched)
{
	void *stream, *graph, *launched, *object, *kept;
	int gone = 0;

	NEEDS_ADDRESSES();
	frag_nogpu_cudaStreamCreate(&stream);
	for (int lost = 0; lost < 2; lost++) {
		gone = 0;
		OK(cudaStreamBeginCapture(stream, 0));
		OK(cudaStreamGetCaptureInfo_v2(stream, (int[1]){ 0 }, NULL, &graph, NULL, NULL));
		OK(cudaUserObjectCreate(&object, &gone, count_up, 1, 1));
		OK(cudaGraphRetainUserObject(graph, object, 1, 1));
		OK(cudaUserObjectCreate(&kept, &gone, count_up, 1, 1));
		OK(cudaGraphRetainUserObject(graph, kept, 1, 0));
		if (lost) {
			frag_nogpu_cudaStreamSynchronize(stream);
			assert_int_equal(frag_nogpu_cudaStreamEndCapture(stream, &graph), 901);
		} else {
			OK(cudaStreamEndCapture(stream, &graph));
			OK(cudaGraphInstantiate(&launched, graph, 0));
			OK(cudaGraphDestroy(graph));
			assert_int_equal(gone, 0);
			OK(cudaGraphExecDestroy(launched));
		}
		assert_int_equal(gone, 1);
		OK(cudaUserObjectRelease(kept, 1));
		assert_int_equal(gone, 2);
	}
}

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
						  functions + i, "", "_Z4k");
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

static const char *segment(unsigned mib)
{
	void *p = NULL;

	OK(cudaMalloc(&p, (size_t)mib << 20));
	return p;
}

/* 136 MiB of this card, then 166, whose old place is a hole: only a kernel that can fail an assertion moves it, and NCCL's do */
static const void *unknown[4];
static size_t unknown_count;

static void note_unknown(const void *p, uint32_t origin, int lower)
{
	assert_int_equal(origin, NOGPU_UNKNOWN);
	unknown[unknown_count++] = p;
}

struct nogpu_values {
	void (*arrived)(const void *to, const void *from);
	uint32_t (*origin)(const void *p);
	void (*set_origin)(const void *p, uint32_t origin, int lower);
};
void frag_nogpu_values(const struct nogpu_values *v);
int frag_nogpu_nvrtcCreateProgram(void **out, const char *source);
int frag_nogpu_nvrtcGetCUBIN(void *program, char *image);
int frag_nogpu_cuLaunchKernel(const void *kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z,
			      unsigned block_x, unsigned block_y, unsigned block_z,
			      unsigned shared_bytes, void *stream, void **parameters);

TEST(what_kernels_store_that_are_compiled_at_run_time_is_unknown)
{
	static const char *const source = "__device__ int other(int *out) { out[0] = 1; }\n"
					  "extern \"C\" __global__\nvoid fused(long long* in, long "
					  "long n, long long* out, bool* out_2, float *read) {\n"
					  "  if (in[0] == n && read[1] >= 0) { out[n + in[2]] = "
					  "__ldg(in); out_2 [0] = n; }\n}\n";
	char image[NOGPU_CUBIN_BYTES];
	void *program, *module, *kernel, *in, *out, *out_2, *read;
	int64_t n = 3;
	void *parameters[] = { &in, &n, &out, &out_2, &read };

	NEEDS_ADDRESSES();
	OK(cudaMalloc(&in, 8));
	OK(cudaMalloc(&out, 8));
	OK(cudaMalloc(&out_2, 8));
	OK(cudaMalloc(&read, 8));
	frag_nogpu_values(&(struct nogpu_values){ .set_origin = note_unknown });
	OK(nvrtcCreateProgram(&program, source));
	OK(nvrtcGetCUBIN(program, image));
	OK(cuModuleLoadData(&module, image));
	OK(cuModuleGetFunction(&kernel, module, "fused"));
	OK(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, parameters));
	assert_int_equal(unknown_count, 2);
	assert_ptr_equal(unknown[0], out);
	assert_ptr_equal(unknown[1], out_2);
	/* a mangled name is not in the source */
	OK(cuModuleGetFunction(&kernel, module, "_Z5fusedPx"));
	OK(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, parameters));
	assert_int_equal(unknown_count, 2);
	frag_nogpu_values(&(struct nogpu_values){ .origin = NULL });
}

TEST(local_memory_moves_and_leaves_a_hole)
{
	const struct dim3 one = { 1, 1, 1 };
	static const char functions[2];
	struct code code = code_of((const uint32_t[][3]){ { CODE, 89, 0 } }, 1);
	struct frag_nogpu_fatbin f = { .list = (const void *)&code };
	void **file = frag_nogpu___cudaRegisterFatBinary(&f), *comm;
	const char *first, *second;

	NEEDS_ADDRESSES();
	frag_nogpu___cudaRegisterFunction(file, &functions[0], "",
					  "_ZN2at54_GLOBAL__N__d8ceb000_21_DistributionNormal_cu43"
					  "distribution_elementwise_grid_stride_kernelIf");
	frag_nogpu___cudaRegisterFunction(file, &functions[1], "",
					  "_ZN2at29vectorized_elementwise_kernelILi4E");
	OK(cudaSetDevice(1));
	first = segment(62);
	OK(cudaLaunchKernel(&functions[0], one, one, NULL, 0, NULL));
	second = segment(60);
	assert_true(second < first);
	OK(cudaLaunchKernel(&functions[1], one, one, NULL, 0, NULL));
	assert_true(segment(80) > first);
	assert_true(segment(80) < second - (160 << 20)); /* no room for two */
	assert_false(frag_nogpu_asserts("_ZN14at_cuda_detail3cub6detail4scan"));
	assert_true(frag_nogpu_asserts("_ZN55_GLOBAL__N__1_24_DistributionBernoulli_cu"
				       "distribution_elementwise"));
	/* what a group maps fills holes: none is left for small segments above */
	OK(ncclCommInitAll(&comm, 1, NULL));
	assert_true(segment(2) < second);
	OK(cudaSetDevice(0));
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

/* 3: bytes of local memory, 4: registers */
static int attribute_in(void *module, int which)
{
	int value = -1;
	void *kernel;

	OK(cuModuleGetFunction(&kernel, module, "k"));
	OK(cuFuncGetAttribute(&value, which, kernel));
	free(kernel);
	return value;
}

static int registers_in(void *module)
{
	int registers = attribute_in(module, 4);

	free(module);
	return registers;
}

/* Inductor tries more block sizes for kernels that take many, and none that keep many in local memory. 62 of one kernel and 40 of another, 72 bytes
 * and 8, as ptxas writes them; half of the file has none. */
TEST(registers_are_those_that_ptxas_gave)
{
	struct {
		Elf64_Ehdr head;
		unsigned char info[52];
		Elf64_Shdr sections[2];
	} image = { .head = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64 },
			      .e_machine = 190,
			      .e_shentsize = sizeof(Elf64_Shdr),
			      .e_shnum = 2,
			      .e_shoff = offsetof(__typeof__(image), sections) },
		    .info = { 4, 0x2f, 8,    0,	   10,	 0,  0,	 0,  62, 0, 0,	0,  1,
			      3, 0,    0,    4,	   0x2f, 8,  0,	 11, 0,	 0, 0,	40, 0,
			      0, 0,    4,    0x11, 8,	 0,  10, 0,  0,	 0, 72, 0,  0,
			      0, 4,    0x11, 8,	   0,	 11, 0,	 0,  0,	 8, 0,	0,  0 },
		    .sections = { { .sh_type = SHT_STRTAB },
				  { .sh_type = 0x70000000,
				    .sh_offset = offsetof(__typeof__(image), info),
				    .sh_size = 52 } } };
	void *module;
	int registers;

	OK(cuModuleLoadData(&module, &image));
	assert_int_equal(attribute_in(module, 3), 72);
	assert_int_equal(registers_in(module), 62);
	OK(cuModuleLoadData(&module, "//\n// Generated by NVIDIA NVVM Compiler\n.version "
				     "8.7\n.target sm_90a"));
	assert_int_equal(attribute_in(module, 3), 0);
	assert_int_equal(registers_in(module), 32);
	OK(cuFuncGetAttribute(&registers, 4, (void *)0x101));
	assert_int_equal(registers, 32);
	for (size_t bytes = 1; bytes <= sizeof(image); bytes++) {
		const char *path = test_make_file("cubin", &image, bytes);

		OK(cuModuleLoad(&module, path));
		assert_int_equal(registers_in(module), bytes == sizeof(image) ? 62 : 32);
		unlink(path);
	}
	OK(cuModuleLoad(&module, "/nothing/there"));
	assert_int_equal(registers_in(module), 32);
}
