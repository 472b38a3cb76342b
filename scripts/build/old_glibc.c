/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For programs linked with old_glibc.sh, what glibc 2.28 has only in another form. stat and its
 * family had the layout of struct stat as a number; numbers in C23's notation are read by functions
 * of 2.38, as which the older ones serve; and the program ran its own constructors (START, apart,
 * since libraries have no start).
 */
#define _GNU_SOURCE
#include <sys/stat.h>

#ifndef START
/* The 64-bit family has the same structure on x86-64. */
#define STAT(name, old, parameters, ...) \
	extern int old(int layout, __VA_ARGS__); \
	int name(__VA_ARGS__) \
	{ \
		return old parameters; \
	} \
	__typeof__(name##64) name##64 __attribute__((alias(#name)))

STAT(stat, __xstat, (1, path, out), const char *path, struct stat *out);
STAT(lstat, __lxstat, (1, path, out), const char *path, struct stat *out);
STAT(fstat, __fxstat, (1, fd, out), int fd, struct stat *out);
STAT(fstatat, __fxstatat, (1, fd, path, out, flags), int fd, const char *path, struct stat *out,
     int flags);

#define SERVES(old, new) \
	__asm__(".text\n.globl " #new "\n.hidden " #new "\n.type " #new ", @function\n" #new ": " \
											     "jmp" \
											     " " #old \
											     "@PL" \
											     "T")
SERVES(strtol, __isoc23_strtol);
SERVES(strtoul, __isoc23_strtoul);
SERVES(strtoll, __isoc23_strtoll);
SERVES(strtoull, __isoc23_strtoull);
SERVES(__isoc99_sscanf, __isoc23_sscanf);
SERVES(__isoc99_fscanf, __isoc23_fscanf);
SERVES(__isoc99_vsscanf, __isoc23_vsscanf);
#else
typedef void constructor(int, char **, char **);
typedef int start(int (*)(int, char **, char **), int, char **, constructor *, void (*)(void),
		  void (*)(void), void *);
extern constructor *__init_array_start[], *__init_array_end[];
extern void _init(void);
extern start old_start, __libc_start_main;
__asm__(".symver old_start, __libc_start_main@GLIBC_2.2.5");

static void construct(int argc, char **argv, char **envp)
{
	_init();
	for (constructor **each = __init_array_start; each < __init_array_end; each++)
		(*each)(argc, argv, envp);
}

int __libc_start_main(int (*program)(int, char **, char **), int argc, char **argv,
		      constructor *init, void (*fini)(void), void (*loader_fini)(void),
		      void *stack_end)
{
	return old_start(program, argc, argv, init ? init : construct, fini, loader_fini,
			 stack_end);
}
#endif
