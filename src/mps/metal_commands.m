/* metal_commands.m: the functions of metal.h by Apple's Metal, on macOS 13 or newer: queues,
 * commands and events. The others are in metal.m.
 *
 * Order: buffers are untracked. Each pass (a compute or blit encoder) waits for the fence of its
 * queue and then updates it, and a barrier separates two kernels of a pass. What is no pass of ours
 * (an event, the completion of a command buffer, MPSMatrixMultiplication) is ordered by a pass
 * beside it: a command buffer is `ordered` when such a pass is its last command.
 */
#include "metal_objects.h"
#import <MetalPerformanceShaders/MetalPerformanceShaders.h>
#import <os/signpost.h>
#include <stdlib.h>
#include <string.h>

#define SMALL_COPY 65536 /* bytes: for less a kernel is faster than the change to a blit encoder */
#define COPY_PIECE ((size_t)1 << 30) /* bytes of one launch of a copy kernel */

/* ---- completions: in the order of the queue -------------------------------------------------- */

typedef struct Completion {
  uint64_t ticket;
  lt_MetalResult result;
  void (*done)(void *context, const lt_MetalResult *result);
  void *context;
  struct Completion *next;
} Completion;

/* Calls `done` in the order of the commits. Metal does not document the order of the handlers. */
@interface LutraCompletions : NSObject {
@private
  pthread_mutex_t commits, deliveries;
  uint64_t committed, delivered;
  Completion *pending; /* by ticket */
}
- (void)commit:(id<MTLCommandBuffer>)buffer completion:(Completion *)completion;
- (void)deliver:(Completion *)completion;
@end

@implementation LutraCompletions
- (instancetype)init {
  if ((self = [super init])) {
    pthread_mutex_init(&commits, NULL);
    pthread_mutex_init(&deliveries, NULL);
  }
  return self;
}
- (void)dealloc {
  pthread_mutex_destroy(&commits);
  pthread_mutex_destroy(&deliveries);
}
- (void)commit:(id<MTLCommandBuffer>)buffer completion:(Completion *)completion {
  pthread_mutex_lock(&commits);
  completion->ticket = committed++;
  [buffer commit];
  pthread_mutex_unlock(&commits);
}
- (void)deliver:(Completion *)completion {
  pthread_mutex_lock(&deliveries);
  Completion **at = &pending;
  while (*at && (*at)->ticket < completion->ticket) at = &(*at)->next;
  completion->next = *at;
  *at = completion;
  while (pending && pending->ticket == delivered) {
    Completion *first = pending;
    pending = first->next;
    delivered++;
    first->done(first->context, &first->result);
    free(first);
  }
  pthread_mutex_unlock(&deliveries);
}
@end

/* ---- objects --------------------------------------------------------------------------------- */

struct lt_MetalQueue {
  lt_MetalDevice *device;
  id<MTLCommandQueue> object;
  id<MTLFence> fence;
  id<MTLBuffer> scratch; /* for passes that only order, and in place of absent arguments */
  LutraCompletions *completions;
};

struct lt_MetalCommands {
  lt_MetalQueue *queue;
  id<MTLCommandBuffer> object;
  id<MTLComputeCommandEncoder> compute; /* at most one of the encoders is open */
  id<MTLBlitCommandEncoder> blit;
  NSMutableArray *kept; /* alive until the GPU is done: Metal retains resources only */
  id<MTLEvent> event;   /* around work that Metal Performance Shaders encodes */
  uint64_t event_value;
  bool ordered;
  bool threadgroup; /* the open compute encoder has memory at index 0 */
};

struct lt_MetalEvent {
  id<MTLSharedEvent> object;
};

/* ---- passes ---------------------------------------------------------------------------------- */

static void end_pass(lt_MetalCommands *c) {
  [c->compute updateFence:c->queue->fence];
  [c->compute endEncoding];
  [c->blit updateFence:c->queue->fence];
  [c->blit endEncoding];
  c->compute = nil;
  c->blit = nil;
}

/* Returns the open compute encoder, after a barrier, or a new one. */
static id<MTLComputeCommandEncoder> compute_pass(lt_MetalCommands *c) {
  if (c->compute) {
    [c->compute memoryBarrierWithScope:MTLBarrierScopeBuffers];
    return c->compute;
  }
  end_pass(c);
  c->compute = [c->object computeCommandEncoderWithDispatchType:MTLDispatchTypeSerial];
  [c->compute waitForFence:c->queue->fence];
  c->threadgroup = false;
  c->ordered = true;
  return c->compute;
}

static id<MTLBlitCommandEncoder> blit_pass(lt_MetalCommands *c) {
  if (c->blit) return c->blit;
  end_pass(c);
  c->blit = [c->object blitCommandEncoder];
  [c->blit waitForFence:c->queue->fence];
  c->ordered = true;
  return c->blit;
}

/* Ends the open pass. What comes next starts when everything before this point is complete. */
static void order(lt_MetalCommands *c) {
  if (!c->ordered) {
    [blit_pass(c) fillBuffer:c->queue->scratch range:NSMakeRange(0, 16) value:0];
  }
  end_pass(c);
}

/* ---- queues and command buffers -------------------------------------------------------------- */

lt_MetalQueue *lt_metal_queue_new(lt_MetalDevice *device, lt_MetalError *error) {
  @autoreleasepool {
    lt_MetalQueue *queue = calloc(1, sizeof *queue);
    if (queue) {
      queue->device = device;
      queue->object = [device->object newCommandQueueWithMaxCommandBufferCount:LT_METAL_IN_FLIGHT];
      queue->fence = [device->object newFence];
      queue->scratch = [device->object newBufferWithLength:16
                                                   options:MTLResourceStorageModePrivate |
                                                           MTLResourceHazardTrackingModeUntracked];
      queue->completions = [[LutraCompletions alloc] init];
    }
    if (!queue || !queue->object || !queue->fence || !queue->scratch || !queue->completions) {
      lt_metal_fail(error, LT_METAL_NO_MEMORY, @"Metal cannot create a command queue");
      lt_metal_queue_free(queue);
      return NULL;
    }
    id<MTLCommandBuffer> first = [queue->object commandBuffer];
    id<MTLBlitCommandEncoder> pass = [first blitCommandEncoder];
    [pass fillBuffer:queue->scratch range:NSMakeRange(0, 16) value:0];
    [pass updateFence:queue->fence]; /* the first pass waits for an update as all others do */
    [pass endEncoding];
    [first commit];
    return queue;
  }
}

void lt_metal_queue_free(lt_MetalQueue *queue) {
  if (!queue) return;
  @autoreleasepool {
    queue->object = nil;
    queue->fence = nil;
    queue->scratch = nil;
    queue->completions = nil;
    free(queue);
  }
}

static void free_commands(lt_MetalCommands *c) {
  c->compute = nil;
  c->blit = nil;
  c->event = nil;
  c->kept = nil;
  c->object = nil;
  free(c);
}

lt_MetalCommands *lt_metal_commands_new(lt_MetalQueue *queue, lt_MetalError *error) {
  @autoreleasepool {
    lt_MetalCommands *c = calloc(1, sizeof *c);
    if (c) {
      MTLCommandBufferDescriptor *descriptor = [[MTLCommandBufferDescriptor alloc] init];
      descriptor.errorOptions = MTLCommandBufferErrorOptionEncoderExecutionStatus;
      c->queue = queue;
      c->object = [queue->object commandBufferWithDescriptor:descriptor];
      c->kept = [[NSMutableArray alloc] init];
      if (c->object && c->kept) {
        [c->kept addObject:queue->fence];
        return c;
      }
      free_commands(c);
    }
    lt_metal_fail(error, LT_METAL_NO_MEMORY, @"Metal cannot create a command buffer");
    return NULL;
  }
}

void lt_metal_discard(lt_MetalCommands *c) {
  if (!c) return;
  @autoreleasepool {
    end_pass(c); /* an encoder must not be released while it is open */
    free_commands(c);
  }
}

/* The internal errors of command buffers differ by their text only. */
static lt_MetalStatus status_of(NSError *error) {
  if (![error.domain isEqualToString:MTLCommandBufferErrorDomain]) return LT_METAL_OTHER;
  switch ((MTLCommandBufferError)error.code) {
  case MTLCommandBufferErrorTimeout:
    return LT_METAL_TIMEOUT;
  case MTLCommandBufferErrorPageFault:
    return LT_METAL_PAGE_FAULT;
  case MTLCommandBufferErrorOutOfMemory:
    return LT_METAL_NO_MEMORY;
  case MTLCommandBufferErrorInvalidResource:
  case MTLCommandBufferErrorStackOverflow:
    return LT_METAL_INVALID;
  case MTLCommandBufferErrorDeviceRemoved:
  case MTLCommandBufferErrorAccessRevoked:
  case MTLCommandBufferErrorNotPermitted:
    return LT_METAL_LOST;
  default:
    break;
  }
  NSString *text = error.localizedDescription;
  if ([text containsString:@"Victim"]) return LT_METAL_LOST;
  if ([text containsString:@"Hang"] || [text containsString:@"Interactivity"]) {
    return LT_METAL_TIMEOUT;
  }
  return LT_METAL_OTHER;
}

/* Fills in the cause, and the first kernel of the pass that failed. */
static void fail_commands(lt_MetalError *error, NSError *cause) {
  NSString *text = cause ? cause.localizedDescription : @"Metal states no reason";
  NSArray<id<MTLCommandBufferEncoderInfo>> *passes =
      [cause.userInfo objectForKey:MTLCommandBufferEncoderInfoErrorKey];
  for (id<MTLCommandBufferEncoderInfo> pass in passes) {
    if (pass.errorState != MTLCommandEncoderErrorStateFaulted) continue;
    text = [text stringByAppendingFormat:@", in the kernels from \"%@\" on", pass.label];
  }
  lt_metal_fail(error, cause ? status_of(cause) : LT_METAL_OTHER, text);
}

void lt_metal_commit(lt_MetalCommands *c, void (*done)(void *context, const lt_MetalResult *result),
                     void *context) {
  @autoreleasepool {
    order(c);
    LutraCompletions *completions = c->queue->completions;
    Completion *completion = calloc(1, sizeof *completion);
    if (!completion) abort(); /* without it the host would be blocked for ever */
    completion->done = done;
    completion->context = context;
    NSMutableArray *kept = c->kept;
    [c->object addCompletedHandler:^(id<MTLCommandBuffer> buffer) {
      @autoreleasepool {
        if (buffer.status != MTLCommandBufferStatusCompleted) {
          fail_commands(&completion->result.error, buffer.error);
        }
        completion->result.start = buffer.GPUStartTime;
        completion->result.end = buffer.GPUEndTime;
        (void)kept;
        [completions deliver:completion];
      }
    }];
    [completions commit:c->object completion:completion];
    free_commands(c);
  }
}

/* ---- commands -------------------------------------------------------------------------------- */

static void bind(lt_MetalCommands *c, NSUInteger index, const lt_MetalArgument *argument) {
  if (argument->buffer) {
    const lt_Buffer *buffer = (const lt_Buffer *)argument->buffer;
    [c->compute setBuffer:buffer->object offset:buffer->shift + argument->offset atIndex:index];
  } else if (argument->bytes) {
    [c->compute setBytes:argument->bytes length:argument->size atIndex:index];
  } else {
    [c->compute setBuffer:c->queue->scratch offset:0 atIndex:index];
  }
}

static MTLSize size_of(const uint32_t n[3]) { return MTLSizeMake(n[0], n[1], n[2]); }

void lt_metal_dispatch(lt_MetalCommands *c, const lt_MetalDispatch *dispatch) {
  @autoreleasepool {
    const lt_Pipeline *pipeline = (const lt_Pipeline *)dispatch->pipeline;
    bool first = !c->compute;
    id<MTLComputeCommandEncoder> pass = compute_pass(c);
    if (first) pass.label = pipeline->object.label;
    [pass setComputePipelineState:pipeline->object];
    for (int i = 0; i < dispatch->count; i++) bind(c, (NSUInteger)i, &dispatch->arguments[i]);
    if (dispatch->threadgroup > 0 || c->threadgroup) {
      [pass setThreadgroupMemoryLength:dispatch->threadgroup atIndex:0];
      c->threadgroup = dispatch->threadgroup > 0;
    }
    [pass dispatchThreads:size_of(dispatch->grid) threadsPerThreadgroup:size_of(dispatch->group)];
  }
}

/* Launches a copy kernel for nbytes; its arguments are the buffers, then the struct. */
static void launch_copy(lt_MetalCommands *c, lt_Pipeline *kernel, lt_MetalArgument *arguments,
                        int buffers, size_t nbytes, const lt_CopyArgs *args) {
  for (size_t at = 0; at < nbytes; at += COPY_PIECE) {
    lt_CopyArgs piece = *args;
    piece.nbytes = nbytes - at < COPY_PIECE ? nbytes - at : COPY_PIECE;
    arguments[buffers] = (lt_MetalArgument){.bytes = &piece, .size = sizeof piece};
    uint32_t threads = (uint32_t)((piece.nbytes + LT_COPY_THREAD - 1) / LT_COPY_THREAD);
    lt_metal_dispatch(c, &(lt_MetalDispatch){.pipeline = &kernel->base,
                                             .arguments = arguments,
                                             .count = buffers + 1,
                                             .grid = {threads, 1, 1},
                                             .group = {256, 1, 1}});
    for (int i = 0; i < buffers; i++) arguments[i].offset += COPY_PIECE;
  }
}

/* Returns how many of nbytes a blit encoder takes, from the start: it needs multiples of 4. */
static size_t blit_part(lt_MetalCommands *c, size_t offsets, size_t nbytes) {
  if (offsets % 4 != 0 || (nbytes < SMALL_COPY && !c->blit)) return 0;
  return nbytes - nbytes % 4;
}

void lt_metal_copy(lt_MetalCommands *c, lt_MetalBuffer *to, size_t to_offset, lt_MetalBuffer *from,
                   size_t from_offset, size_t nbytes) {
  @autoreleasepool {
    lt_Buffer *target = (lt_Buffer *)to, *source = (lt_Buffer *)from;
    size_t part = blit_part(c, to_offset | from_offset, nbytes);
    if (part > 0) {
      [blit_pass(c) copyFromBuffer:source->object
                      sourceOffset:source->shift + from_offset
                          toBuffer:target->object
                 destinationOffset:target->shift + to_offset
                              size:part];
    }
    if (part == nbytes) return;
    lt_MetalArgument arguments[3] = {{.buffer = from, .offset = from_offset + part},
                                     {.buffer = to, .offset = to_offset + part}};
    uint32_t unit = (to_offset | from_offset) % 4 == 0 ? 4 : 1;
    launch_copy(c, c->queue->device->copy, arguments, 2, nbytes - part,
                &(lt_CopyArgs){.unit = unit});
  }
}

void lt_metal_fill(lt_MetalCommands *c, lt_MetalBuffer *to, size_t offset, size_t nbytes,
                   uint8_t byte) {
  @autoreleasepool {
    lt_Buffer *target = (lt_Buffer *)to;
    size_t part = blit_part(c, offset, nbytes);
    if (part > 0) {
      [blit_pass(c) fillBuffer:target->object
                         range:NSMakeRange(target->shift + offset, part)
                         value:byte];
    }
    if (part == nbytes) return;
    lt_MetalArgument arguments[2] = {{.buffer = to, .offset = offset + part}};
    launch_copy(c, c->queue->device->fill, arguments, 1, nbytes - part,
                &(lt_CopyArgs){.byte = byte});
  }
}

/* ---- events ---------------------------------------------------------------------------------- */

lt_MetalEvent *lt_metal_event_new(lt_MetalDevice *device, lt_MetalError *error) {
  @autoreleasepool {
    lt_MetalEvent *event = calloc(1, sizeof *event);
    if (event) event->object = [device->object newSharedEvent];
    if (event && event->object) return event;
    free(event);
    lt_metal_fail(error, LT_METAL_NO_MEMORY, @"Metal cannot create an event");
    return NULL;
  }
}

void lt_metal_event_free(lt_MetalEvent *event) {
  if (!event) return;
  @autoreleasepool {
    event->object = nil;
    free(event);
  }
}

void lt_metal_event_set(lt_MetalEvent *event, uint64_t value) {
  @autoreleasepool {
    event->object.signaledValue = value; /* Metal ignores a value that is not larger */
  }
}

void lt_metal_signal(lt_MetalCommands *c, lt_MetalEvent *event, uint64_t value) {
  @autoreleasepool {
    order(c);
    [c->kept addObject:event->object];
    [c->object encodeSignalEvent:event->object value:value];
  }
}

void lt_metal_wait(lt_MetalCommands *c, lt_MetalEvent *event, uint64_t value) {
  @autoreleasepool {
    end_pass(c);
    [c->kept addObject:event->object];
    [c->object encodeWaitForEvent:event->object value:value];
    c->ordered = false;
  }
}

/* ---- Metal Performance Shaders --------------------------------------------------------------- */

static MPSMatrix *matrix_of(const lt_MetalMatrix *m, MPSDataType type) {
  const lt_Buffer *buffer = (const lt_Buffer *)m->buffer;
  MPSMatrixDescriptor *descriptor = [MPSMatrixDescriptor matrixDescriptorWithRows:m->rows
                                                                          columns:m->columns
                                                                         rowBytes:m->stride
                                                                         dataType:type];
  return [[MPSMatrix alloc] initWithBuffer:buffer->object
                                    offset:buffer->shift + m->offset
                                descriptor:descriptor];
}

/* Its passes do not know the fence: they start when an event after all earlier commands is
 * signaled, and later commands wait for one after them. */
static void barrier(lt_MetalCommands *c) {
  c->event_value++;
  [c->object encodeSignalEvent:c->event value:c->event_value];
  [c->object encodeWaitForEvent:c->event value:c->event_value];
}

bool lt_metal_matmul(lt_MetalCommands *c, const lt_MetalMatrix *out, const lt_MetalMatrix *a,
                     const lt_MetalMatrix *b, bool half) {
  @autoreleasepool {
    id<MTLDevice> device = c->queue->device->object;
    if (out->transposed || !MPSSupportsMTLDevice(device)) return false;
    if (!c->event) {
      c->event = [device newEvent];
      if (!c->event) return false;
      [c->kept addObject:c->event];
    }
    MPSDataType type = half ? MPSDataTypeFloat16 : MPSDataTypeFloat32;
    MPSMatrixMultiplication *product =
        [[MPSMatrixMultiplication alloc] initWithDevice:device
                                          transposeLeft:a->transposed
                                         transposeRight:b->transposed
                                             resultRows:out->rows
                                          resultColumns:out->columns
                                        interiorColumns:a->transposed ? a->rows : a->columns
                                                  alpha:1
                                                   beta:0];
    if (!product) return false;
    order(c);
    barrier(c);
    [product encodeToCommandBuffer:c->object
                        leftMatrix:matrix_of(a, type)
                       rightMatrix:matrix_of(b, type)
                      resultMatrix:matrix_of(out, type)];
    barrier(c);
    c->ordered = false;
    return true;
  }
}

/* The watchdog of the system stops kernels that run for too long. */
void lt_metal_stop(lt_MetalDevice *device) { (void)device; }

/* ---- tools ----------------------------------------------------------------------------------- */

void lt_metal_signpost(const char *name) {
  enum { DEPTH = 32 };
  static _Thread_local os_signpost_id_t open[DEPTH];
  static _Thread_local int depth;
  static os_log_t log;
  static dispatch_once_t once;
  dispatch_once(&once, ^{
    log = os_log_create("lutra", "mps");
  });
  if (name) {
    os_signpost_id_t interval = os_signpost_id_generate(log);
    if (depth < DEPTH) open[depth] = interval;
    if (depth++ < DEPTH) {
      os_signpost_interval_begin(log, interval, "lutra", "%{public}s", name);
    }
  } else if (depth > 0 && --depth < DEPTH) {
    os_signpost_interval_end(log, open[depth], "lutra", "end");
  }
}
