/* source.h: a file whose parts are read by offset, for formats that are parsed in Lua (zip
 * archives, PyTorch's files) and for memory-mapped tensors.
 *
 * Invariant: every part that is read lies inside the file as it was when it was opened. */
#ifndef LT_IO_SOURCE_H
#define LT_IO_SOURCE_H

#include "file.h"

typedef struct lt_Source lt_Source;

#define LT_MAP_LEAST ((uint64_t)1 << 20) /* bytes of a file that is mapped */

/* Opens a regular file; with `mapped`, the tensors of a file that is not small are mapped into
 * memory where that is possible: their pages are read when they are first used, and a write to one
 * copies the page, so the file never changes. `reader` and `path` are copied for
 * messages. NULL with an error. */
lt_Source *lt_source_open(const char *reader, const char *path, bool mapped);
/* Closes the file. Tensors that are mapped stay valid. NULL is allowed. */
void lt_source_close(lt_Source *s);

uint64_t lt_source_size(const lt_Source *s);
/* Returns the open file, which the source owns. */
FILE *lt_source_file(lt_Source *s);
/* Reads n bytes from offset `at`. False with an error, also when they are not inside the file. */
bool lt_source_read(lt_Source *s, uint64_t at, void *to, uint64_t n);
/* Returns a vector of `count` elements from offset `at` on; `swap` reverses their bytes. Bool
 * elements become 0 or 1. Checked against the size of the file before memory is allocated. */
lt_Tensor *lt_source_tensor(lt_Source *s, uint64_t at, lt_Dtype dtype, int64_t count, bool swap);
/* Returns a vector of uint8 with the `size` bytes that the n bytes at `at` are the deflated form of
 * (RFC 1951, without a header). A size that n bytes cannot have is an error before memory is
 * allocated. */
lt_Tensor *lt_source_inflate(lt_Source *s, uint64_t at, uint64_t n, uint64_t size);

#endif
