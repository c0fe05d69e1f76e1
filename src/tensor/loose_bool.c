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

lt_Tensor *lt_bools_copy(const lt_Tensor *t) {
  lt_Tensor *bytes =
      lt_scope_own(lt_tensor_on(t->storage, LT_uint8, t->offset, t->ndim, t->shape, t->strides));
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

/* Replaces the loose tensors that the call reads; those that it writes are changed themselves. */
static bool copy_args(lt_Call *c) {
  for (int i = 0; i < c->nargs; i++) {
    lt_Arg *a = &c->arg[i];
    if (a->kind == LT_ARG_TENSORS && !copy_list(a)) return false;
    if (a->kind != LT_ARG_TENSOR || !lt_bools_are_loose(a->tensor)) continue;
    lt_Tensor *copy = lt_bools_copy(a->tensor);
    if (!copy) return false;
    if (!(c->in_place && i == 0) && !lt_call_writes(c, i))
      a->tensor = copy;
    else if (!lt_tensor_overlaps_itself(a->tensor) && !lt_copy_into(a->tensor, copy, false))
      return false;
  }
  return true;
}

bool lt_bools_run(lt_Call *c, bool (*run)(lt_Call *c)) {
  size_t mark = lt_scope_open();
  lt_Tensor *const *given[LT_MAX_ARGS];
  for (int i = 0; i < c->nargs; i++)
    given[i] = c->arg[i].kind == LT_ARG_TENSORS ? c->arg[i].tensors : NULL;
  bool ok = copy_args(c) && run(c);
  for (int i = 0; i < c->nargs; i++)
    if (c->arg[i].kind == LT_ARG_TENSORS && c->arg[i].tensors != given[i]) {
      free((void *)c->arg[i].tensors);
      c->arg[i].tensors = given[i];
    }
  lt_scope_close(mark, NULL);
  return ok;
}
