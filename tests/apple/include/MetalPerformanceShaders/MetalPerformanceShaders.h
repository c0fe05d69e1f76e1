/* MetalPerformanceShaders.h: declarations of the part of Apple's framework that src/mps uses,
 * written from the public documentation for the syntax check of tests/apple/check. The lines before
 * a declaration are its page under https://developer.apple.com/documentation/.
 */
#ifndef LT_APPLE_MPS_H
#define LT_APPLE_MPS_H

#import <Metal/Metal.h>

NS_ASSUME_NONNULL_BEGIN

// metalperformanceshaders/mpsdatatype
typedef NS_ENUM(uint32_t, MPSDataType) {
  MPSDataTypeInvalid = 0,
  MPSDataTypeFloatBit = 0x10000000,
  MPSDataTypeFloat32 = MPSDataTypeFloatBit | 32,
  MPSDataTypeFloat16 = MPSDataTypeFloatBit | 16,
} API_AVAILABLE(macos(10.13));

// metalperformanceshaders/mpssupportsmtldevice(_:)
BOOL MPSSupportsMTLDevice(id<MTLDevice> _Nullable device) API_AVAILABLE(macos(10.13));

// metalperformanceshaders/mpskernel
API_AVAILABLE(macos(10.13)) @interface MPSKernel : NSObject
@end

// metalperformanceshaders/mpsmatrixdescriptor
API_AVAILABLE(macos(10.13)) @interface MPSMatrixDescriptor : NSObject
LT_FIELDS(NSUInteger itsRows, itsColumns, itsBytes; MPSDataType itsType;)
// metalperformanceshaders/mpsmatrixdescriptor/init(rows:columns:rowbytes:datatype:)
+ (instancetype)matrixDescriptorWithRows:(NSUInteger)rows
                                 columns:(NSUInteger)columns
                                rowBytes:(NSUInteger)rowBytes
                                dataType:(MPSDataType)dataType API_AVAILABLE(macos(10.13));
@end

// metalperformanceshaders/mpsmatrix
API_AVAILABLE(macos(10.13)) @interface MPSMatrix : NSObject
LT_FIELDS(id itsBuffer; NSUInteger itsOffset; MPSMatrixDescriptor * itsDescriptor;)
// metalperformanceshaders/mpsmatrix/init(buffer:offset:descriptor:)
- (instancetype)initWithBuffer:(id<MTLBuffer>)buffer
                        offset:(NSUInteger)offset
                    descriptor:(MPSMatrixDescriptor *)descriptor API_AVAILABLE(macos(11.0));
@end

// metalperformanceshaders/mpsmatrixmultiplication
API_AVAILABLE(macos(10.13)) @interface MPSMatrixMultiplication : MPSKernel
LT_FIELDS(BOOL itsLeft, itsRight; NSUInteger itsInterior;)
// metalperformanceshaders/mpsmatrixmultiplication/
// init(device:transposeleft:transposeright:resultrows:resultcolumns:interiorcolumns:alpha:beta:)
- (instancetype)initWithDevice:(id<MTLDevice>)device
                 transposeLeft:(BOOL)transposeLeft
                transposeRight:(BOOL)transposeRight
                    resultRows:(NSUInteger)resultRows
                 resultColumns:(NSUInteger)resultColumns
               interiorColumns:(NSUInteger)interiorColumns
                         alpha:(double)alpha
                          beta:(double)beta;
// metalperformanceshaders/mpsmatrixmultiplication/
// encode(commandbuffer:leftmatrix:rightmatrix:resultmatrix:)
- (void)encodeToCommandBuffer:(id<MTLCommandBuffer>)commandBuffer
                   leftMatrix:(MPSMatrix *)leftMatrix
                  rightMatrix:(MPSMatrix *)rightMatrix
                 resultMatrix:(MPSMatrix *)resultMatrix;
@end

NS_ASSUME_NONNULL_END

#endif
