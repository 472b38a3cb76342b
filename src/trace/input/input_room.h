/* SPDX-License-Identifier: Apache-2.0 */
/* Room around the bytes of an input: how far a reader may peek ahead, and read past the end. */
#ifndef FRAG_TRACE_INPUT_ROOM_H
#define FRAG_TRACE_INPUT_ROOM_H

#define FRAG_INPUT_MARGIN 1024u
#define FRAG_INPUT_PEEK_MAX 65536u

#endif
