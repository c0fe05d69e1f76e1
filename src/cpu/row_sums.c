/* row_sums.c: sums of rows by index: _embedding_sum, _embedding_backward. Each thread owns rows of
 * the result and reads all indices: no two threads write one row, and every row is summed in the
 * order of the indices. */
#include "row_sums.h"
#include "kernel_support.h"

/* Computes the rows first + 1 .. last of the result from all `count` indices but those that are
 * `without`. */
static void sum_rows(const lt_RowSums *s, lt_Dtype work, int64_t count, int64_t without,
                     int64_t first, int64_t last) {
  enum { TOGETHER = 1024 };
  const size_t row = (size_t)s->n * lt_dtype_size(work);
  const lt_RowSumsFn sum = lt_row_sums(work);
  memset((char *)s->out + (size_t)first * row, 0, (size_t)(last - first) * row);
  for (int64_t i = 0, end; i < count && !lt_stopped(); i = end) {
    int64_t own[TOGETHER], found = 0; /* without a branch that depends on the indices */
    for (end = count - i < TOGETHER ? count : i + TOGETHER; i < end; i++) {
      const int64_t at = s->to[i] - LT_INDEX_BASE;
      own[found] = i;
      found += (at >= first) & (at < last) & (s->to[i] != without);
    }
    sum(s, own, found);
  }
}

/* Sums into `rows` rows of the result. */
static void sum_all_rows(const lt_RowSums *s, lt_Dtype work, int64_t count, int64_t without,
                         int64_t rows) {
  LT_IN_TEAM(lt_team((count + rows) * s->n, rows), rows,
             sum_rows(s, work, count, without, first, last));
}

/* _embedding_sum (weight, input, index, bags, factors?) */
bool lt_cpu__embedding_sum(lt_Call *c) {
  lt_Tensor *weight = lt_in(c, 0), *out = c->out[0], *to = NULL;
  const int64_t bags = c->arg[3].i;
  lt_Dtype work = lt_work_dtype(out->dtype);
  lt_Tensor *input = lt_index_open(lt_in(c, 1), weight->shape[0], false, "input"),
            *bag = input ? lt_index_open(lt_in(c, 2), bags, false, "index") : NULL,
            *rows = bag ? lt_as_contiguous(weight, work) : NULL;
  bool ok = rows != NULL;
  lt_Tensor *factors = ok ? lt_optional(c, 4, work, &ok) : NULL;
  if (ok && out->numel > 0 && (to = lt_output_open(out, work)))
    sum_all_rows(&(lt_RowSums){out->shape[1], lt_tensor_data(to), lt_tensor_data(rows),
                               lt_data_of(factors), lt_tensor_data(input), lt_tensor_data(bag)},
                 work, input->numel, LT_INDEX_BASE - 1, bags);
  ok = ok && (out->numel == 0 || lt_output_close(out, to));
  lt_release(input);
  lt_release(bag);
  lt_release(rows);
  lt_release(factors);
  return ok;
}

/* _embedding_backward (grad, input, num_embeddings, padding_idx) */
bool lt_cpu__embedding_backward(lt_Call *c) {
  lt_Tensor *grad = lt_in(c, 0), *out = c->out[0];
  const int64_t rows = c->arg[2].i, padding = c->arg[3].i;
  lt_Dtype work = lt_work_dtype(out->dtype);
  if (out->numel == 0) return true;
  lt_Tensor *index = lt_index_open(lt_in(c, 1), rows, false, "input");
  lt_Tensor *g = index ? lt_as_contiguous(grad, work) : NULL,
            *to = g ? lt_output_open(out, work) : NULL;
  if (to)
    sum_all_rows(&(lt_RowSums){.n = out->shape[1],
                               .out = lt_tensor_data(to),
                               .rows = lt_tensor_data(g),
                               .to = lt_tensor_data(index)},
                 work, index->numel, padding, rows);
  lt_release(index);
  lt_release(g);
  return lt_output_close(out, to);
}
