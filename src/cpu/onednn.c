/* onednn.c: convolutions by oneDNN. Tensors have plain layouts; the library's primitives are faster
 * on blocked ones, so operands are reordered on the way in and out, as PyTorch does. A primitive is
 * compiled for one geometry and number of threads; compiled primitives are cached.
 *
 * Whatever fails here (the library lacks a primitive, memory is out) is not an error: the caller
 * computes the call itself. Gradients of weights are summed over parts of the batch, one for each
 * thread: their last bits depend on the number of threads. */
#include "onednn.h"
#include "kernel_support.h"
#include "moves.h"
#include "onednn_library.h"

#include <omp.h>
#include <pthread.h>

enum {
  CACHED = 128, /* primitives */
  FEW = 8,      /* with fewer input channels the library's gradients are slow: they get channels */
  TOO_FEW = 3,  /* of zeros; up to TOO_FEW these would cost more than they gain */
  SMALL = 1 << 18, /* up to this many multiplications a call is not worth a primitive; */
  SMALL_OF_LARGE_KERNEL = 1 << 16, /* of kernels above 3 x 3, as in PyTorch, for the same bits */
  OPERANDS = 3                     /* in, weight, out */
};

/* What a primitive is compiled for. Compared as bytes. */
typedef struct Key {
  lt_Convolution g;
  int64_t form, bias, threads, type;
} Key;

/* A tensor in its plain layout and in the layout of the primitive. */
typedef struct Operand {
  void *plain, *blocked; /* memory objects; blocked NULL: the primitive accepts the plain layout */
  void *reorder;         /* the primitive that converts, in the direction of the data */
  size_t size;           /* bytes in the blocked layout */
} Operand;

/* A compiled primitive. A thread that runs it takes it out of the cache. */
typedef struct Entry {
  struct Entry *next;
  Key key;
  void *primitive, *stream, *bias; /* primitive NULL: the library does not support the geometry */
  Operand operand[OPERANDS];
} Entry;

static struct {
  pthread_mutex_t lock;
  Entry *first; /* the most recently used one */
  int count;
} cache = {.lock = PTHREAD_MUTEX_INITIALIZER};

static atomic_bool switched_off;

/* ---- making primitives ----------------------------------------------------------------------- */

/* The layouts and lists of one geometry, in the library's terms. */
typedef struct Description {
  lt_OnednnDims dims[OPERANDS], stride, dilation, before, after, channels;
  int ndim[OPERANDS];
  lt_OnednnLayout plain[OPERANDS], any[OPERANDS], bias;
  bool has_bias;
} Description;

/* Fills in the lists. Two dimensions at least, as the library's fast code expects. Returns false
 * for a geometry that the library does not have: one that ignores a part of the input by more than
 * a stride. */
static bool describe(Description *d, const Key *key) {
  const lt_Convolution *g = &key->g;
  int skip = g->in[0] == 1 && g->out[0] == 1 && g->kernel[0] == 1 && g->padding[0] == 0, n = 0;
  int64_t grouped = g->groups > 1, *weight = d->dims[1];
  d->dims[0][0] = d->dims[2][0] = g->batch;
  d->dims[0][1] = g->groups * g->inputs;
  d->dims[2][1] = g->groups * g->outputs;
  if (grouped) weight[0] = g->groups;
  weight[grouped] = g->outputs;
  weight[grouped + 1] = g->inputs;
  for (int i = skip; i < LT_CONVOLUTION_DIMS; i++, n++) {
    int64_t reach = (g->kernel[i] - 1) * g->dilation[i] + 1;
    int64_t after = (g->out[i] - 1) * g->stride[i] + reach - g->in[i] - g->padding[i];
    if (after <= -g->stride[i]) return false;
    d->dims[0][2 + n] = g->in[i];
    d->dims[2][2 + n] = g->out[i];
    weight[grouped + 2 + n] = g->kernel[i];
    d->stride[n] = g->stride[i];
    d->dilation[n] = g->dilation[i] - 1;
    d->before[n] = g->padding[i];
    d->after[n] = after > 0 ? after : 0;
  }
  d->ndim[0] = d->ndim[2] = 2 + n;
  d->ndim[1] = 2 + n + (int)grouped;
  d->channels[0] = d->dims[2][1];
  d->has_bias = key->bias;
  return true;
}

static bool make_layouts(Description *d, int type) {
  bool ok = true;
  for (int i = 0; i < OPERANDS; i++)
    ok = lt_onednn_layout(&d->plain[i], type, d->ndim[i], d->dims[i], false) &&
         lt_onednn_layout(&d->any[i], type, d->ndim[i], d->dims[i], true) && ok;
  return (!d->has_bias || lt_onednn_layout(&d->bias, type, 1, d->channels, false)) && ok;
}

static void free_layouts(Description *d) {
  for (int i = 0; i < OPERANDS; i++) {
    lt_onednn_layout_free(&d->plain[i]);
    lt_onednn_layout_free(&d->any[i]);
  }
  lt_onednn_layout_free(&d->bias);
}

#define GEOMETRY d->stride, d->dilation, d->before, d->after

/* Creates the descriptor of a form's primitive with version 2. `forward` is the descriptor of the
 * convolution that the other two belong to. NULL on failure. */
static void *description_2(const lt_Onednn *lib, const Description *d, int64_t form,
                           const void *forward) {
  _Alignas(16) char op[16384]; /* the struct has 6 KiB */
  const void *in = lt_onednn_layout_of(&d->any[0]), *weight = lt_onednn_layout_of(&d->any[1]),
             *out = lt_onednn_layout_of(&d->any[2]),
             *bias = d->has_bias ? lt_onednn_layout_of(&d->bias) : NULL;
  void *description = NULL;
  int status;
  if (form == LT_CONVOLUTION_OUT)
    status = lib->dilated_convolution_forward_desc_init(op, LT_ONEDNN_FORWARD, LT_ONEDNN_DIRECT, in,
                                                        weight, bias, out, GEOMETRY);
  else if (form == LT_CONVOLUTION_IN)
    status = lib->dilated_convolution_backward_data_desc_init(op, LT_ONEDNN_DIRECT, in, weight, out,
                                                              GEOMETRY);
  else
    status = lib->dilated_convolution_backward_weights_desc_init(op, LT_ONEDNN_DIRECT, in, weight,
                                                                 NULL, out, GEOMETRY);
  if (status != LT_ONEDNN_OK ||
      lib->primitive_desc_create(&description, op, NULL, lib->engine, forward) != LT_ONEDNN_OK)
    return NULL;
  return description;
}

/* The same with version 3. */
static void *description_3(const lt_Onednn *lib, const Description *d, int64_t form,
                           const void *forward) {
  const void *in = lt_onednn_layout_of(&d->any[0]), *weight = lt_onednn_layout_of(&d->any[1]),
             *out = lt_onednn_layout_of(&d->any[2]),
             *bias = d->has_bias ? lt_onednn_layout_of(&d->bias) : NULL;
  void *description = NULL;
  int status;
  if (form == LT_CONVOLUTION_OUT)
    status = lib->convolution_forward_primitive_desc_create(&description, lib->engine,
                                                            LT_ONEDNN_FORWARD, LT_ONEDNN_DIRECT, in,
                                                            weight, bias, out, GEOMETRY, NULL);
  else if (form == LT_CONVOLUTION_IN)
    status = lib->convolution_backward_data_primitive_desc_create(
        &description, lib->engine, LT_ONEDNN_DIRECT, in, weight, out, GEOMETRY, forward, NULL);
  else
    status = lib->convolution_backward_weights_primitive_desc_create(
        &description, lib->engine, LT_ONEDNN_DIRECT, in, weight, NULL, out, GEOMETRY, forward,
        NULL);
  return status == LT_ONEDNN_OK ? description : NULL;
}

static void *description(const lt_Onednn *lib, const Description *d, int64_t form,
                         const void *forward) {
  return lib->major == 2 ? description_2(lib, d, form, forward)
                         : description_3(lib, d, form, forward);
}

/* Creates the memory objects of an operand, and its reorder where the primitive's layout is not the
 * plain one. */
static bool make_operand(const lt_Onednn *lib, Operand *o, const void *plain, const void *layout,
                         bool is_result) {
  if (!layout || lib->memory_create(&o->plain, plain, lib->engine, NULL) != LT_ONEDNN_OK)
    return false;
  if (lib->memory_desc_equal(plain, layout)) return true;
  const void *from = is_result ? layout : plain, *to = is_result ? plain : layout;
  void *reorder = NULL;
  o->size = lib->memory_desc_get_size(layout);
  if (lib->memory_create(&o->blocked, layout, lib->engine, NULL) != LT_ONEDNN_OK ||
      lib->reorder_primitive_desc_create(&reorder, from, lib->engine, to, lib->engine, NULL) !=
          LT_ONEDNN_OK)
    return false;
  bool ok = lib->primitive_create(&o->reorder, reorder) == LT_ONEDNN_OK;
  lib->primitive_desc_destroy(reorder);
  return ok;
}

/* What the primitive of a form calls its operands: in queries, and in its arguments. */
static const int queries[3][OPERANDS] = {
    {LT_ONEDNN_QUERY_SOURCE, LT_ONEDNN_QUERY_WEIGHTS, LT_ONEDNN_QUERY_RESULT},
    {LT_ONEDNN_QUERY_SOURCE_GRADIENT, LT_ONEDNN_QUERY_WEIGHTS, LT_ONEDNN_QUERY_RESULT_GRADIENT},
    {LT_ONEDNN_QUERY_SOURCE, LT_ONEDNN_QUERY_WEIGHTS_GRADIENT, LT_ONEDNN_QUERY_RESULT_GRADIENT}};
static const int arguments[3][OPERANDS] = {
    {LT_ONEDNN_SOURCE, LT_ONEDNN_WEIGHTS, LT_ONEDNN_RESULT},
    {LT_ONEDNN_SOURCE_GRADIENT, LT_ONEDNN_WEIGHTS, LT_ONEDNN_RESULT_GRADIENT},
    {LT_ONEDNN_SOURCE, LT_ONEDNN_WEIGHTS_GRADIENT, LT_ONEDNN_RESULT_GRADIENT}};
/* The operand that a form computes. */
static const int result_of[3] = {2, 0, 1};

/* Compiles the primitive of e->key. Returns false when the library cannot. */
static bool compile_with(const lt_Onednn *lib, Entry *e, Description *d) {
  int64_t form = e->key.form;
  if (!make_layouts(d, (int)e->key.type)) return false;
  void *forward = form == LT_CONVOLUTION_OUT ? NULL : description(lib, d, LT_CONVOLUTION_OUT, NULL);
  void *own = form == LT_CONVOLUTION_OUT || forward ? description(lib, d, form, forward) : NULL;
  bool ok = own != NULL;
  for (int i = 0; i < OPERANDS && ok; i++)
    ok = make_operand(lib, &e->operand[i], lt_onednn_layout_of(&d->plain[i]),
                      lib->primitive_desc_query_md(own, queries[form][i], 0), i == result_of[form]);
  if (ok && d->has_bias)
    ok = lib->memory_create(&e->bias, lt_onednn_layout_of(&d->bias), lib->engine, NULL) ==
         LT_ONEDNN_OK;
  ok = ok && lib->stream_create(&e->stream, lib->engine, LT_ONEDNN_STREAM) == LT_ONEDNN_OK &&
       lib->primitive_create(&e->primitive, own) == LT_ONEDNN_OK;
  if (own) lib->primitive_desc_destroy(own);
  if (forward) lib->primitive_desc_destroy(forward);
  return ok;
}

static void free_objects(const lt_Onednn *lib, Entry *e) {
  if (e->primitive) lib->primitive_destroy(e->primitive);
  if (e->stream) lib->stream_destroy(e->stream);
  if (e->bias) lib->memory_destroy(e->bias);
  for (int i = 0; i < OPERANDS; i++) {
    Operand *o = &e->operand[i];
    if (o->reorder) lib->primitive_destroy(o->reorder);
    if (o->plain) lib->memory_destroy(o->plain);
    if (o->blocked) lib->memory_destroy(o->blocked);
  }
}

/* Returns a new entry, without a primitive if the library does not support it; NULL when memory is
 * out. */
static Entry *entry_new(const lt_Onednn *lib, const Key *key) {
  Entry *e = calloc(1, sizeof *e);
  Description *d = calloc(1, sizeof *d);
  if (e && d) {
    e->key = *key;
    bool ok = describe(d, key) && compile_with(lib, e, d);
    free_layouts(d);
    if (!ok) {
      free_objects(lib, e);
      *e = (Entry){.key = *key};
    }
  }
  free(d);
  return e;
}

/* ---- the cache ------------------------------------------------------------------------------- */

/* Takes the entry of a key out of the cache, or makes one. */
static Entry *take(const lt_Onednn *lib, const Key *key) {
  Entry *e = NULL;
  pthread_mutex_lock(&cache.lock);
  for (Entry **at = &cache.first; *at && !e; at = &(*at)->next)
    if (memcmp(&(*at)->key, key, sizeof *key) == 0) {
      e = *at;
      *at = e->next;
      cache.count--;
      break;
    }
  pthread_mutex_unlock(&cache.lock);
  return e ? e : entry_new(lib, key);
}

/* Returns an entry to the cache, and drops the one that was not used for longest. */
static void give(const lt_Onednn *lib, Entry *e) {
  Entry *last = NULL;
  pthread_mutex_lock(&cache.lock);
  e->next = cache.first;
  cache.first = e;
  if (++cache.count > CACHED) {
    Entry **at = &cache.first;
    while ((*at)->next) at = &(*at)->next;
    last = *at;
    *at = NULL;
    cache.count--;
  }
  pthread_mutex_unlock(&cache.lock);
  if (last) free_objects(lib, last);
  free(last);
}

/* ---- running --------------------------------------------------------------------------------- */

static bool reorder(const lt_Onednn *lib, const Entry *e, const Operand *o, bool is_result) {
  if (!o->reorder) return true;
  lt_OnednnArgument args[] = {{LT_ONEDNN_SOURCE, is_result ? o->blocked : o->plain},
                              {LT_ONEDNN_RESULT, is_result ? o->plain : o->blocked}};
  return lib->primitive_execute(o->reorder, e->stream, 2, args) == LT_ONEDNN_OK;
}

/* Runs the primitive on the call's memory. Returns false on failure. */
static bool execute(const lt_Onednn *lib, Entry *e, const lt_ConvolutionCall *k) {
  void *data[OPERANDS] = {k->in, k->weight, k->out};
  lt_Tensor *memory[OPERANDS] = {NULL};
  lt_OnednnArgument args[OPERANDS + 1];
  int result = result_of[k->form];
  bool ok = true;
  for (int i = 0; i < OPERANDS && ok; i++) {
    Operand *o = &e->operand[i];
    int64_t size = (int64_t)o->size;
    ok = lib->memory_set_data_handle(o->plain, data[i]) == LT_ONEDNN_OK;
    if (o->blocked)
      ok = ok && (memory[i] = lt_empty(LT_uint8, lt_cpu(), 1, &size)) &&
           lib->memory_set_data_handle(o->blocked, lt_tensor_data(memory[i])) == LT_ONEDNN_OK;
    if (ok && i != result) ok = reorder(lib, e, o, false);
    args[i] = (lt_OnednnArgument){arguments[k->form][i], o->blocked ? o->blocked : o->plain};
  }
  int count = OPERANDS;
  if (ok && e->bias) {
    void *bias = (void *)(uintptr_t)k->bias; /* only read */
    ok = lib->memory_set_data_handle(e->bias, bias) == LT_ONEDNN_OK;
    args[count++] = (lt_OnednnArgument){LT_ONEDNN_BIAS, e->bias};
  }
  ok = ok && !lt_stopped() &&
       lib->primitive_execute(e->primitive, e->stream, count, args) == LT_ONEDNN_OK &&
       reorder(lib, e, &e->operand[result], true);
  for (int i = 0; i < OPERANDS; i++) lt_release(memory[i]);
  return ok;
}

/* Adds the bias of a call whose primitive has none. */
static void add_bias(void *context, int64_t from, int64_t to) {
  const lt_ConvolutionCall *k = context;
  int64_t n = lt_convolution_in(&k->g), channels = k->g.groups * k->g.inputs;
  for (int64_t i = from; i < to; i++) {
    float *x = (float *)k->in + i * n, value = ((const float *)k->bias)[i % channels];
    for (int64_t j = 0; j < n; j++) x[j] += value;
  }
}

static void share_bias(const lt_ConvolutionCall *k) {
  lt_ConvolutionCall copy = *k;
  int64_t planes = k->g.batch * k->g.groups * k->g.inputs;
  lt_share(planes * lt_convolution_in(&k->g), planes, add_bias, &copy);
}

/* Copies the channels of planes of n floats: rows of `to_count` channels from rows of `count`. */
typedef struct Channels {
  const float *from;
  float *to;
  int64_t count, to_count, n;
} Channels;

static void copy_channels(void *context, int64_t first, int64_t last) {
  const Channels *c = context;
  int64_t from_n = c->count * c->n, to_n = c->to_count * c->n;
  int64_t copied = from_n < to_n ? from_n : to_n;
  for (int64_t i = first; i < last; i++) {
    lt_copy_bytes(c->to + i * to_n, c->from + i * from_n, (size_t)copied * sizeof(float));
    for (int64_t j = copied; j < to_n; j++) c->to[i * to_n + j] = 0;
  }
}

/* Computes a gradient with FEW input channels, of which those that the call lacks are zeros. */
static bool with_more_channels(const lt_ConvolutionCall *k, bool *done) {
  const lt_Convolution *g = &k->g;
  int64_t taps = lt_convolution_taps(g), n = lt_convolution_in(g);
  lt_Tensor *in = lt_empty(LT_float32, lt_cpu(), 1, (int64_t[]){g->batch * FEW * n});
  lt_Tensor *weight = lt_empty(LT_float32, lt_cpu(), 1, (int64_t[]){g->outputs * FEW * taps});
  bool ok = in && weight;
  if (ok) {
    lt_ConvolutionCall wide = *k;
    wide.g.inputs = FEW;
    wide.in = lt_tensor_data(in);
    wide.weight = lt_tensor_data(weight);
    wide.bias = NULL;
    bool finds_in = k->form == LT_CONVOLUTION_IN;
    Channels planes = {k->in, wide.in, g->inputs, FEW, n},
             filters = {k->weight, wide.weight, g->inputs, FEW, taps};
    if (finds_in)
      lt_share(g->outputs * FEW * taps, g->outputs, copy_channels, &filters);
    else
      lt_share(g->batch * FEW * n, g->batch, copy_channels, &planes);
    ok = lt_onednn_convolution(&wide, done);
    planes = (Channels){wide.in, k->in, FEW, g->inputs, n};
    filters = (Channels){wide.weight, k->weight, FEW, g->inputs, taps};
    if (ok && *done && finds_in)
      lt_share(g->batch * FEW * n, g->batch, copy_channels, &planes);
    else if (ok && *done)
      lt_share(g->outputs * FEW * taps, g->outputs, copy_channels, &filters);
  }
  lt_release(in);
  lt_release(weight);
  if (ok && *done && k->bias && k->form == LT_CONVOLUTION_IN) share_bias(k);
  return ok;
}

/* Returns the library's name of a type; -1 for a type that it does not compute. */
static int type_of(lt_Dtype dtype) {
  return dtype == LT_float32 ? LT_ONEDNN_FLOAT32 : dtype == LT_bfloat16 ? LT_ONEDNN_BFLOAT16 : -1;
}

bool lt_onednn_convolution(const lt_ConvolutionCall *k, bool *done) {
  const lt_Convolution *g = &k->g;
  double work = (double)(g->batch * g->groups * g->inputs * g->outputs) *
                (double)lt_convolution_out(g) * (double)lt_convolution_taps(g);
  *done = false;
  if (g->groups == 1 && g->inputs <= TOO_FEW && k->form != LT_CONVOLUTION_OUT) return true;
  bool large = g->kernel[1] > 3 && g->kernel[2] > 3;
  bool few = g->groups == 1 && g->inputs < FEW && k->form != LT_CONVOLUTION_OUT;
  bool in_floats = few || (k->bias && k->form == LT_CONVOLUTION_IN); /* a part is computed here */
  if (type_of(k->work) < 0 || (in_floats && k->work != LT_float32) ||
      work <= (large ? SMALL_OF_LARGE_KERNEL : SMALL) || atomic_load(&switched_off))
    return true;
  const lt_Onednn *lib = lt_onednn();
  if (!lib) return true;
  if (few) return with_more_channels(k, done);
  int before = omp_get_max_threads(), threads = lt_threads_start(lt_num_threads());
  Key key;
  memset(&key, 0, sizeof key);
  key.g = *g;
  key.form = (int64_t)k->form;
  key.bias = k->bias && k->form == LT_CONVOLUTION_OUT;
  key.threads = threads;
  key.type = type_of(k->work);
  if (before != threads) omp_set_num_threads(threads);
  Entry *e = take(lib, &key);
  if (e) {
    *done = e->primitive && execute(lib, e, k);
    give(lib, e);
  }
  if (before != threads) omp_set_num_threads(before);
  if (*done && k->bias && k->form == LT_CONVOLUTION_IN) share_bias(k);
  return true;
}

const char *lt_cpu_onednn_name(void) {
  const lt_Onednn *lib = lt_onednn();
  return lib ? lib->name : NULL;
}

int lt_cpu_onednn_enabled(int value) {
  int before = !atomic_load(&switched_off);
  if (value >= 0) atomic_store(&switched_off, value == 0);
  return before;
}
