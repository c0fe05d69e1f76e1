/* out.c: results that are written into tensors of the caller (out.h). */
#include "out.h"
#include "core.h"

/* ---- checks ---------------------------------------------------------------------------------- */

bool lt_out_accept(const lt_Call *c) {
  bool composite = c->info->kind == LT_KIND_COMPOSITE;
  /* where(condition) returns a list, where(condition, self, other) a tensor */
  if (c->signature->result_is_flag || (c->signature->result_is_list && !composite))
    return lt_fail("cannot write into 'out': the number of results is not fixed");
  if (c->info->kind == LT_KIND_VIEW || c->info->kind == LT_KIND_MAP)
    return lt_fail("cannot write into 'out': the op computes no new tensor");
  if (c->ngiven == c->signature->results) return true;
  /* max(self) and max(self, other) have one result of the two in the signature */
  if (composite && c->ngiven < c->signature->results) return true;
  return lt_fail("expected %d tensor%s for argument 'out', got %d", c->signature->results,
                 c->signature->results == 1 ? "" : "s", c->ngiven);
}

/* Checks one tensor against the dtype, device and shape of its result. */
static bool check_one(lt_Tensor *out, lt_Dtype dtype, lt_Device device, int ndim,
                      const int64_t *shape) {
  if (out->freed) return lt_fail("expected a tensor for argument 'out', got a freed tensor");
  if (!lt_device_equal(lt_tensor_device(out), device))
    return lt_fail("cannot write into 'out': the result is on \"%s\", 'out' is on \"%s\"",
                   lt_device_name(device), lt_device_name(lt_tensor_device(out)));
  if (lt_dtype_category(dtype) > lt_dtype_category(out->dtype))
    return lt_fail("cannot write into 'out': the result is \"%s\", 'out' is \"%s\"",
                   lt_dtype_name(dtype), lt_dtype_name(out->dtype));
  if (out->numel != 0 && !lt_shape_equal(out->ndim, out->shape, ndim, shape))
    return lt_fail("cannot write into 'out': the result has the shape %s, 'out' has %s\nhint: an "
                   "empty tensor gets the shape of the result",
                   lt_shape_text(ndim, shape), lt_shape_text(out->ndim, out->shape));
  if (lt_tensor_overlaps_itself(out))
    return lt_fail("cannot write into 'out': its elements share memory (it was expanded)");
  if (lt_grad_enabled() && lt_tensor_requires_grad(out))
    return lt_fail("cannot write into 'out': it requires grad\nhint: lt.no_grad");
  return true;
}

/* Returns true when `t` shares memory with another tensor of the call that is not it: `any`: with
 * any part of its storage, otherwise with elements at other places. */
static bool shares(const lt_Call *c, const lt_Tensor *t, bool any) {
  for (int i = 0; i < c->nargs; i++) {
    const lt_Arg *a = &c->arg[i];
    if (a->kind == LT_ARG_TENSOR && a->tensor &&
        (any ? a->tensor->storage == t->storage : lt_tensor_overlaps(t, a->tensor)))
      return true;
    for (int k = 0; any && a->kind == LT_ARG_TENSORS && k < a->count; k++)
      if (a->tensors[k] && a->tensors[k]->storage == t->storage) return true;
  }
  for (int i = 0; i < c->ngiven; i++)
    if (c->given[i] != t && c->given[i]->storage == t->storage) return true;
  return false;
}

bool lt_out_check(const lt_Call *c) {
  for (int i = 0; i < c->ngiven; i++) {
    const lt_Spec *s = &c->spec[i];
    if (c->nout && !check_one(c->given[i], s->dtype, s->device, s->ndim, s->shape)) return false;
    if (c->info->kind == LT_KIND_ELEMENTWISE && shares(c, c->given[i], false))
      return lt_fail("cannot write into 'out': it shares memory with an input, at other "
                     "places\nhint: clone one of them");
  }
  if (c->ngiven == 0 || !lt_autograd_required(c)) return true;
  return lt_fail("cannot write into 'out': an input requires grad, and 'out' does not record "
                 "gradients\nhint: lt.no_grad, or a call without 'out'");
}

bool lt_out_is_direct(const lt_Call *c, int i) {
  if (i >= c->ngiven) return false;
  const lt_Tensor *t = c->given[i];
  if (!lt_shape_equal(t->ndim, t->shape, c->spec[i].ndim, c->spec[i].shape)) return false;
  if (c->info->kind == LT_KIND_ELEMENTWISE)
    return lt_dtype_is_complex(t->dtype) == lt_dtype_is_complex(c->spec[i].dtype);
  return t->dtype == c->spec[i].dtype && lt_tensor_is_contiguous(t) && !shares(c, t, true);
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* Writes a checked value into out. */
static bool store(lt_Tensor *out, lt_Tensor *value) {
  if (lt_shape_equal(out->ndim, out->shape, value->ndim, value->shape)) {
    if (!lt_copy_into(out, value, false)) return false;
    lt_tensor_touch(out);
    return true;
  }
  lt_Tensor *fresh = lt_empty(out->dtype, lt_tensor_device(out), value->ndim, value->shape);
  bool ok = fresh && lt_copy_into(fresh, value, false) && lt_tensor_set_data(out, fresh);
  lt_release(fresh);
  return ok;
}

static bool check_value(lt_Tensor *out, lt_Tensor *value) {
  if (lt_tensor_requires_grad(value))
    return lt_fail("cannot write into 'out': an input requires grad, and 'out' does not record "
                   "gradients\nhint: lt.no_grad, or a call without 'out'");
  return check_one(out, value->dtype, lt_tensor_device(value), value->ndim, value->shape);
}

bool lt_out_store(lt_Call *c) {
  if (c->results->is_list)
    return lt_fail("cannot write into 'out': the number of results is not fixed");
  if (c->nout != c->ngiven)
    return lt_fail("expected %d tensor%s for argument 'out', got %d", c->nout,
                   c->nout == 1 ? "" : "s", c->ngiven);
  for (int i = 0; i < c->nout; i++)
    if (c->out[i] != c->given[i] && !check_value(c->given[i], c->out[i])) return false;
  for (int i = 0; i < c->nout; i++) {
    if (c->out[i] == c->given[i]) {
      lt_tensor_touch(c->out[i]);
      continue;
    }
    if (!store(c->given[i], c->out[i])) return false;
    lt_release(c->out[i]);
    c->out[i] = lt_retain(c->given[i]);
  }
  return true;
}

bool lt_tensor_store(const char *name, lt_Tensor *out, lt_Tensor *value) {
  lt_UserOp before = lt_user_op_set((lt_UserOp){name, false});
  bool ok = out == value || (check_value(out, value) && store(out, value));
  lt_user_op_set(before);
  return ok;
}
