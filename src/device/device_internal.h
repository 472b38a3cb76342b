/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What back-ends share with the front (device.c).
 *
 * Ownership: frag_device_wrap takes over `priv` on success only; from then on
 * frag_dev_close gives both back, `priv` through ops->close.
 */
#ifndef FRAG_DEVICE_DEVICE_INTERNAL_H
#define FRAG_DEVICE_DEVICE_INTERNAL_H

#include <frag/device.h>

/*
 * A front around one back-end. The host clock is read around calls only when
 * ops->info says that times are not modelled: such a back-end writes *ns in
 * every call. Errors: FRAG_ENOMEM.
 */
int frag_device_wrap(const struct frag_device_ops *ops, void *priv, struct frag_device **out,
		     struct frag_err *err);

#endif
