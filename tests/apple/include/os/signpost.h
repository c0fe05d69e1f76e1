/* signpost.h: declarations of the part of Apple's unified logging that src/mps uses, written from
 * the public documentation for the syntax check of tests/apple/check. The line before a declaration
 * is its page under https://developer.apple.com/documentation/.
 */
#ifndef LT_APPLE_SIGNPOST_H
#define LT_APPLE_SIGNPOST_H

#import <Foundation/Foundation.h>

NS_ASSUME_NONNULL_BEGIN

@protocol OS_os_log <NSObject>
@end
// os/os_log_t
typedef NSObject<OS_os_log> *os_log_t;
// os/os_log_create
os_log_t os_log_create(const char *subsystem, const char *category) NS_RETURNS_RETAINED
    API_AVAILABLE(macos(10.12));

// os/os_signpost_id_t
typedef uint64_t os_signpost_id_t;
// os/os_signpost_id_generate
os_signpost_id_t os_signpost_id_generate(os_log_t log) API_AVAILABLE(macos(10.14));

/* The macros of the system store the name and the format in a section of the program: both must be
 * string literals. */
void lt_apple_signpost(os_log_t log, os_signpost_id_t interval_id, const char *name,
                       const char *format, ...) __attribute__((format(__os_log__, 4, 5)))
API_AVAILABLE(macos(10.14));
// os/os_signpost_interval_begin
#define os_signpost_interval_begin(log, interval_id, name, ...)                                    \
  lt_apple_signpost(log, interval_id, "" name "", "" __VA_ARGS__)
// os/os_signpost_interval_end
#define os_signpost_interval_end(log, interval_id, name, ...)                                      \
  lt_apple_signpost(log, interval_id, "" name "", "" __VA_ARGS__)

NS_ASSUME_NONNULL_END

#endif
