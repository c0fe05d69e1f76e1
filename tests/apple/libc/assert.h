#include <lt_libc.h>
#define assert(x) ((x) ? (void)0 : abort())
