/* kernel_support.h: functions shared by the structured kernels of the CPU.
 *
 * A kernel `bool lt_cpu_<row>(lt_Call *c)` runs after infer: shapes fit and dtypes are allowed.
 * Outputs are contiguous; inputs may have any strides and dtype. To limit the number of loops, a
 * kernel chooses a working dtype (float32, float64, int64, or the bytes of bool), converts its
 * inputs to contiguous tensors of it (lt_as_contiguous), and writes to the tensor that
 * lt_output_open returns. Kernels that only move elements work on bytes. A kernel returns false
 * with the error set.
 *
 * Invariant: how work is split depends on sizes only, or the result does not depend on the split.
 * So results are the same for every number of threads. */
#ifndef LT_CPU_KERNEL_SUPPORT_H
#define LT_CPU_KERNEL_SUPPORT_H

#include "kernel.h"

/* Number of elements from which two threads are faster than one, at the cost of an addition: about
 * 4 us of work. A region of two threads that still spin costs 1.2 us, measured on a Xeon with its
 * kernels for AVX-512 and AVX2; waking a thread takes 60 us more. Kernels multiply their elements
 * where each costs more: softmax by 4, random numbers by 8. */
#define LT_GRAIN 32768

/* Returns the number of threads for `work` elements that can be split into `pieces`, and starts
 * them: a parallel region of more than one thread takes its number from here. */
static inline int lt_team(int64_t work, int64_t pieces) {
  int64_t n = 2 * work / LT_GRAIN;
  if (n > pieces) n = pieces;
  if (n <= 1) return 1;
  int threads = lt_num_threads();
  return lt_threads_start(n < threads ? (int)n : threads);
}

/* Evaluates `call` for pieces first .. last - 1 of n on each thread of a team, which together cover
 * all pieces. A team of one makes no parallel region, because that allocates, and OpenMP ends the
 * process when memory is out. */
#define LT_IN_TEAM(team, n, call)                                                                  \
  do {                                                                                             \
    const int members = (team);                                                                    \
    const int64_t pieces_of_all = (n);                                                             \
    if (members == 1) {                                                                            \
      const int64_t first = 0, last = pieces_of_all;                                               \
      call;                                                                                        \
    } else {                                                                                       \
      _Pragma("omp parallel for schedule(static) num_threads(members)")                            \
      for (int member = 0; member < members; member++) {                                           \
        const int64_t first = pieces_of_all * member / members,                                    \
                      last = pieces_of_all * (member + 1) / members;                               \
        call;                                                                                      \
      }                                                                                            \
    }                                                                                              \
  } while (0)

/* Calls range(context, from, to) for ranges that together cover 0..n, on as many threads as `work`
 * elements are worth. After an interrupt the remaining ranges are skipped. */
typedef void (*lt_RangeFn)(void *context, int64_t from, int64_t to);
void lt_share(int64_t work, int64_t n, lt_RangeFn range, void *context);

/* The shape of a contiguous tensor around one dimension: outer x n x inner elements. A 0-d tensor
 * is 1 x 1 x 1. */
typedef struct lt_Lines {
  int64_t outer, n, inner;
} lt_Lines;
static inline lt_Lines lt_lines(int ndim, const int64_t *shape, int dim) {
  lt_Lines l = {1, ndim ? shape[dim] : 1, 1};
  for (int d = 0; d < dim; d++) l.outer *= shape[d];
  for (int d = dim + 1; d < ndim; d++) l.inner *= shape[d];
  return l;
}

/* Returns the number of blocks of up to `width` lines that are neighbours. */
static inline int64_t lt_line_blocks(lt_Lines l, int64_t width) {
  return l.outer * ((l.inner + width - 1) / width);
}
/* Returns the first element of block t of these, and sets the number of its lines. */
static inline int64_t lt_line_block(lt_Lines l, int64_t width, int64_t t, int64_t *lines) {
  int64_t blocks = (l.inner + width - 1) / width, j = t % blocks * width;
  *lines = l.inner - j < width ? l.inner - j : width;
  return t / blocks * l.n * l.inner + j;
}

/* Returns an int argument, which may be negative, as a dim of t; -1 with the error set if it is out
 * of range. */
static inline int lt_arg_dim(const lt_Call *c, int i, const lt_Tensor *t) {
  return lt_dim(c->arg[i].i, t->ndim);
}

/* Returns an optional argument as a contiguous tensor, NULL if it is not given; sets *ok to false
 * when out of memory. */
static inline lt_Tensor *lt_optional(const lt_Call *c, int i, lt_Dtype work, bool *ok) {
  lt_Tensor *t = lt_in(c, i), *dense = t ? lt_as_contiguous(t, work) : NULL;
  if (t && !dense) *ok = false;
  return dense;
}
/* Returns the memory of a tensor, NULL for none. */
static inline void *lt_data_of(const lt_Tensor *t) { return t ? lt_tensor_data(t) : NULL; }

/* Returns the tensor to which a result of dtype `work` is written: out itself (retained) if it has
 * that dtype, else a new tensor of its shape. NULL with the error set when out of memory. */
lt_Tensor *lt_output_open(lt_Tensor *out, lt_Dtype work);
/* Converts `written` to out if that is another tensor, and releases it. `written` may be NULL: then
 * returns false. */
bool lt_output_close(lt_Tensor *out, lt_Tensor *written);
/* Does the same for a tensor that is updated: the result holds out's values. lt_output_close ends
 * it. */
lt_Tensor *lt_update_open(lt_Tensor *out, lt_Dtype work);

/* Returns the working dtype: float32 (also for float16 and bfloat16), float64, int64 (also for
 * bool). */
static inline lt_Dtype lt_work_dtype(lt_Dtype d) { return lt_dtype_accumulate(d); }

/* Returns an index tensor as contiguous int64 (one reference), with every value checked to be in
 * 1..n, or, if `negative`, in -n..-1 (converted to 1..n in a copy). `name` is the argument's. NULL
 * with an error that names the first invalid value and its coordinates. */
lt_Tensor *lt_index_open(lt_Tensor *index, int64_t n, bool negative, const char *name);

/* Returns whether n index values are in 1..size. A value is inside when neither v - 1 nor size - v
 * is negative; one sign bit collects all of them. */
static inline bool lt_index_inside(const int64_t *values, int64_t n, int64_t size) {
  uint64_t any = 0;
#pragma omp simd reduction(| : any)
  for (int64_t i = 0; i < n; i++)
    any |= ((uint64_t)values[i] - 1) | ((uint64_t)size - (uint64_t)values[i]);
  return any >> 63 == 0;
}
/* Checks the contiguous int64 values of `index`, one by one: fails with an error that names the
 * first that is not in 1..n, or, if `negative`, in -n..-1. */
bool lt_index_check(const lt_Tensor *values, const lt_Tensor *index, int64_t n, bool negative,
                    const char *name);
/* Returns whether the results of a call are new tensors, which are dropped when it fails: then a
 * kernel may check indices while it writes. */
static inline bool lt_writes_new(const lt_Call *c) { return !c->in_place && c->ngiven == 0; }

/* Runs STATEMENT(T), with a type T of `size` bytes, which is that of an element. */
#define LT_BY_SIZE(size, STATEMENT)                                                                \
  switch (size) {                                                                                  \
  case 1:                                                                                          \
    STATEMENT(uint8_t);                                                                            \
    break;                                                                                         \
  case 2:                                                                                          \
    STATEMENT(uint16_t);                                                                           \
    break;                                                                                         \
  case 4:                                                                                          \
    STATEMENT(uint32_t);                                                                           \
    break;                                                                                         \
  case 8:                                                                                          \
    STATEMENT(uint64_t);                                                                           \
    break;                                                                                         \
  default:                                                                                         \
    STATEMENT(lt_complex128);                                                                      \
    break;                                                                                         \
  }

/* Copies one element. */
static inline void lt_move_one(char *to, const char *from, size_t size) {
  switch (size) {
  case 1:
    memcpy(to, from, 1);
    break;
  case 2:
    memcpy(to, from, 2);
    break;
  case 4:
    memcpy(to, from, 4);
    break;
  case 8:
    memcpy(to, from, 8);
    break;
  default:
    memcpy(to, from, 16);
    break;
  }
}
/* Copies n elements of `size` bytes; strides in bytes. */
void lt_move(char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t n,
             size_t size);

/* Iterates over the coordinates of a shape in row-major order and tracks the offsets of up to 3
 * operands, in any one unit. */
typedef struct lt_Odometer {
  int ndim;
  int64_t shape[LT_MAX_DIMS], at[LT_MAX_DIMS];
  int64_t strides[3][LT_MAX_DIMS];
  int64_t offset[3];
} lt_Odometer;
static inline void lt_odometer_step(lt_Odometer *o) {
  for (int d = o->ndim - 1; d >= 0; d--) {
    for (int k = 0; k < 3; k++) o->offset[k] += o->strides[k][d];
    if (++o->at[d] < o->shape[d]) return;
    for (int k = 0; k < 3; k++) o->offset[k] -= o->strides[k][d] * o->shape[d];
    o->at[d] = 0;
  }
}
/* Moves a new odometer to the coordinates of element `index`. */
static inline void lt_odometer_seek(lt_Odometer *o, int64_t index) {
  for (int d = o->ndim - 1; d >= 0; d--) {
    o->at[d] = index % o->shape[d];
    index /= o->shape[d];
    for (int k = 0; k < 3; k++) o->offset[k] += o->strides[k][d] * o->at[d];
  }
}

/* Returns a view of t with dim as the last one; lt_lines_along: a contiguous tensor. NULL with the
 * error set. */
lt_Tensor *lt_dim_last(lt_Tensor *t, int dim);
lt_Tensor *lt_lines_along(lt_Tensor *t, int dim);

#endif
