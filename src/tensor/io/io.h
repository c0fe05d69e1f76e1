/* io.h: readers and writers of tensor files.
 *
 * Files are untrusted: everything is checked before memory is allocated, and a size in a header
 * must agree with the size of the file. A reader that fails returns NULL with one line in the error
 * slot, `<reader>: cannot read "<path>": <why>`, and leaks nothing. A writer saves atomically
 * (replace.h): afterwards the target is either the old file or the complete new one.
 */
#ifndef LT_IO_H
#define LT_IO_H

#include "lutra.h"

#include <stdio.h>

/* ---- IDX: the format of MNIST ---------------------------------------------------------------- */

/* Reads the tensor of an IDX file to the CPU. A file compressed with gzip is recognized by its
 * first bytes, not by its name. The dtype is the file's: uint8, int8, int16, int32, float32 or
 * float64. */
lt_Tensor *lt_idx_load(const char *path);
/* Reads from an open file that can seek; `path` is for messages. */
lt_Tensor *lt_idx_read(FILE *file, const char *path);

/* ---- safetensors ----------------------------------------------------------------------------- */

typedef struct lt_ArchiveItem {
  char *name;
  lt_Tensor *tensor;
} lt_ArchiveItem;

typedef struct lt_ArchiveNote {
  char *key, *value;
} lt_ArchiveNote;

/* A file's tensors and its metadata, both in the order of the header. Names are UTF-8 without
 * NUL. */
typedef struct lt_Archive {
  int count, notes;
  lt_ArchiveItem *item;
  lt_ArchiveNote *note;
} lt_Archive;

/* Reads all tensors and metadata of a safetensors file to the CPU. With `mapped`, tensors of a file
 * that is not small are mapped into memory where they are aligned (source.h). The caller frees the
 * result with lt_archive_free. */
lt_Archive *lt_safetensors_load(const char *path, bool mapped);
/* Reads from an open file that can seek; `path` is for messages. */
lt_Archive *lt_safetensors_read(FILE *file, const char *path);
/* Frees an archive and releases its tensors. NULL is allowed. */
void lt_archive_free(lt_Archive *archive);
/* Writes tensors (on any device with data, with any strides) and metadata (pairs of strings). Names
 * must be UTF-8, unique, and not "__metadata__". */
bool lt_safetensors_save(const char *path, int count, const char *const *names,
                         lt_Tensor *const *tensors, int notes, const char *const *keys,
                         const char *const *values);

/* ---- npy: NumPy's format --------------------------------------------------------------------- */

/* Reads the array of a .npy file, versions 1.0 to 3.0: bool, integers of 8 to 64 bits (not uint16
 * to uint64), floats of 16 to 64 bits, either byte order, C or Fortran order. Object arrays are
 * refused, because they contain pickled code. */
lt_Tensor *lt_npy_load(const char *path);
lt_Tensor *lt_npy_read(FILE *file, const char *path);
/* Reads the n bytes of such a file in memory. */
lt_Tensor *lt_npy_parse(const void *data, size_t n, const char *path);
/* Writes the start of a .npy file: magic number, length and header. Returns the number of bytes, a
 * multiple of 64; 0 with an error for a dtype that NumPy does not have. */
size_t lt_npy_header(char out[1024], const lt_Tensor *t);
/* Writes a .npy file of version 1.0. Fails for bfloat16, which NumPy does not have. */
bool lt_npy_save(const char *path, const lt_Tensor *t);

#endif
