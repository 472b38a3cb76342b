/* SPDX-License-Identifier: Apache-2.0 */
/* Mutexes that are held to the end of a scope. */
#ifndef FRAG_BASE_LOCKED_H
#define FRAG_BASE_LOCKED_H

#include <pthread.h>

#include <frag/base.h>

static inline pthread_mutex_t *frag_locked(pthread_mutex_t *mutex)
{
	pthread_mutex_lock(mutex);
	return mutex;
}

static inline void frag_locked_end(pthread_mutex_t **mutex)
{
	pthread_mutex_unlock(*mutex);
}

/* FRAG_LOCKED(&mutex); held until the scope is left. (clang calls such a variable unused.) */
#define FRAG_LOCKED(mutex) \
	pthread_mutex_t *locked_ __attribute__((unused)) FRAG_AUTO(frag_locked_end) = \
		frag_locked(mutex)

#endif
