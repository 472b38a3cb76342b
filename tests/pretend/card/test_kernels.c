/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of the pretended card: their machine code, registers, local memory, and what they store to. */
#include "test.h"

#include <elf.h>
#include <unistd.h>

#include "nogpu_card.h"

int frag_nogpu_cudaFuncGetAttributes(void *out, const void *function);
void **frag_nogpu___cudaRegisterFatBinary(void *fatbin);
void frag_nogpu___cudaRegisterFunction(void **handle, const void *function, const char *mangled,
				       const char *name);
int frag_nogpu_ncclCommInitAll(void **out, int ranks, const int *devices);
int frag_nogpu_cuModuleLoad(void **out, const char *path);
int frag_nogpu_cuModuleLoadData(void **out, const void *image);
int frag_nogpu_cuModuleGetFunction(void **out, void *module, const char *name);
int frag_nogpu_cuFuncGetAttribute(int *value, int which, void *function);

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

/* 136 MiB of this card, then 166, whose old place is a hole: only a kernel that can fail an assertion moves it, and NCCL's do */
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

TEST_GROUP(small_card, NULL)
