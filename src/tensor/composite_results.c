/* composite_results.c: how composites return their results. They return borrowed tensors, to which
 * the scope, an argument or a list has a reference; dispatch adds the caller's. */
#include "infer.h"

bool lt_is_unobserved(const lt_Call *c) {
  const lt_Thread *th = lt_thread();
  if (c->device.type != LT_DEVICE_cpu || th->tracers || th->recorder || th->autocast.on)
    return false;
  for (int i = 0; i < c->nargs && !th->grad_off; i++) {
    const lt_Arg *a = &c->arg[i];
    if (a->kind == LT_ARG_TENSOR && lt_tensor_requires_grad(a->tensor)) return false;
    for (int k = 0; a->kind == LT_ARG_TENSORS && k < a->count; k++)
      if (a->tensors[k] && lt_tensor_requires_grad(a->tensors[k])) return false;
  }
  return true;
}

bool lt_result_set(lt_Call *c, lt_Tensor *t) {
  c->out[0] = t;
  c->nout = t != NULL;
  return t != NULL;
}

bool lt_result_set_two(lt_Call *c, lt_Tensor *a, lt_Tensor *b) {
  if (!a || !b) return false;
  c->out[0] = a;
  c->out[1] = b;
  c->nout = 2;
  return true;
}

bool lt_result_list_open(lt_Call *c, int64_t n) {
  lt_Results *r = c->results;
  if (n > INT32_MAX) return lt_fail("cannot return %lld tensors in a list: too many", (long long)n);
  r->many = calloc(n ? (size_t)n : 1, sizeof(lt_Tensor *));
  if (!r->many) return lt_fail_memory();
  r->is_list = true;
  r->count = 0;
  return true;
}

bool lt_result_list_add(lt_Call *c, lt_Tensor *t) {
  if (!t) return false;
  c->results->many[c->results->count++] = lt_retain(t);
  return true;
}

bool lt_result_set_pieces(lt_Call *c, lt_Tensor *t, int dim, int64_t n, const int64_t *sizes,
                          int64_t each) {
  if (!lt_result_list_open(c, n)) return false;
  int64_t first = 0, left = t->shape[dim];
  for (int64_t i = 0; i < n; i++) {
    int64_t size = sizes ? sizes[i] : each < left ? each : left;
    if (!lt_result_list_add(c, lt_do_slice(t, dim, first, size))) return false;
    first += size;
    left -= size;
  }
  return true;
}

bool lt_result_set_flag(lt_Call *c, bool flag) {
  c->results->is_flag = true;
  c->results->flag = flag;
  c->nout = 0;
  return true;
}

bool lt_do_all(lt_OpId op, const lt_Arg *args, int nargs, int count, lt_Tensor **out) {
  lt_Results r;
  for (int i = 0; i < count; i++) out[i] = NULL;
  if (!lt_call(op, false, args, nargs, &r)) return false;
  bool ok = r.count >= count;
  for (int i = 0; i < r.count; i++) {
    if (i >= count)
      lt_release(r.few[i]);
    else
      ok = (out[i] = lt_scope_own(r.few[i])) != NULL && ok;
  }
  return ok;
}
