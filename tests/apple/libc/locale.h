#include <lt_libc.h>
