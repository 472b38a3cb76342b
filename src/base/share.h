/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are installed beside the program, in share/cufrag. */
#ifndef FRAG_BASE_SHARE_H
#define FRAG_BASE_SHARE_H

/*
 * The folder NAME of share/cufrag that holds `file`, in new memory; NULL: there is none, or memory
 * is short. Looks in $FRAG_SHARE, then upwards from the program, in share/cufrag and, where the
 * program lies in a tree of sources, in `source` (may be NULL): PREFIX/bin/cufrag,
 * build/release/cufrag, build/release/tests/x, and the package of a wheel.
 */
char *frag_share_find(const char *name, const char *source, const char *file);

#endif
