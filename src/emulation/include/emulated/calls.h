/* calls.h: included once by code that is compiled at run time: the executor's functions, by
 * pointers that are set when the code is loaded. */
#ifndef LT_EMULATED_CALLS_H
#define LT_EMULATED_CALLS_H

#include "emulated/threads.h"

#define LT_EMULATED_EXPORT extern "C" __attribute__((visibility("default")))
LT_EMULATED_EXPORT lt_EmulatedCalls lt_emulated_calls;
lt_EmulatedCalls lt_emulated_calls;
extern "C" {
int lt_emulated_barrier(int p, lt_EmulatedVote v) { return lt_emulated_calls.barrier(p, v); }
unsigned long long lt_emulated_warp(unsigned mask, lt_EmulatedWarp what, unsigned long long value,
                                    int argument, int width) {
  return lt_emulated_calls.warp(mask, what, value, argument, width);
}
void lt_emulated_trap(lt_EmulatedFault fault) { lt_emulated_calls.trap(fault); }
void lt_emulated_yield(void) { lt_emulated_calls.yield(); }
long long lt_emulated_clock(void) { return lt_emulated_calls.clock(); }
}

#endif
