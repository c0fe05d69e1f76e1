/* rows.c: the tables of row loops and folds that fit the machine, by the choice of isa.c. */
#include "rows.h"
#include "vector.h"

#define TABLES(isa)                                                                                \
  extern const lt_Fold lt_folds_##isa[LT_FOLD_COUNT];                                              \
  extern const lt_RowKernels lt_row_kernels_##isa;

TABLES(base)
#ifdef LT_ISA_AVX2
TABLES(avx2)
#endif
#ifdef LT_ISA_AVX512
TABLES(avx512)
#endif

static bool is(const char *name) { return strcmp(lt_cpu_isa()->name, name) == 0; }

static const lt_Fold *folds(void) {
#ifdef LT_ISA_AVX512
  if (is("avx512")) return lt_folds_avx512;
#endif
#ifdef LT_ISA_AVX2
  if (is("avx2")) return lt_folds_avx2;
#endif
  (void)is;
  return lt_folds_base;
}

const lt_Fold *lt_fold(lt_FoldId id) { return &folds()[id]; }

const lt_RowKernels *lt_rows(void) {
#ifdef LT_ISA_AVX512
  if (is("avx512")) return &lt_row_kernels_avx512;
#endif
#ifdef LT_ISA_AVX2
  if (is("avx2")) return &lt_row_kernels_avx2;
#endif
  return &lt_row_kernels_base;
}
