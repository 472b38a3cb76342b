/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The start of a program. Since 2.34 the C library runs the program's constructors; before, the start files gave it a
 * function that did, which newer start files lack.
 */
#include <stddef.h>

typedef void constructor(int, char **, char **);
typedef int start_main(int (*)(int, char **, char **), int, char **, constructor *, void (*)(void), void (*)(void), void *);
extern constructor *__init_array_start[], *__init_array_end[];
extern void _init(void);
extern start_main old_start_main;
__asm__(".symver old_start_main, __libc_start_main@GLIBC_2.2.5");
start_main __libc_start_main;

static void construct(int argc, char **argv, char **envp)
{
	_init();
	for (constructor **each = __init_array_start; each < __init_array_end; each++)
		(*each)(argc, argv, envp);
}

int __libc_start_main(int (*program)(int, char **, char **), int argc, char **argv, constructor *init, void (*fini)(void),
		      void (*loader_fini)(void), void *stack_end)
{
	return old_start_main(program, argc, argv, init ? init : construct, fini, loader_fini, stack_end);
}
