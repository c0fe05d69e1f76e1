/* distance.c: the loops of distances between rows (distance.h) of one instruction set. */
#include "cpu/distance.h"
#include "cpu/rows.h"
#include "cpu/kernels/lanes.h"

/* Rows that are computed at once: their sums stay in registers. */
#define ROWS   (LT_VECTOR_SIZE / 16)
#define UNROLL _Pragma("GCC unroll 16")

/* The larger of two magnitudes, or NaN if one is: the order of their bits as integers. */
#if defined __AVX512F__
#define FV_MOST(a, b) ((FV)_mm512_max_epi32((__m512i)(a), (__m512i)(b)))
#define DV_MOST(a, b) ((DV)_mm512_max_epi64((__m512i)(a), (__m512i)(b)))
#elif defined __AVX2__
#define FV_MOST(a, b) ((FV)_mm256_max_epi32((__m256i)(a), (__m256i)(b)))
#define DV_MOST(a, b) LT_CHOOSE(DV, DM, (DM)(b) > (DM)(a), a, b)
#else
#define FV_MOST(a, b) LT_CHOOSE(FV, FM, (FM)(b) > (FM)(a), a, b)
#define DV_MOST(a, b) LT_CHOOSE(DV, DM, (DM)(b) > (DM)(a), a, b)
#endif

#define T            float
#define F            f32
#define V            FV
#define V_N          FV_N
#define V_LOAD       FV_LOAD
#define V_ALL(e)     ((float)(e) - (FV){0})
#define V_ABS(e)     ((FV)((FM)(e)&INT32_MAX))
#define V_MOST(a, b) FV_MOST(a, b)
#define ROOT         sqrtf
#include "distance_body.h"
#undef T
#undef F
#undef V
#undef V_N
#undef V_LOAD
#undef V_ALL
#undef V_ABS
#undef V_MOST
#undef ROOT

#define T            double
#define F            f64
#define V            DV
#define V_N          DV_N
#define V_LOAD       DV_LOAD
#define V_ALL(e)     ((double)(e) - (DV){0})
#define V_ABS(e)     ((DV)((DM)(e)&INT64_MAX))
#define V_MOST(a, b) DV_MOST(a, b)
#define ROOT         sqrt
#include "distance_body.h"

extern const lt_DistanceLoops LT_FOR_ISA(lt_distance_loops)[2];
const lt_DistanceLoops LT_FOR_ISA(lt_distance_loops)[2] = {
    {sum_f32, squares_f32, largest_f32, roots_f32, pull_f32},
    {sum_f64, squares_f64, largest_f64, roots_f64, pull_f64}};
