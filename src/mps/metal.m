/* metal.m: the functions of metal.h by Apple's Metal, on macOS 13 or newer: devices, memory and
 * kernels. Queues, commands and events are in metal_commands.m.
 *
 * Programs without a run loop have no autorelease pool: every function opens its own.
 */
#include "metal_objects.h"
#include "metal_sources.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 512
#define FAMILY    7 /* of the first GPU that Lutra supports, that of M1 */

struct lt_MetalLibrary {
  lt_MetalDevice *device;
  id<MTLLibrary> object;
};

struct lt_MetalArchive {
  id<MTLBinaryArchive> object;
  pthread_mutex_t mutex; /* guards the fields and calls of the object */
  bool changed;
};

/* ---- errors ---------------------------------------------------------------------------------- */

void lt_metal_fail(lt_MetalError *error, lt_MetalStatus status, NSString *text) {
  error->status = status;
  snprintf(error->text, sizeof error->text, "%s", text.UTF8String ? text.UTF8String : "");
  for (char *c = error->text; *c; c++) {
    if (*c == '\n' || *c == '\r' || *c == '\t') *c = ' ';
  }
}

static NSString *reason_of(NSError *cause) {
  return cause ? cause.localizedDescription : @"Metal states no reason";
}

/* ---- kernels --------------------------------------------------------------------------------- */

/* Copies and fills of any bytes, LT_COPY_THREAD by each thread. `unit` is 4 where both addresses
 * are multiples of 4. The struct is lt_CopyArgs. */
static const char *const COPY_SOURCE =
    "#include <metal_stdlib>\n"
    "using namespace metal;\n"
    "struct Args { ulong nbytes; uint unit; uint byte; };\n"
    "kernel void lt_copy(device const uchar *from [[buffer(0)]], device uchar *to [[buffer(1)]],\n"
    "                    constant Args &args [[buffer(2)]],\n"
    "                    uint index [[thread_position_in_grid]]) {\n"
    "  ulong i = ulong(index) * 16, end = min(i + 16, args.nbytes);\n"
    "  if (args.unit == 4) {\n"
    "    for (; i + 4 <= end; i += 4) *(device uint *)(to + i) = *(device const uint *)(from + "
    "i);\n"
    "  }\n"
    "  for (; i < end; i++) to[i] = from[i];\n"
    "}\n"
    "kernel void lt_fill(device uchar *to [[buffer(0)]], constant Args &args [[buffer(1)]],\n"
    "                    uint index [[thread_position_in_grid]]) {\n"
    "  ulong i = ulong(index) * 16, end = min(i + 16, args.nbytes);\n"
    "  for (; i < end; i++) to[i] = uchar(args.byte);\n"
    "}\n";

static lt_MetalLibrary *new_library(lt_MetalDevice *device, id<MTLLibrary> object, NSError *cause,
                                    lt_MetalError *error) {
  lt_MetalLibrary *library = object ? calloc(1, sizeof *library) : NULL;
  if (!object) {
    lt_metal_fail(error, LT_METAL_REJECTED, reason_of(cause));
  } else if (!library) {
    lt_metal_fail(error, LT_METAL_NO_MEMORY, @"the host is out of memory");
  } else {
    library->device = device;
    library->object = object;
  }
  return library;
}

/* Compiles source code with precise math. Lutra's own is Metal 3.0, that of users the newest
 * version. */
static id<MTLLibrary> compile(lt_MetalDevice *device, const char *source, bool own,
                              NSError **cause) {
  MTLCompileOptions *options = [[MTLCompileOptions alloc] init];
  if (own) options.languageVersion = MTLLanguageVersion3_0;
  if (@available(macOS 15, *)) {
    options.mathMode = MTLMathModeSafe;
    options.mathFloatingPointFunctions = MTLMathFloatingPointFunctionsPrecise;
  } else {
    options.fastMathEnabled = NO;
  }
  NSString *text = [NSString stringWithUTF8String:source];
  if (!text) return nil; /* not UTF-8 */
  return [device->object newLibraryWithSource:text options:options error:cause];
}

lt_MetalLibrary *lt_metal_library_new(lt_MetalDevice *device, const char *source, char **log,
                                      lt_MetalError *error) {
  @autoreleasepool {
    NSError *cause = nil;
    id<MTLLibrary> object = compile(device, source, false, &cause);
    NSString *text = cause.localizedDescription; /* of warnings too */
    *log = text ? strdup(text.UTF8String) : NULL;
    return new_library(device, object, cause, error);
  }
}

lt_MetalLibrary *lt_metal_library_builtin(lt_MetalDevice *device, const char *file,
                                          lt_MetalError *error) {
  @autoreleasepool {
    const lt_MetalSource *source = lt_metal_sources;
    while (source->file && strcmp(source->file, file) != 0) source++;
    if (!source->file) {
      lt_metal_fail(error, LT_METAL_REJECTED,
                    [NSString stringWithFormat:@"this build has no kernels \"%s\"", file]);
      return NULL;
    }
    NSError *cause = nil;
    if (!source->compiled) {
      return new_library(device, compile(device, source->data, true, &cause), cause, error);
    }
    dispatch_data_t data =
        dispatch_data_create(source->data, source->size, NULL, DISPATCH_DATA_DESTRUCTOR_DEFAULT);
    return new_library(device, [device->object newLibraryWithData:data error:&cause], cause, error);
  }
}

/* The compiled form is searched for in the archive, and added to it when it is not there. */
static id<MTLComputePipelineState> compile_pipeline(id<MTLDevice> device,
                                                    MTLComputePipelineDescriptor *descriptor,
                                                    lt_MetalArchive *archive, NSError **cause) {
  id<MTLComputePipelineState> state = nil;
  if (archive) {
    descriptor.binaryArchives = @[ archive->object ];
    pthread_mutex_lock(&archive->mutex);
    state = [device newComputePipelineStateWithDescriptor:descriptor
                                                  options:MTLPipelineOptionFailOnBinaryArchiveMiss
                                               reflection:nil
                                                    error:cause];
    pthread_mutex_unlock(&archive->mutex);
    if (state) return state;
  }
  *cause = nil;
  state = [device newComputePipelineStateWithDescriptor:descriptor
                                                options:MTLPipelineOptionNone
                                             reflection:nil
                                                  error:cause];
  if (archive && state) { /* an error here costs only the time of the next compilation */
    pthread_mutex_lock(&archive->mutex);
    archive->changed |= [archive->object addComputePipelineFunctionsWithDescriptor:descriptor
                                                                             error:nil];
    pthread_mutex_unlock(&archive->mutex);
  }
  return state;
}

lt_MetalPipeline *lt_metal_pipeline_new(lt_MetalLibrary *library, const char *kernel,
                                        const int32_t *constants, int count,
                                        lt_MetalArchive *archive, lt_MetalError *error) {
  @autoreleasepool {
    MTLFunctionConstantValues *values = [[MTLFunctionConstantValues alloc] init];
    for (int i = 0; i < count; i++) {
      [values setConstantValue:&constants[i] type:MTLDataTypeInt atIndex:(NSUInteger)i];
    }
    NSError *cause = nil;
    NSString *name = [NSString stringWithUTF8String:kernel];
    id<MTLFunction> function = [library->object newFunctionWithName:name ? name : @""
                                                     constantValues:values
                                                              error:&cause];
    id<MTLComputePipelineState> state = nil;
    if (function) {
      MTLComputePipelineDescriptor *descriptor = [[MTLComputePipelineDescriptor alloc] init];
      descriptor.label = name;
      descriptor.computeFunction = function;
      state = compile_pipeline(library->device->object, descriptor, archive, &cause);
    }
    if (!state) {
      lt_metal_fail(error, LT_METAL_REJECTED, reason_of(cause));
      return NULL;
    }
    lt_Pipeline *pipeline = calloc(1, sizeof *pipeline);
    if (!pipeline) {
      lt_metal_fail(error, LT_METAL_NO_MEMORY, @"the host is out of memory");
      return NULL;
    }
    pipeline->object = state;
    pipeline->base.threads = (uint32_t)state.maxTotalThreadsPerThreadgroup;
    pipeline->base.simd_width = (uint32_t)state.threadExecutionWidth;
    pipeline->base.threadgroup = (uint32_t)state.staticThreadgroupMemoryLength;
    return &pipeline->base;
  }
}

static NSURL *url_of(const char *path) {
  return [NSURL fileURLWithPath:[[NSFileManager defaultManager]
                                    stringWithFileSystemRepresentation:path
                                                                length:strlen(path)]];
}

lt_MetalArchive *lt_metal_archive_open(lt_MetalDevice *device, const char *path,
                                       lt_MetalError *error) {
  @autoreleasepool {
    MTLBinaryArchiveDescriptor *descriptor = [[MTLBinaryArchiveDescriptor alloc] init];
    NSError *cause = nil;
    id<MTLBinaryArchive> object = nil;
    NSURL *url = url_of(path);
    if ([url checkResourceIsReachableAndReturnError:nil]) {
      descriptor.url = url;
      object = [device->object newBinaryArchiveWithDescriptor:descriptor error:&cause];
    }
    if (!object) { /* no file, or one of another release of macOS */
      descriptor.url = nil;
      object = [device->object newBinaryArchiveWithDescriptor:descriptor error:&cause];
    }
    lt_MetalArchive *archive = object ? calloc(1, sizeof *archive) : NULL;
    if (!archive) {
      lt_metal_fail(error, LT_METAL_OTHER, reason_of(cause));
      return NULL;
    }
    archive->object = object;
    pthread_mutex_init(&archive->mutex, NULL);
    return archive;
  }
}

bool lt_metal_archive_write(lt_MetalArchive *archive, const char *path, lt_MetalError *error) {
  @autoreleasepool {
    NSError *cause = nil;
    bool ok = false;
    pthread_mutex_lock(&archive->mutex);
    if (!archive->changed) {
      lt_metal_fail(error, LT_METAL_INVALID, @"nothing was added to the archive");
    } else {
      ok = [archive->object serializeToURL:url_of(path) error:&cause];
      if (!ok) lt_metal_fail(error, LT_METAL_OTHER, reason_of(cause));
    }
    pthread_mutex_unlock(&archive->mutex);
    return ok;
  }
}

/* ---- devices --------------------------------------------------------------------------------- */

static int family_of(id<MTLDevice> device) {
  for (int family = 20; family > 0; family--) { /* also those that are newer than this file */
    if ([device supportsFamily:(MTLGPUFamily)(MTLGPUFamilyApple1 + family - 1)]) return family;
  }
  return 0;
}

static void read_facts(id<MTLDevice> device, lt_MetalFacts *facts) {
  snprintf(facts->name, sizeof facts->name, "%s", device.name.UTF8String);
  facts->family = family_of(device);
  facts->unified = device.hasUnifiedMemory;
  facts->recommended = device.recommendedMaxWorkingSetSize;
  facts->allocated = device.currentAllocatedSize;
  facts->largest_buffer = device.maxBufferLength;
  facts->total = facts->unified ? NSProcessInfo.processInfo.physicalMemory : facts->recommended;
  facts->threads = (uint32_t)device.maxThreadsPerThreadgroup.width;
  facts->threadgroup = (uint32_t)device.maxThreadgroupMemoryLength;
}

/* Compiles the copy kernels, so that a device is open only if its compiler works. */
static bool prepare(lt_MetalDevice *device, lt_MetalError *error) {
  NSError *cause = nil;
  lt_MetalLibrary *library =
      new_library(device, compile(device, COPY_SOURCE, true, &cause), cause, error);
  if (!library) return false;
  device->copy = (lt_Pipeline *)lt_metal_pipeline_new(library, "lt_copy", NULL, 0, NULL, error);
  device->fill = (lt_Pipeline *)lt_metal_pipeline_new(library, "lt_fill", NULL, 0, NULL, error);
  library->object = nil;
  free(library);
  if (!device->copy || !device->fill) return false;
  device->facts.simd_width = device->copy->base.simd_width;
  return true;
}

static lt_MetalDevice *open_device(id<MTLDevice> object, lt_MetalError *error) {
  lt_MetalDevice *device = calloc(1, sizeof *device);
  if (!device) {
    lt_metal_fail(error, LT_METAL_NO_MEMORY, @"the host is out of memory");
    return NULL;
  }
  device->object = object;
  read_facts(object, &device->facts);
  const char *any = getenv("LUTRA_MPS_ANY_GPU"); /* for tests in virtual machines */
  if (device->facts.family < FAMILY && !(any && strcmp(any, "1") == 0)) {
    lt_metal_fail(
        error, LT_METAL_OTHER,
        [NSString stringWithFormat:@"expected a GPU of Apple's family %d or newer (M1 or newer), "
                                    "got \"%@\" of family %d",
                                   FAMILY, object.name, device->facts.family]);
  } else if (prepare(device, error)) {
    return device;
  }
  device->object = nil;
  free(device);
  return NULL;
}

/* Not MTLCreateSystemDefaultDevice: it returns nil in programs that do not link CoreGraphics. */
lt_MetalDevice *lt_metal_device(int index, lt_MetalError *error) {
  enum { MOST = 8 };
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  static lt_MetalDevice *open[MOST];
  @autoreleasepool {
    NSArray<id<MTLDevice>> *all = MTLCopyAllDevices();
    if (index < 0 || index >= MOST || (NSUInteger)index >= all.count) {
      lt_metal_fail(error, LT_METAL_OTHER,
                    [NSString stringWithFormat:@"Metal has %lu devices", (unsigned long)all.count]);
      return NULL;
    }
    pthread_mutex_lock(&mutex);
    if (!open[index]) open[index] = open_device([all objectAtIndex:(NSUInteger)index], error);
    lt_MetalDevice *device = open[index];
    pthread_mutex_unlock(&mutex);
    return device;
  }
}

void lt_metal_facts(lt_MetalDevice *device, lt_MetalFacts *facts) {
  @autoreleasepool {
    *facts = device->facts;
    facts->allocated = device->object.currentAllocatedSize;
  }
}

/* ---- memory ---------------------------------------------------------------------------------- */

lt_MetalBuffer *lt_metal_buffer_new(lt_MetalDevice *device, size_t nbytes, lt_MetalStorage storage,
                                    lt_MetalError *error) {
  MTLResourceOptions options =
      MTLResourceHazardTrackingModeUntracked |
      (storage == LT_METAL_SHARED ? MTLResourceStorageModeShared : MTLResourceStorageModePrivate);
  @autoreleasepool {
    lt_Buffer *buffer = calloc(1, sizeof *buffer);
    size_t most = device->facts.largest_buffer;
    if (buffer && nbytes <= most) {
      buffer->object = [device->object newBufferWithLength:nbytes options:options];
    }
    if (buffer && buffer->object.gpuAddress % ALIGNMENT != 0) {
      buffer->object = nil;
      if (nbytes <= most - ALIGNMENT) {
        buffer->object = [device->object newBufferWithLength:nbytes + ALIGNMENT options:options];
        buffer->shift = (size_t)(-buffer->object.gpuAddress % ALIGNMENT);
      }
    }
    if (!buffer || !buffer->object) {
      lt_metal_fail(
          error, LT_METAL_NO_MEMORY,
          [NSString stringWithFormat:@"Metal cannot allocate a buffer of %zu bytes", nbytes]);
      free(buffer);
      return NULL;
    }
    buffer->base.address = buffer->object.gpuAddress + buffer->shift;
    if (storage == LT_METAL_SHARED) {
      buffer->base.contents = (char *)buffer->object.contents + buffer->shift;
    }
    buffer->base.size = nbytes;
    return &buffer->base;
  }
}

void lt_metal_buffer_free(lt_MetalBuffer *base) {
  if (!base) return;
  @autoreleasepool {
    lt_Buffer *buffer = (lt_Buffer *)base;
    buffer->object = nil;
    free(buffer);
  }
}
