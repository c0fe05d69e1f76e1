/* file.h: what the readers and writers of tensor files share. */
#ifndef LT_IO_FILE_H
#define LT_IO_FILE_H

#include "core.h"
#include "replace.h"

#define LT_FILE_PIECE ((size_t)4 << 20) /* bytes between two looks whether to stop */

/* Opens a regular file for reading. NULL with "<reader>: <path>: <why>". */
FILE *lt_file_open(const char *reader, const char *path);
/* The size of an open file that can seek, which is then at its start. False (and no message) if it
 * has none. */
bool lt_file_size(FILE *file, uint64_t *size);

/* Reads n bytes; gives how many came: fewer at the end of the file, or after Ctrl-C. */
size_t lt_file_read(void *data, size_t n, FILE *file);

/* The tensor's bytes in order in the CPU's memory: a tensor with one reference, or NULL with a
 * message. */
lt_Tensor *lt_file_bytes(const char *writer, const lt_Tensor *t);

/* The bytes of a tensor's elements, whose shape comes from a file; false when they cannot be
 * counted, also where a size of 0 hides the overflow of the others. */
bool lt_file_nbytes(lt_Dtype dtype, int ndim, const int64_t *shape, uint64_t *bytes);
/* lt_empty on the CPU, with "<reader>: <path>: " before the reason when memory is out. */
lt_Tensor *lt_file_empty(const char *reader, const char *path, lt_Dtype dtype, int ndim,
                         const int64_t *shape);

/* Turns the bytes of each element around, of complex ones those of each part. */
void lt_file_swap(void *data, int64_t count, lt_Dtype dtype);
static inline bool lt_host_is_little(void) {
  const uint16_t one = 1;
  uint8_t first;
  memcpy(&first, &one, 1);
  return first == 1;
}

#endif
