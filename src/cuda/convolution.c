/* convolution.c: the three forms of a convolution (src/tensor/convolution_shape.h) as products of
 * matrices: columns are laid out for some images at a time, so that their memory is bounded. */
#include "convolution.h"
#include "blas.h"
#include "cuda.h"
#include "matmul.h"

#define COLUMNS ((int64_t)64 << 20) /* bytes of the columns of several images, about */

/* A call: contiguous memory of one dtype. */
typedef struct Work {
  lt_Call *call;
  lt_Convolution g;
  lt_Dtype dtype;
  char *in, *out, *weight;
  const void *bias;
  int64_t inner, outer, taps, rows; /* positions of `in` and `out`; rows of a group's columns */
  int64_t size;                     /* bytes of an element */
  lt_Tensor *memory;                /* of the columns */
  int64_t images;                   /* at a time */
} Work;

/* Some matrices in memory: in rows of `lead` elements, the transposed ones in columns of them;
 * `step` elements from one matrix to the next. */
static lt_CudaMatrix matrix(const void *data, int64_t lead, int64_t step, bool transposed) {
  return (lt_CudaMatrix){data, lead, transposed, step};
}

static lt_IntegerFactor integer_factor(lt_CudaMatrix m) {
  return (lt_IntegerFactor){m.data, m.step, m.transposed ? 1 : m.lead, m.transposed ? m.lead : 1};
}

/* out = a @ b, or with `add` out += a @ b, for `batch` matrices; out is dense. */
static bool product(const Work *w, int64_t m, int64_t n, int64_t k, int64_t batch, lt_CudaMatrix a,
                    lt_CudaMatrix b, bool add, void *out) {
  if (lt_dtype_is_float(w->dtype))
    return lt_cuda_gemm(w->call, w->dtype, m, n, k, batch, 1, a, b, add ? 1 : 0, out);
  return lt_cuda_launch_ok(
      lt_cuda_launch_integer_matmul((int)w->dtype, batch, m, n, k, 1, integer_factor(a),
                                    integer_factor(b), add ? 1 : 0, out, lt_cuda_stream(w->call)));
}

/* Returns the address of image n on each side. */
static char *in_image(const Work *w, int64_t n) {
  return w->in + n * w->g.groups * w->g.inputs * w->inner * w->size;
}
static char *out_image(const Work *w, int64_t n) {
  return w->out + n * w->g.groups * w->g.outputs * w->outer * w->size;
}

static lt_CudaColumns columns_of(const Work *w, int64_t n, int64_t images) {
  return (lt_CudaColumns){.g = w->g,
                          .in = in_image(w, n),
                          .columns = lt_tensor_data(w->memory),
                          .bias = w->bias,
                          .dtype = (int)w->dtype,
                          .images = images,
                          .channels = w->g.groups * w->g.inputs};
}

/* The matrices of a product for images [n, n + m): the groups of each image, or all images when
 * there is one group. */
static lt_CudaMatrix weights(const Work *w, bool transposed) {
  return matrix(w->weight, w->rows, w->g.groups == 1 ? 0 : w->g.outputs * w->rows, transposed);
}
static lt_CudaMatrix outputs(const Work *w, int64_t n) {
  return matrix(out_image(w, n), w->outer, w->g.outputs * w->outer, false);
}
/* Returns the columns of image i in memory. */
static char *columns_at(const Work *w, int64_t i) {
  return (char *)lt_tensor_data(w->memory) + i * w->g.groups * w->rows * w->outer * w->size;
}
static lt_CudaMatrix column_matrix(const Work *w, int64_t i, bool transposed) {
  return matrix(columns_at(w, i), w->outer, w->rows * w->outer, transposed);
}

static bool lay_out(const Work *w, int64_t n, int64_t m) {
  lt_CudaColumns k = columns_of(w, n, m);
  return lt_cuda_launch_ok(lt_cuda_launch_columns(&k, lt_cuda_stream(w->call)));
}

/* out = weight @ columns, for images [n, n + m). */
static bool out_images(const Work *w, int64_t n, int64_t m) {
  bool ok = lay_out(w, n, m);
  if (w->g.groups == 1)
    return ok && product(w, w->g.outputs, w->outer, w->rows, m, weights(w, false),
                         column_matrix(w, 0, false), false, out_image(w, n));
  for (int64_t i = 0; i < m && ok; i++)
    ok = product(w, w->g.outputs, w->outer, w->rows, w->g.groups, weights(w, false),
                 column_matrix(w, i, false), false, out_image(w, n + i));
  return ok;
}

/* columns = weight^T @ out, added to `in`. */
static bool in_images(const Work *w, int64_t n, int64_t m) {
  bool ok = true;
  if (w->g.groups == 1)
    ok = product(w, w->rows, w->outer, w->g.outputs, m, weights(w, true), outputs(w, n), false,
                 lt_tensor_data(w->memory));
  for (int64_t i = 0; i < m && ok && w->g.groups > 1; i++)
    ok = product(w, w->rows, w->outer, w->g.outputs, w->g.groups, weights(w, true),
                 outputs(w, n + i), false, columns_at(w, i));
  lt_CudaColumns k = columns_of(w, n, m);
  return ok && lt_cuda_launch_ok(lt_cuda_launch_add_columns(&k, lt_cuda_stream(w->call)));
}

/* weight = the sum over the images of out @ columns^T. */
static bool weight_images(const Work *w, int64_t n, int64_t m) {
  bool ok = lay_out(w, n, m);
  for (int64_t i = 0; i < m && ok; i++)
    ok = product(w, w->g.outputs, w->rows, w->outer, w->g.groups, outputs(w, n + i),
                 column_matrix(w, i, true), n + i > 0, w->weight);
  return ok;
}

/* Computes a form by its function for some images at a time. */
static bool by_images(Work *w, bool (*images)(const Work *w, int64_t n, int64_t m)) {
  int64_t each = w->g.groups * w->rows * w->outer * w->size;
  w->images = each > 0 && COLUMNS / each > 1 ? COLUMNS / each : 1;
  if (w->images > w->g.batch) w->images = w->g.batch;
  int64_t all = w->images * each;
  w->memory = lt_empty(LT_uint8, w->call->device, 1, &all);
  bool ok = w->memory != NULL;
  for (int64_t n = 0; n < w->g.batch && ok; n += w->images)
    ok = images(w, n, w->g.batch - n < w->images ? w->g.batch - n : w->images);
  lt_release(w->memory);
  return ok;
}

typedef enum Form { FORM_OUT, FORM_IN, FORM_WEIGHT } Form;

/* Computes a form; `result` is its memory. */
static bool compute(Work *w, Form form, lt_Tensor *result) {
  const lt_Convolution *g = &w->g;
  bool empty = g->batch == 0 || g->outputs == 0 || w->rows == 0 || w->outer == 0;
  if (empty && !lt_cuda_fill_zero(w->call->device.index, lt_tensor_data(result),
                                  (size_t)(result->numel * w->size), w->call->stream))
    return false;
  /* cuDNN's place: it computes all three forms where it is available. */
  if (!empty && !by_images(w, form == FORM_OUT  ? out_images
                              : form == FORM_IN ? in_images
                                                : weight_images))
    return false;
  if (!w->bias || (form == FORM_IN && !empty)) return true; /* add_columns has added it */
  int64_t channels = result->shape[1], planes = result->shape[0] * channels;
  return lt_cuda_launch_ok(lt_cuda_launch_bias((int)w->dtype, lt_tensor_data(result), w->bias,
                                               planes, channels, result->numel / planes,
                                               lt_cuda_stream(w->call)));
}

/* Computes result 0 from arguments 0 and 1 and a bias. The lists of the geometry begin at argument
 * `first` with the size. What is summed over columns is computed in float32 for 16-bit dtypes. */
static bool run(lt_Call *c, Form form, int first) {
  lt_Tensor *a = lt_in(c, 0), *b = lt_in(c, 1), *out = c->out[0],
            *bias = first == 3 ? lt_in(c, 2) : NULL;
  if (!lt_cuda_begin(c)) return false;
  if (out->numel == 0) return true;
  const lt_Arg *list = &c->arg[first + 1];
  const lt_Tensor *in = form == FORM_OUT  ? a
                        : form == FORM_IN ? out
                                          : b,
                  *inner = form == FORM_OUT ? out : a, *weight = form == FORM_WEIGHT ? out : b;
  Work w = {.call = c,
            .g = lt_convolution(out->ndim, in->shape, inner->shape, weight->shape, list[0].ints,
                                list[1].ints, list[2].ints, list[3].i),
            .dtype = form != FORM_OUT && lt_dtype_is_float(out->dtype)
                         ? lt_dtype_accumulate(out->dtype)
                         : out->dtype};
  w.inner = lt_convolution_in(&w.g);
  w.outer = lt_convolution_out(&w.g);
  w.taps = lt_convolution_taps(&w.g);
  w.rows = w.g.inputs * w.taps;
  w.size = (int64_t)lt_dtype_size(w.dtype);
  lt_Tensor *x = lt_as_contiguous(a, w.dtype), *y = lt_as_contiguous(b, w.dtype),
            *k = bias ? lt_as_contiguous(bias, w.dtype) : NULL;
  lt_Tensor *z = out->dtype == w.dtype
                     ? lt_retain(out)
                     : lt_empty(w.dtype, lt_tensor_device(out), out->ndim, out->shape);
  bool ok = x && y && z && (k || !bias);
  if (ok) {
    char *data[] = {lt_tensor_data(x), lt_tensor_data(y), lt_tensor_data(z)};
    w.out = form == FORM_OUT ? data[2] : data[0];
    w.in = form == FORM_OUT ? data[0] : form == FORM_IN ? data[2] : data[1];
    w.weight = form == FORM_WEIGHT ? data[2] : data[1];
    w.bias = k ? lt_tensor_data(k) : NULL;
    ok = compute(&w, form, z) && (z == out || lt_copy_into(out, z, false));
  }
  lt_release(x);
  lt_release(y);
  lt_release(k);
  lt_release(z);
  return ok;
}

bool lt_cuda__convolution(lt_Call *c) { return run(c, FORM_OUT, 3); }
bool lt_cuda__convolution_transpose(lt_Call *c) { return run(c, FORM_IN, 3); }
bool lt_cuda__convolution_weight(lt_Call *c) { return run(c, FORM_WEIGHT, 2); }
