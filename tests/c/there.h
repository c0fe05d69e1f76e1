/* there.h: the device under test. LUTRA_TEST_DEVICE names it ("cuda:0"); without it all is the
 * CPU's. Ops run there, on copies of their tensors that have the same layout, and what they give
 * and change comes back, so that the same tests hold on every device.
 */
#ifndef LT_TESTS_THERE_H
#define LT_TESTS_THERE_H

#include "core.h"
#include "opids.h"

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

/* t's geometry on a copy of its whole storage; belongs to the scope. */
__attribute__((unused)) static lt_Tensor *with_layout_on(lt_Device device, lt_Tensor *t) {
  int64_t n = (int64_t)t->storage->nbytes, one = 1;
  lt_Tensor *bytes = lt_scope_own(lt_tensor_on(t->storage, LT_uint8, 0, 1, &n, &one));
  lt_Tensor *there = bytes ? lt_do(to, LT_ARG(bytes), LT_ARG(device), LT_NIL, LT_ARG((bool)false),
                                   LT_ARG((bool)true))
                           : NULL;
  if (!there) return NULL;
  return lt_scope_own(
      lt_tensor_on(there->storage, t->dtype, t->offset, t->ndim, t->shape, t->strides));
}

#define TEST_TENSORS 32
typedef struct Sent { /* tensors and their copies on the device */
  lt_Tensor *here[TEST_TENSORS], *there[TEST_TENSORS];
  int count;
} Sent;

__attribute__((unused)) static lt_Tensor *send(Sent *s, lt_Tensor *t) {
  for (int i = 0; i < s->count; i++)
    if (s->here[i] == t) return s->there[i];
  if (!t || s->count == TEST_TENSORS || t->storage->device.type != LT_DEVICE_cpu) return t;
  s->here[s->count] = t;
  s->there[s->count] = with_layout_on(test_device(), t);
  return s->there[s->count++];
}

/* t's whole storage as it is there now, what lies between its elements too. */
__attribute__((unused)) static bool whole_back(const Sent *s, lt_Tensor *t) {
  int i = 0;
  while (i < s->count && s->here[i] != t) i++;
  if (i == s->count) return true;
  int64_t n = (int64_t)t->storage->nbytes, one = 1;
  lt_Tensor *here = lt_scope_own(lt_tensor_on(t->storage, LT_uint8, 0, 1, &n, &one));
  lt_Tensor *there = lt_scope_own(lt_tensor_on(s->there[i]->storage, LT_uint8, 0, 1, &n, &one));
  return here && there && lt_copy_into(here, there, false);
}

/* The arguments as they are on the device; a factory is told to make its result there. */
__attribute__((unused)) static int send_args(Sent *s, lt_OpId op, const lt_Arg *args, int nargs,
                                             lt_Arg *sent, lt_Tensor **list) {
  bool any = false;
  for (int i = 0; i < nargs; i++) {
    sent[i] = args[i];
    if (args[i].kind == LT_ARG_TENSOR) {
      any = true;
      sent[i].tensor = send(s, args[i].tensor);
    } else if (args[i].kind == LT_ARG_TENSORS) {
      any = true;
      for (int k = 0; k < args[i].count; k++) list[k] = send(s, args[i].tensors[k]);
      sent[i].tensors = list;
      list += args[i].count;
    }
  }
  int told = lt_op_signature(op)->device_param;
  if (any || told < 0) return nargs;
  while (nargs <= told) sent[nargs++] = LT_NIL;
  sent[told] = LT_ARG(test_device());
  return nargs;
}

/* lt_call on the device under test. Faults that only the device sees are failures of the call. */
__attribute__((unused)) static bool call_there(lt_OpId op, bool in_place, const lt_Arg *args,
                                               int nargs, lt_Results *r) {
  lt_Device device = test_device();
  if (device.type == LT_DEVICE_cpu) return lt_call(op, in_place, args, nargs, r);
  Sent s = {.count = 0};
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
    ok = lt_copy_into(s.here[i], s.there[i], false) && ok;
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

/* lt_op1 there. */
__attribute__((unused)) static lt_Tensor *op1_there(lt_OpId op, const lt_Arg *args, int nargs) {
  lt_Results r;
  if (!call_there(op, false, args, nargs, &r)) return NULL;
  lt_Tensor **items = lt_results_items(&r);
  for (int i = 1; i < r.count; i++) lt_release(items[i]);
  lt_Tensor *first = items[0];
  free(r.many);
  return first;
}

/* lt_loop_run there. */
__attribute__((unused)) static bool loop_there(lt_OpId op, lt_Tensor *out, lt_Dtype compute, int n,
                                               const lt_Arg *args, lt_Scalar a, lt_Scalar b) {
  if (test_device().type == LT_DEVICE_cpu) return lt_loop_run(op, out, compute, n, args, a, b);
  Sent s = {.count = 0};
  lt_Arg sent[LT_MAX_ARGS];
  size_t mark = lt_scope_open();
  lt_Tensor *out_there = send(&s, out);
  send_args(&s, op, args, n, sent, NULL);
  bool ok = lt_loop_run(op, out_there, compute, n, sent, a, b) && whole_back(&s, out);
  lt_scope_close(mark, NULL);
  return ok;
}

/* lt_copy_into there. */
__attribute__((unused)) static bool copy_there(lt_Tensor *out, lt_Tensor *source) {
  if (test_device().type == LT_DEVICE_cpu) return lt_copy_into(out, source, false);
  Sent s = {.count = 0};
  size_t mark = lt_scope_open();
  lt_Tensor *out_there = send(&s, out), *source_there = send(&s, source);
  bool ok = lt_copy_into(out_there, source_there, false) && whole_back(&s, out);
  lt_scope_close(mark, NULL);
  return ok;
}

#endif
