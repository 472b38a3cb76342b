/* SPDX-License-Identifier: Apache-2.0 */
/* Shared libraries that need not be installed: opened when they are needed, and never closed. */
#ifndef FRAG_BASE_LIBRARY_H
#define FRAG_BASE_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

/* A struct of function pointers from a list X(name), and the names of its members in order. */
#define FRAG_LIBRARY_MEMBER(name) __typeof__(name) *name;
#define FRAG_LIBRARY_NAME(name) #name,

/*
 * Fills `to`, a struct of `count` function pointers and nothing else, with the symbols of these
 * names. false: the library or one of them is missing, and dlerror says why.
 */
bool frag_library_open(const char *file, const char *const *names, size_t count, void *to);

#endif
