/* Metal.h: declarations of the part of Apple's Metal that src/mps uses, written from the public
 * documentation for the syntax check of tests/apple/check. The line before a declaration is its
 * page under https://developer.apple.com/documentation/.
 */
#ifndef LT_APPLE_METAL_H
#define LT_APPLE_METAL_H

#import <Foundation/Foundation.h>

NS_ASSUME_NONNULL_BEGIN

@protocol MTLDevice;
@protocol MTLBuffer;
@protocol MTLLibrary;
@protocol MTLFunction;
@protocol MTLComputePipelineState;
@protocol MTLCommandQueue;
@protocol MTLCommandBuffer;
@protocol MTLFence;
@protocol MTLEvent;
@protocol MTLSharedEvent;
@protocol MTLBinaryArchive;
@protocol MTLComputeCommandEncoder;
@protocol MTLBlitCommandEncoder;
@class MTLCompileOptions, MTLComputePipelineDescriptor, MTLComputePipelineReflection,
    MTLBinaryArchiveDescriptor, MTLFunctionConstantValues, MTLCommandBufferDescriptor;

/* ---- types ----------------------------------------------------------------------------------- */

// metal/mtlsize
typedef struct {
  NSUInteger width, height, depth;
} MTLSize;
// metal/mtlsizemake
static inline MTLSize MTLSizeMake(NSUInteger width, NSUInteger height, NSUInteger depth) {
  MTLSize size = {width, height, depth};
  return size;
}

// metal/mtldatatype
typedef NS_ENUM(NSUInteger, MTLDataType) {
  MTLDataTypeFloat = 3,
  MTLDataTypeInt = 29,
  MTLDataTypeUInt = 33,
};

// metal/mtlgpufamily
typedef NS_ENUM(NSInteger, MTLGPUFamily) {
  MTLGPUFamilyApple1 = 1001,
  MTLGPUFamilyApple7 = 1007,
  MTLGPUFamilyApple8 = 1008,
  MTLGPUFamilyApple9 API_AVAILABLE(macos(14.0)) = 1009,
} API_AVAILABLE(macos(10.15));

// metal/mtlresourceoptions
typedef NS_OPTIONS(NSUInteger, MTLResourceOptions) {
  MTLResourceStorageModeShared = 0,
  MTLResourceStorageModeManaged = 16,
  MTLResourceStorageModePrivate = 32,
  MTLResourceHazardTrackingModeDefault = 0,
  MTLResourceHazardTrackingModeUntracked API_AVAILABLE(macos(10.13)) = 256,
  MTLResourceHazardTrackingModeTracked API_AVAILABLE(macos(10.15)) = 512,
};

// metal/mtlpipelineoption
typedef NS_OPTIONS(NSUInteger, MTLPipelineOption) {
  MTLPipelineOptionNone = 0,
  MTLPipelineOptionFailOnBinaryArchiveMiss API_AVAILABLE(macos(11.0)) = 4,
};

// metal/mtlbarrierscope
typedef NS_OPTIONS(NSUInteger, MTLBarrierScope) {
  MTLBarrierScopeBuffers = 1,
  MTLBarrierScopeTextures = 2,
} API_AVAILABLE(macos(10.14));

// metal/mtldispatchtype
typedef NS_ENUM(NSUInteger, MTLDispatchType) {
  MTLDispatchTypeSerial = 0,
  MTLDispatchTypeConcurrent = 1,
} API_AVAILABLE(macos(10.14));

// metal/mtllanguageversion
typedef NS_ENUM(NSUInteger, MTLLanguageVersion) {
  MTLLanguageVersion2_4 API_AVAILABLE(macos(12.0)) = (2 << 16) + 4,
  MTLLanguageVersion3_0 API_AVAILABLE(macos(13.0)) = (3 << 16) + 0,
  MTLLanguageVersion3_1 API_AVAILABLE(macos(14.0)) = (3 << 16) + 1,
} API_AVAILABLE(macos(10.11));

// metal/mtlmathmode
typedef NS_ENUM(NSInteger, MTLMathMode) {
  MTLMathModeSafe = 0,
  MTLMathModeRelaxed = 1,
  MTLMathModeFast = 2,
} API_AVAILABLE(macos(15.0));

// metal/mtlmathfloatingpointfunctions
typedef NS_ENUM(NSInteger, MTLMathFloatingPointFunctions) {
  MTLMathFloatingPointFunctionsFast = 0,
  MTLMathFloatingPointFunctionsPrecise = 1,
} API_AVAILABLE(macos(15.0));

/* ---- devices --------------------------------------------------------------------------------- */

// metal/mtlcopyalldevices()
NSArray<id<MTLDevice>> *MTLCopyAllDevices(void) NS_RETURNS_RETAINED API_AVAILABLE(macos(10.11));

// metal/mtldevice
API_AVAILABLE(macos(10.11)) @protocol MTLDevice<NSObject>
// metal/mtldevice/name
@property(readonly) NSString *name;
// metal/mtldevice/supportsfamily(_:)
- (BOOL)supportsFamily:(MTLGPUFamily)gpuFamily API_AVAILABLE(macos(10.15));
// metal/mtldevice/hasunifiedmemory
@property(readonly) BOOL hasUnifiedMemory API_AVAILABLE(macos(10.15));
// metal/mtldevice/recommendedmaxworkingsetsize
@property(readonly) uint64_t recommendedMaxWorkingSetSize API_AVAILABLE(macos(10.12));
// metal/mtldevice/currentallocatedsize
@property(readonly) NSUInteger currentAllocatedSize API_AVAILABLE(macos(10.13));
// metal/mtldevice/maxbufferlength
@property(readonly) NSUInteger maxBufferLength API_AVAILABLE(macos(10.14));
// metal/mtldevice/maxthreadsperthreadgroup
@property(readonly) MTLSize maxThreadsPerThreadgroup API_AVAILABLE(macos(10.11));
// metal/mtldevice/maxthreadgroupmemorylength
@property(readonly) NSUInteger maxThreadgroupMemoryLength API_AVAILABLE(macos(10.13));
// metal/mtldevice/makebuffer(length:options:)
- (nullable id<MTLBuffer>)newBufferWithLength:(NSUInteger)length
                                      options:(MTLResourceOptions)options;
// metal/mtldevice/makelibrary(source:options:)
- (nullable id<MTLLibrary>)newLibraryWithSource:(NSString *)source
                                        options:(nullable MTLCompileOptions *)options
                                          error:(NSError *_Nullable *_Nullable)error;
// metal/mtldevice/makelibrary(data:)
- (nullable id<MTLLibrary>)newLibraryWithData:(dispatch_data_t)data
                                        error:(NSError *_Nullable *_Nullable)error;
// metal/mtldevice/makecomputepipelinestate(descriptor:options:reflection:)
- (nullable id<MTLComputePipelineState>)
    newComputePipelineStateWithDescriptor:(MTLComputePipelineDescriptor *)descriptor
                                  options:(MTLPipelineOption)options
                               reflection:
                                   (MTLComputePipelineReflection *_Nullable *_Nullable)reflection
                                    error:(NSError *_Nullable *_Nullable)error
    API_AVAILABLE(macos(10.11));
// metal/mtldevice/makebinaryarchive(descriptor:)
- (nullable id<MTLBinaryArchive>)newBinaryArchiveWithDescriptor:
                                     (MTLBinaryArchiveDescriptor *)descriptor
                                                          error:(NSError *_Nullable *_Nullable)error
    API_AVAILABLE(macos(11.0));
// metal/mtldevice/makecommandqueue(maxcommandbuffercount:)
- (nullable id<MTLCommandQueue>)newCommandQueueWithMaxCommandBufferCount:
    (NSUInteger)maxCommandBufferCount;
// metal/mtldevice/makefence()
- (nullable id<MTLFence>)newFence API_AVAILABLE(macos(10.13));
// metal/mtldevice/makeevent()
- (nullable id<MTLEvent>)newEvent API_AVAILABLE(macos(10.14));
// metal/mtldevice/makesharedevent()
- (nullable id<MTLSharedEvent>)newSharedEvent API_AVAILABLE(macos(10.14));
@end

/* ---- memory ---------------------------------------------------------------------------------- */

// metal/mtlresource
API_AVAILABLE(macos(10.11)) @protocol MTLResource<NSObject>
@end

// metal/mtlbuffer
API_AVAILABLE(macos(10.11)) @protocol MTLBuffer<MTLResource>
// metal/mtlbuffer/contents()
- (void *)contents __attribute__((objc_returns_inner_pointer));
// metal/mtlbuffer/gpuaddress
@property(readonly) uint64_t gpuAddress API_AVAILABLE(macos(13.0));
@end

/* ---- kernels --------------------------------------------------------------------------------- */

// metal/mtlcompileoptions
API_AVAILABLE(macos(10.11)) @interface MTLCompileOptions : NSObject<NSCopying>
LT_FIELDS(BOOL safe; MTLLanguageVersion language;)
// metal/mtlcompileoptions/languageversion
@property(readwrite, nonatomic) MTLLanguageVersion languageVersion API_AVAILABLE(macos(10.11));
// metal/mtlcompileoptions/fastmathenabled
@property(readwrite, nonatomic)
    BOOL fastMathEnabled API_DEPRECATED("Use mathMode instead", macos(10.11, 15.0));
// metal/mtlcompileoptions/mathmode
@property(readwrite, nonatomic) MTLMathMode mathMode API_AVAILABLE(macos(15.0));
// metal/mtlcompileoptions/mathfloatingpointfunctions
@property(readwrite, nonatomic)
    MTLMathFloatingPointFunctions mathFloatingPointFunctions API_AVAILABLE(macos(15.0));
@end

// metal/mtlfunctionconstantvalues
API_AVAILABLE(macos(10.12)) @interface MTLFunctionConstantValues : NSObject<NSCopying>
LT_FIELDS(int values[32]; int number;)
// metal/mtlfunctionconstantvalues/setconstantvalue(_:type:index:)
- (void)setConstantValue:(const void *)value type:(MTLDataType)type atIndex:(NSUInteger)index;
@end

// metal/mtlfunction
API_AVAILABLE(macos(10.11)) @protocol MTLFunction<NSObject>
@end

// metal/mtllibrary
API_AVAILABLE(macos(10.11)) @protocol MTLLibrary<NSObject>
// metal/mtllibrary/makefunction(name:constantvalues:)
- (nullable id<MTLFunction>)newFunctionWithName:(NSString *)name
                                 constantValues:(MTLFunctionConstantValues *)constantValues
                                          error:(NSError *_Nullable *_Nullable)error
    API_AVAILABLE(macos(10.12));
@end

// metal/mtlcomputepipelinedescriptor
API_AVAILABLE(macos(10.11)) @interface MTLComputePipelineDescriptor : NSObject<NSCopying>
LT_FIELDS(NSString *itsLabel; id itsFunction; NSArray * itsArchives;)
// metal/mtlcomputepipelinedescriptor/label
@property(nullable, copy, nonatomic) NSString *label;
// metal/mtlcomputepipelinedescriptor/computefunction
@property(nullable, readwrite, nonatomic, strong) id<MTLFunction> computeFunction;
// metal/mtlcomputepipelinedescriptor/binaryarchives
@property(readwrite, nullable, nonatomic, copy)
    NSArray<id<MTLBinaryArchive>> *binaryArchives API_AVAILABLE(macos(11.0));
@end

// metal/mtlcomputepipelinestate
API_AVAILABLE(macos(10.11)) @protocol MTLComputePipelineState<NSObject>
// metal/mtlcomputepipelinestate/label
@property(nullable, readonly) NSString *label API_AVAILABLE(macos(10.13));
// metal/mtlcomputepipelinestate/maxtotalthreadsperthreadgroup
@property(readonly) NSUInteger maxTotalThreadsPerThreadgroup;
// metal/mtlcomputepipelinestate/threadexecutionwidth
@property(readonly) NSUInteger threadExecutionWidth;
// metal/mtlcomputepipelinestate/staticthreadgroupmemorylength
@property(readonly) NSUInteger staticThreadgroupMemoryLength API_AVAILABLE(macos(10.13));
@end

// metal/mtlbinaryarchivedescriptor
API_AVAILABLE(macos(11.0)) @interface MTLBinaryArchiveDescriptor : NSObject<NSCopying>
LT_FIELDS(NSURL *itsUrl;)
// metal/mtlbinaryarchivedescriptor/url
@property(nullable, copy, nonatomic) NSURL *url;
@end

// metal/mtlbinaryarchive
API_AVAILABLE(macos(11.0)) @protocol MTLBinaryArchive<NSObject>
// metal/mtlbinaryarchive/addcomputepipelinefunctions(descriptor:)
- (BOOL)addComputePipelineFunctionsWithDescriptor:(MTLComputePipelineDescriptor *)descriptor
                                            error:(NSError *_Nullable *_Nullable)error;
// metal/mtlbinaryarchive/serialize(to:)
- (BOOL)serializeToURL:(NSURL *)url error:(NSError *_Nullable *_Nullable)error;
@end

/* ---- order ----------------------------------------------------------------------------------- */

// metal/mtlfence
API_AVAILABLE(macos(10.13)) @protocol MTLFence<NSObject>
@end

// metal/mtlevent
API_AVAILABLE(macos(10.14)) @protocol MTLEvent<NSObject>
@end

// metal/mtlsharedevent
API_AVAILABLE(macos(10.14)) @protocol MTLSharedEvent<MTLEvent>
// metal/mtlsharedevent/signaledvalue
@property(readwrite) uint64_t signaledValue;
@end

/* ---- command buffers ------------------------------------------------------------------------- */

// metal/mtlcommandqueue
API_AVAILABLE(macos(10.11)) @protocol MTLCommandQueue<NSObject>
// metal/mtlcommandqueue/makecommandbuffer()
- (nullable id<MTLCommandBuffer>)commandBuffer;
// metal/mtlcommandqueue/makecommandbuffer(descriptor:)
- (nullable id<MTLCommandBuffer>)commandBufferWithDescriptor:
    (MTLCommandBufferDescriptor *)descriptor API_AVAILABLE(macos(11.0));
@end

// metal/mtlcommandbuffererrordomain
extern NSErrorDomain const MTLCommandBufferErrorDomain API_AVAILABLE(macos(10.11));

// metal/mtlcommandbuffererror-swift.struct/code
typedef NS_ENUM(NSUInteger, MTLCommandBufferError) {
  MTLCommandBufferErrorNone = 0,
  MTLCommandBufferErrorInternal = 1,
  MTLCommandBufferErrorTimeout = 2,
  MTLCommandBufferErrorPageFault = 3,
  MTLCommandBufferErrorAccessRevoked = 4,
  MTLCommandBufferErrorNotPermitted = 7,
  MTLCommandBufferErrorOutOfMemory = 8,
  MTLCommandBufferErrorInvalidResource = 9,
  MTLCommandBufferErrorMemoryless = 10,
  MTLCommandBufferErrorDeviceRemoved API_AVAILABLE(macos(10.13)) = 11,
  MTLCommandBufferErrorStackOverflow API_AVAILABLE(macos(12.0)) = 12,
} API_AVAILABLE(macos(10.11));

// metal/mtlcommandbuffererroroption
typedef NS_OPTIONS(NSUInteger, MTLCommandBufferErrorOption) {
  MTLCommandBufferErrorOptionNone = 0,
  MTLCommandBufferErrorOptionEncoderExecutionStatus = 1,
} API_AVAILABLE(macos(11.0));

// metal/mtlcommandencodererrorstate
typedef NS_ENUM(NSInteger, MTLCommandEncoderErrorState) {
  MTLCommandEncoderErrorStateUnknown = 0,
  MTLCommandEncoderErrorStateCompleted = 1,
  MTLCommandEncoderErrorStateAffected = 2,
  MTLCommandEncoderErrorStatePending = 3,
  MTLCommandEncoderErrorStateFaulted = 4,
} API_AVAILABLE(macos(11.0));

// metal/mtlcommandbufferencoderinfoerrorkey
extern NSErrorUserInfoKey const MTLCommandBufferEncoderInfoErrorKey API_AVAILABLE(macos(11.0));

// metal/mtlcommandbufferencoderinfo
API_AVAILABLE(macos(11.0)) @protocol MTLCommandBufferEncoderInfo<NSObject>
// metal/mtlcommandbufferencoderinfo/label
@property(readonly, nonatomic) NSString *label;
// metal/mtlcommandbufferencoderinfo/errorstate
@property(readonly, nonatomic) MTLCommandEncoderErrorState errorState;
@end

// metal/mtlcommandbufferdescriptor
API_AVAILABLE(macos(11.0)) @interface MTLCommandBufferDescriptor : NSObject<NSCopying>
// metal/mtlcommandbufferdescriptor/erroroptions
@property(readwrite, nonatomic) MTLCommandBufferErrorOption errorOptions;
@end

// metal/mtlcommandbufferstatus
typedef NS_ENUM(NSUInteger, MTLCommandBufferStatus) {
  MTLCommandBufferStatusNotEnqueued = 0,
  MTLCommandBufferStatusEnqueued = 1,
  MTLCommandBufferStatusCommitted = 2,
  MTLCommandBufferStatusScheduled = 3,
  MTLCommandBufferStatusCompleted = 4,
  MTLCommandBufferStatusError = 5,
} API_AVAILABLE(macos(10.11));

// metal/mtlcommandbufferhandler
typedef void (^MTLCommandBufferHandler)(id<MTLCommandBuffer>);

// metal/mtlcommandbuffer
API_AVAILABLE(macos(10.11)) @protocol MTLCommandBuffer<NSObject>
// metal/mtlcommandbuffer/status
@property(readonly) MTLCommandBufferStatus status;
// metal/mtlcommandbuffer/error
@property(nullable, readonly) NSError *error;
// metal/mtlcommandbuffer/gpustarttime
@property(readonly) CFTimeInterval GPUStartTime API_AVAILABLE(macos(10.15));
// metal/mtlcommandbuffer/gpuendtime
@property(readonly) CFTimeInterval GPUEndTime API_AVAILABLE(macos(10.15));
// metal/mtlcommandbuffer/addcompletedhandler(_:)
- (void)addCompletedHandler:(MTLCommandBufferHandler)block;
// metal/mtlcommandbuffer/commit()
- (void)commit;
// metal/mtlcommandbuffer/makeblitcommandencoder()
- (nullable id<MTLBlitCommandEncoder>)blitCommandEncoder;
// metal/mtlcommandbuffer/makecomputecommandencoder(dispatchtype:)
- (nullable id<MTLComputeCommandEncoder>)computeCommandEncoderWithDispatchType:
    (MTLDispatchType)dispatchType API_AVAILABLE(macos(10.14));
// metal/mtlcommandbuffer/encodewaitforevent(_:value:)
- (void)encodeWaitForEvent:(id<MTLEvent>)event value:(uint64_t)value API_AVAILABLE(macos(10.14));
// metal/mtlcommandbuffer/encodesignalevent(_:value:)
- (void)encodeSignalEvent:(id<MTLEvent>)event value:(uint64_t)value API_AVAILABLE(macos(10.14));
@end

/* ---- encoders -------------------------------------------------------------------------------- */

// metal/mtlcommandencoder
API_AVAILABLE(macos(10.11)) @protocol MTLCommandEncoder<NSObject>
// metal/mtlcommandencoder/label
@property(nullable, copy, atomic) NSString *label;
// metal/mtlcommandencoder/endencoding()
- (void)endEncoding;
@end

// metal/mtlcomputecommandencoder
API_AVAILABLE(macos(10.11)) @protocol MTLComputeCommandEncoder<MTLCommandEncoder>
// metal/mtlcomputecommandencoder/setcomputepipelinestate(_:)
- (void)setComputePipelineState:(id<MTLComputePipelineState>)state;
// metal/mtlcomputecommandencoder/setbytes(_:length:index:)
- (void)setBytes:(const void *)bytes
          length:(NSUInteger)length
         atIndex:(NSUInteger)index API_AVAILABLE(macos(10.11));
// metal/mtlcomputecommandencoder/setbuffer(_:offset:index:)
- (void)setBuffer:(nullable id<MTLBuffer>)buffer
           offset:(NSUInteger)offset
          atIndex:(NSUInteger)index;
// metal/mtlcomputecommandencoder/setthreadgroupmemorylength(_:index:)
- (void)setThreadgroupMemoryLength:(NSUInteger)length atIndex:(NSUInteger)index;
// metal/mtlcomputecommandencoder/dispatchthreads(_:threadsperthreadgroup:)
- (void)dispatchThreads:(MTLSize)threadsPerGrid
    threadsPerThreadgroup:(MTLSize)threadsPerThreadgroup API_AVAILABLE(macos(10.13));
// metal/mtlcomputecommandencoder/memorybarrier(scope:)
- (void)memoryBarrierWithScope:(MTLBarrierScope)scope API_AVAILABLE(macos(10.14));
// metal/mtlcomputecommandencoder/updatefence(_:)
- (void)updateFence:(id<MTLFence>)fence API_AVAILABLE(macos(10.13));
// metal/mtlcomputecommandencoder/waitforfence(_:)
- (void)waitForFence:(id<MTLFence>)fence API_AVAILABLE(macos(10.13));
@end

// metal/mtlblitcommandencoder
API_AVAILABLE(macos(10.11)) @protocol MTLBlitCommandEncoder<MTLCommandEncoder>
// metal/mtlblitcommandencoder/fill(buffer:range:value:)
- (void)fillBuffer:(id<MTLBuffer>)buffer range:(NSRange)range value:(uint8_t)value;
// metal/mtlblitcommandencoder/copy(from:sourceoffset:to:destinationoffset:size:)
- (void)copyFromBuffer:(id<MTLBuffer>)sourceBuffer
          sourceOffset:(NSUInteger)sourceOffset
              toBuffer:(id<MTLBuffer>)destinationBuffer
     destinationOffset:(NSUInteger)destinationOffset
                  size:(NSUInteger)size;
// metal/mtlblitcommandencoder/updatefence(_:)
- (void)updateFence:(id<MTLFence>)fence API_AVAILABLE(macos(10.13));
// metal/mtlblitcommandencoder/waitforfence(_:)
- (void)waitForFence:(id<MTLFence>)fence API_AVAILABLE(macos(10.13));
@end

NS_ASSUME_NONNULL_END

#endif
