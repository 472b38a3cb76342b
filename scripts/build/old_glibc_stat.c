/* SPDX-License-Identifier: Apache-2.0 */
/* stat and its family, which glibc has exported since 2.33; before, functions with the layout of struct stat as a number. */
#define _GNU_SOURCE
#include <sys/stat.h>

#define STAT_LAYOUT 1

extern int __xstat(int layout, const char *path, struct stat *out);
extern int __lxstat(int layout, const char *path, struct stat *out);
extern int __fxstat(int layout, int fd, struct stat *out);
extern int __fxstatat(int layout, int fd, const char *path, struct stat *out, int flags);

int stat(const char *path, struct stat *out)
{
	return __xstat(STAT_LAYOUT, path, out);
}

int lstat(const char *path, struct stat *out)
{
	return __lxstat(STAT_LAYOUT, path, out);
}

int fstat(int fd, struct stat *out)
{
	return __fxstat(STAT_LAYOUT, fd, out);
}

int fstatat(int fd, const char *path, struct stat *out, int flags)
{
	return __fxstatat(STAT_LAYOUT, fd, path, out, flags);
}

/* The 64-bit family has the same structure on x86-64. */
int stat64(const char *path, struct stat64 *out) __attribute__((alias("stat")));
int lstat64(const char *path, struct stat64 *out) __attribute__((alias("lstat")));
int fstat64(int fd, struct stat64 *out) __attribute__((alias("fstat")));
int fstatat64(int fd, const char *path, struct stat64 *out, int flags) __attribute__((alias("fstatat")));
