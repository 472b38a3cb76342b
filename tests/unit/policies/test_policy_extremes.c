/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests at the ends of the range, for every policy of another system: nothing at all, more
 * than there is in the world, a stream far away, and a limit that leaves no room; options that
 * policies refuse.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "policy_probe.h"

static const char *const texts[] = {
	"bfc",
	"bfc:growth=false",
	"bfc:variant=ort",
	"bfc:variant=ort,extend=exact",
	"bfc:variant=ort,streams=true",
	"rmm-pool",
	"rmm-pool:maximum=1G",
	"rmm-arena:size=64M",
	"rmm-arena:size=64M,size-classes=true",
	"rmm-binning:min-exponent=10,max-exponent=12",
	"rmm-fixed:block=16K",
	"quickpool",
	"quickpool:first=0,next=0,alignment=1",
	"umpire-mixed",
	"umpire-fixed:object=16K",
	"cupy",
	"paddle",
	"ggml",
	"ggml-vmm",
	"gmlake",
	"gmlake:variant=paper",
	"dali-vm",
	"tlsf",
	"tlsf:pool=4K,align=8",
	"slab",
	"buddy",
};

/* No trace has requests of 0 bytes. A caller's mistake must not break what is there: the block is
 * as good as one of a byte. */
static void nothing(void **state)
{
	(void)state;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(texts); i++) {
		struct frag_block b[4];
		struct probe p;

		probe_open(&p, texts[i], NULL);
		b[0] = probe_alloc(&p, 1000);
		b[1] = probe_alloc(&p, 0);
		b[2] = probe_alloc(&p, 0);
		b[3] = probe_alloc(&p, 5000);
		for (int k = 1; k < 4; k++) {
			if (!b[k].granted)
				fail_msg("%s grants nothing", texts[i]);
			for (int j = 0; j < k; j++)
				assert_true(b[k].addr >= b[j].addr + b[j].granted ||
					    b[j].addr >= b[k].addr + b[k].granted);
		}
		for (int k = 3; k >= 0; k--)
			probe_free(&p, b[k]);
		probe_close(&p);
	}
}

static void too_much(void **state)
{
	static const uint64_t bytes[] = { UINT64_MAX,  UINT64_MAX - 1,	 UINT64_MAX - 255,
					  1ull << 63,  (1ull << 63) - 1, 1ull << 62,
					  1ull << 56,  1ull << 48,	 (1ull << 47) + 1,
					  64 * GIB + 1 };

	(void)state;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(texts); i++) {
		struct frag_block a, b;
		struct probe p;

		probe_open(&p, texts[i], NULL);
		a = probe_alloc(&p, 1000);
		for (size_t k = 0; k < FRAG_ARRAY_LEN(bytes); k++) {
			probe_refuses(&p, bytes[k]);
			p.calls = 0;
		}
		b = probe_alloc(&p, 1000);
		probe_free(&p, b);
		probe_free(&p, a);
		probe_close(&p);
	}
}

static void far_stream(void **state)
{
	(void)state;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(texts); i++) {
		struct frag_block a, b;
		struct probe p;

		probe_open(&p, texts[i], NULL);
		a = probe_alloc_on(&p, 1000, 60000);
		b = probe_alloc_on(&p, 1000, 1);
		probe_free(&p, b);
		probe_free(&p, a);
		probe_alloc_on(&p, 1000, 7);
		probe_close(&p);
	}
}

/* Refused, and the device holds nothing but what came before. */
static void no_room(void **state)
{
	(void)state;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(texts); i++) {
		static const uint64_t limit[] = { 1, 256, 4097 };

		for (size_t k = 0; k < FRAG_ARRAY_LEN(limit); k++) {
			struct probe p;

			probe_open(&p, texts[i], &(struct probe_options){ .limit = limit[k] });
			probe_refuses(&p, 5000);
			assert_int_equal(p.dev->reserved_bytes, 0);
			probe_close(&p);
		}
	}
}

/* Values that no policy can have, and options that contradict each other or belong to another variant. */
static void bad_options(void **state)
{
	static const char *const bad[] = {
		"bfc:variant=ort,growth=false",
		"bfc:variant=ort,cross-stream=true",
		"bfc:streams=true",
		"bfc:variant=ort,gc=true",
		"bfc:cross-stream=true",
		"bfc:variant=ort,fragmentation-fraction=0.5",
		"bfc:extend=exact",
		"bfc:initial=2M",
		"bfc:max-extend=2G",
		"bfc:fraction=1.5",
		"buddy:min-block=1000",
		"buddy:arena=3M",
		"buddy:min-block=8M,arena=4M",
		"buddy:order=best",
		"cub:min-bin=8",
		"cub:growth=1",
		"cub:growth=1000,min-bin=20,max-bin=30",
		"dali-vm:block=3M",
		"dali-vm:block=1M",
		"dali-vm:alignment=100",
		"gmlake:variant=paper,realloc=true",
		"gmlake:variant=paper,defrag-level=1",
		"gmlake:variant=paper,reuse-limit=2",
		"gmlake:defrag-level=4",
		"slab:unit=500",
		"slab:page=3M",
		"slab:slab-max=2M",
		"slab:unit=256",
		"slab:page=128K,unit=64K",
	};
	struct frag_policy_spec *spec;
	struct frag_err err;

	(void)state;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(bad); i++) {
		err = (struct frag_err){ 0 };
		if (frag_policy_spec_parse(bad[i], &spec, &err) != FRAG_EUSAGE)
			fail_msg("'%s' was accepted", bad[i]);
		assert_true(err.msg[0] != 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing),     cmocka_unit_test(too_much),
		cmocka_unit_test(far_stream),  cmocka_unit_test(no_room),
		cmocka_unit_test(bad_options),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
