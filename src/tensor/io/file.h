/* file.h: opening and replacing files, shared by the readers and writers. */
#ifndef LT_IO_FILE_H
#define LT_IO_FILE_H

#include "core.h"

/* Opens a regular file for reading. NULL with "<reader>: <path>: <why>". */
FILE *lt_file_open(const char *reader, const char *path);
/* The size of an open file that can seek, which is then at its start. False (and no message) if it
 * has none. */
bool lt_file_size(FILE *file, uint64_t *size);

/* A file that takes the place of another once it is whole. */
typedef struct lt_Replacement {
  const char *writer;
  char *target, *temporary;
  FILE *file; /* write here by lt_file_write */
  int why;    /* errno of the first write that failed, else 0 */
} lt_Replacement;
/* Starts one; false with a message. */
bool lt_file_replace(lt_Replacement *r, const char *writer, const char *path);
/* Writes n bytes; a failure is kept for lt_file_commit. */
void lt_file_write(lt_Replacement *r, const void *data, size_t n);
/* Reads n bytes; gives how many came: fewer at the end of the file, or after Ctrl-C. */
size_t lt_file_read(void *data, size_t n, FILE *file);
/* Puts it in its place, if `good` and if everything reached the disk; else removes it. Always ends
 * the replacement. */
bool lt_file_commit(lt_Replacement *r, bool good);

/* The tensor's bytes in order in the CPU's memory: a tensor with one reference, or NULL with a
 * message. */
lt_Tensor *lt_file_bytes(const char *writer, const lt_Tensor *t);

/* The bytes of a tensor's elements, whose shape comes from a file; false when they cannot be
 * counted, also where a size of 0 hides the overflow of the others. */
bool lt_file_nbytes(lt_Dtype dtype, int ndim, const int64_t *shape, uint64_t *bytes);
/* lt_empty on the CPU, with "<reader>: <path>: " before the reason when memory is out. */
lt_Tensor *lt_file_empty(const char *reader, const char *path, lt_Dtype dtype, int ndim,
                         const int64_t *shape);

/* Turns elements of `size` bytes around. */
void lt_file_swap(void *data, int64_t count, size_t size);
static inline bool lt_host_is_little(void) {
  const uint16_t one = 1;
  uint8_t first;
  memcpy(&first, &one, 1);
  return first == 1;
}

#endif
