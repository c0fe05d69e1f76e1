/* foundation.m: the part of Apple's Foundation, libdispatch and block runtime that src/mps/metal*.m
 * call, on GNU's Objective-C runtime, to run these files in tests without a Mac. Nothing is ever
 * freed, except where a class says so: the files are compiled without ARC here.
 */
#import "fake.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

id class_createInstance(Class class, size_t extra); /* of the runtime */

void fake_check(bool ok, const char *what) {
  if (ok) return;
  fprintf(stderr, "fake Metal: %s\n", what);
  abort();
}

@implementation NSObject
+ (instancetype)alloc {
  return class_createInstance(self, 0);
}
+ (void)initialize {
}
- (instancetype)init {
  return self;
}
- (void)dealloc {
}
- (void)release {
}
@end

@interface NSAutoreleasePool : NSObject
- (void)drain;
@end
@implementation NSAutoreleasePool
+ (instancetype)alloc {
  static NSAutoreleasePool *one;
  if (!one) one = class_createInstance(self, 0);
  return one;
}
- (void)drain {
}
@end

/* ---- strings --------------------------------------------------------------------------------- */

@implementation NSString
- (const char *)UTF8String {
  return text;
}
+ (instancetype)stringWithUTF8String:(const char *)s {
  NSString *string = [NSString alloc];
  string->text = strdup(s);
  return string;
}
/* Formats; %@ is a string. */
static NSString *format_list(NSString *format, va_list list) {
  char out[2048], piece[64];
  size_t n = 0;
  for (const char *f = format->text; *f && n < sizeof out - 1; f++) {
    if (*f != '%') {
      out[n++] = *f;
      continue;
    }
    size_t length = strcspn(f + 1, "@sdux") + 2;
    snprintf(piece, sizeof piece, "%.*s", (int)length, f);
    char *to = out + n;
    size_t room = sizeof out - n;
    if (piece[length - 1] == '@') {
      NSString *s = va_arg(list, NSString *);
      n += (size_t)snprintf(to, room, "%s", s ? s->text : "(null)");
    } else if (piece[length - 1] == 's') {
      n += (size_t)snprintf(to, room, piece, va_arg(list, char *));
    } else if (strpbrk(piece, "lz")) {
      n += (size_t)snprintf(to, room, piece, va_arg(list, long));
    } else {
      n += (size_t)snprintf(to, room, piece, va_arg(list, int));
    }
    f += length - 1;
  }
  out[n < sizeof out ? n : sizeof out - 1] = 0;
  return [NSString stringWithUTF8String:out];
}
+ (instancetype)stringWithFormat:(NSString *)format, ... {
  va_list list;
  va_start(list, format);
  NSString *s = format_list(format, list);
  va_end(list);
  return s;
}
- (NSString *)stringByAppendingFormat:(NSString *)format, ... {
  va_list list;
  va_start(list, format);
  NSString *s = format_list(format, list);
  va_end(list);
  return [NSString stringWithFormat:@"%@%@", self, s];
}
- (BOOL)isEqualToString:(NSString *)other {
  return strcmp(text, other->text) == 0;
}
- (BOOL)containsString:(NSString *)other {
  return strstr(text, other->text) != NULL;
}
@end
@implementation NSConstantString
@end

/* ---- collections, errors, files -------------------------------------------------------------- */

@implementation NSArray
+ (instancetype)arrayWithObjects:(const id[])objects count:(NSUInteger)count {
  NSArray *array = [self alloc];
  array->items = calloc(count ? count : 1, sizeof(id));
  array->number = count;
  memcpy(array->items, objects, count * sizeof(id));
  return array;
}
- (NSUInteger)count {
  return number;
}
- (id)objectAtIndex:(NSUInteger)index {
  fake_check(index < number, "an index is out of range");
  return items[index];
}
- (NSUInteger)countByEnumeratingWithState:(NSFastEnumerationState *)state
                                  objects:(id *)buffer
                                    count:(NSUInteger)length {
  (void)buffer, (void)length;
  static unsigned long never;
  if (state->state) return 0;
  state->state = 1;
  state->itemsPtr = items;
  state->mutationsPtr = &never;
  return number;
}
@end
@implementation NSMutableArray
- (void)addObject:(id)object {
  fake_check(object != nil, "nil is added to an array");
  items = realloc(items, (number + 1) * sizeof(id));
  items[number++] = object;
}
@end
@implementation NSDictionary
- (id)objectForKey:(id)key {
  return key == only_key ? only_value : nil;
}
@end
@implementation NSError
+ (NSError *)with:(NSString *)domain code:(NSInteger)code text:(NSString *)text {
  NSError *error = [self alloc];
  error->itsDomain = domain;
  error->itsCode = code;
  error->itsText = text;
  error->itsInfo = [NSDictionary alloc];
  return error;
}
- (NSString *)domain {
  return itsDomain;
}
- (NSInteger)code {
  return itsCode;
}
- (NSString *)localizedDescription {
  return itsText;
}
- (NSDictionary *)userInfo {
  return itsInfo;
}
@end
@implementation NSURL
+ (NSURL *)fileURLWithPath:(NSString *)path {
  NSURL *url = [self alloc];
  url->path = path;
  return url;
}
- (BOOL)checkResourceIsReachableAndReturnError:(NSError **)error {
  (void)error;
  return access([path UTF8String], F_OK) == 0;
}
@end
@implementation NSFileManager
+ (NSFileManager *)defaultManager {
  return [self alloc];
}
- (NSString *)stringWithFileSystemRepresentation:(const char *)s length:(NSUInteger)length {
  fake_check(strlen(s) == length, "the length of a path is wrong");
  return [NSString stringWithUTF8String:s];
}
@end
@implementation NSProcessInfo
+ (NSProcessInfo *)processInfo {
  return [self alloc];
}
- (unsigned long long)physicalMemory {
  return 16ull << 30;
}
@end

/* ---- libdispatch and blocks ------------------------------------------------------------------ */

struct block {
  void *isa;
  int flags, reserved;
  void (*invoke)(void *);
  struct {
    unsigned long reserved, size;
    void (*copy)(void *to, const void *from);
    void (*dispose)(const void *);
  } * descriptor;
};
void *_NSConcreteStackBlock[32], *_NSConcreteGlobalBlock[32];
void _Block_object_assign(void *to, const void *object, int flags);
void _Block_object_assign(void *to, const void *object, int flags) {
  (void)flags;
  *(const void **)to = object;
}
void _Block_object_dispose(const void *object, int flags);
void _Block_object_dispose(const void *object, int flags) { (void)object, (void)flags; }
void *fake_block_copy(const void *block) {
  const struct block *from = block;
  struct block *copy = malloc(from->descriptor->size);
  memcpy(copy, from, from->descriptor->size);
  return copy;
}

void dispatch_once(dispatch_once_t *predicate, dispatch_block_t block) {
  if (__atomic_exchange_n(predicate, 1, __ATOMIC_SEQ_CST) == 0) block();
}
dispatch_data_t dispatch_data_create(const void *buffer, size_t size, dispatch_queue_t queue,
                                     dispatch_block_t destructor) {
  (void)queue, (void)destructor;
  FakeData *data = [FakeData alloc];
  data->bytes = malloc(size);
  memcpy(data->bytes, buffer, size);
  data->size = size;
  return (dispatch_data_t)data;
}
@implementation FakeData
@end
os_log_t os_log_create(const char *subsystem, const char *category) {
  (void)subsystem, (void)category;
  return (os_log_t)[NSObject alloc];
}
os_signpost_id_t os_signpost_id_generate(os_log_t log) {
  fake_check(log != nil, "a signpost without a log");
  static os_signpost_id_t last;
  return __atomic_add_fetch(&last, 1, __ATOMIC_SEQ_CST);
}
int fake_signposts;
void lt_apple_signpost(os_log_t log, os_signpost_id_t interval, const char *name,
                       const char *format, ...) {
  fake_check(log != nil && interval != 0 && *name, "a signpost without a name");
  fake_signposts += strcmp(format, "end") == 0 ? -1 : 1;
}
