/* cuda_bf16.h: the type bfloat16. */
#ifndef LT_EMULATED_CUDA_BF16_H
#define LT_EMULATED_CUDA_BF16_H

#include "emulated/half.h"

typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

LT_EMULATED float __bfloat162float(__nv_bfloat16 b) { return lt_emulated_from_bfloat16(b.bits); }
LT_EMULATED __nv_bfloat16 __float2bfloat16(float f) { return __nv_bfloat16(f); }
LT_EMULATED __nv_bfloat16 __float2bfloat16_rn(float f) { return __nv_bfloat16(f); }
LT_EMULATED __nv_bfloat16 __double2bfloat16(double d) { return __nv_bfloat16(d); }
LT_EMULATED unsigned short __bfloat16_as_ushort(__nv_bfloat16 b) { return b.bits; }
LT_EMULATED __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) {
  return __nv_bfloat16(__nv_bfloat16_raw{bits});
}
LT_EMULATED __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) { return {a, b}; }
LT_EMULATED __nv_bfloat162 __floats2bfloat162_rn(float a, float b) {
  return {__nv_bfloat16(a), __nv_bfloat16(b)};
}
LT_EMULATED float2 __bfloat1622float2(__nv_bfloat162 v) { return {(float)v.x, (float)v.y}; }
LT_EMULATED __nv_bfloat16 __int2bfloat16_rn(int i) { return __nv_bfloat16(i); }
LT_EMULATED int __bfloat162int_rn(__nv_bfloat16 b) { return (int)__builtin_rintf(b); }
LT_EMULATED int __bfloat162int_rz(__nv_bfloat16 b) { return (int)(float)b; }
LT_EMULATED __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 b) { return {b, b}; }
LT_EMULATED __nv_bfloat162 __float2bfloat162_rn(float f) {
  return {__nv_bfloat16(f), __nv_bfloat16(f)};
}
LT_EMULATED __nv_bfloat16 __low2bfloat16(__nv_bfloat162 v) { return v.x; }
LT_EMULATED __nv_bfloat16 __high2bfloat16(__nv_bfloat162 v) { return v.y; }
LT_EMULATED float __low2float(__nv_bfloat162 v) { return v.x; }
LT_EMULATED float __high2float(__nv_bfloat162 v) { return v.y; }

#endif
