/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What NVML says: how much of a card's memory is in use by all processes. Opened at
 * run time; a machine without it is an ordinary answer. Prototypes are our own, since
 * nvml.h is often not installed.
 */
#ifndef FRAG_DEVICE_NVML_H
#define FRAG_DEVICE_NVML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nvml {
	void *device; /* NULL: not there */
	int (*memory_info)(void *device, void *out);
};

/* pci: "0000:01:00.0". Leaves *n empty where NVML or the card is not found. driver: the
 * driver's version as text, "" if unknown. Nothing to give back. */
void frag_nvml_open(struct nvml *n, const char *pci, char *driver, size_t cap);
/* Bytes in use on the card. False: not known. */
bool frag_nvml_used(const struct nvml *n, uint64_t *used_bytes);

#endif
