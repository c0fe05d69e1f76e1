/* npy.c: see io.h. Being written (taken over). */
#include "io.h"
