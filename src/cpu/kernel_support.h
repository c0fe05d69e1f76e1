/* kernel_support.h: what the structured kernels of the CPU share.
 *
 * A kernel `bool lt_cpu_<row>(lt_Call *c)` runs after infer: shapes fit and dtypes are allowed.
 * Outputs are contiguous; inputs may have any strides and dtype. So that few loops are
 * instantiated, a kernel names a working dtype (float32, float64, int64, or the bytes of bool),
 * asks for its inputs as contiguous tensors of it (lt_as_contiguous), and writes into what
 * lt_output_open gives. Kernels that only move elements work on bytes.
 *
 * Invariant: how work is cut into pieces depends on sizes only, or the results of the pieces do
 * not depend on the cut. So results are the same for every number of threads.
 */
#ifndef LT_CPU_KERNEL_SUPPORT_H
#define LT_CPU_KERNEL_SUPPORT_H

#include "kernel.h"

/* Elements that are worth a thread of their own. */
#define LT_GRAIN 32768

/* How many threads to give to `work` elements that can be cut into `pieces`. They are started: a
 * parallel region of more than one thread takes its number from here. */
static inline int lt_team(int64_t work, int64_t pieces) {
  int64_t n = work / LT_GRAIN;
  if (n > pieces) n = pieces;
  if (n <= 1) return 1;
  int threads = lt_num_threads();
  return lt_threads_start(n < threads ? (int)n : threads);
}

/* Evaluates `call` for pieces first .. last - 1 of n, which together are all of them, on a team of
 * threads. A team of one makes no parallel region: that allocates, and OpenMP ends the process
 * where memory is out. */
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

/* Calls range(context, from, to) for stretches that together are 0..n, shared among the threads
 * that `work` elements are worth. When the op is to stop, the rest is left out. */
typedef void (*lt_RangeFn)(void *context, int64_t from, int64_t to);
void lt_share(int64_t work, int64_t n, lt_RangeFn range, void *context);

/* A contiguous tensor around one dimension: outer x n x inner elements. A 0-d tensor is 1 x 1 x
 * 1. */
typedef struct lt_Lines {
  int64_t outer, n, inner;
} lt_Lines;
static inline lt_Lines lt_lines(int ndim, const int64_t *shape, int dim) {
  lt_Lines l = {1, ndim ? shape[dim] : 1, 1};
  for (int d = 0; d < dim; d++) l.outer *= shape[d];
  for (int d = dim + 1; d < ndim; d++) l.inner *= shape[d];
  return l;
}

/* An int argument that may be negative, as a dim of t. */
static inline int lt_arg_dim(const lt_Call *c, int i, const lt_Tensor *t) {
  return lt_dim(c->arg[i].i, t->ndim);
}

/* Where to write a result of dtype `work` that is meant for `out`: out itself (retained) when it
 * has that dtype, else a new tensor of its shape. NULL when memory runs out. */
lt_Tensor *lt_output_open(lt_Tensor *out, lt_Dtype work);
/* Converts what was written into out where that is another tensor, and lets go of `written`. */
bool lt_output_close(lt_Tensor *out, lt_Tensor *written);
/* The same for a tensor that is to be changed: `work` holds out's values. lt_output_close ends
 * it. */
lt_Tensor *lt_update_open(lt_Tensor *out, lt_Dtype work);

/* The dtypes that kernels on numbers work in: float32 (also for halves), float64, int64 (also for
 * bool). */
static inline lt_Dtype lt_work_dtype(lt_Dtype d) { return lt_dtype_accumulate(d); }

/* An index tensor as contiguous int64 (one reference), every value checked to lie in 1..n, or in
 * -n..-1 if `negative` (then it is turned into 1..n in a copy). `name` is the argument's. NULL
 * with a message that tells the first bad value and where it stands. */
lt_Tensor *lt_index_open(lt_Tensor *index, int64_t n, bool negative, const char *name);

/* One element. */
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
/* n elements of `size` bytes; strides in bytes. */
void lt_move(char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t n,
             size_t size);

/* Counts through the positions of a shape, keeping the offsets of up to 3 operands (in any one
 * unit). */
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

#endif
