/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Raising PyTorch's own exceptions from C: c10::OutOfMemoryError is built in the memory of
 * __cxa_allocate_exception by c10::Error's constructor, gets the virtual table of its class and is
 * thrown with that class's type information. The names are those of the Itanium C++ ABI, the same
 * in all known releases.
 */
#ifndef FRAG_LIVE_THROW_H
#define FRAG_LIVE_THROW_H

#include <stdbool.h>
#include <stddef.h>

/* Looks all names up, once, in the libraries of the process: when memory is out it is too late.
 * True: OutOfMemoryError can be raised; else `why` says what is missing. */
bool frag_live_throw_ready(char *why, size_t cap);

/* pre: no lock is held. Where PyTorch's exceptions are not there the process ends with the text. */
void frag_live_throw_oom(const char *text) __attribute__((noreturn));
void frag_live_throw_error(const char *text) __attribute__((noreturn));

#endif
