/* missing.c: stands in for the kernels without which a device is refused, until each has its own
 * file. Every definition here is weak. */
#include "mps.h"

#define MISSING __attribute__((weak))

MISSING bool lt_mps_elementwise(const lt_Loop *loop);
MISSING bool lt_mps_elementwise(const lt_Loop *loop) {
  (void)loop;
  return lt_fail("cannot run on \"mps\": not yet supported");
}

#define LT_MISSING(name)                                                                           \
  MISSING bool name(lt_Call *c);                                                                   \
  MISSING bool name(lt_Call *c) {                                                                  \
    (void)c;                                                                                       \
    return lt_fail("cannot run on \"mps\": not yet supported");                                    \
  }
LT_MISSING(lt_mps_reduce)
LT_MISSING(lt_mps_mm)
LT_MISSING(lt_mps_gather)
LT_MISSING(lt_mps_scatter)
