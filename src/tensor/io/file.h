/* file.h: functions that the readers and writers of tensor files share. */
#ifndef LT_IO_FILE_H
#define LT_IO_FILE_H

#include "core.h"
#include "replace.h"

#define LT_FILE_PIECE ((size_t)4 << 20) /* bytes that are read between two interrupt checks */

/* Opens a regular file for reading. NULL with the error "<reader>: <path>: <why>". */
FILE *lt_file_open(const char *reader, const char *path);
/* Returns the size of an open file, and moves to its start. False, without an error, if the file
 * cannot seek. */
bool lt_file_size(FILE *file, uint64_t *size);

/* Reads n bytes. Returns how many were read: fewer at the end of the file, or after Ctrl-C. */
size_t lt_file_read(void *data, size_t n, FILE *file);

/* Returns the tensor as contiguous CPU memory, with one reference; NULL with an error. */
lt_Tensor *lt_file_bytes(const char *writer, const lt_Tensor *t);

/* Computes the number of bytes of a tensor whose shape a file states. Returns false, without an
 * error, when the product overflows, even if another size is 0. */
bool lt_file_nbytes(lt_Dtype dtype, int ndim, const int64_t *shape, uint64_t *bytes);
/* Does what lt_empty does on the CPU, with "<reader>: <path>: " before the error when memory is
 * out. */
lt_Tensor *lt_file_empty(const char *reader, const char *path, lt_Dtype dtype, int ndim,
                         const int64_t *shape);

/* Reverses the byte order of each element, of complex dtypes that of each part. */
void lt_file_swap(void *data, int64_t count, lt_Dtype dtype);
/* Returns true when this machine is little-endian. */
static inline bool lt_host_is_little(void) {
  const uint16_t one = 1;
  uint8_t first;
  memcpy(&first, &one, 1);
  return first == 1;
}

#endif
