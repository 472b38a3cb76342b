/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What programs can query of the known cards besides memory, for a pretended card: compute
 * capability, multiprocessors, L2, bus; and two figures of the data sheet for a modelled clock:
 * memory bandwidth, and dense half-precision arithmetic. From NVIDIA's data sheets and architecture
 * papers; the H200's first four are from deviceQuery.
 */
#include <frag/device.h>

#include <string.h>

static const struct frag_gpu_chip chips[] = {
	/* name, as programs see it, cc, SMs, L2 MiB, bus bits, MHz, GB/s, TFLOP/s */
	{ "t4", "Tesla T4", 7, 5, 40, 4, 256, 1590, 320, 65 },
	{ "rtx5080", "NVIDIA GeForce RTX 5080", 12, 0, 84, 64, 256, 2617, 960, 113 },
	{ "rtx4080", "NVIDIA GeForce RTX 4080", 8, 9, 76, 64, 256, 2505, 717, 97 },
	{ "v100-16", "Tesla V100-SXM2-16GB", 7, 0, 80, 6, 4096, 1530, 900, 125 },
	{ "l4", "NVIDIA L4", 8, 9, 58, 48, 192, 2040, 300, 121 },
	{ "a10g", "NVIDIA A10G", 8, 6, 80, 6, 384, 1710, 600, 70 },
	{ "a10", "NVIDIA A10", 8, 6, 72, 6, 384, 1695, 600, 125 },
	{ "a5000", "NVIDIA RTX A5000", 8, 6, 64, 6, 384, 1695, 768, 111 },
	{ "a30", "NVIDIA A30", 8, 0, 56, 24, 3072, 1440, 933, 165 },
	{ "rtx3090", "NVIDIA GeForce RTX 3090", 8, 6, 82, 6, 384, 1695, 936, 71 },
	{ "rtx4090", "NVIDIA GeForce RTX 4090", 8, 9, 128, 72, 384, 2520, 1008, 165 },
	{ "rtx5090", "NVIDIA GeForce RTX 5090", 12, 0, 170, 96, 512, 2407, 1792, 210 },
	{ "v100-32", "Tesla V100-SXM2-32GB", 7, 0, 80, 6, 4096, 1530, 900, 125 },
	{ "a100-40", "NVIDIA A100-SXM4-40GB", 8, 0, 108, 40, 5120, 1410, 1555, 312 },
	{ "a40", "NVIDIA A40", 8, 6, 84, 6, 384, 1740, 696, 150 },
	{ "l40s", "NVIDIA L40S", 8, 9, 142, 96, 384, 2520, 864, 362 },
	{ "rtx6000ada", "NVIDIA RTX 6000 Ada Generation", 8, 9, 142, 96, 384, 2505, 960, 364 },
	{ "a6000", "NVIDIA RTX A6000", 8, 6, 84, 6, 384, 1800, 768, 155 },
	{ "h100-pcie", "NVIDIA H100 PCIe", 9, 0, 114, 50, 5120, 1755, 2039, 756 },
	{ "h100", "NVIDIA H100 80GB HBM3", 9, 0, 132, 50, 5120, 1980, 3350, 989 },
	{ "a100-80", "NVIDIA A100-SXM4-80GB", 8, 0, 108, 40, 5120, 1410, 2039, 312 },
	{ "h100-nvl", "NVIDIA H100 NVL", 9, 0, 132, 50, 6016, 1785, 3938, 835 },
	{ "rtxpro6000", "NVIDIA RTX PRO 6000 Blackwell Server Edition", 12, 0, 188, 128, 512, 2617,
	  1597, 500 },
	{ "gh200", "NVIDIA GH200 480GB", 9, 0, 132, 60, 6144, 1980, 4023, 989 },
	{ "h20", "NVIDIA H20", 9, 0, 78, 60, 6144, 1980, 4000, 148 },
	{ "h200", "NVIDIA H200", 9, 0, 132, 60, 6144, 1980, 4800, 989 },
	{ "b200", "NVIDIA B200", 10, 0, 148, 126, 8192, 1965, 8000, 2250 },
	{ "b300", "NVIDIA B300 SXM6 AC", 10, 3, 148, 126, 8192, 1920, 8000, 2250 },
};

const struct frag_gpu_chip *frag_gpu_chip_find(const char *name)
{
	for (size_t i = 0; i < FRAG_ARRAY_LEN(chips); i++)
		if (!strcmp(chips[i].name, name))
			return &chips[i];
	return NULL;
}
