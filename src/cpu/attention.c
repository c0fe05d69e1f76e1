/* attention.c: attention in tiles, and its gradients; attention.h describes the method.
 *
 * A piece of work belongs to one thread: forward, LT_ATTENTION_TILE queries of one head; backward,
 * a range of keys for all query heads that share them. Where there are few heads, the keys of one
 * are divided into ranges, which depend on sizes alone, and the parts of dq are added in order. So
 * the results do not depend on the number of threads. Memory is linear in queries and keys. */
#include "attention.h"
#include "capability.h"
#include "kernel_support.h"

#include <stdatomic.h>
#include <stdint.h>

#define MULTIPLICATIONS 32   /* that take as long as an element of a simple op */
#define READ            8    /* see run_all */
#define QUEUES          64   /* at most */
#define RANGES          32   /* pieces of a backward that are enough for the threads */
#define RANGE           1024 /* fewest keys in a range, if there are several */

/* A call. Batch dims are those of query. */
typedef struct Work {
  lt_Head head; /* of the first batch element; without scratch memory */
  int ndim;     /* of the batch */
  int64_t shape[LT_MAX_DIMS];
  lt_Tensor *in[6]; /* query, key, value, mask; backward: grad, result */
  int64_t heads;    /* the product of the batch dims */
  int64_t group;    /* query's heads for each head of key and value */
  int64_t tiles;    /* forward: of one head */
  int64_t ranges;   /* backward: of the keys of one head */
  lt_Dtype dtype;   /* computed in */
  bool by_tiles;    /* forward_tiles computes it */
  void *parts;      /* backward: the parts of dq, one for each range, if there are several */
  int64_t pieces, queues;
  atomic_llong next[QUEUES]; /* the next piece of each queue */
  atomic_bool failed;        /* out of memory */
} Work;

/* Returns the matrix of the first batch element. */
static lt_HeadMatrix matrix(const lt_Tensor *t) {
  if (!t) return (lt_HeadMatrix){0};
  return (lt_HeadMatrix){lt_tensor_data(t), t->dtype, t->strides[t->ndim - 2],
                         t->strides[t->ndim - 1]};
}

/* Advances a matrix to batch element `at` of query, in row-major order. Sizes of 1 and of divided
 * heads are broadcast. */
static void advance(const Work *w, lt_HeadMatrix *m, const lt_Tensor *t, int64_t at) {
  int64_t offset = 0;
  if (!t) return;
  for (int d = w->ndim - 1; d >= 0; d--) {
    int64_t i = at % w->shape[d], size = t->shape[d];
    at /= w->shape[d];
    offset += i / (w->shape[d] / size) * t->strides[d];
  }
  m->data = (const char *)m->data + offset * (int64_t)lt_dtype_size(t->dtype);
}

/* Returns the address of row i of a dense matrix with rows of n elements. */
static void *row_at(const Work *w, void *data, int64_t i, int64_t n) {
  return (char *)data + (size_t)(i * n) * lt_dtype_size(w->dtype);
}

/* Returns the matrices and results of batch element `at`. */
static lt_Head head_at(const Work *w, int64_t at) {
  lt_Head h = w->head;
  advance(w, &h.q, w->in[0], at);
  advance(w, &h.k, w->in[1], at);
  advance(w, &h.v, w->in[2], at);
  advance(w, &h.mask, w->in[3], at);
  advance(w, &h.grad, w->in[4], at);
  advance(w, &h.result, w->in[5], at);
  int64_t shared = at / w->group;
  if (h.out) h.out = row_at(w, h.out, at * h.queries, h.value_size);
  h.lse = row_at(w, h.lse, at * h.queries, 1);
  if (h.dq) h.dq = row_at(w, h.dq, at * h.queries, h.size);
  if (h.dk) h.dk = row_at(w, h.dk, shared * h.keys, h.size);
  if (h.dv) h.dv = row_at(w, h.dv, shared * h.keys, h.value_size);
  return h;
}

/* Computes one piece of the result. The last queries of a head come first: with is_causal they have
 * the most keys. */
static void run_forward(const Work *w, int64_t piece, void *scratch) {
  lt_Head h = head_at(w, piece / w->tiles);
  int64_t from = (w->tiles - 1 - piece % w->tiles) * LT_ATTENTION_TILE, n = h.queries - from;
  h.scratch = scratch;
  if (n > LT_ATTENTION_TILE) n = LT_ATTENTION_TILE;
  const lt_AttentionKernels *kernels = lt_attention_kernels();
  if (w->by_tiles)
    kernels->forward_tiles(&h, from, n);
  else
    (w->dtype == LT_float64 ? kernels->forward_f64 : kernels->forward_f32)(&h, from, n);
}

/* Returns whether the CPU's tile registers compute a result: of bfloat16, with dense rows and more
 * than a few queries. */
static bool takes_tiles(const lt_Head *h) {
  const lt_HeadMatrix *m[] = {&h->q, &h->k, &h->v};
  for (int i = 0; i < 3; i++)
    if (m[i]->dtype != LT_bfloat16 || m[i]->column != 1) return false;
  return h->size % LT_TILE_EDGE == 0 && h->value_size % LT_TILE_EDGE == 0 && h->size > 0 &&
         h->value_size > 0 && h->queries > 8 && lt_attention_kernels()->forward_tiles &&
         lt_cpu_has_tiles();
}

/* Computes one piece of the gradients. */
static void run_backward(const Work *w, int64_t piece, void *scratch) {
  int64_t range = piece % w->ranges, first = piece / w->ranges * w->group;
  int64_t keys = w->head.keys, each = (keys + w->ranges - 1) / w->ranges;
  each = (each + LT_ATTENTION_TILE - 1) / LT_ATTENTION_TILE * LT_ATTENTION_TILE;
  int64_t from = range * each < keys ? range * each : keys,
          to = from + each < keys ? from + each : keys;
  const lt_AttentionKernels *kernels = lt_attention_kernels();
  for (int64_t i = first; i < first + w->group && !lt_stopped(); i++) {
    lt_Head h = head_at(w, i);
    size_t size = lt_dtype_size(w->dtype);
    if (i == first && to > from) {
      memset(row_at(w, h.dk, from, h.size), 0, (size_t)((to - from) * h.size) * size);
      memset(row_at(w, h.dv, from, h.value_size), 0, (size_t)((to - from) * h.value_size) * size);
    }
    if (w->parts) h.dq = row_at(w, w->parts, (range * w->heads + i) * h.queries, h.size);
    h.scratch = scratch;
    (w->dtype == LT_float64 ? kernels->backward_f64 : kernels->backward_f32)(&h, from, to);
  }
}

typedef void (*PieceFn)(const Work *w, int64_t piece, void *scratch);

/* Runs pieces on one thread until none is left: first those of its own queue, the same in each
 * call, whose matrices may still be in its cache, then those of the others. */
static void run_pieces(Work *w, PieceFn run, size_t bytes, int64_t member) {
  void *memory = malloc(bytes + 64);
  if (!memory) {
    atomic_store(&w->failed, true);
    return;
  }
  void *scratch = (void *)(((uintptr_t)memory + 63) & ~(uintptr_t)63);
  for (int64_t k = 0; k < w->queues; k++) {
    int64_t queue = (member + k) % w->queues, end = w->pieces * (queue + 1) / w->queues;
    for (int64_t i; !lt_stopped() && (i = atomic_fetch_add(&w->next[queue], 1)) < end;)
      run(w, i, scratch);
  }
  free(memory);
}

/* Runs all pieces of a call, which makes `products` multiplications for each pair of query and key.
 * To read a key takes as long as READ queries. */
static bool run_all(Work *w, PieceFn run, size_t bytes, int64_t pieces, int64_t products) {
  const lt_Head *h = &w->head;
  double pairs = (double)w->heads * (double)(h->queries + READ) * (double)h->keys;
  double work = pairs * (double)products / MULTIPLICATIONS;
  w->pieces = pieces;
  int team = lt_team(work < 1e15 ? (int64_t)work : (int64_t)1e15, pieces);
  w->queues = team < QUEUES ? team : QUEUES;
  for (int64_t q = 0; q < w->queues; q++) atomic_store(&w->next[q], pieces * q / w->queues);
  LT_IN_TEAM(team, team, if (last > first) run_pieces(w, run, bytes, first));
  return !atomic_load(&w->failed) || lt_fail_memory();
}

/* Fills in what forward and backward have in common. The tensors' heads are those of query. */
static void prepare(Work *w, lt_Tensor *const *in, bool causal, double scale, lt_Dtype dtype) {
  const lt_Tensor *q = in[0], *k = in[1], *v = in[2];
  int last = q->ndim - 1;
  *w = (Work){.ndim = last - 1, .heads = 1, .group = 1, .dtype = dtype};
  for (int i = 0; i < 6; i++) w->in[i] = in[i];
  for (int d = 0; d < w->ndim; d++) w->heads *= w->shape[d] = q->shape[d];
  if (w->ndim && k->shape[last - 2]) w->group = q->shape[last - 2] / k->shape[last - 2];
  w->head = (lt_Head){.q = matrix(q),
                      .k = matrix(k),
                      .v = matrix(v),
                      .mask = matrix(in[3]),
                      .causal = causal,
                      .queries = q->shape[last - 1],
                      .keys = k->shape[last - 1],
                      .size = q->shape[last],
                      .value_size = v->shape[last],
                      .scale = scale};
}

/* Returns a mask, or NULL, with query's batch dims, as a view; *ok becomes false when out of
 * memory. */
static lt_Tensor *expanded_mask(lt_Tensor *mask, const lt_Tensor *q, const lt_Tensor *k, bool *ok) {
  if (!mask) return NULL;
  int64_t shape[LT_MAX_DIMS];
  memcpy(shape, q->shape, sizeof(int64_t) * (size_t)q->ndim);
  shape[q->ndim - 1] = k->shape[q->ndim - 2];
  lt_Tensor *t = lt_expanded(mask, q->ndim, shape);
  if (!t) *ok = false;
  return t;
}

/* _attention (query, key, value, attn_mask?, is_causal, scale): result, logsumexp */
bool lt_cpu__attention(lt_Call *c) {
  lt_Tensor *q = lt_in(c, 0), *k = lt_in(c, 1), *v = lt_in(c, 2);
  lt_Dtype dtype = lt_work_dtype(q->dtype);
  bool ok = true;
  lt_Tensor *mask = expanded_mask(lt_in(c, 3), q, k, &ok);
  lt_Tensor *out = lt_output_open(c->out[0], dtype);
  if (ok && out && c->out[1]->numel) {
    Work w;
    prepare(&w, (lt_Tensor *[6]){q, k, v, mask}, c->arg[4].b, c->arg[5].f, dtype);
    w.head.out = lt_tensor_data(out);
    w.head.lse = lt_tensor_data(c->out[1]);
    w.tiles = (w.head.queries + LT_ATTENTION_TILE - 1) / LT_ATTENTION_TILE;
    const lt_AttentionKernels *kernels = lt_attention_kernels();
    w.by_tiles = takes_tiles(&w.head);
    size_t bytes = w.by_tiles            ? kernels->tiles_bytes(&w.head)
                   : dtype == LT_float64 ? kernels->forward_bytes_f64(&w.head)
                                         : kernels->forward_bytes_f32(&w.head);
    ok = run_all(&w, run_forward, bytes, w.heads * w.tiles, w.head.size + w.head.value_size);
  }
  lt_release(mask);
  return lt_output_close(c->out[0], out) && ok;
}

/* Adds the parts of dq, in order. */
typedef struct Sum {
  const void *parts;
  void *dq;
  int64_t n, ranges;
  lt_Dtype dtype;
} Sum;
#define ADD_PARTS(T)                                                                               \
  do {                                                                                             \
    T *to = s->dq;                                                                                 \
    const T *part = s->parts;                                                                      \
    memcpy(to + from, part + from, (size_t)(end - from) * sizeof(T));                              \
    for (int64_t r = 1; r < s->ranges; r++)                                                        \
      for (int64_t i = from; i < end; i++) to[i] += part[r * s->n + i];                            \
  } while (0)
static void add_parts(void *context, int64_t from, int64_t end) {
  const Sum *s = context;
  if (s->dtype == LT_float64)
    ADD_PARTS(double);
  else
    ADD_PARTS(float);
}

/* Computes the gradients into dense matrices. */
static bool run_gradients(Work *w) {
  const lt_AttentionKernels *kernels = lt_attention_kernels();
  int64_t shared = w->heads / w->group, n = w->heads * w->head.queries * w->head.size;
  size_t element = lt_dtype_size(w->dtype);
  w->ranges = shared < RANGES ? (RANGES + shared - 1) / shared : 1;
  if (w->ranges > w->head.keys / RANGE) w->ranges = w->head.keys / RANGE;
  if (w->ranges < 1) w->ranges = 1;
  if (w->ranges > 1) {
    w->parts = malloc((size_t)(w->ranges * n) * element + 1);
    if (!w->parts) return lt_fail_memory();
  }
  size_t bytes = w->dtype == LT_float64 ? kernels->backward_bytes_f64(&w->head)
                                        : kernels->backward_bytes_f32(&w->head);
  bool ok = run_all(w, run_backward, bytes, shared * w->ranges,
                    3 * w->head.size + 2 * w->head.value_size);
  if (ok && w->parts) {
    Sum sum = {w->parts, w->head.dq, n, w->ranges, w->dtype};
    lt_share(n * w->ranges, n, add_parts, &sum);
  }
  free(w->parts);
  return ok;
}

/* Sets a tensor to 0. */
static void clear(lt_Tensor *t) {
  if (t->numel) memset(lt_tensor_data(t), 0, (size_t)t->numel * lt_dtype_size(t->dtype));
}

/* _attention_backward (grad, query, key, value, attn_mask?, result, logsumexp, is_causal, scale) */
bool lt_cpu__attention_backward(lt_Call *c) {
  lt_Tensor *q = lt_in(c, 1), *k = lt_in(c, 2), *v = lt_in(c, 3);
  lt_Dtype dtype = lt_work_dtype(q->dtype);
  bool ok = true;
  lt_Tensor *mask = expanded_mask(lt_in(c, 4), q, k, &ok);
  lt_Tensor *lse = lt_as_contiguous(lt_in(c, 6), dtype), *out[3];
  for (int i = 0; i < 3; i++) {
    out[i] = lt_output_open(c->out[i], dtype);
    ok = ok && out[i];
  }
  if (ok && lse) {
    Work w;
    prepare(&w, (lt_Tensor *[6]){q, k, v, mask, lt_in(c, 0), lt_in(c, 5)}, c->arg[7].b, c->arg[8].f,
            dtype);
    w.head.grad = matrix(w.in[4]);
    w.head.result = matrix(w.in[5]);
    w.head.lse = lt_tensor_data(lse);
    w.head.dq = lt_tensor_data(out[0]);
    w.head.dk = lt_tensor_data(out[1]);
    w.head.dv = lt_tensor_data(out[2]);
    if (lse->numel && w.head.keys)
      ok = run_gradients(&w);
    else
      for (int i = 0; i < 3; i++) clear(out[i]);
  }
  ok = ok && lse;
  lt_release(mask);
  lt_release(lse);
  for (int i = 0; i < 3; i++) ok = lt_output_close(c->out[i], out[i]) && ok;
  return ok;
}
