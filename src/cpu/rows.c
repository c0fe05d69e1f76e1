/* rows.c: returns the tables of loops over rows, planes and keys, folds, copies, attention and
 * Fourier transforms for this CPU, as selected by isa.c. */
#include "attention.h"
#include "distance.h"
#include "fft.h"
#include "moves.h"
#include "order.h"
#include "planes.h"
#include "product.h"
#include "row_sums.h"
#include "rows.h"
#include "small_matrices.h"
#include "symmetric.h"
#include "triangle.h"
#include "vector.h"

#define TABLES(isa)                                                                                \
  extern const lt_Fold *const lt_folds_##isa[LT_STATE_COUNT];                                      \
  extern const lt_Centered *const lt_centereds_##isa[LT_STATE_COUNT];                              \
  extern const lt_Best *const lt_bests_##isa[LT_STATE_COUNT];                                      \
  extern const lt_Scan lt_scans_##isa[2][LT_DTYPE_COUNT];                                          \
  extern const lt_Extremes lt_extremes_##isa[2][3];                                                \
  extern const lt_RowKernels lt_row_kernels_##isa;                                                 \
  extern const lt_OrderKernels lt_order_kernels_##isa;                                             \
  extern const lt_PlaneKernels lt_plane_kernels_##isa;                                             \
  extern const lt_ProductLoops lt_product_loops_##isa[2];                                          \
  extern const lt_ProductLoops lt_integer_products_##isa[2];                                       \
  extern const lt_BfloatLoops lt_bfloat_loops_##isa;                                               \
  extern const lt_FewLoops lt_few_loops_##isa[3];                                                  \
  extern const lt_TriangleLoops lt_triangle_loops_##isa[2];                                        \
  extern const lt_SmallLoops lt_small_loops_##isa[2];                                              \
  extern const lt_SymmetricLoops lt_symmetric_loops_##isa[2];                                      \
  extern const lt_SecularLoops lt_secular_loops_##isa;                                             \
  extern const lt_DistanceLoops lt_distance_loops_##isa[2];                                        \
  extern const lt_AttentionKernels lt_attention_kernels_##isa;                                     \
  extern const lt_Moves lt_moves_##isa;                                                            \
  extern const lt_RowSumsFn lt_row_sums_##isa[3];                                                  \
  extern const lt_FftLoops lt_fft_loops_##isa;

TABLES(base)
#ifdef LT_ISA_AVX2
TABLES(avx2)
#endif
#ifdef LT_ISA_AVX512
TABLES(avx512)
#endif

static bool is(lt_IsaLevel level) { return lt_cpu_isa()->level == level; }

/* The table for the instruction set of this CPU. */
#if defined LT_ISA_AVX512 && defined LT_ISA_AVX2
#define BY_ISA(table)                                                                              \
  (is(LT_LEVEL_avx512) ? table##_avx512 : is(LT_LEVEL_avx2) ? table##_avx2 : table##_base)
#elif defined LT_ISA_AVX512
#define BY_ISA(table) (is(LT_LEVEL_avx512) ? table##_avx512 : table##_base)
#elif defined LT_ISA_AVX2
#define BY_ISA(table) (is(LT_LEVEL_avx2) ? table##_avx2 : table##_base)
#else
#define BY_ISA(table) ((void)is, table##_base)
#endif

/* Returns the state of the dtype of narrow integers or of complex numbers, or LT_STATE_COUNT. */
static lt_State narrow_state(lt_Dtype dtype) {
  return dtype == LT_int32        ? LT_STATE_I32
         : dtype == LT_int16      ? LT_STATE_I16
         : dtype == LT_int8       ? LT_STATE_I8
         : dtype == LT_uint8      ? LT_STATE_UINT8
         : dtype == LT_complex64  ? LT_STATE_C64
         : dtype == LT_complex128 ? LT_STATE_C128
                                  : LT_STATE_COUNT;
}

static lt_State state_of(lt_ReductionId id, lt_Dtype work) {
  lt_FormKind kind = lt_reductions[id].kind;
  if (work == LT_float64) return LT_STATE_F64;
  if (work != LT_float32) return LT_STATE_I64;
  bool wide = kind == LT_FORM_FOLD_WIDE || kind == LT_FORM_CENTERED_WIDE;
  return wide ? LT_STATE_F32_WIDE : LT_STATE_F32;
}

const lt_Fold *lt_fold(lt_ReductionId id, lt_Dtype work, bool bytes) {
  lt_State state = state_of(id, work);
  if (bytes) state = lt_reductions[id].sums_to_int ? LT_STATE_U8_COUNT : LT_STATE_U8;
  return &BY_ISA(lt_folds)[state][id];
}

/* Returns the state of sums of narrow integers, or LT_STATE_COUNT. */
static lt_State sum_state(lt_Dtype dtype) {
  return dtype == LT_int32   ? LT_STATE_I32_SUM
         : dtype == LT_int16 ? LT_STATE_I16_SUM
         : dtype == LT_int8  ? LT_STATE_I8_SUM
         : dtype == LT_uint8 ? LT_STATE_UINT8_SUM
                             : LT_STATE_COUNT;
}

const lt_Fold *lt_narrow_fold(lt_ReductionId id, lt_Dtype dtype) {
  const lt_State states[] = {narrow_state(dtype), sum_state(dtype)};
  for (int k = 0; k < 2; k++) {
    const lt_Fold *f = states[k] < LT_STATE_COUNT ? &BY_ISA(lt_folds)[states[k]][id] : NULL;
    if (f && f->elements.rows) return f;
  }
  return NULL;
}

const lt_Centered *lt_centered(lt_ReductionId id, lt_Dtype work) {
  return &BY_ISA(lt_centereds)[state_of(id, work)][id];
}

const lt_Best *lt_best(lt_ReductionId id, lt_Dtype work) {
  lt_State narrow = narrow_state(work);
  return &BY_ISA(lt_bests)[narrow < LT_STATE_COUNT ? narrow : state_of(id, work)][id];
}

const lt_RowKernels *lt_rows(void) { return BY_ISA(&lt_row_kernels); }

const lt_OrderKernels *lt_order(void) { return BY_ISA(&lt_order_kernels); }

const lt_Scan *lt_scan(lt_Dtype work, bool product) { return &BY_ISA(lt_scans)[product][work]; }

const lt_Extremes *lt_extremes(lt_Dtype work, bool largest) {
  return &BY_ISA(lt_extremes)[largest][work == LT_float32 ? 0 : work == LT_float64 ? 1 : 2];
}

const lt_PlaneKernels *lt_planes(void) { return BY_ISA(&lt_plane_kernels); }

const lt_ProductLoops *lt_product_loops(lt_Dtype dtype) {
  if (!lt_dtype_is_float(dtype)) return &BY_ISA(lt_integer_products)[dtype == LT_int64];
  if (is(LT_LEVEL_base)) return NULL;
  return &BY_ISA(lt_product_loops)[dtype == LT_float64];
}

const lt_FewLoops *lt_few_loops(lt_Dtype dtype) {
  return &BY_ISA(lt_few_loops)[dtype == LT_float16 ? 0 : dtype == LT_bfloat16 ? 1 : 2];
}

const lt_TriangleLoops *lt_triangle_loops(lt_Dtype dtype) {
  if (is(LT_LEVEL_base) || (dtype != LT_float32 && dtype != LT_float64)) return NULL;
  return &BY_ISA(lt_triangle_loops)[dtype == LT_float64];
}

const lt_SmallLoops *lt_small_loops(lt_Dtype dtype) {
  if (dtype != LT_float32 && dtype != LT_float64) return NULL;
  return &BY_ISA(lt_small_loops)[dtype == LT_float64];
}

const lt_SymmetricLoops *lt_symmetric_loops(lt_Dtype dtype) {
  return &BY_ISA(lt_symmetric_loops)[dtype == LT_float64];
}

const lt_SecularLoops *lt_secular_loops(void) { return BY_ISA(&lt_secular_loops); }

const lt_DistanceLoops *lt_distance_loops(lt_Dtype dtype) {
  return &BY_ISA(lt_distance_loops)[dtype == LT_float64];
}

const lt_BfloatLoops *lt_bfloat_loops(void) { return BY_ISA(&lt_bfloat_loops); }

const lt_AttentionKernels *lt_attention_kernels(void) { return BY_ISA(&lt_attention_kernels); }

const lt_Moves *lt_moves(void) { return BY_ISA(&lt_moves); }

lt_RowSumsFn lt_row_sums(lt_Dtype work) {
  return BY_ISA(lt_row_sums)[work == LT_float32 ? 0 : work == LT_float64 ? 1 : 2];
}

const lt_FftLoops *lt_fft_loops(void) { return BY_ISA(&lt_fft_loops); }
