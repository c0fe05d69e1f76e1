/* test_random_calls.c: every op of the table, called with random arguments.
 *
 * Whatever the arguments are: nothing crashes (the debug build runs this with ASan and UBSan); the
 * CPU and meta agree, in results and errors, except where values matter; and a call that fails has
 * changed none of its arguments. Most calls are refused on purpose: they are refused with a
 * message, before anything is written. On another device (LUTRA_TEST_DEVICE) the same calls must
 * give the CPU's dtypes, shapes, strides, values and errors.
 */
#include "check.h"
#include "core.h"
#include "device_under_test.h"

#include <math.h>

enum { CALLS_PER_OP = 400, LIST = 4, RESULTS = 32 };

static uint64_t seed;
/* Returns an integer from 0 to n - 1 (xorshift64*). */
static int64_t random_below(int64_t n) {
  seed ^= seed >> 12, seed ^= seed << 25, seed ^= seed >> 27;
  return (int64_t)((seed * UINT64_C(2685821657736338717) >> 33) % (uint64_t)n);
}

/* ---- a call, once for the CPU and once for meta ---------------------------------------------- */

typedef struct Call {
  lt_OpId op;
  lt_Arg cpu[LT_MAX_ARGS], meta[LT_MAX_ARGS];
  int nargs;
  int64_t ints[LT_MAX_ARGS][LIST];
  char words[LT_MAX_ARGS][24];
  lt_Tensor *cpu_list[LT_MAX_ARGS][LIST], *meta_list[LT_MAX_ARGS][LIST];
  /* every CPU tensor in it, and its values before the call */
  lt_Tensor *inputs[LT_MAX_ARGS * LIST];
  void *before[LT_MAX_ARGS * LIST];
  int nseen;
  /* sizes and a dtype that most tensors of a call share, so that some calls are valid */
  int ndim;
  int64_t shape[3];
  lt_Dtype dtype;
} Call;

static void fill_with_indices(lt_Tensor *t) {
  size_t size = lt_dtype_size(t->dtype);
  for (int64_t k = 0; k < t->numel; k++)
    lt_scalar_store(t->dtype == LT_bool ? lt_scalar_bool(k % 3 != 0)
                                        : lt_scalar_int(1 + random_below(3)),
                    t->dtype, (char *)t->storage->data + (size_t)k * size);
}

static lt_Tensor *make(lt_Device device, lt_Dtype dtype, int ndim, const int64_t *shape,
                       bool turned) {
  lt_Tensor *t = lt_scope_own(lt_empty(dtype, device, ndim, shape));
  if (t && device.type == LT_DEVICE_cpu) fill_with_indices(t);
  return t && turned ? lt_do(transpose, LT_ARG(t), LT_ARG(0), LT_ARG(-1)) : t;
}

/* Returns a dtype that the device under test has. */
static lt_Dtype random_dtype(void) {
  int d = next_dtype((int)random_below(LT_DTYPE_COUNT));
  return (lt_Dtype)(d < LT_DTYPE_COUNT ? d : 0);
}

/* Returns the usual number of dims that an argument of integers has less than others, else 0. */
static int integer_dims(const lt_Param *p) {
  return strcmp(p->name, "targets") == 0 ? 1 : strstr(p->name, "_lengths") ? 2 : 0;
}

/* index: 0 for no integers, else how many dims they often lack: targets that of classes. */
static void random_tensor(Call *call, int index, lt_Tensor **cpu, lt_Tensor **meta) {
  int64_t shape[3];
  int ndim = random_below(4) ? call->ndim : (int)random_below(4);
  if (ndim >= index && index && random_below(3) == 0) ndim -= index;
  for (int d = 0; d < 3; d++) shape[d] = random_below(4) ? call->shape[d] : random_below(4);
  lt_Dtype dtype = random_below(5) ? call->dtype : random_dtype();
  if (index && random_below(8)) dtype = random_below(3) ? LT_int64 : LT_int32;
  if (!index && random_below(12) == 0) dtype = LT_bool;
  bool turned = ndim > 1 && random_below(3) == 0;
  *cpu = make(lt_cpu(), dtype, ndim, shape, turned);
  *meta = make(lt_meta(), dtype, ndim, shape, turned);
  if (!*cpu) return;
  call->inputs[call->nseen] = *cpu;
  size_t nbytes = (*cpu)->storage->nbytes;
  void *copy = call->before[call->nseen++] = malloc(nbytes + 1);
  if (copy && nbytes) memcpy(copy, (*cpu)->storage->data, nbytes);
}

static lt_Scalar random_scalar(void) {
  static const double floats[] = {0, 0.5, 1, -1, 2.5, 300, 1e-5, INFINITY, NAN};
  int64_t kind = random_below(4);
  if (kind == 0) return lt_scalar_bool(random_below(2));
  if (kind == 1)
    return lt_scalar_float(floats[random_below((int64_t)(sizeof floats / sizeof *floats))]);
  return lt_scalar_int(random_below(40)  ? random_below(8) - 2
                       : random_below(2) ? INT64_MAX
                                         : INT64_MIN);
}

static lt_Arg random_list(Call *call, int i, int64_t least, int64_t most) {
  int n = (int)random_below(LIST);
  for (int k = 0; k < n; k++) call->ints[i][k] = least + random_below(most - least + 1);
  if (random_below(3) == 0) { /* the shape that the tensors have */
    n = call->ndim;
    memcpy(call->ints[i], call->shape, sizeof call->shape);
  }
  return LT_INTS(call->ints[i], n);
}

/* Returns one of the words that a parameter's type quotes, such as 'sum' of 'sum'|'mean'. */
static const char *random_choice(const lt_Param *p, char *word, size_t size) {
  const char *end = p->spelling + p->spelling_length, *from = p->spelling, *to = NULL;
  int count = 0;
  for (const char *at = p->spelling; at < end; at++) count += *at == '\'';
  for (int64_t k = random_below(count / 2); k >= 0 && from < end; k--) {
    from = memchr(to ? to + 1 : from, '\'', (size_t)(end - (to ? to + 1 : from)));
    to = memchr(from + 1, '\'', (size_t)(end - from - 1));
    from++;
  }
  snprintf(word, size, "%.*s", (int)(to - from), from);
  return word;
}

static void random_argument(Call *call, int i, const lt_Param *p) {
  static const char *const words[] = {"mean",  "sum",   "none", "tanh",
                                      "floor", "trunc", "avg",  "prod"};
  lt_Arg *cpu = &call->cpu[i], *meta = &call->meta[i];
  *cpu = LT_NIL;
  lt_Tensor *a, *b;
  bool left_out = (p->optional || p->has_default) && random_below(2);
  lt_ParamType type = p->type;
  while (type == LT_PARAM_UNION || !(p->types >> type & 1))
    type = (lt_ParamType)random_below(LT_PARAM_UNION);
  switch (type) {
  case LT_PARAM_DEVICE:
    *cpu = LT_ARG(lt_cpu());
    *meta = LT_ARG(lt_meta());
    return;
  case LT_PARAM_OPERAND:
    if (left_out) break;
    if (random_below(3) == 0) {
      *cpu = LT_ARG(random_scalar());
      break;
    }
    /* fallthrough */
  case LT_PARAM_TENSOR:
  case LT_PARAM_INDEX:
    if (left_out) break;
    random_tensor(call, type == LT_PARAM_INDEX ? 1 : integer_dims(p), &a, &b);
    *cpu = LT_ARG(a);
    *meta = LT_ARG(b);
    return;
  case LT_PARAM_TENSORS: {
    int n = (int)random_below(LIST);
    bool index = strcmp(p->name, "indices") == 0;
    for (int k = 0; k < n; k++)
      random_tensor(call, index, &call->cpu_list[i][k], &call->meta_list[i][k]);
    *cpu = LT_TENSORS(call->cpu_list[i], n);
    *meta = LT_TENSORS(call->meta_list[i], n);
    return;
  }
  case LT_PARAM_SCALAR:
    *cpu = LT_ARG(random_scalar());
    break;
  case LT_PARAM_FLOAT:
    *cpu = LT_ARG(lt_scalar_to_double(random_scalar()));
    break;
  case LT_PARAM_INT:
    *cpu = LT_ARG(random_below(50) ? random_below(9) - 3 : random_below(2) ? INT64_MAX : INT64_MIN);
    break;
  case LT_PARAM_BOOL:
    *cpu = LT_ARG((bool)random_below(2));
    break;
  case LT_PARAM_STRING:
    *cpu = LT_ARG(p->has_choices ? random_choice(p, call->words[i], sizeof call->words[i])
                                 : words[random_below((int64_t)(sizeof words / sizeof *words))]);
    break;
  case LT_PARAM_DTYPE:
    *cpu = lt_arg_dtype(random_dtype());
    break;
  case LT_PARAM_DIM:
  case LT_PARAM_POSITION:
    *cpu = LT_ARG(random_below(6) - 2);
    break;
  case LT_PARAM_DIMS:
    *cpu = random_list(call, i, -2, 2);
    break;
  case LT_PARAM_INTS:
  case LT_PARAM_SIZES:
    *cpu = random_list(call, i, -1, 4);
    if (i > 0 && call->cpu[i - 1].kind == LT_ARG_TENSORS &&
        random_below(2)) { /* the indexed dims */
      cpu->count = call->cpu[i - 1].count;
      for (int k = 0; k < LIST; k++) call->ints[i][k] = k;
    }
    break;
  default:
    break;
  }
  if (left_out) *cpu = LT_NIL;
  *meta = *cpu;
}

static void random_call(Call *call, const lt_Signature *g) {
  call->nseen = 0;
  call->ndim = (int)random_below(4);
  for (int d = 0; d < 3; d++) call->shape[d] = random_below(8) ? 1 + random_below(3) : 0;
  if (random_below(3) == 0) call->shape[1] = call->shape[2] = call->shape[0];
  call->dtype = random_below(3) ? LT_float32 : random_dtype();
  call->nargs = g->count;
  for (int i = 0; i < g->count; i++) random_argument(call, i, &g->param[i]);
}

/* ---- checks ---------------------------------------------------------------------------------- */

/* The outcome of a call: results (copied to the CPU, in the scope) and their description, or the
 * error. */
typedef struct Outcome {
  bool done;
  char text[1024]; /* dtypes, shapes and strides of the results */
  lt_Tensor *result[RESULTS];
  int count;
} Outcome;

static void describe(const lt_Results *r, char *text, size_t size) {
  size_t at = (size_t)snprintf(text, size, "%d:", r->count);
  for (int i = 0; i < r->count && at < size; i++) {
    const lt_Tensor *t = lt_results_items((lt_Results *)r)[i];
    at += (size_t)snprintf(text + at, size - at, " %s %s strides %s", lt_dtype_name(t->dtype),
                           lt_shape_text(t->ndim, t->shape), lt_shape_text(t->ndim, t->strides));
  }
}

static void outcome(Outcome *o, lt_OpId op, bool in_place, const lt_Arg *args, int nargs) {
  lt_Results r;
  o->count = 0;
  o->done = lt_call(op, in_place, args, nargs, &r);
  if (!o->done) {
    snprintf(o->text, sizeof o->text, "%s", lt_error());
    return;
  }
  describe(&r, o->text, sizeof o->text);
  for (int i = 0; i < r.count; i++) {
    lt_Tensor *t = lt_results_items(&r)[i];
    bool kept = o->count < RESULTS && !lt_tensor_is_meta(t);
    if (kept) o->result[o->count++] = lt_scope_own(lt_op1(LT_OP_clone, (lt_Arg[]){LT_ARG(t)}, 1));
  }
  lt_results_release(&r);
}

/* Makes the same call on the device under test, on copies of the arguments. *kept: a call that
 * failed has not changed them. */
static void outcome_on_device(Outcome *o, lt_OpId op, bool in_place, const Call *call, bool *kept) {
  DeviceCopies s = {.count = 0};
  lt_Arg sent[LT_MAX_ARGS];
  lt_Tensor *list[TEST_TENSORS];
  lt_Results r;
  int nargs = send_args(&s, op, call->cpu, call->nargs, sent, list);
  o->count = 0;
  *kept = true;
  o->done = lt_call(op, in_place, sent, nargs, &r);
  if (o->done && !lt_device_synchronize(test_device())) {
    lt_results_release(&r);
    o->done = false;
  }
  if (!o->done) {
    snprintf(o->text, sizeof o->text, "%s", lt_error());
    for (int i = 0; i < s.count; i++) {
      lt_Tensor *back =
          lt_scope_own(lt_op1(LT_OP_to, (lt_Arg[]){LT_ARG(s.on_device[i]), LT_ARG(lt_cpu())}, 2));
      back = lt_scope_own(lt_op1(LT_OP_contiguous, (lt_Arg[]){LT_ARG(back)}, 1));
      lt_Tensor *was = lt_scope_own(lt_op1(LT_OP_contiguous, (lt_Arg[]){LT_ARG(s.on_host[i])}, 1));
      size_t n = was ? (size_t)was->numel * lt_dtype_size(was->dtype) : 0;
      if (!back || (n && memcmp(lt_tensor_data(back), lt_tensor_data(was), n) != 0)) *kept = false;
    }
    return;
  }
  describe(&r, o->text, sizeof o->text);
  for (int i = 0; i < r.count && o->count < RESULTS; i++)
    o->result[o->count++] = lt_scope_own(
        lt_op1(LT_OP_to, (lt_Arg[]){LT_ARG(lt_results_items(&r)[i]), LT_ARG(lt_cpu())}, 2));
  lt_results_release(&r);
}

/* Returns the largest difference between two devices: both round, in another order. */
static double slack_of(lt_Dtype d) {
  return d == LT_bfloat16                        ? 2e-2
         : d == LT_float16                       ? 3e-3
         : d == LT_float32 || d == LT_complex64  ? 2e-5
         : d == LT_float64 || d == LT_complex128 ? 1e-11
                                                 : 0;
}

/* Returns the factor by which a small order p of a norm, a power of 1/p, multiplies errors on a
 * device without float64. */
static double amplification(const Call *call) {
  double factor = 1;
  if (call->op != LT_OP__norm) return factor;
  if (lt_device_has_dtype(test_device().type, LT_float64)) return factor;
  for (int i = 0; i < call->nargs; i++) {
    if (call->cpu[i].kind != LT_ARG_SCALAR) continue;
    double v = fabs(lt_scalar_to_double(call->cpu[i].scalar));
    if (v > 0 && v < 0.01) factor = fmax(factor, 1 / v);
  }
  return factor;
}

/* Returns the tolerance of a call: a result may be computed from parts in the dtype of one
 * argument, or in float32 where that is not a float. */
static double slack_of_call(const Call *call, lt_Dtype result) {
  double slack = slack_of(result) * amplification(call);
  for (int i = 0; i < call->nargs && slack > 0; i++) {
    if (call->cpu[i].kind != LT_ARG_TENSOR) continue;
    double own = slack_of(call->cpu[i].tensor->dtype);
    slack = fmax(slack, own > 0 ? own : slack_of(LT_float32));
  }
  return slack;
}

/* Returns by how much two devices may differ in any result of a call: integers above floats that
 * differ by rounding. */
static double step_of_call(const Call *call) { return call->op == LT_OP_geometric ? 1 : 0; }

static bool same_number(double v, double w, double slack) {
  return v == w || (isnan(v) && isnan(w)) || fabs(v - w) <= slack;
}

static bool same_values(const Call *call, const Outcome *a, const Outcome *b, char *text,
                        size_t size) {
  for (int i = 0; i < a->count; i++) {
    lt_Tensor *x = lt_scope_own(lt_op1(LT_OP_contiguous, (lt_Arg[]){LT_ARG(a->result[i])}, 1)),
              *y = lt_scope_own(lt_op1(LT_OP_contiguous, (lt_Arg[]){LT_ARG(b->result[i])}, 1));
    if (!x || !y) return false;
    lt_Dtype d = x->dtype;
    double slack = slack_of_call(call, d);
    size_t each = lt_dtype_size(d);
    for (int64_t k = 0; k < x->numel; k++) {
      lt_Scalar v = lt_scalar_load(d, (char *)lt_tensor_data(x) + (size_t)k * each),
                w = lt_scalar_load(d, (char *)lt_tensor_data(y) + (size_t)k * each);
      double re = lt_scalar_to_double(v), re_there = lt_scalar_to_double(w);
      double allowed = fmax(step_of_call(call), slack * (1 + hypot(re, v.im)));
      if (same_number(re, re_there, allowed) && same_number(v.im, w.im, allowed)) continue;
      snprintf(text, size, "result %d, element %lld: %.9g on the CPU, %.9g there", i + 1,
               (long long)k + 1, re, re_there);
      return false;
    }
  }
  return true;
}

/* Returns true for ops whose values are not compared: uninitialized memory, integers truncated from
 * floats that differ from an integer by rounding, and linear algebra: factors are not unique, and
 * singular matrices have no inverse. core/linalg_spec.lua compares products. */
static bool has_no_values(lt_OpId op) {
  static const char *const several[] = {"empty", "logspace", "_linalg", "geqrf"};
  for (size_t i = 0; i < sizeof several / sizeof *several; i++)
    if (strstr(lt_ops[op].name, several[i])) return true;
  return false;
}

/* Returns true for ops that are not compared with another device: composites choose them where
 * there is a kernel, the CPU, with scales that are finite and sums that belong to the tensors. */
static bool is_of_cpu(lt_OpId op) {
  static const char *const several[] = {"_attention", "_cross_entropy", "_ctc_loss"};
  for (size_t i = 0; i < sizeof several / sizeof *several; i++)
    if (strstr(lt_ops[op].name, several[i]) == lt_ops[op].name) return true;
  return false;
}

/* Returns whether a call found a singular matrix. Rounding decides that for some, and the CPU and a
 * device's library round differently. */
static bool is_singular(const Outcome *o) { return !o->done && strstr(o->text, "singular"); }

/* Returns the error without the op's name, since an internal op reports several names. */
static const char *refusal(const char *text) {
  const char *colon = strstr(text, ": ");
  return colon ? colon : text;
}

/* Returns the arguments as text: "float32 {2, 3} strides {3, 1} (1 2 3), 2, ...", with the first
 * values in memory. */
static const char *args_text(const Call *call) {
  static char text[1000];
  size_t at = 0;
  text[0] = 0;
  for (int i = 0; i < call->nargs && at < sizeof text; i++) {
    const lt_Arg *a = &call->cpu[i];
    const lt_Tensor *t = a->tensor;
    if (a->kind == LT_ARG_TENSOR) {
      at += (size_t)snprintf(text + at, sizeof text - at, "%s %s strides %s (",
                             lt_dtype_name(t->dtype), lt_shape_text(t->ndim, t->shape),
                             lt_shape_text(t->ndim, t->strides));
      for (int64_t k = 0; k < t->numel && k < 6 && at < sizeof text; k++)
        at += (size_t)snprintf(
            text + at, sizeof text - at, " %g",
            lt_scalar_to_double(lt_scalar_load(t->dtype, (char *)lt_tensor_data(t) +
                                                             (size_t)k * lt_dtype_size(t->dtype))));
      if (at < sizeof text) at += (size_t)snprintf(text + at, sizeof text - at, "), ");
    } else if (a->kind == LT_ARG_INT)
      at += (size_t)snprintf(text + at, sizeof text - at, "%lld, ", (long long)a->i);
    else
      at += (size_t)snprintf(text + at, sizeof text - at, "(kind %d), ", (int)a->kind);
  }
  return text;
}

/* Returns true where a device refuses losses over classes of planes {N, C, P}, which only the CPU's
 * kernels take. */
static bool refuses_planes(lt_OpId op, const Outcome *on_device) {
  return (op == LT_OP__nll_loss || op == LT_OP__nll_loss_backward) && !on_device->done &&
         strstr(on_device->text, "expected 2 dimensions for argument 'self', got 3");
}

static bool agrees_on_device(const Call *call, lt_OpId op, bool in_place, const Outcome *cpu,
                             const Outcome *on_device) {
  char why[200] = "";
  if (op == LT_OP_to || op == LT_OP__to_copy) return true; /* it may lead back to the CPU */
  if (refuses_planes(op, on_device)) return true;
  bool same = cpu->done == on_device->done;
  if (has_no_values(op) && (is_singular(cpu) || is_singular(on_device))) return true;
  if (same && cpu->done)
    same = strcmp(cpu->text, on_device->text) == 0 &&
           (has_no_values(op) || same_values(call, cpu, on_device, why, sizeof why));
  else if (same) /* the device adds to the first line where the error was found */
    same = strncmp(refusal(cpu->text), refusal(on_device->text),
                   strcspn(refusal(cpu->text), "\n")) == 0;
  if (!same)
    check_report(__FILE__, __LINE__, "%s%s: on the CPU \"%s\", there \"%s\" %s; %s",
                 lt_ops[op].name, in_place ? "_" : "", cpu->text, on_device->text, why,
                 args_text(call));
  return same;
}

/* Returns true when the values may matter, so that the CPU refuses what meta cannot see. */
static bool reads_values(const lt_Signature *g) {
  static const char *const names[] = {"indices", "mask",   "target", "targets",
                                      "repeats", "pivots", "check"};
  for (int i = 0; i < g->count; i++) {
    const lt_Param *p = &g->param[i];
    if (p->type == LT_PARAM_INDEX || p->type == LT_PARAM_GENERATOR) return true;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
      if (!strcmp(p->name, names[k])) return true;
  }
  return false;
}

static bool unchanged(const Call *call) {
  for (int i = 0; i < call->nseen; i++) {
    const lt_Storage *s = call->inputs[i]->storage;
    if (s->nbytes && memcmp(s->data, call->before[i], s->nbytes) != 0) return false;
  }
  return true;
}

/* Makes one random call; counts those that succeed. */
static bool try_call(lt_OpId op, bool in_place, int *succeeded) {
  static Call call;
  static Outcome cpu, meta, on_device;
  const lt_Signature *g = lt_op_signature(op);
  bool has_device = test_device().type != LT_DEVICE_cpu && !is_of_cpu(op), kept_on_device = true,
       agree_on_device = true;
  uint64_t state[2];
  size_t mark = lt_scope_open();
  call.op = op;
  random_call(&call, g);
  lt_generator_get_state(lt_generator_default(), state);
  if (has_device) outcome_on_device(&on_device, op, in_place, &call, &kept_on_device);
  lt_generator_set_state(lt_generator_default(), state);
  /* the CPU first: in place, meta's self is another tensor */
  outcome(&cpu, op, in_place, call.cpu, call.nargs);
  outcome(&meta, op, in_place, call.meta, call.nargs);
  bool agree = cpu.done == meta.done && (strcmp(cpu.text, meta.text) == 0);
  if (!meta.done && (strstr(meta.text, "meta tensor") || strstr(meta.text, "tensor on \"meta\"")))
    agree = true;
  if (!cpu.done && meta.done)
    agree = reads_values(g) || strstr(cpu.text, "out of memory") != NULL ||
            strstr(cpu.text, "divide integers by zero") != NULL;
  bool kept = cpu.done || unchanged(&call);
  if (has_device) agree_on_device = agrees_on_device(&call, op, in_place, &cpu, &on_device);
  if (!agree)
    check_report(__FILE__, __LINE__, "%s%s: on the CPU \"%s\", on meta \"%s\"", lt_ops[op].name,
                 in_place ? "_" : "", cpu.text, meta.text);
  if (!kept || !kept_on_device)
    check_report(__FILE__, __LINE__, "%s%s failed (%s) and changed an argument", lt_ops[op].name,
                 in_place ? "_" : "", cpu.text);
  *succeeded += cpu.done;
  for (int i = 0; i < call.nseen; i++) free(call.before[i]);
  lt_scope_close(mark, NULL);
  return agree && kept && agree_on_device && kept_on_device;
}

/* FNV-1a. An op's calls depend on its name only: a new op does not change those of others. */
static uint64_t hash(const char *name) {
  uint64_t h = UINT64_C(0xCBF29CE484222325);
  for (; *name; name++) h = (h ^ (unsigned char)*name) * UINT64_C(0x100000001B3);
  return h;
}

static void every_op_succeeds_or_reports_an_error(void) {
  for (int op = 0; op < LT_OP_COUNT; op++) {
    int succeeded = 0;
    bool ok = true;
    /* convolutions, grids and pools of three dimensions need more dimensions, the gradient of
     * ctc_loss four shapes that fit together */
    const char *name = lt_ops[op].name;
    bool rare = strstr(name, "conv") || strstr(name, "grid") || strstr(name, "pool3d") ||
                strstr(name, "ctc_loss_backward");
    for (int k = 0; k < (succeeded || rare ? CALLS_PER_OP : 500 * CALLS_PER_OP) && ok; k++) {
      seed = hash(name) + (uint64_t)k * UINT64_C(0xD1B54A32D192ED03);
      seed |= 1;
      bool in_place = (lt_ops[op].variants & LT_VARIANT_IN_PLACE) && random_below(2);
      ok = try_call((lt_OpId)op, in_place, &succeeded);
      if (!ok) check_report(__FILE__, __LINE__, "%s, call %d", name, k);
    }
    /* a test whose calls are all refused would check little */
    if (ok && succeeded == 0 && !rare)
      check_report(__FILE__, __LINE__, "%s: no call was right", name);
  }
}

int main(void) {
  RUN(every_op_succeeds_or_reports_an_error);
  return check_end();
}
