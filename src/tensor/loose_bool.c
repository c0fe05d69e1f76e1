/* loose_bool.c: bool tensors on memory that is also read as another dtype, x:view("bool").
 *
 * Kernels expect bytes of 0 and 1 in bool tensors: they add them, count with them and compare them.
 * On a loose storage a byte may have any value. Dispatch gives kernels a copy of such a tensor, in
 * which each byte other than 0 is 1. */
#include "core.h"
#include "opids.h"
#include "recorder.h"

static atomic_bool any; /* most programs have none: then no call looks for them */

void lt_bools_loosen(lt_Storage *s) {
  lt_recorder_refuse("it reads memory as bool that is not bool");
  if (!s->data) return;
  atomic_store_explicit(&s->loose_bools, true, memory_order_relaxed);
  atomic_store_explicit(&any, true, memory_order_relaxed);
}

bool lt_bools_are_loose(const lt_Tensor *t) {
  return atomic_load_explicit(&any, memory_order_relaxed) && t && t->dtype == LT_bool &&
         atomic_load_explicit(&t->storage->loose_bools, memory_order_relaxed);
}

bool lt_bools_in_args(const lt_Call *c) {
  if (!atomic_load_explicit(&any, memory_order_relaxed)) return false;
  for (int i = 0; i < c->nargs; i++) {
    const lt_Arg *a = &c->arg[i];
    if (a->kind == LT_ARG_TENSOR && lt_bools_are_loose(a->tensor)) return true;
    for (int k = 0; a->kind == LT_ARG_TENSORS && k < a->count; k++)
      if (lt_bools_are_loose(a->tensors[k])) return true;
  }
  return false;
}

/* Returns t's memory as bytes, owned by the innermost scope. */
static lt_Tensor *bytes_of(const lt_Tensor *t) {
  return lt_scope_own(lt_tensor_on(t->storage, LT_uint8, t->offset, t->ndim, t->shape, t->strides));
}

lt_Tensor *lt_bools_copy(const lt_Tensor *t) {
  lt_Tensor *bytes = bytes_of(t);
  return bytes ? lt_do(ne, LT_ARG(bytes), LT_ARG(0)) : NULL;
}

/* Replaces the loose tensors of a list. The caller frees the new list. */
static bool copy_list(lt_Arg *a) {
  lt_Tensor **list = malloc(sizeof *list * ((size_t)a->count + 1));
  lt_Tensor *const *from = a->tensors;
  if (!list) return lt_fail_memory();
  memcpy(list, from, sizeof *list * (size_t)a->count);
  a->tensors = list;
  for (int k = 0; k < a->count; k++)
    if (lt_bools_are_loose(from[k]) && !(list[k] = lt_bools_copy(from[k]))) return false;
  return true;
}

/* Replaces the loose tensors that the call reads. */
static bool copy_args(lt_Call *c) {
  for (int i = c->in_place; i < c->nargs; i++) {
    lt_Arg *a = &c->arg[i];
    if (a->kind == LT_ARG_TENSORS && !copy_list(a)) return false;
    if (a->kind == LT_ARG_TENSOR && lt_bools_are_loose(a->tensor) &&
        !(a->tensor = lt_bools_copy(a->tensor)))
      return false;
  }
  return true;
}

/* The tensor that an in-place call changes, whose bytes are 0 and 1 during the call. */
typedef struct Self {
  lt_Tensor *bytes; /* NULL: it is not loose */
  lt_Tensor *before, *strict;
} Self;

static bool open_self(Self *s, const lt_Call *c) {
  lt_Tensor *t = c->in_place ? lt_in(c, 0) : NULL;
  s->bytes = NULL;
  if (!lt_bools_are_loose(t) || lt_tensor_overlaps_itself(t)) return true;
  lt_Tensor *bytes = bytes_of(t);
  s->strict = lt_bools_copy(t);
  s->before = lt_scope_own(lt_empty(LT_uint8, lt_tensor_device(t), t->ndim, t->shape));
  if (!bytes || !s->strict || !s->before || !lt_copy_into(s->before, bytes, false) ||
      !lt_copy_into(bytes, s->strict, false))
    return false;
  s->bytes = bytes;
  return true;
}

/* Returns the bytes of the elements that the call has not changed to what they were. */
static void close_self(const Self *s, bool ok) {
  if (!s->bytes) return;
  lt_Tensor *same = ok ? lt_do(eq, LT_ARG(s->bytes), LT_ARG(s->strict)) : NULL;
  lt_Tensor *merged = same ? lt_do(where, LT_ARG(same), LT_ARG(s->before), LT_ARG(s->bytes)) : NULL;
  if (merged || !ok) lt_copy_into(s->bytes, ok ? merged : s->before, false);
}

bool lt_bools_run(lt_Call *c, bool (*run)(lt_Call *c)) {
  size_t mark = lt_scope_open();
  lt_Tensor *const *given[LT_MAX_ARGS];
  Self self;
  for (int i = 0; i < c->nargs; i++)
    given[i] = c->arg[i].kind == LT_ARG_TENSORS ? c->arg[i].tensors : NULL;
  bool ok = open_self(&self, c);
  if (ok) {
    ok = copy_args(c) && run(c);
    close_self(&self, ok);
  }
  for (int i = 0; i < c->nargs; i++)
    if (c->arg[i].kind == LT_ARG_TENSORS && c->arg[i].tensors != given[i]) {
      free((void *)c->arg[i].tensors);
      c->arg[i].tensors = given[i];
    }
  lt_scope_close(mark, NULL);
  return ok;
}
