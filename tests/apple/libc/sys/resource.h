/* resource.h: see lt_libc.h. */
#ifndef LT_APPLE_RESOURCE_H
#define LT_APPLE_RESOURCE_H

#include <lt_libc.h>

typedef __UINT64_TYPE__ rlim_t;
struct rlimit {
  rlim_t rlim_cur, rlim_max;
};
enum { RLIMIT_NOFILE = 8 };
int getrlimit(int, struct rlimit *);
int setrlimit(int, const struct rlimit *);

#endif
