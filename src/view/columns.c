/* SPDX-License-Identifier: Apache-2.0 */
/* Packing, and the file without a name; see columns.h. */
#include "columns.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/library.h"
#include "lib/grow.h"

#define LEVEL 6 /* of zlib: 9 takes three times as long for 2 % less */

bool frag_column_grow(struct frag_column *c)
{
	c->failed |= frag_grow_to(&c->bytes, c->count + 1, &c->cap, 1, "page", NULL) != 0;
	return !c->failed;
}

/* ---- zlib, which most machines have and no build of ours needs ---- */

static struct zlib {
	int (*compress)(uint8_t *to, unsigned long *to_bytes, const uint8_t *from,
			unsigned long bytes, int level);
	unsigned long (*bound)(unsigned long bytes);
} zlib;

static bool have_zlib(void)
{
	static const char *const files[] = { "libz.so.1", "libz.so", NULL };
	static const struct frag_symbol symbols[] = {
		FRAG_SYMBOL(struct zlib, compress, "compress2"),
		FRAG_SYMBOL(struct zlib, bound, "compressBound"),
	};
	static int known = -1;

	if (known < 0) {
		void *library = frag_library_open(files);

		known = library && !FRAG_SYMBOLS_FIND(library, symbols, &zlib);
	}
	return known;
}

/* ---- the store ---- */

int frag_blob_store_open(struct frag_blob_store *s, struct frag_err *err)
{
	*s = (struct frag_blob_store){ .file = tmpfile() };
	return s->file ? 0 : FRAG_OUTPUT(err, "no temporary file: %s", strerror(errno));
}

void frag_blob_store_release(struct frag_blob_store *s)
{
	if (s->file)
		fclose(s->file);
	frag_host_free(s->blobs);
	*s = (struct frag_blob_store){ 0 };
}

int frag_blob_store_add(struct frag_blob_store *s, const void *bytes, size_t count, uint64_t *blob,
			struct frag_err *err)
{
	FRAG_AUTO_FREE uint8_t *packed = NULL;
	unsigned long n = count;

	FRAG_TRY(FRAG_GROW(s->blobs, s->count, s->cap, "page", err));
	if (count && have_zlib()) {
		n = zlib.bound(count);
		packed = frag_host_alloc(n);
		FRAG_CHECK_ALLOC(packed, "page", err);
		if (zlib.compress(packed, &n, bytes, count, LEVEL) || n >= count)
			n = count;
	}
	if (n && fwrite(n < count ? packed : bytes, 1, n, s->file) != n)
		return FRAG_OUTPUT(err, "cannot write a temporary file: %s", strerror(errno));
	s->blobs[s->count] = (struct frag_blob){ s->bytes, n, count };
	s->bytes += n;
	*blob = s->count++;
	return 0;
}

int frag_blob_store_pack(struct frag_blob_store *s, struct frag_column *columns, size_t count,
			 uint64_t *blob, struct frag_err *err)
{
	FRAG_AUTO_FREE uint8_t *all = NULL;
	size_t total = 4 * count, at = 0;

	for (size_t i = 0; i < count; i++) {
		if (columns[i].failed)
			return frag_fail_nomem(err, "page");
		total += columns[i].count;
	}
	all = frag_host_alloc(total);
	FRAG_CHECK_ALLOC(all, "page", err);
	for (size_t i = 0; i < count; i++) {
		for (unsigned k = 0; k < 4; k++)
			all[at++] = (uint8_t)(columns[i].count >> 8 * k);
		if (columns[i].count)
			memcpy(all + at, columns[i].bytes, columns[i].count);
		at += columns[i].count;
		columns[i].count = 0;
	}
	return frag_blob_store_add(s, all, total, blob, err);
}

int frag_blob_store_read(const struct frag_blob_store *s, size_t i, uint8_t **bytes,
			 struct frag_err *err)
{
	const struct frag_blob *b = &s->blobs[i];
	FRAG_AUTO_FREE uint8_t *all = NULL;
	uint64_t done = 0;

	if (fflush(s->file))
		return FRAG_OUTPUT(err, "cannot write a temporary file: %s", strerror(errno));
	all = frag_host_alloc(b->bytes + 1);
	FRAG_CHECK_ALLOC(all, "page", err);
	while (done < b->bytes) {
		ssize_t n = pread(fileno(s->file), all + done, b->bytes - done,
				  (off_t)(b->offset + done));

		if (n <= 0)
			return FRAG_OUTPUT(err, "cannot read a temporary file: %s",
					   n ? strerror(errno) : "it is too short");
		done += (uint64_t)n;
	}
	*bytes = FRAG_GIVE(all);
	return 0;
}
