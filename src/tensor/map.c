/* map.c: maps: a table of what their rows say, and the checks before one runs.
 *
 * Invariant: everything is checked here, before anything is written; the kernels (cpu/map.c,
 * cuda/map.c) only get valid calls. */
#include "core.h"
#include "maps.h"
#include "opids.h"

#include <math.h>

/* ---- the rows -------------------------------------------------------------------------------- */

#define LT_MAP(name, ...)                                                                          \
  _Static_assert(sizeof(lt_MapTensors_##name) <= LT_MAP_TENSORS * sizeof(void *) &&                \
                     sizeof(lt_MapNumbers_##name) <= LT_MAP_NUMBERS * sizeof(double),              \
                 "LT_MAP_TENSORS and LT_MAP_NUMBERS have no room for " #name);
#include "ops.def"

#define GIVEN(x)                                                                                   \
  const double x = k_->x;                                                                          \
  (void)x;
#define ONCE(x, ...)                                                                               \
  const double x = (double)(__VA_ARGS__);                                                          \
  k_->x = x;
#define LT_MAP(name, tensors, numbers, ...)                                                        \
  static void complete_##name(double *all_) {                                                      \
    lt_MapNumbers_##name *k_ = (lt_MapNumbers_##name *)all_;                                       \
    numbers                                                                                        \
  }
#include "ops.def"
#undef GIVEN
#undef ONCE

#define READS(x)                            "READS " #x ", "
#define WRITES(x)                           "WRITES " #x ", "
#define WRITES_OPTIONAL(x)                  "WRITES_OPTIONAL " #x ", "
#define GIVEN(x)                            "GIVEN " #x ", "
#define ONCE(x, ...)                        ""
#define LT_MAP(name, tensors, numbers, ...) static const char names_##name[] = tensors numbers;
#include "ops.def"
#undef READS
#undef WRITES
#undef WRITES_OPTIONAL
#undef GIVEN
#undef ONCE

#define GIVEN(x) +1
#define ONCE(x, ...)
#define LT_MAP(name, tensors, numbers, ...)                                                        \
  {LT_OP_##name, sizeof(lt_MapTensors_##name) / sizeof(void *), 0 numbers, complete_##name,        \
   names_##name},
static const lt_MapInfo maps[] = {
#include "ops.def"
};

int lt_map_id(lt_OpId op) {
  for (int id = 0; id < LT_MAP_COUNT; id++)
    if (maps[id].op == op) return id;
  return -1;
}

const lt_MapInfo *lt_map_info(int id) { return &maps[id]; }

unsigned lt_map_written(const lt_Call *c) { return c->signature->written; }

bool lt_map_uniform(const lt_Call *c) {
  bool given = false, absent = false;
  for (int k = 0; k < maps[lt_map_id(c->op)].tensors; k++) {
    if (!c->signature->param[k].optional) continue;
    if (c->arg[k].kind == LT_ARG_TENSORS)
      given = true;
    else
      absent = true;
  }
  return !(given && absent);
}

/* Returns a number argument as a double. */
static double number_of(const lt_Arg *a) {
  switch (a->kind) {
  case LT_ARG_INT:
    return (double)a->i;
  case LT_ARG_BOOL:
    return a->b;
  default:
    return a->f;
  }
}

void lt_map_numbers(const lt_Call *c, double numbers[LT_MAP_NUMBERS]) {
  const lt_MapInfo *m = &maps[lt_map_id(c->op)];
  for (int i = 0; i < m->given; i++) numbers[i] = number_of(&c->arg[m->tensors + i]);
  m->complete(numbers);
}

/* ---- checks ---------------------------------------------------------------------------------- */

/* The name of an element of a list in messages, "grads[2]". */
typedef struct Name {
  char text[48];
} Name;
static Name name_of(const lt_Call *c, int k, int i) {
  Name n;
  snprintf(n.text, sizeof n.text, "%s[%d]", c->signature->param[k].name, i + 1);
  return n;
}

/* Checks that all lists have the same length. */
static bool check_lists(const lt_Call *c, int lists) {
  for (int k = 0; k < lists; k++) {
    const lt_Arg *a = &c->arg[k];
    if (a->kind == LT_ARG_TENSORS && a->count != c->arg[0].count)
      return lt_fail("expected %d tensors for argument '%s', as many as in '%s', got %d",
                     c->arg[0].count, c->signature->param[k].name, c->signature->param[0].name,
                     a->count);
  }
  return true;
}

/* Checks that tensor i of list k has the device, dtype and shape of the first list's, and may be
 * written if the map writes it. */
static bool check_like(const lt_Call *c, int k, int i, const lt_Tensor *first) {
  const lt_Tensor *t = lt_map_tensor(c, k, i);
  if (!t) return lt_fail("expected a tensor for argument '%s', got nil", name_of(c, k, i).text);
  if (!lt_device_equal(lt_tensor_device(t), c->device))
    return lt_fail("expected a tensor on \"%s\" for argument '%s', got one on \"%s\"",
                   lt_device_name(c->device), name_of(c, k, i).text,
                   lt_device_name(lt_tensor_device(t)));
  if (!lt_dtype_is_float(t->dtype))
    return lt_fail("expected a float dtype for argument '%s', got \"%s\"", name_of(c, k, i).text,
                   lt_dtype_name(t->dtype));
  if (t->dtype != first->dtype)
    return lt_fail("expected dtype \"%s\" for argument '%s', the one of '%s', got \"%s\"",
                   lt_dtype_name(first->dtype), name_of(c, k, i).text, name_of(c, 0, i).text,
                   lt_dtype_name(t->dtype));
  if (!lt_shape_equal(t->ndim, t->shape, first->ndim, first->shape))
    return lt_fail("expected the shape %s for argument '%s', the one of '%s', got %s",
                   lt_shape_text(first->ndim, first->shape), name_of(c, k, i).text,
                   name_of(c, 0, i).text, lt_shape_text(t->ndim, t->shape));
  if (!lt_call_writes(c, k)) return true;
  if (lt_tensor_overlaps_itself(t))
    return lt_fail(
        "cannot change '%s' in place: its elements share memory (it was expanded)\nhint: x:clone()",
        name_of(c, k, i).text);
  const char *reason = lt_autograd_refuses(t);
  return !reason || lt_fail("cannot change '%s' in place: %s", name_of(c, k, i).text, reason);
}

/* ---- memory in common ---- */

/* A hash table of the call's tensors by storage. A slot is 1 + i * lists + k for tensor i of list
 * k, or 0. */
typedef struct Places {
  const lt_Call *call;
  int lists;
  size_t mask;
  uint32_t *slot;
} Places;

/* Returns true when writing one of two tensors could change the other. Only the same elements at
 * the same index i of two lists, of which one is only read, may be given twice. */
static bool clash(const Places *p, int k, int i, int l, int j) {
  const lt_Tensor *a = lt_map_tensor(p->call, k, i), *b = lt_map_tensor(p->call, l, j);
  bool first = lt_call_writes(p->call, k), second = lt_call_writes(p->call, l);
  if (!a->numel || !b->numel || (!first && !second)) return false;
  if (lt_tensor_overlaps(a, b)) return true;
  bool apart = a->dtype != b->dtype || a->offset != b->offset;
  return !apart && (i != j || (first && second));
}

/* Adds tensor i of list k to the table, and checks it against those of the same storage. */
static bool add_place(Places *p, int k, int i) {
  const lt_Storage *s = lt_map_tensor(p->call, k, i)->storage;
  size_t at = (size_t)(((uintptr_t)s >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 20) & p->mask;
  for (; p->slot[at]; at = (at + 1) & p->mask) {
    int j = (int)(p->slot[at] - 1) / p->lists, l = (int)(p->slot[at] - 1) % p->lists;
    if (lt_map_tensor(p->call, l, j)->storage == s && clash(p, k, i, l, j))
      return lt_fail("cannot write to one of '%s' and '%s': they may share memory",
                     name_of(p->call, l, j).text, name_of(p->call, k, i).text);
  }
  p->slot[at] = 1 + (uint32_t)i * (uint32_t)p->lists + (uint32_t)k;
  return true;
}

/* Checks that no two tensors of the call share memory of which one is written. */
static bool check_shared_memory(const lt_Call *c, int lists) {
  uint32_t few[256] = {0};
  size_t room = 64, slots = 2 * (size_t)lists * (size_t)lt_map_count(c);
  while (room < slots) room *= 2;
  bool on_stack = room <= sizeof few / sizeof *few;
  Places p = {c, lists, room - 1, on_stack ? few : calloc(room, sizeof *p.slot)};
  if (!p.slot) return lt_fail_memory();
  bool ok = true;
  for (int i = 0; ok && i < lt_map_count(c); i++)
    for (int k = 0; ok && k < lists; k++)
      if (c->arg[k].kind == LT_ARG_TENSORS) ok = add_place(&p, k, i);
  if (!on_stack) free(p.slot);
  return ok;
}

bool lt_map_check(lt_Call *c) {
  int lists = maps[lt_map_id(c->op)].tensors;
  if (!check_lists(c, lists)) return false;
  for (int i = 0; i < lt_map_count(c); i++)
    for (int k = 0; k < lists; k++)
      if (c->arg[k].kind == LT_ARG_TENSORS && !check_like(c, k, i, lt_map_tensor(c, 0, i)))
        return false;
  return check_shared_memory(c, lists);
}

/* ---- after the run --------------------------------------------------------------------------- */

/* Invokes `visit` for each tensor that the call writes. */
static void each_written(const lt_Call *c, void (*visit)(lt_Tensor *t, void *context),
                         void *context) {
  for (unsigned left = c->signature->written; left; left &= left - 1) {
    const lt_Arg *a = &c->arg[__builtin_ctz(left)];
    for (int i = 0; a->kind == LT_ARG_TENSORS && i < a->count; i++) visit(a->tensors[i], context);
  }
}

/* Marks a tensor as changed in place, by this op. */
static void touch(lt_Tensor *t, void *context) {
  const char *op = lt_thread()->user_op;
  t->storage->writer = op ? op : ((const lt_Call *)context)->info->name;
  lt_tensor_touch(t);
}

void lt_map_touch(const lt_Call *c) { each_written(c, touch, (void *)c); }

/* Adds the bytes of a tensor to *context. */
static void add_bytes(lt_Tensor *t, void *context) {
  *(int64_t *)context += t->numel * (int64_t)lt_dtype_size(t->dtype);
}

int64_t lt_map_bytes(const lt_Call *c) {
  int64_t bytes = 0;
  each_written(c, add_bytes, &bytes);
  return bytes;
}
