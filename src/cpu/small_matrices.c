/* small_matrices.c: copies between tensors and blocks of small matrices. */
#include "small_matrices.h"
#include "lapack.h"
#include "moves.h"

#define COPIES(T)                                                                                  \
  static void get_##T(int rows, int columns, lt_Matrix from, T *to) {                              \
    const T *x = from.data;                                                                        \
    for (int i = 0; i < rows; i++)                                                                 \
      for (int j = 0; j < columns; j++, to += LT_BLOCK_BYTES / sizeof(T))                          \
        *to = x[i * from.row + j * from.column];                                                   \
  }                                                                                                \
  static void put_##T(int rows, int columns, const T *from, lt_Matrix to) {                        \
    T *x = to.data;                                                                                \
    for (int i = 0; i < rows; i++)                                                                 \
      for (int j = 0; j < columns; j++, from += LT_BLOCK_BYTES / sizeof(T))                        \
        x[i * to.row + j * to.column] = *from;                                                     \
  }
COPIES(float)
COPIES(double)

/* Returns matrix `at`, or its transpose. */
static lt_Matrix matrix_of(const lt_Tensor *t, int64_t at, bool transposed) {
  lt_Matrix m = lt_matrix_of(t, at);
  return transposed ? (lt_Matrix){m.data, m.column, m.row} : m;
}

void lt_block_get(const lt_Tensor *t, int64_t first, int used, bool transposed, void *block) {
  int64_t size = (int64_t)lt_dtype_size(t->dtype), m = t->shape[t->ndim - 2],
          n = t->shape[t->ndim - 1];
  if (used < LT_BLOCK_BYTES / size) memset(block, 0, (size_t)(m * n * LT_BLOCK_BYTES));
  if (!transposed && lt_tensor_is_contiguous(t)) {
    lt_mover(size)->tile(m * n, used, block, LT_BLOCK_BYTES, lt_vector_at(t, first, m * n),
                         m * n * size);
    return;
  }
  int rows = (int)(transposed ? n : m), columns = (int)(transposed ? m : n);
  for (int k = 0; k < used; k++) {
    lt_Matrix from = matrix_of(t, first + k, transposed);
    if (t->dtype == LT_float32)
      get_float(rows, columns, from, (float *)block + k);
    else
      get_double(rows, columns, from, (double *)block + k);
  }
}

void lt_block_put(lt_Tensor *t, int64_t first, int used, bool transposed, const void *block) {
  int64_t size = (int64_t)lt_dtype_size(t->dtype), m = t->shape[t->ndim - 2],
          n = t->shape[t->ndim - 1];
  if (!transposed) {
    lt_mover(size)->tile(used, m * n, lt_vector_at(t, first, m * n), m * n * size, block,
                         LT_BLOCK_BYTES);
    return;
  }
  for (int k = 0; k < used; k++) {
    lt_Matrix to = matrix_of(t, first + k, true);
    if (t->dtype == LT_float32)
      put_float((int)n, (int)m, (const float *)block + k, to);
    else
      put_double((int)n, (int)m, (const double *)block + k, to);
  }
}

void lt_block_integers(size_t size, int n, int first, int used, const void *block, int32_t *to) {
  for (int k = first; k < first + used; k++)
    for (int i = 0; i < n; i++, to++)
      *to = size == sizeof(float) ? ((const int32_t *)block)[i * 16 + k]
                                  : (int32_t)((const int64_t *)block)[i * 8 + k];
}
