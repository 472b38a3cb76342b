/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What programs can ask of the known cards besides memory, for a pretended one: compute
 * capability, multiprocessors, L2, bus; and two figures of the data sheet for a
 * modelled clock: memory bandwidth, and dense half-precision arithmetic. By NVIDIA's
 * data sheets and architecture papers; the H200's first four are those of deviceQuery.
 */
#include <frag/device.h>

#include <string.h>

static const struct frag_gpu_chip chips[] = {
	/* name, as programs see it, cc, SMs, L2 MiB, bus bits, MHz, GB/s, TFLOP/s */
	{ "t4", "Tesla T4", 7, 5, 40, 4, 256, 1590, 320, 65 },
	{ "l4", "NVIDIA L4", 8, 9, 58, 48, 192, 2040, 300, 121 },
	{ "a10g", "NVIDIA A10G", 8, 6, 80, 6, 384, 1710, 600, 70 },
	{ "a10", "NVIDIA A10", 8, 6, 72, 6, 384, 1695, 600, 125 },
	{ "rtx3090", "NVIDIA GeForce RTX 3090", 8, 6, 82, 6, 384, 1695, 936, 71 },
	{ "rtx4090", "NVIDIA GeForce RTX 4090", 8, 9, 128, 72, 384, 2520, 1008, 165 },
	{ "rtx5090", "NVIDIA GeForce RTX 5090", 12, 0, 170, 96, 512, 2407, 1792, 210 },
	{ "a100-40", "NVIDIA A100-SXM4-40GB", 8, 0, 108, 40, 5120, 1410, 1555, 312 },
	{ "l40s", "NVIDIA L40S", 8, 9, 142, 96, 384, 2520, 864, 362 },
	{ "h100", "NVIDIA H100 80GB HBM3", 9, 0, 132, 50, 5120, 1980, 3350, 989 },
	{ "a100-80", "NVIDIA A100-SXM4-80GB", 8, 0, 108, 40, 5120, 1410, 2039, 312 },
	{ "h200", "NVIDIA H200", 9, 0, 132, 60, 6144, 1980, 4800, 989 },
	{ "b200", "NVIDIA B200", 10, 0, 148, 126, 8192, 1965, 8000, 2250 },
};

const struct frag_gpu_chip *frag_gpu_chip_find(const char *name)
{
	for (size_t i = 0; i < FRAG_ARRAY_LEN(chips); i++)
		if (!strcmp(chips[i].name, name))
			return &chips[i];
	return NULL;
}
