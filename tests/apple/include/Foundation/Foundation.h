/* Foundation.h: declarations of the part of Apple's Foundation, of the Objective-C runtime and of
 * libdispatch that src/mps uses, written from the public documentation for the syntax check of
 * tests/apple/check. The line before a declaration is its page under
 * https://developer.apple.com/documentation/.
 */
#ifndef LT_APPLE_FOUNDATION_H
#define LT_APPLE_FOUNDATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define API_AVAILABLE(platform)        LT_AVAILABLE_##platform
#define LT_AVAILABLE_macos(v)          __attribute__((availability(macos, introduced = v)))
#define API_DEPRECATED(text, platform) LT_DEPRECATED_##platform
#define LT_DEPRECATED_macos(from, to)                                                              \
  __attribute__((availability(macos, introduced = from, deprecated = to)))

#define NS_ASSUME_NONNULL_BEGIN _Pragma("clang assume_nonnull begin")
#define NS_ASSUME_NONNULL_END   _Pragma("clang assume_nonnull end")
#define NS_RETURNS_RETAINED     __attribute__((ns_returns_retained))
#define NS_ENUM(type, name)                                                                        \
  enum __attribute__((enum_extensibility(open))) name : type name;                                 \
  enum name : type
#define NS_OPTIONS(type, name)                                                                     \
  enum __attribute__((flag_enum, enum_extensibility(open))) name : type name;                      \
  enum __attribute__((flag_enum)) name : type

NS_ASSUME_NONNULL_BEGIN

#if defined(__arm64__)
typedef bool BOOL; /* on Apple Silicon */
#else
typedef signed char BOOL;
#endif
#define YES __objc_yes
#define NO  __objc_no
#define nil ((void *)0)

// objectivec/nsinteger
typedef long NSInteger;
// objectivec/nsuinteger
typedef unsigned long NSUInteger;
// corefoundation/cftimeinterval
typedef double CFTimeInterval;

// foundation/nsrange-c.struct
typedef struct _NSRange {
  NSUInteger location;
  NSUInteger length;
} NSRange;
// foundation/nsmakerange
static inline NSRange NSMakeRange(NSUInteger location, NSUInteger length) {
  NSRange range = {location, length};
  return range;
}

@class NSString, NSURL;

/* The fields of objects in tests/apple/fake. */
#ifdef LT_APPLE_FAKE
#define LT_FIELDS(...)                                                                             \
  {                                                                                                \
  @public                                                                                          \
    __VA_ARGS__                                                                                    \
  }
#else
#define LT_FIELDS(...)
#endif

// objectivec/nsobjectprotocol
@protocol NSObject
@end

// objectivec/nsobject-swift.class
__attribute__((objc_root_class))
@interface NSObject<NSObject>
LT_FIELDS(Class isa;)
// objectivec/nsobject-c.class/alloc
+ (instancetype)alloc;
// objectivec/nsobject-swift.class/init()
- (instancetype)init;
// objectivec/nsobject-c.class/dealloc
- (void)dealloc;
@end

// foundation/nsfastenumeration
typedef struct {
  unsigned long state;
  id __unsafe_unretained _Nullable *_Nullable itemsPtr;
  unsigned long *_Nullable mutationsPtr;
  unsigned long extra[5];
} NSFastEnumerationState;
@protocol NSFastEnumeration
- (NSUInteger)countByEnumeratingWithState:(NSFastEnumerationState *)state
                                  objects:(id __unsafe_unretained _Nullable[_Nonnull])buffer
                                    count:(NSUInteger)length;
@end

// foundation/nscopying
@protocol NSCopying
@end

// foundation/nsstring
@interface NSString : NSObject <NSCopying>
LT_FIELDS(const char *text; unsigned length;)
// foundation/nsstring/utf8string
@property(readonly, nullable) const char *UTF8String __attribute__((objc_returns_inner_pointer));
// foundation/nsstring/init(utf8string:)
+ (nullable instancetype)stringWithUTF8String:(const char *)nullTerminatedCString;
// foundation/nsstring/stringwithformat:
+ (instancetype)stringWithFormat:(NSString *)format,
                                 ... __attribute__((format(__NSString__, 1, 2)));
// foundation/nsstring/appendingformat(_:_:)
- (NSString *)stringByAppendingFormat:(NSString *)format,
                                      ... __attribute__((format(__NSString__, 1, 2)));
// foundation/nsstring/isequal(to:)
- (BOOL)isEqualToString:(NSString *)aString;
// foundation/nsstring/contains(_:)
- (BOOL)containsString:(NSString *)str API_AVAILABLE(macos(10.10));
@end

// foundation/nsarray
@interface NSArray<__covariant ObjectType> : NSObject <NSFastEnumeration>
LT_FIELDS(id _Nonnull *items; NSUInteger number;)
// foundation/nsarray/count
@property(readonly) NSUInteger count;
// foundation/nsarray/object(at:)
- (ObjectType)objectAtIndex:(NSUInteger)index;
// foundation/nsarray/init(objects:count:)
+ (instancetype)arrayWithObjects:(const ObjectType _Nonnull[_Nullable])objects
                           count:(NSUInteger)count;
@end

// foundation/nsmutablearray
@interface NSMutableArray<ObjectType> : NSArray <ObjectType>
// foundation/nsmutablearray/add(_:)
- (void)addObject:(ObjectType)anObject;
@end

// foundation/nsdictionary
@interface NSDictionary<__covariant KeyType, __covariant ObjectType> : NSObject
LT_FIELDS(id only_key; id only_value;)
// foundation/nsdictionary/object(forkey:)
- (nullable ObjectType)objectForKey:(KeyType)key;
@end

typedef NSString *NSErrorDomain;
typedef NSString *NSErrorUserInfoKey;
// foundation/nserror
@interface NSError : NSObject
LT_FIELDS(NSString *itsDomain; NSInteger itsCode; NSString * itsText; id itsInfo;)
// foundation/nserror/domain
@property(readonly, copy) NSErrorDomain domain;
// foundation/nserror/code
@property(readonly) NSInteger code;
// foundation/nserror/userinfo
@property(readonly, copy) NSDictionary<NSErrorUserInfoKey, id> *userInfo;
// foundation/nserror/localizeddescription
@property(readonly, copy) NSString *localizedDescription;
@end

// foundation/nsurl
@interface NSURL : NSObject
LT_FIELDS(NSString *path;)
// foundation/nsurl/fileurl(withpath:)
+ (NSURL *)fileURLWithPath:(NSString *)path;
// foundation/nsurl/checkresourceisreachableandreturnerror(_:)
- (BOOL)checkResourceIsReachableAndReturnError:(NSError *_Nullable *_Nullable)error;
@end

// foundation/filemanager
@interface NSFileManager : NSObject
// foundation/filemanager/default
@property(class, readonly, strong) NSFileManager *defaultManager;
// foundation/filemanager/string(withfilesystemrepresentation:length:)
- (NSString *)stringWithFileSystemRepresentation:(const char *)str length:(NSUInteger)len;
@end

// foundation/processinfo
@interface NSProcessInfo : NSObject
// foundation/processinfo/processinfo
@property(class, readonly, strong) NSProcessInfo *processInfo;
// foundation/processinfo/physicalmemory
@property(readonly) unsigned long long physicalMemory;
@end

/* ---- libdispatch ----------------------------------------------------------------------------- */

typedef void (^dispatch_block_t)(void);
// dispatch/dispatch_once_t
typedef intptr_t dispatch_once_t;
// dispatch/dispatch_once
void dispatch_once(dispatch_once_t *predicate, dispatch_block_t block);
@protocol OS_dispatch_queue <NSObject>
@end
typedef NSObject<OS_dispatch_queue> *dispatch_queue_t;
@protocol OS_dispatch_data <NSObject>
@end
// dispatch/dispatch_data_t
typedef NSObject<OS_dispatch_data> *dispatch_data_t;
// dispatch/dispatch_data_create
dispatch_data_t dispatch_data_create(const void *buffer, size_t size,
                                     dispatch_queue_t _Nullable queue,
                                     dispatch_block_t _Nullable destructor) NS_RETURNS_RETAINED;
// dispatch/dispatch_data_destructor_default
#define DISPATCH_DATA_DESTRUCTOR_DEFAULT ((dispatch_block_t _Nullable)0)

NS_ASSUME_NONNULL_END

#endif
