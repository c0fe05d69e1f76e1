/* metal_objects.h: the objects behind the pointers of metal.h on macOS, for metal.m and
 * metal_commands.m. A C struct holds the Objective-C objects, which ARC retains until the field is
 * set to nil: before each free.
 */
#ifndef LT_MPS_METAL_OBJECTS_H
#define LT_MPS_METAL_OBJECTS_H

#import <Foundation/Foundation.h>
#import <Metal/Metal.h>
#include <pthread.h>
#include "metal.h"

typedef struct lt_Buffer {
  lt_MetalBuffer base;
  id<MTLBuffer> object;
  size_t shift; /* from the start of the object to base.address */
} lt_Buffer;

typedef struct lt_Pipeline {
  lt_MetalPipeline base;
  id<MTLComputePipelineState> object;
} lt_Pipeline;

struct lt_MetalDevice {
  id<MTLDevice> object;
  lt_MetalFacts facts;
  lt_Pipeline *copy, *fill; /* kernels for what blit encoders cannot do */
};

#define LT_COPY_THREAD 16 /* bytes of one thread of these kernels */

typedef struct lt_CopyArgs {
  uint64_t nbytes;
  uint32_t unit, byte;
} lt_CopyArgs;

/* Fills in an error; the text becomes one line. */
void lt_metal_fail(lt_MetalError *error, lt_MetalStatus status, NSString *text);

#endif
