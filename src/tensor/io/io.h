/* io.h: readers and writers of tensor files.
 *
 * Files are untrusted bytes: everything is checked before memory is taken, and sizes come from the
 * file system, never from a header alone. A reader that fails returns NULL with one line in the
 * error slot, "<reader>: <path>: what is wrong", and leaks nothing. A writer saves by
 * replace.h: the target is either the old file or the new one, whole.
 */
#ifndef LT_IO_H
#define LT_IO_H

#include "lutra.h"

#include <stdio.h>

/* ---- IDX: the format of MNIST ---------------------------------------------------------------- */

/* The tensor of an IDX file, which may be compressed with gzip (told by its first bytes, not its
 * name). Dtype by the file: uint8, int8, int16, int32, float32 or float64. A new reference, on the
 * CPU. */
lt_Tensor *lt_idx_load(const char *path);
/* The same from an open file that can seek; `path` is for messages. */
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

/* Everything in a safetensors file, on the CPU. Free it with lt_archive_free. */
lt_Archive *lt_safetensors_load(const char *path);
/* The same from an open file that can seek; `path` is for messages. */
lt_Archive *lt_safetensors_read(FILE *file, const char *path);
void lt_archive_free(lt_Archive *archive); /* NULL is fine */
/* Writes the tensors (any device with data, any strides) and metadata (pairs of strings). Names
 * are UTF-8, each once, and not "__metadata__". */
bool lt_safetensors_save(const char *path, int count, const char *const *names,
                         lt_Tensor *const *tensors, int notes, const char *const *keys,
                         const char *const *values);

/* ---- npy: NumPy's format --------------------------------------------------------------------- */

/* The array of a .npy file, versions 1.0 to 3.0: bool, integers of 8 to 64 bits (not uint16 to
 * uint64), floats of 16 to 64 bits, either byte order, C or Fortran order. Object arrays are
 * refused: they are programs. */
lt_Tensor *lt_npy_load(const char *path);
lt_Tensor *lt_npy_read(FILE *file, const char *path);
/* Version 1.0. bfloat16 is not known to NumPy: convert to float32 first. */
bool lt_npy_save(const char *path, const lt_Tensor *t);

#endif
