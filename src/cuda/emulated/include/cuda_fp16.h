/* cuda_fp16.h: the type float16. */
#ifndef LT_EMULATED_CUDA_FP16_H
#define LT_EMULATED_CUDA_FP16_H

#include "emulated/half.h"

typedef __half half;
typedef __half2 half2;

LT_EMULATED float __half2float(__half h) { return lt_emulated_from_half(h.bits); }
LT_EMULATED __half __float2half(float f) { return __half(f); }
LT_EMULATED __half __float2half_rn(float f) { return __half(f); }
LT_EMULATED __half __double2half(double d) { return __half(d); }
LT_EMULATED unsigned short __half_as_ushort(__half h) { return h.bits; }
LT_EMULATED short __half_as_short(__half h) { return (short)h.bits; }
LT_EMULATED __half __ushort_as_half(unsigned short bits) { return __half(__half_raw{bits}); }
LT_EMULATED __half2 __halves2half2(__half a, __half b) { return {a, b}; }
LT_EMULATED __half2 __float2half2_rn(float f) { return {__half(f), __half(f)}; }
LT_EMULATED __half2 __floats2half2_rn(float a, float b) { return {__half(a), __half(b)}; }
LT_EMULATED __half2 __float22half2_rn(float2 v) { return {__half(v.x), __half(v.y)}; }
LT_EMULATED float2 __half22float2(__half2 v) { return {(float)v.x, (float)v.y}; }
LT_EMULATED __half __low2half(__half2 v) { return v.x; }
LT_EMULATED __half __high2half(__half2 v) { return v.y; }
LT_EMULATED float __low2float(__half2 v) { return v.x; }
LT_EMULATED float __high2float(__half2 v) { return v.y; }
LT_EMULATED __half __int2half_rn(int i) { return __half(i); }
LT_EMULATED __half __uint2half_rn(unsigned i) { return __half(i); }
LT_EMULATED int __half2int_rn(__half h) { return (int)__builtin_rintf(h); }
LT_EMULATED int __half2int_rz(__half h) { return (int)(float)h; }
LT_EMULATED __half2 __half2half2(__half h) { return {h, h}; }
LT_EMULATED __half2 make_half2(__half a, __half b) { return {a, b}; }

#endif
