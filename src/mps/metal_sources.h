/* metal_sources.h: the kernels of this folder as a table in the backend, which the Makefile writes
 * (tools/build/embed-metal): the text of each file, or the library that Xcode's compiler makes of
 * it. Only metal.m reads it.
 */
#ifndef LT_MPS_METAL_SOURCES_H
#define LT_MPS_METAL_SOURCES_H

#include <stdbool.h>
#include <stddef.h>

typedef struct lt_MetalSource {
  const char *file; /* without ".metal"; NULL ends the table */
  const char *data; /* source code that ends with 0, or a compiled library */
  size_t size;      /* bytes, without that 0 */
  bool compiled;
} lt_MetalSource;

extern const lt_MetalSource lt_metal_sources[];

#endif
