/* convolution.c: the kernels of the three forms of a convolution (convolution_shape.h): they choose
 * how a call is computed. float16, and bfloat16 where oneDNN lacks it, are computed in float32. */
#include "convolution.h"
#include "kernel_support.h"
#include "onednn.h"

bool lt_convolution_tasks(int team, int64_t n, int64_t bytes,
                          void (*task)(const void *context, int64_t i, char *memory),
                          const void *context) {
  int64_t each = (bytes + 63) / 64 * 64, all = each * team;
  lt_Tensor *memory = lt_empty(LT_uint8, lt_cpu(), 1, &all);
  if (!memory) return false;
  char *first = lt_tensor_data(memory);
  if (team == 1) {
    for (int64_t i = 0; i < n && !lt_stopped(); i++) task(context, i, first);
  } else {
    atomic_llong next = 0;
#pragma omp parallel for num_threads(team) schedule(static)
    for (int t = 0; t < team; t++)
      for (int64_t i; (i = atomic_fetch_add(&next, 1)) < n && !lt_stopped();)
        task(context, i, first + each * t);
  }
  lt_release(memory);
  return true;
}

/* Computes the call by the fastest path that supports it. Sets *done to false if there is none for
 * its dtype; returns false with the error set on failure. */
static bool compute(const lt_ConvolutionCall *k, bool *done) {
  *done = true;
  if (k->work == LT_bfloat16) return lt_onednn_convolution(k, done);
  if (k->rounded != k->work) return lt_convolution_by_blocks(k);
  if (!lt_convolution_rows_first(k)) {
    if (!lt_onednn_convolution(k, done)) return false;
    if (*done) return true;
  }
  if (!lt_convolution_by_rows(k, done)) return false;
  if (*done) return true;
  *done = true;
  return lt_convolution_by_blocks(k);
}

/* Returns true for a transposed convolution with an output_padding of a stride or more: PyTorch
 * rounds its columns and sums in 16 bits. */
static bool is_rounded(const lt_Convolution *g) {
  for (int d = 0; d < LT_CONVOLUTION_DIMS; d++) {
    int64_t reach = (g->kernel[d] - 1) * g->dilation[d] + 1 - 2 * g->padding[d];
    if (g->in[d] - (g->out[d] - 1) * g->stride[d] - reach >= g->stride[d]) return true;
  }
  return false;
}

/* Computes result 0 from arguments 0 and 1 and a bias in the dtype k->work, as compute does. */
static bool run_in(lt_Call *c, lt_ConvolutionCall *k, lt_Tensor *bias, bool *done) {
  lt_Tensor *out = c->out[0], *x = lt_as_contiguous(lt_in(c, 0), k->work),
            *y = lt_as_contiguous(lt_in(c, 1), k->work), *z = lt_output_open(out, k->work),
            *w = bias ? lt_as_contiguous(bias, k->work) : NULL;
  bool ok = x && y && z && (w || !bias);
  if (ok) {
    void *data[] = {lt_tensor_data(x), lt_tensor_data(y), lt_tensor_data(z)};
    k->out = k->form == LT_CONVOLUTION_OUT ? data[2] : data[0];
    k->in = k->form == LT_CONVOLUTION_OUT  ? data[0]
            : k->form == LT_CONVOLUTION_IN ? data[2]
                                           : data[1];
    k->weight = k->form == LT_CONVOLUTION_WEIGHT ? data[2] : data[1];
    k->bias = w ? lt_tensor_data(w) : NULL;
    ok = compute(k, done);
  }
  lt_release(x);
  lt_release(y);
  lt_release(w);
  return lt_output_close(out, z) && ok;
}

/* Computes result 0. The lists of the geometry begin at argument `first` with the size. */
static bool run(lt_Call *c, lt_ConvolutionForm form, int first) {
  lt_Tensor *a = lt_in(c, 0), *b = lt_in(c, 1), *out = c->out[0],
            *bias = first == 3 ? lt_in(c, 2) : NULL;
  if (out->numel == 0) return true;
  const lt_Arg *list = &c->arg[first + 1];
  lt_ConvolutionCall k = {.form = form, .work = lt_work_dtype(out->dtype)};
  const lt_Tensor *in = form == LT_CONVOLUTION_OUT  ? a
                        : form == LT_CONVOLUTION_IN ? out
                                                    : b,
                  *inner = form == LT_CONVOLUTION_OUT ? out : a,
                  *weight = form == LT_CONVOLUTION_WEIGHT ? out : b;
  k.g = lt_convolution(out->ndim, in->shape, inner->shape, weight->shape, list[0].ints,
                       list[1].ints, list[2].ints, list[3].i);
  k.rounded = form == LT_CONVOLUTION_IN && is_rounded(&k.g) ? out->dtype : k.work;
  if (!lt_dtype_is_float(k.work)) k.rounded = k.work;
  bool done = false;
  if (out->dtype == LT_bfloat16 && k.rounded == k.work) {
    lt_ConvolutionCall narrow = k;
    narrow.work = narrow.rounded = LT_bfloat16;
    if (!run_in(c, &narrow, bias, &done)) return false;
  }
  return done || run_in(c, &k, bias, &done);
}

bool lt_cpu__convolution(lt_Call *c) { return run(c, LT_CONVOLUTION_OUT, 3); }
bool lt_cpu__convolution_transpose(lt_Call *c) { return run(c, LT_CONVOLUTION_IN, 3); }
bool lt_cpu__convolution_weight(lt_Call *c) { return run(c, LT_CONVOLUTION_WEIGHT, 2); }
