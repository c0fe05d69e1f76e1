/* metal.m: the part of Apple's Metal that src/mps/metal*.m call, on the emulated GPU, to run these
 * files without a Mac. Metal's rules are checked; a call that breaks one ends the program.
 *
 * The functions of the emulated GPU are lt_metal_* under the names that emulated_names.h defines,
 * because src/mps/metal*.m define lt_metal_* themselves.
 */
#include "emulated_names.h"
#include "metal.h"
#import <Metal/Metal.h>
#import <MetalPerformanceShaders/MetalPerformanceShaders.h>
#import "fake.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

id object_dispose(id object); /* of the runtime */

NSErrorDomain const MTLCommandBufferErrorDomain = @"MTLCommandBufferErrorDomain";
NSErrorUserInfoKey const MTLCommandBufferEncoderInfoErrorKey =
    @"MTLCommandBufferEncoderInfoErrorKey";

static NSError *error_of(const lt_MetalError *e) {
  static const MTLCommandBufferError codes[] = {
      [LT_METAL_NO_MEMORY] = MTLCommandBufferErrorOutOfMemory,
      [LT_METAL_REJECTED] = MTLCommandBufferErrorInternal,
      [LT_METAL_INVALID] = MTLCommandBufferErrorInvalidResource,
      [LT_METAL_PAGE_FAULT] = MTLCommandBufferErrorPageFault,
      [LT_METAL_TIMEOUT] = MTLCommandBufferErrorTimeout,
      [LT_METAL_LOST] = MTLCommandBufferErrorDeviceRemoved,
      [LT_METAL_OTHER] = MTLCommandBufferErrorInternal};
  return [NSError with:MTLCommandBufferErrorDomain
                  code:(NSInteger)codes[e->status]
                  text:[NSString stringWithUTF8String:e->text]];
}

/* ---- memory ---------------------------------------------------------------------------------- */

@interface FakeBuffer : NSObject <MTLBuffer> {
@public
  lt_MetalBuffer *memory;
  size_t skew; /* LUTRA_FAKE_SKEW: a small buffer begins that many bytes after an aligned address */
}
@end
@implementation FakeBuffer
- (uint64_t)gpuAddress {
  return memory->address + skew;
}
- (void *)contents {
  return memory->contents ? (char *)memory->contents + skew : NULL;
}
- (void)release {
  emulated_buffer_free(memory);
  memory = NULL;
}
@end

/* ---- kernels --------------------------------------------------------------------------------- */

@interface FakeFunction : NSObject <MTLFunction> {
@public
  lt_MetalLibrary *library;
  const char *name;
  MTLFunctionConstantValues *constants;
}
@end
@implementation FakeFunction
@end

@implementation MTLFunctionConstantValues
- (void)setConstantValue:(const void *)value type:(MTLDataType)type atIndex:(NSUInteger)index {
  fake_check(type == MTLDataTypeInt && index < 32, "a function constant is no int");
  memcpy(&values[index], value, sizeof(int));
  if ((int)index >= number) number = (int)index + 1;
}
@end

@interface FakeLibrary : NSObject <MTLLibrary> {
@public
  lt_MetalLibrary *library;
}
@end
@implementation FakeLibrary
- (id<MTLFunction>)newFunctionWithName:(NSString *)name
                        constantValues:(MTLFunctionConstantValues *)constants
                                 error:(NSError **)error {
  (void)error; /* the emulated GPU knows the names when it makes the pipeline */
  FakeFunction *f = [FakeFunction alloc];
  f->library = library;
  f->name = [name UTF8String];
  f->constants = constants;
  return f;
}
@end

@implementation MTLCompileOptions
- (void)setLanguageVersion:(MTLLanguageVersion)version {
  language = version;
}
- (void)setMathMode:(MTLMathMode)mode {
  safe = mode == MTLMathModeSafe;
}
- (void)setFastMathEnabled:(BOOL)fast {
  safe = !fast;
}
- (void)setMathFloatingPointFunctions:(MTLMathFloatingPointFunctions)functions {
  fake_check(functions == MTLMathFloatingPointFunctionsPrecise, "functions are not precise");
}
@end

@implementation MTLBinaryArchiveDescriptor
- (void)setUrl:(NSURL *)url {
  itsUrl = url;
}
@end

@implementation MTLComputePipelineDescriptor
- (void)setLabel:(NSString *)text {
  itsLabel = text;
}
- (void)setComputeFunction:(id<MTLFunction>)function {
  itsFunction = function;
}
- (void)setBinaryArchives:(NSArray *)archives {
  itsArchives = archives;
}
@end

@interface FakePipeline : NSObject <MTLComputePipelineState> {
@public
  lt_MetalPipeline *pipeline;
  NSString *itsLabel;
}
@end
@implementation FakePipeline
- (NSString *)label {
  return itsLabel;
}
- (NSUInteger)maxTotalThreadsPerThreadgroup {
  return pipeline->threads;
}
- (NSUInteger)threadExecutionWidth {
  return pipeline->simd_width;
}
- (NSUInteger)staticThreadgroupMemoryLength {
  return pipeline->threadgroup;
}
@end

/* An archive of names: a pipeline is found in it when its function and constants were added. */
@interface FakeArchive : NSObject <MTLBinaryArchive> {
@public
  char text[1 << 20];
}
- (BOOL)has:(MTLComputePipelineDescriptor *)descriptor;
@end
static void name_of(MTLComputePipelineDescriptor *descriptor, char *line, size_t size) {
  FakeFunction *f = (FakeFunction *)descriptor->itsFunction;
  int n = snprintf(line, size, "%s", f->name);
  for (int i = 0; i < f->constants->number; i++)
    n += snprintf(line + n, size - (size_t)n, " %d", f->constants->values[i]);
  snprintf(line + n, size - (size_t)n, "\n");
}
@implementation FakeArchive
- (BOOL)has:(MTLComputePipelineDescriptor *)descriptor {
  char line[512];
  name_of(descriptor, line, sizeof line);
  return strstr(text, line) != NULL;
}
- (BOOL)addComputePipelineFunctionsWithDescriptor:(MTLComputePipelineDescriptor *)descriptor
                                            error:(NSError **)error {
  (void)error;
  fake_check(![self has:descriptor], "a pipeline is added to an archive twice");
  size_t n = strlen(text);
  fake_check(sizeof text - n > 512, "the archive is full");
  name_of(descriptor, text + n, sizeof text - n);
  return YES;
}
- (BOOL)serializeToURL:(NSURL *)url error:(NSError **)error {
  (void)error;
  fake_check(text[0] != 0, "an empty archive is written");
  FILE *f = fopen([url->path UTF8String], "w");
  if (!f) return NO;
  fputs(text, f);
  return fclose(f) == 0;
}
@end

/* ---- order ----------------------------------------------------------------------------------- */

@interface FakeFence : NSObject <MTLFence> {
@public
  int updates;
}
@end
@implementation FakeFence
@end

@interface FakeEvent : NSObject <MTLSharedEvent> {
@public
  lt_MetalEvent *event;
}
@end
@implementation FakeEvent
- (void)setSignaledValue:(uint64_t)value {
  emulated_event_set(event, value);
}
- (uint64_t)signaledValue {
  fake_check(false, "signaledValue is read");
  return 0;
}
@end

/* ---- command buffers ------------------------------------------------------------------------- */

@implementation MTLCommandBufferDescriptor
- (void)setErrorOptions:(MTLCommandBufferErrorOption)options {
  fake_check(options == MTLCommandBufferErrorOptionEncoderExecutionStatus, "wrong errorOptions");
}
@end

@interface FakeInfo : NSObject <MTLCommandBufferEncoderInfo> {
@public
  NSString *itsLabel;
}
@end
@implementation FakeInfo
- (NSString *)label {
  return itsLabel;
}
- (MTLCommandEncoderErrorState)errorState {
  return MTLCommandEncoderErrorStateFaulted;
}
@end

@interface FakeCommands : NSObject <MTLCommandBuffer> {
@public
  lt_MetalCommands *commands;
  id open;      /* the open encoder */
  BOOL ordered; /* the last command is a pass that waits for the fence and updates it */
  BOOL committed;
  NSString *failed; /* the label of the last pass */
  MTLCommandBufferHandler handler;
  lt_MetalResult result;
  BOOL finished;
}
@end

/* What both kinds of encoders share. */
@interface FakeEncoder : NSObject <MTLComputeCommandEncoder, MTLBlitCommandEncoder> {
@public
  FakeCommands *buffer;
  BOOL waited, updated, ended, first, blit;
  int since_barrier;
  lt_MetalPipeline *pipeline;
  lt_MetalArgument arguments[LT_METAL_ARGUMENTS];
  void *bytes[LT_METAL_ARGUMENTS];
  uint32_t threadgroup;
  NSString *itsLabel;
}
@end
@implementation FakeEncoder
- (void)check:(BOOL)blits {
  fake_check(!ended && buffer->open == self, "a command is encoded after the end of its pass");
  fake_check(waited || first, "a pass does not wait for the fence");
  fake_check(!updated, "a command is encoded after the update of the fence");
  fake_check(blits == blit, "a command is of the other kind of encoder");
}
- (void)setLabel:(NSString *)text {
  itsLabel = text;
  buffer->failed = text;
}
- (NSString *)label {
  return itsLabel;
}
- (void)endEncoding {
  fake_check(!ended && buffer->open == self, "a pass ends twice");
  fake_check(updated, "a pass does not update the fence");
  ended = YES;
  buffer->open = nil;
  buffer->ordered = waited;
  for (int i = 0; i < LT_METAL_ARGUMENTS; i++) free(bytes[i]);
  object_dispose(self);
}
- (void)updateFence:(id<MTLFence>)fence {
  fake_check(!ended, "a fence after the end of a pass");
  updated = YES;
  ((FakeFence *)fence)->updates++;
}
- (void)waitForFence:(id<MTLFence>)fence {
  fake_check(!updated, "a pass updates the fence before it waits for it");
  fake_check(((FakeFence *)fence)->updates > 0, "a pass waits for a fence without an update");
  waited = YES;
}
- (void)setComputePipelineState:(id<MTLComputePipelineState>)state {
  pipeline = ((FakePipeline *)state)->pipeline;
}
- (void)setBytes:(const void *)data length:(NSUInteger)length atIndex:(NSUInteger)index {
  fake_check(data && length > 0 && length <= 4096 && index < 31, "setBytes: wrong arguments");
  free(bytes[index]);
  bytes[index] = malloc(length);
  memcpy(bytes[index], data, length);
  arguments[index] = (lt_MetalArgument){.bytes = bytes[index], .size = length};
}
- (void)setBuffer:(id<MTLBuffer>)object offset:(NSUInteger)offset atIndex:(NSUInteger)index {
  FakeBuffer *b = (FakeBuffer *)object;
  fake_check(b && b->memory && index < 31, "setBuffer: no buffer");
  fake_check(offset < b->memory->size - b->skew, "setBuffer: the offset is not in the buffer");
  arguments[index] = (lt_MetalArgument){.buffer = b->memory, .offset = b->skew + offset};
}
- (void)setThreadgroupMemoryLength:(NSUInteger)length atIndex:(NSUInteger)index {
  fake_check(length % 16 == 0 && length <= 32768 && index == 0, "wrong threadgroup memory");
  threadgroup = (uint32_t)length;
}
- (void)memoryBarrierWithScope:(MTLBarrierScope)scope {
  [self check:NO];
  fake_check(scope == MTLBarrierScopeBuffers, "a barrier of another scope");
  since_barrier = 0;
}
- (void)dispatchThreads:(MTLSize)grid threadsPerThreadgroup:(MTLSize)group {
  [self check:NO];
  fake_check(since_barrier++ == 0, "two kernels without a barrier between them");
  fake_check(pipeline && group.width * group.height * group.depth <= pipeline->threads,
             "a threadgroup has too many threads");
  fake_check(grid.width && grid.height && grid.depth, "an empty grid");
  int count = 0;
  for (int i = 0; i < LT_METAL_ARGUMENTS; i++)
    if (arguments[i].buffer || arguments[i].bytes) count = i + 1;
  emulated_dispatch(
      buffer->commands,
      &(lt_MetalDispatch){
          .pipeline = pipeline,
          .arguments = arguments,
          .count = count,
          .grid = {(uint32_t)grid.width, (uint32_t)grid.height, (uint32_t)grid.depth},
          .group = {(uint32_t)group.width, (uint32_t)group.height, (uint32_t)group.depth},
          .threadgroup = threadgroup});
}
- (void)fillBuffer:(id<MTLBuffer>)object range:(NSRange)range value:(uint8_t)value {
  FakeBuffer *b = (FakeBuffer *)object;
  [self check:YES];
  fake_check((range.location | range.length) % 4 == 0 && range.length,
             "a fill needs multiples of 4");
  emulated_fill(buffer->commands, b->memory, b->skew + range.location, range.length, value);
}
- (void)copyFromBuffer:(id<MTLBuffer>)from
          sourceOffset:(NSUInteger)from_offset
              toBuffer:(id<MTLBuffer>)to
     destinationOffset:(NSUInteger)to_offset
                  size:(NSUInteger)size {
  FakeBuffer *s = (FakeBuffer *)from, *t = (FakeBuffer *)to;
  [self check:YES];
  fake_check((from_offset | to_offset | size) % 4 == 0 && size, "a copy needs multiples of 4");
  emulated_copy(buffer->commands, t->memory, t->skew + to_offset, s->memory, s->skew + from_offset,
                size);
}
@end

@implementation FakeCommands
- (id)encoder:(BOOL)blit {
  fake_check(!open && !committed, "two passes are open at once");
  FakeEncoder *e = [FakeEncoder alloc];
  e->buffer = self;
  e->blit = blit;
  e->first = handler == nil && result.start < 0; /* that of a new queue */
  open = e;
  return e;
}
- (id<MTLBlitCommandEncoder>)blitCommandEncoder {
  return [self encoder:YES];
}
- (id<MTLComputeCommandEncoder>)computeCommandEncoderWithDispatchType:(MTLDispatchType)type {
  fake_check(type == MTLDispatchTypeSerial, "a pass is not serial");
  return [self encoder:NO];
}
- (void)encodeWaitForEvent:(id<MTLEvent>)event value:(uint64_t)value {
  fake_check(!open, "an event inside a pass");
  emulated_wait(commands, ((FakeEvent *)event)->event, value);
  ordered = NO;
}
- (void)encodeSignalEvent:(id<MTLEvent>)event value:(uint64_t)value {
  fake_check(!open, "an event inside a pass");
  fake_check(ordered, "an event is signaled without a pass that waits for earlier work");
  emulated_signal(commands, ((FakeEvent *)event)->event, value);
}
- (void)addCompletedHandler:(MTLCommandBufferHandler)block {
  handler = (MTLCommandBufferHandler)fake_block_copy(block);
}
static void fake_done(void *context, const lt_MetalResult *r) {
  FakeCommands *c = context;
  c->result = *r;
  c->finished = YES;
  if (c->handler) c->handler(c);
}
- (void)commit {
  fake_check(!open && !committed, "a command buffer is committed with an open pass, or twice");
  fake_check(ordered || result.start < 0, "a command buffer does not end with an ordered pass");
  committed = YES;
  emulated_commit(commands, fake_done, self);
}
- (MTLCommandBufferStatus)status {
  fake_check(finished, "the status is read before the end");
  return result.error.status ? MTLCommandBufferStatusError : MTLCommandBufferStatusCompleted;
}
- (void)release { /* by the last reference, unless it was committed */
  if (!committed) emulated_discard(commands);
}
- (NSError *)error {
  NSError *error = error_of(&result.error);
  FakeInfo *info = [FakeInfo alloc];
  info->itsLabel = failed;
  error->itsInfo = [NSDictionary alloc];
  ((NSDictionary *)error->itsInfo)->only_key = MTLCommandBufferEncoderInfoErrorKey;
  ((NSDictionary *)error->itsInfo)->only_value = [NSArray arrayWithObjects:&info count:1];
  return error;
}
- (CFTimeInterval)GPUStartTime {
  return result.start;
}
- (CFTimeInterval)GPUEndTime {
  return result.end;
}
@end

@interface FakeQueue : NSObject <MTLCommandQueue> {
@public
  lt_MetalQueue *queue;
}
@end
@implementation FakeQueue
- (id<MTLCommandBuffer>)commandBufferWithDescriptor:(MTLCommandBufferDescriptor *)descriptor {
  lt_MetalError error;
  FakeCommands *c = [FakeCommands alloc];
  (void)descriptor;
  c->commands = emulated_commands_new(queue, &error);
  return c->commands ? c : nil;
}
- (id<MTLCommandBuffer>)commandBuffer {
  FakeCommands *c =
      (FakeCommands *)[self commandBufferWithDescriptor:[MTLCommandBufferDescriptor alloc]];
  if (c) c->result.start = -1;
  return c;
}
@end

/* ---- the device ------------------------------------------------------------------------------ */

@interface FakeDevice : NSObject <MTLDevice> {
@public
  lt_MetalDevice *device;
  lt_MetalFacts facts;
}
@end
@implementation FakeDevice
- (NSString *)name {
  return [NSString stringWithUTF8String:facts.name];
}
- (BOOL)supportsFamily:(MTLGPUFamily)family {
  const char *fake = getenv("LUTRA_FAKE_FAMILY");
  return (int)family - 1000 <= (fake ? atoi(fake) : facts.family);
}
- (BOOL)hasUnifiedMemory {
  return facts.unified;
}
- (uint64_t)recommendedMaxWorkingSetSize {
  return facts.recommended;
}
- (NSUInteger)currentAllocatedSize {
  lt_MetalFacts now;
  emulated_facts(device, &now);
  return now.allocated;
}
- (NSUInteger)maxBufferLength {
  return facts.largest_buffer;
}
- (MTLSize)maxThreadsPerThreadgroup {
  return MTLSizeMake(facts.threads, facts.threads, facts.threads);
}
- (NSUInteger)maxThreadgroupMemoryLength {
  return facts.threadgroup;
}
- (id<MTLBuffer>)newBufferWithLength:(NSUInteger)length options:(MTLResourceOptions)options {
  const char *skew = getenv("LUTRA_FAKE_SKEW");
  lt_MetalError error;
  FakeBuffer *b = [FakeBuffer alloc];
  fake_check(length > 0 && length <= facts.largest_buffer, "a buffer of a wrong length");
  fake_check(options & MTLResourceHazardTrackingModeUntracked, "a buffer is tracked");
  b->skew = skew && length < 1 << 20 ? (size_t)atoi(skew) : 0;
  b->memory = emulated_buffer_new(
      device, length + b->skew,
      options & MTLResourceStorageModePrivate ? LT_METAL_PRIVATE : LT_METAL_SHARED, &error);
  return b->memory ? b : nil;
}
- (id<MTLLibrary>)newLibraryWithSource:(NSString *)source
                               options:(MTLCompileOptions *)options
                                 error:(NSError **)error {
  lt_MetalError e;
  char *log = NULL;
  FakeLibrary *library = [FakeLibrary alloc];
  fake_check(options->safe, "fast math");
  fake_check(options->language == MTLLanguageVersion3_0 || options->language == 0, /* the newest */
             "a wrong version of the language");
  library->library = emulated_library_new(device, [source UTF8String], &log, &e);
  if (log || !library->library)
    *error = [NSError with:@"MTLLibraryErrorDomain"
                      code:library->library ? 4 : 3
                      text:[NSString stringWithUTF8String:log ? log : e.text]];
  return library->library ? library : nil;
}
/* The data is the name of a file of kernels. */
- (id<MTLLibrary>)newLibraryWithData:(dispatch_data_t)data error:(NSError **)error {
  char name[64] = "";
  lt_MetalError e;
  FakeLibrary *library = [FakeLibrary alloc];
  FakeData *bytes = (FakeData *)data;
  memcpy(name, bytes->bytes, bytes->size);
  library->library = emulated_library_builtin(device, name, &e);
  if (!library->library) *error = error_of(&e);
  return library->library ? library : nil;
}
- (id<MTLComputePipelineState>)
    newComputePipelineStateWithDescriptor:(MTLComputePipelineDescriptor *)descriptor
                                  options:(MTLPipelineOption)options
                               reflection:(MTLComputePipelineReflection **)reflection
                                    error:(NSError **)error {
  (void)reflection;
  FakeFunction *f = (FakeFunction *)descriptor->itsFunction;
  FakeArchive *archive = [descriptor->itsArchives objectAtIndex:0];
  if (options & MTLPipelineOptionFailOnBinaryArchiveMiss && ![archive has:descriptor]) {
    *error = [NSError with:@"AGXMetal" code:1 text:@"not in the archive"];
    return nil;
  }
  lt_MetalError e;
  FakePipeline *p = [FakePipeline alloc];
  p->itsLabel = descriptor->itsLabel;
  p->pipeline = emulated_pipeline_new(f->library, f->name, f->constants->values,
                                      f->constants->number, NULL, &e);
  if (!p->pipeline) *error = error_of(&e);
  return p->pipeline ? p : nil;
}
- (id<MTLBinaryArchive>)newBinaryArchiveWithDescriptor:(MTLBinaryArchiveDescriptor *)descriptor
                                                 error:(NSError **)error {
  FakeArchive *archive = [FakeArchive alloc];
  FILE *f = descriptor->itsUrl ? fopen([descriptor->itsUrl->path UTF8String], "r") : NULL;
  if (f) {
    size_t n = fread(archive->text, 1, sizeof archive->text - 1, f);
    fclose(f);
    if (n == 0 || strstr(archive->text, "damaged")) {
      *error = [NSError with:@"MTLBinaryArchiveDomain" code:1 text:@"Invalid file"];
      return nil;
    }
  }
  return archive;
}
- (id<MTLCommandQueue>)newCommandQueueWithMaxCommandBufferCount:(NSUInteger)count {
  lt_MetalError error;
  FakeQueue *q = [FakeQueue alloc];
  fake_check(count == LT_METAL_IN_FLIGHT, "another number of command buffers");
  q->queue = emulated_queue_new(device, &error);
  return q->queue ? q : nil;
}
- (id<MTLFence>)newFence {
  return [FakeFence alloc];
}
- (id<MTLSharedEvent>)newSharedEvent {
  lt_MetalError error;
  FakeEvent *e = [FakeEvent alloc];
  e->event = emulated_event_new(device, &error);
  return e->event ? e : nil;
}
- (id<MTLEvent>)newEvent {
  return [self newSharedEvent];
}
@end

NSArray *MTLCopyAllDevices(void) {
  id devices[64];
  lt_MetalError error;
  NSUInteger n = 0;
  for (lt_MetalDevice *d; n < 64 && (d = emulated_device((int)n, &error)); n++) {
    FakeDevice *device = [FakeDevice alloc];
    device->device = d;
    emulated_facts(d, &device->facts);
    devices[n] = device;
  }
  return [NSArray arrayWithObjects:devices count:n];
}

/* ---- Metal Performance Shaders --------------------------------------------------------------- */

BOOL MPSSupportsMTLDevice(id<MTLDevice> device) { return device != nil; }

@implementation MPSKernel
@end
@implementation MPSMatrixDescriptor
+ (instancetype)matrixDescriptorWithRows:(NSUInteger)rows
                                 columns:(NSUInteger)columns
                                rowBytes:(NSUInteger)rowBytes
                                dataType:(MPSDataType)dataType {
  MPSMatrixDescriptor *d = [self alloc];
  d->itsRows = rows;
  d->itsColumns = columns;
  d->itsBytes = rowBytes;
  d->itsType = dataType;
  return d;
}
@end
@implementation MPSMatrix
- (instancetype)initWithBuffer:(id<MTLBuffer>)buffer
                        offset:(NSUInteger)offset
                    descriptor:(MPSMatrixDescriptor *)descriptor {
  itsBuffer = buffer;
  itsOffset = offset;
  itsDescriptor = descriptor;
  return self;
}
@end
static lt_MetalMatrix matrix(MPSMatrix *m, BOOL transposed) {
  FakeBuffer *b = (FakeBuffer *)m->itsBuffer;
  MPSMatrixDescriptor *d = m->itsDescriptor;
  return (lt_MetalMatrix){
      b->memory, b->skew + m->itsOffset, d->itsBytes, (uint32_t)d->itsRows, (uint32_t)d->itsColumns,
      transposed};
}
@implementation MPSMatrixMultiplication
- (instancetype)initWithDevice:(id<MTLDevice>)device
                 transposeLeft:(BOOL)left
                transposeRight:(BOOL)right
                    resultRows:(NSUInteger)rows
                 resultColumns:(NSUInteger)columns
               interiorColumns:(NSUInteger)interior
                         alpha:(double)alpha
                          beta:(double)beta {
  (void)device, (void)rows, (void)columns;
  fake_check(alpha == 1 && beta == 0, "a product with other factors");
  itsLeft = left;
  itsRight = right;
  itsInterior = interior;
  return self;
}
- (void)encodeToCommandBuffer:(id<MTLCommandBuffer>)buffer
                   leftMatrix:(MPSMatrix *)left
                  rightMatrix:(MPSMatrix *)right
                 resultMatrix:(MPSMatrix *)result {
  FakeCommands *c = (FakeCommands *)buffer;
  fake_check(!c->open, "a product inside a pass");
  lt_MetalMatrix out = matrix(result, NO), a = matrix(left, itsLeft), b = matrix(right, itsRight);
  fake_check((a.transposed ? a.rows : a.columns) == itsInterior, "the inner sizes differ");
  emulated_matmul(c->commands, &out, &a, &b, result->itsDescriptor->itsType == MPSDataTypeFloat16);
  c->ordered = YES; /* an event may be signaled after its pass */
}
@end
