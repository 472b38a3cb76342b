/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks that a multiprocessor runs at once, as an H200 answered for kernels of Transformer Engine 2.13, and by CUDA's rules elsewhere. */
#include "nogpu_card.h"

#include <stdlib.h>

#include "pretend/card/nogpu.h"

#define MANGLED(kernel, type, width, rest) \
	"_ZN18transformer_engine13normalization" kernel "_kernelINS0_13Kernel_traitsI" type \
	"fjLj" width rest

static void begin_h200(void)
{
	setenv("CUFRAG_NOGPU", "name=H200;cc=9.0;sms=132", 1);
	frag_nogpu_cudaGetDeviceCount(&(int){ 0 });
}

static void expect(const char *name, int threads, uint64_t shared_bytes, int registers, int blocks)
{
	assert_int_equal(frag_nogpu_registers_by_name(name), registers);
	assert_int_equal(frag_nogpu_blocks_per_sm(registers, threads, shared_bytes), blocks);
}

TEST(norms_of_transformer_engine)
{
	begin_h200();
	expect(MANGLED("24rmsnorm_bwd_tuned", "13__nv_bfloat16S3_S3_", "2048",
		       "ELj1ELj1ELj4ELj16EEELb0EEEvT_"),
	       128, 8256, 89, 5);
	expect(MANGLED("24rmsnorm_bwd_tuned", "13__nv_bfloat16S3_S3_", "2048",
		       "ELj1ELj1ELj4ELj16EEELb1EEEvT_"),
	       128, 8256, 96, 5);
	expect(MANGLED("24rmsnorm_bwd_tuned", "f", "512", "ELj1ELj4ELj1ELj16EEELb0EEEvT_"), 128,
	       8192, 86, 5);
	expect(MANGLED("19ln_bwd_tuned", "6__halfS3_S3_", "1024", "ELj1ELj4ELj1ELj16EEEEvT_"), 128,
	       16384, 209, 2);
	expect(MANGLED("19ln_bwd_tuned", "13__nv_bfloat16S3_S3_", "6144",
		       "ELj1ELj1ELj8ELj16EEEEvT_"),
	       256, 24704, 152, 1);
	expect(MANGLED("21ln_fwd_general", "13__nv_bfloat16S3_S3_", "128",
		       "ELj1ELj4ELj1ELj8EEEEvT_"),
	       128, 0, 39, 12);
}

TEST(other_kernels_fill_the_card)
{
	begin_h200();
	expect(NULL, 256, 0, 32, 8);
	expect("_Z6kernelPf", 1024, 0, 32, 2);
	expect("_ZN3abc12other_kernelINS0_13Kernel_traitsIdEEvT_", 64, 0, 32, 32);
	expect(MANGLED("19ln_bwd_tuned", "13__nv_bfloat16S3_S3_", "777", "ELj1EEEvT_"), 2048, 0, 32,
	       1);
	/* of 228 KiB, each block has 1 KiB for the system */
	expect(NULL, 32, 56 << 10, 32, 4);
	expect(NULL, 32, 57 << 10, 32, 3);
}
