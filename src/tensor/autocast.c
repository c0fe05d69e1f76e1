/* autocast.c: mixed precision. While autocast is on for a device type, a call of an op with a class
 * of autocast (ops.def) gets its floating-point tensors in the dtype of its class. The casts are
 * calls of `_to_copy`, so gradients pass through them.
 *
 * The casts of leaf tensors that require grad, the weights, are cached until the scope ends, so
 * that a weight that is used twice is cast once. Invariant: inside a call with a class, and in a
 * backward pass, autocast is paused: the ops that a composite runs get their tensors as they
 * are. */
#include "core.h"
#include "opids.h"

#include <stdlib.h>

/* ---- settings -------------------------------------------------------------------------------- */

bool lt_autocast_has(uint8_t type) {
  return type == LT_DEVICE_cpu || type == LT_DEVICE_cuda || type == LT_DEVICE_mps;
}

lt_Dtype lt_autocast_dtype(const lt_Autocast *a, uint8_t type) {
  if (a->dtype[type]) return (lt_Dtype)(a->dtype[type] - 1);
  return type == LT_DEVICE_cpu ? LT_bfloat16 : LT_float16;
}

/* ---- the cache ------------------------------------------------------------------------------- */

typedef struct Cast {
  lt_Tensor *source, *result; /* one reference each */
  unsigned version;           /* of the source */
} Cast;

struct lt_Casts {
  Cast *item;
  size_t count, room;
  size_t next; /* where the next search starts: weights are used in the same order */
};

void lt_autocast_clear_cache(void) {
  struct lt_Casts *casts = lt_thread()->casts;
  lt_thread()->casts = NULL;
  if (!casts) return;
  for (size_t i = 0; i < casts->count; i++) {
    lt_release(casts->item[i].source);
    lt_release(casts->item[i].result);
  }
  free(casts->item);
  free(casts);
}

/* Returns the entry of a tensor, or NULL. */
static Cast *find(const lt_Tensor *t) {
  struct lt_Casts *casts = lt_thread()->casts;
  for (size_t k = 0; casts && k < casts->count; k++) {
    size_t i = (casts->next + k) % casts->count;
    if (casts->item[i].source != t) continue;
    casts->next = i + 1;
    return &casts->item[i];
  }
  return NULL;
}

/* Adds a cast. Without memory it is not cached. */
static void keep(lt_Tensor *source, lt_Tensor *result) {
  lt_Thread *th = lt_thread();
  Cast *found = find(source);
  if (!th->casts) th->casts = calloc(1, sizeof *th->casts);
  struct lt_Casts *casts = th->casts;
  if (!casts) return;
  if (found) {
    lt_Tensor *old = found->result;
    found->result = lt_retain(result);
    found->version = lt_tensor_version(source);
    lt_release(old);
    return;
  }
  if (casts->count == casts->room) {
    size_t room = casts->room ? 2 * casts->room : 64;
    Cast *more = realloc(casts->item, room * sizeof *more);
    if (!more) return;
    casts->item = more;
    casts->room = room;
  }
  casts->item[casts->count++] =
      (Cast){lt_retain(source), lt_retain(result), lt_tensor_version(source)};
}

/* ---- casting --------------------------------------------------------------------------------- */

/* Returns true when autocast may cast t: float64, integers and other devices are not cast. */
static bool is_eligible(const lt_Tensor *t, uint8_t type) {
  return t && !t->freed && lt_dtype_is_float(t->dtype) && t->dtype != LT_float64 &&
         t->storage->device.type == type;
}

/* Returns true when the cast of t is cached: t is a weight, and is cast to the lower precision. */
static bool is_cached(lt_Tensor *t, uint8_t type, lt_Dtype to) {
  const lt_Autocast *a = &lt_thread()->autocast;
  return !a->no_cache && t->dtype == LT_float32 && t->requires_grad && lt_tensor_is_leaf(t) &&
         to == lt_autocast_dtype(a, type);
}

/* Returns t in dtype `to`, in the open scope or t itself; NULL with an error. */
static lt_Tensor *cast(lt_Tensor *t, uint8_t type, lt_Dtype to) {
  if (!is_eligible(t, type) || t->dtype == to) return t;
  bool cached = is_cached(t, type, to);
  bool tracked = lt_grad_enabled() && !lt_inference_enabled();
  const Cast *found = cached ? find(t) : NULL;
  if (found && found->version == lt_tensor_version(t) && found->result->dtype == to &&
      found->result->requires_grad == tracked && found->result->inference == lt_inference_enabled())
    return lt_scope_own(lt_retain(found->result));
  lt_Tensor *result = lt_do(_to_copy, LT_ARG(t), lt_arg_device(lt_tensor_device(t)),
                            lt_arg_dtype(to), LT_ARG((bool)false));
  if (result && cached) keep(t, result);
  return result;
}

/* ---- the class of a call --------------------------------------------------------------------- */

/* Returns the device type on which a call runs: of its first tensor. Meta if there is none. */
static uint8_t type_of(const lt_Arg *args, int nargs) {
  for (int i = 0; i < nargs; i++) {
    const lt_Arg *a = &args[i];
    if (a->kind == LT_ARG_TENSOR && a->tensor && !a->tensor->freed)
      return a->tensor->storage->device.type;
    for (int k = 0; a->kind == LT_ARG_TENSORS && k < a->count; k++)
      if (a->tensors[k] && !a->tensors[k]->freed) return a->tensors[k]->storage->device.type;
  }
  return LT_DEVICE_meta;
}

static bool is_on(const lt_Autocast *a, uint8_t type) {
  return lt_autocast_has(type) && (a->on >> type & 1);
}

/* Returns the widest dtype of the call's tensors, at least `least`. */
static lt_Dtype widest(const lt_Arg *args, int nargs, uint8_t type, lt_Dtype least) {
  for (int i = 0; i < nargs; i++) {
    const lt_Arg *a = &args[i];
    if (a->kind == LT_ARG_TENSOR && is_eligible(a->tensor, type))
      least = lt_dtype_promote(least, a->tensor->dtype);
    for (int k = 0; a->kind == LT_ARG_TENSORS && k < a->count; k++)
      if (is_eligible(a->tensors[k], type)) least = lt_dtype_promote(least, a->tensors[k]->dtype);
  }
  return least;
}

/* Returns the dtype for a class other than WIDEST; LT_DTYPE_NONE: the tensors stay as they are. */
static lt_Dtype class_dtype(unsigned class, uint8_t type) {
  bool gpu = type != LT_DEVICE_cpu;
  lt_Dtype low = lt_autocast_dtype(&lt_thread()->autocast, type);
  switch (class) {
  case LT_AUTOCAST_LOW:
    return low;
  case LT_AUTOCAST_LOW_GPU:
    return gpu ? low : LT_DTYPE_NONE;
  case LT_AUTOCAST_HIGH:
    return LT_float32;
  case LT_AUTOCAST_HIGH_CPU:
    return gpu ? LT_DTYPE_NONE : LT_float32;
  case LT_AUTOCAST_HIGH_GPU:
    return gpu ? LT_float32 : LT_DTYPE_NONE;
  default:
    return LT_DTYPE_NONE;
  }
}

/* Returns the dtype in which a call gets its tensors; LT_DTYPE_NONE: as they are. */
static lt_Dtype target(const lt_Call *c, const lt_Arg *args, int nargs, uint8_t type) {
  unsigned class = c->info->traits & LT_AUTOCAST_CLASS;
  int dtype = c->signature->dtype_param;
  if (c->in_place || c->ngiven || c->signature->written) return LT_DTYPE_NONE;
  if (class == LT_AUTOCAST_WIDEST)
    return widest(args, nargs, type, lt_autocast_dtype(&lt_thread()->autocast, type));
  if (class != LT_AUTOCAST_LOW && dtype >= 0 && dtype < nargs && args[dtype].kind != LT_ARG_NIL)
    return LT_DTYPE_NONE;
  return class_dtype(class, type);
}

/* Casts a list of tensors into `list`. */
static bool cast_list(lt_Arg *a, lt_Tensor **list, uint8_t type, lt_Dtype to) {
  for (int k = 0; k < a->count; k++) {
    list[k] = a->tensors[k] ? cast(a->tensors[k], type, to) : NULL;
    if (a->tensors[k] && !list[k]) return false;
  }
  a->tensors = list;
  return true;
}

/* Casts the arguments in place. `lists` has room for the tensors of all lists. */
static bool cast_args(lt_Arg *args, int nargs, lt_Tensor **lists, uint8_t type, lt_Dtype to) {
  for (int i = 0; i < nargs; i++) {
    lt_Arg *a = &args[i];
    if (a->kind == LT_ARG_TENSOR && a->tensor) {
      a->tensor = cast(a->tensor, type, to);
      if (!a->tensor) return false;
    } else if (a->kind == LT_ARG_TENSORS) {
      if (!cast_list(a, lists, type, to)) return false;
      lists += a->count;
    }
  }
  return true;
}

bool lt_autocast_applies(const lt_Call *c, const lt_Arg *args, int nargs) {
  const lt_Thread *th = lt_thread();
  return c->info->traits & LT_AUTOCAST_CLASS && !th->autocast_paused &&
         is_on(&th->autocast, type_of(args, nargs));
}

bool lt_autocast_call(lt_Call *c, const lt_Arg *args, int nargs,
                      bool (*run)(lt_Call *c, const lt_Arg *args, int nargs)) {
  lt_Arg own[LT_MAX_ARGS];
  lt_Tensor **lists = NULL;
  lt_Thread *th = lt_thread();
  uint8_t type = type_of(args, nargs);
  lt_Dtype to = target(c, args, nargs, type);
  size_t count = 0;
  if (to == LT_DTYPE_NONE || nargs > LT_MAX_ARGS) {
    th->autocast_paused++;
    bool ok = run(c, args, nargs);
    th->autocast_paused--;
    return ok;
  }
  memcpy(own, args, sizeof *own * (size_t)nargs);
  for (int i = 0; i < nargs; i++)
    if (args[i].kind == LT_ARG_TENSORS) count += (size_t)args[i].count;
  if (count) lists = malloc(count * sizeof(lt_Tensor *));
  if (count && !lists) return lt_fail_memory();
  size_t mark = lt_scope_open();
  th->autocast_paused++;
  bool ok = cast_args(own, nargs, lists, type, to) && run(c, own, nargs);
  th->autocast_paused--;
  lt_scope_close(mark, NULL);
  free(lists);
  return ok;
}
