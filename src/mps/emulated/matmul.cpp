/* matmul.cpp: products of matrices, which Apple's MPSMatrixMultiplication computes on a GPU. Sums
 * are float32, also of float16 factors. */
#include "emulated/half_bits.h"
#include "runtime.h"

#include <string.h>
#include <utility>

namespace emulated {
namespace {

/* A matrix in memory. */
struct Operand {
  Range range;
  size_t stride;
  bool transposed, half;

  char *element(size_t row, size_t column) const {
    if (transposed) std::swap(row, column);
    return range.at + row * stride + column * (half ? 2 : 4);
  }
  float get(size_t row, size_t column) const {
    const char *at = element(row, column);
    float f;
    uint16_t h;
    if (!half) return memcpy(&f, at, sizeof f), f;
    return memcpy(&h, at, sizeof h), lt_emulated_from_half(h);
  }
  void set(size_t row, size_t column, float f) const {
    uint16_t h = half ? lt_emulated_to_half(f) : (uint16_t)0;
    memcpy(element(row, column), half ? (void *)&h : (void *)&f, half ? sizeof h : sizeof f);
  }
};

struct Matmul final : Command {
  Operand out, a, b;
  size_t rows, columns, depth;

  bool run(lt_MetalError *error) override {
    for (const Operand *x : {&out, &a, &b})
      if (!is_accessible(x->range, error)) return false;
    Access access(out.range.memory, {out.range.base, a.range.base, b.range.base});
    std::vector<float> row(columns), factors(depth * columns);
    for (size_t k = 0; k < depth; k++)
      for (size_t j = 0; j < columns; j++) factors[k * columns + j] = b.get(k, j);
    for (size_t i = 0; i < rows; i++) {
      row.assign(columns, 0.0f);
      for (size_t k = 0; k < depth; k++) {
        const float factor = a.get(i, k), *with = &factors[k * columns];
        for (size_t j = 0; j < columns; j++) row[j] += factor * with[j];
      }
      for (size_t j = 0; j < columns; j++) out.set(i, j, row[j]);
    }
    return true;
  }
};

Operand operand(const lt_MetalMatrix *m, bool half, lt_MetalError *error) {
  size_t row = (size_t)m->columns * (half ? 2 : 4);
  if (m->rows == 0 || m->columns == 0 || m->stride < row)
    set_error(error, LT_METAL_INVALID, "a matrix of %u x %u with %zu bytes between rows", m->rows,
              m->columns, m->stride);
  size_t nbytes = m->rows ? (m->rows - 1) * m->stride + row : 0;
  return {range_of(m->buffer, m->offset, nbytes, error), m->stride, m->transposed, half};
}

} // namespace
} // namespace emulated

using namespace emulated;

bool lt_metal_matmul(lt_MetalCommands *commands, const lt_MetalMatrix *out, const lt_MetalMatrix *a,
                     const lt_MetalMatrix *b, bool half) {
  lt_MetalError *error = &commands->error;
  if (error->status != LT_METAL_OK) return true;
  std::unique_ptr<Matmul> command(new Matmul());
  command->out = operand(out, half, error);
  command->a = operand(a, half, error);
  command->b = operand(b, half, error);
  command->rows = a->transposed ? a->columns : a->rows;
  command->depth = a->transposed ? a->rows : a->columns;
  command->columns = b->transposed ? b->rows : b->columns;
  size_t depth = b->transposed ? b->columns : b->rows;
  if (error->status == LT_METAL_OK && (depth != command->depth || out->rows != command->rows ||
                                       out->columns != command->columns || out->transposed))
    set_error(error, LT_METAL_INVALID, "the sizes of a product of matrices do not fit");
  if (error->status == LT_METAL_OK) commands->list.push_back(std::move(command));
  return true;
}
