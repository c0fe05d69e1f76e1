/* device_under_test.h: the device under test. LUTRA_TEST_DEVICE names it ("cuda:0"); the default is
 * the CPU. Ops run on the device, on copies of their tensors with the same layout, and results and
 * changed tensors are copied back, so that the same tests run on every device. */
#ifndef LT_TESTS_DEVICE_UNDER_TEST_H
#define LT_TESTS_DEVICE_UNDER_TEST_H

#include "core.h"
#include "opids.h"

/* Returns the device under test; ends the program when it does not exist. */
__attribute__((unused)) static lt_Device test_device(void) {
  static lt_Device device;
  static bool known;
  const char *name = getenv("LUTRA_TEST_DEVICE");
  if (!known && name && !lt_device_parse(name, &device)) {
    printf("LUTRA_TEST_DEVICE: %s\n", lt_error());
    exit(1);
  }
  known = true;
  return device;
}

/* Returns true when the device under test has the dtype. */
__attribute__((unused)) static bool has_dtype(int dtype) {
  return lt_device_has_dtype(test_device().type, (lt_Dtype)dtype);
}
/* Returns the first dtype from d on that the device under test has; LT_DTYPE_COUNT or more where
 * there is none. Loops over dtypes use it. */
__attribute__((unused)) static int next_dtype(int d) {
  while (d < LT_DTYPE_COUNT && !has_dtype(d)) d++;
  return d;
}
/* Returns float64, or float32 where the device under test does not have that. */
__attribute__((unused)) static lt_Dtype widest_float(void) {
  return has_dtype(LT_float64) ? LT_float64 : LT_float32;
}

/* Returns a tensor with t's geometry on a copy of its whole storage; it belongs to the scope. */
__attribute__((unused)) static lt_Tensor *with_layout_on(lt_Device device, lt_Tensor *t) {
  int64_t n = (int64_t)t->storage->nbytes, one = 1;
  lt_Tensor *bytes = lt_scope_own(lt_tensor_on(t->storage, LT_uint8, 0, 1, &n, &one));
  lt_Tensor *on_device = bytes ? lt_do(to, LT_ARG(bytes), LT_ARG(device), LT_NIL,
                                       LT_ARG((bool)false), LT_ARG((bool)true))
                               : NULL;
  if (!on_device) return NULL;
  return lt_scope_own(
      lt_tensor_on(on_device->storage, t->dtype, t->offset, t->ndim, t->shape, t->strides));
}

#define TEST_TENSORS 32
typedef struct DeviceCopies { /* tensors and their copies on the device */
  lt_Tensor *on_host[TEST_TENSORS], *on_device[TEST_TENSORS];
  int count;
} DeviceCopies;

/* Returns the copy of t on the device, which is made at the first call for t. */
__attribute__((unused)) static lt_Tensor *send_tensor(DeviceCopies *s, lt_Tensor *t) {
  for (int i = 0; i < s->count; i++)
    if (s->on_host[i] == t) return s->on_device[i];
  if (!t || s->count == TEST_TENSORS || t->storage->device.type != LT_DEVICE_cpu) return t;
  s->on_host[s->count] = t;
  s->on_device[s->count] = with_layout_on(test_device(), t);
  return s->on_device[s->count++];
}

/* Copies t's whole storage back from the device, including what is between its elements. */
__attribute__((unused)) static bool copy_storage_back(const DeviceCopies *s, lt_Tensor *t) {
  int i = 0;
  while (i < s->count && s->on_host[i] != t) i++;
  if (i == s->count) return true;
  int64_t n = (int64_t)t->storage->nbytes, one = 1;
  lt_Tensor *on_host = lt_scope_own(lt_tensor_on(t->storage, LT_uint8, 0, 1, &n, &one));
  lt_Tensor *on_device =
      lt_scope_own(lt_tensor_on(s->on_device[i]->storage, LT_uint8, 0, 1, &n, &one));
  return on_host && on_device && lt_copy_into(on_host, on_device, false);
}

/* Copies arguments to the device; a factory gets the device as its argument. */
__attribute__((unused)) static int send_args(DeviceCopies *s, lt_OpId op, const lt_Arg *args,
                                             int nargs, lt_Arg *sent, lt_Tensor **list) {
  bool any = false;
  for (int i = 0; i < nargs; i++) {
    sent[i] = args[i];
    if (args[i].kind == LT_ARG_TENSOR) {
      any = true;
      sent[i].tensor = send_tensor(s, args[i].tensor);
    } else if (args[i].kind == LT_ARG_TENSORS) {
      any = true;
      for (int k = 0; k < args[i].count; k++) list[k] = send_tensor(s, args[i].tensors[k]);
      sent[i].tensors = list;
      list += args[i].count;
    }
  }
  int device_argument = lt_op_signature(op)->device_param;
  if (any || device_argument < 0) return nargs;
  while (nargs <= device_argument) sent[nargs++] = LT_NIL;
  sent[device_argument] = LT_ARG(test_device());
  return nargs;
}

/* Does what lt_call does, on the device under test. Faults that only the device sees fail the
 * call. */
__attribute__((unused)) static bool call_on_device(lt_OpId op, bool in_place, const lt_Arg *args,
                                                   int nargs, lt_Results *r) {
  lt_Device device = test_device();
  if (device.type == LT_DEVICE_cpu) return lt_call(op, in_place, args, nargs, r);
  DeviceCopies s = {.count = 0};
  lt_Arg sent[LT_MAX_ARGS];
  lt_Tensor *list[TEST_TENSORS];
  nargs = send_args(&s, op, args, nargs, sent, list);
  if (!lt_call(op, in_place, sent, nargs, r)) return false;
  if (!lt_device_synchronize(device)) {
    lt_results_release(r);
    return false;
  }
  bool ok = true;
  for (int i = 0; i < s.count; i++) /* an op may change its arguments */
    ok = lt_copy_into(s.on_host[i], s.on_device[i], false) && ok;
  lt_Tensor **items = lt_results_items(r);
  for (int i = 0; i < r->count; i++) {
    lt_Tensor *back = in_place && i == 0
                          ? lt_retain(args[0].tensor)
                          : lt_op1(LT_OP_to, (lt_Arg[]){LT_ARG(items[i]), LT_ARG(lt_cpu())}, 2);
    ok = ok && back;
    lt_release(items[i]);
    items[i] = back;
  }
  if (!ok) lt_results_release(r);
  return ok;
}

/* Does what lt_op1 does, on the device under test. */
__attribute__((unused)) static lt_Tensor *op1_on_device(lt_OpId op, const lt_Arg *args, int nargs) {
  lt_Results r;
  if (!call_on_device(op, false, args, nargs, &r)) return NULL;
  lt_Tensor **items = lt_results_items(&r);
  for (int i = 1; i < r.count; i++) lt_release(items[i]);
  lt_Tensor *first = items[0];
  free(r.many);
  return first;
}

/* Does what lt_loop_run does, on the device under test. */
__attribute__((unused)) static bool loop_on_device(lt_OpId op, lt_Tensor *out, lt_Dtype compute,
                                                   int n, const lt_Arg *args, lt_Scalar a,
                                                   lt_Scalar b) {
  if (test_device().type == LT_DEVICE_cpu) return lt_loop_run(op, out, compute, n, args, a, b);
  DeviceCopies s = {.count = 0};
  lt_Arg sent[LT_MAX_ARGS];
  size_t mark = lt_scope_open();
  lt_Tensor *device_out = send_tensor(&s, out);
  send_args(&s, op, args, n, sent, NULL);
  bool ok = lt_loop_run(op, device_out, compute, n, sent, a, b) && copy_storage_back(&s, out);
  lt_scope_close(mark, NULL);
  return ok;
}

/* Does what lt_copy_into does, on the device under test. */
__attribute__((unused)) static bool copy_on_device(lt_Tensor *out, lt_Tensor *source) {
  if (test_device().type == LT_DEVICE_cpu) return lt_copy_into(out, source, false);
  DeviceCopies s = {.count = 0};
  size_t mark = lt_scope_open();
  lt_Tensor *device_out = send_tensor(&s, out), *device_source = send_tensor(&s, source);
  bool ok = lt_copy_into(device_out, device_source, false) && copy_storage_back(&s, out);
  lt_scope_close(mark, NULL);
  return ok;
}

#endif
