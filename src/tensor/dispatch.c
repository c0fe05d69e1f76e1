/* dispatch.c: runs a call of an op, from its arguments to its results; core.h has an overview.
 *
 * Invariant: nothing is written before everything has been checked, so a failed call changes
 * nothing. */
#include "out.h"
#include "trace.h"
#include "infer.h"
#include "recorder.h"

/* ---- devices --------------------------------------------------------------------------------- */

/* Returns true when t is a 0-d tensor on the CPU, which may be an operand on any device. */
static bool follows(const lt_Tensor *t) {
  return t->ndim == 0 && t->storage->device.type == LT_DEVICE_cpu;
}

/* The argument that decides on which device a call runs. */
typedef struct Place {
  const lt_Tensor *tensor;
  const char *name; /* of its parameter */
  int index;        /* in its list, 0-based; -1: the argument is not a list */
} Place;

/* Returns true when the tensors of a parameter may be on any device and are not moved. */
static bool is_anywhere(const lt_Param *p) { return p->shape_only || p->place == LT_PLACE_ANY; }

/* Returns true when t, on the CPU, may be argument p of a call on another device: a 0-d tensor
 * that is not written, or an argument with the mark `@host`, such as an index (x[{1, 3}] needs no
 * :to). */
static bool may_lend(const lt_Param *p, const lt_Tensor *t) {
  if (t->storage->device.type != LT_DEVICE_cpu) return false;
  return p->place == LT_PLACE_HOST || (t->ndim == 0 && !p->written);
}

/* Returns true when an error should suggest to move the tensor on `from` to device `to`, rather
 * than the other way round: a meta tensor has no data to move, and a program that uses an
 * accelerator computes there. */
static bool better_moved(lt_Device from, lt_Device to) {
  if (to.type == LT_DEVICE_meta || from.type == LT_DEVICE_meta) return to.type == LT_DEVICE_meta;
  return from.type == LT_DEVICE_cpu;
}

/* Reports that two arguments are on different devices. */
static bool fail_device_mismatch(const Place *first, const Place *second) {
  lt_DeviceMismatch mismatch;
  const Place *place[2] = {first, second};
  for (int i = 0; i < 2; i++) {
    const lt_Tensor *t = place[i]->tensor;
    mismatch.tensor[i] = t;
    mismatch.memory[i] = t->storage;
    mismatch.device[i] = lt_tensor_device(t);
    mismatch.ndim[i] = t->ndim;
    memcpy(mismatch.shape[i], t->shape, sizeof mismatch.shape[i]);
    snprintf(mismatch.name[i], sizeof mismatch.name[i], place[i]->index < 0 ? "%s" : "%s[%d]",
             place[i]->name, place[i]->index + 1);
  }
  mismatch.moved = better_moved(mismatch.device[0], mismatch.device[1]) ? 0 : 1;
  snprintf(mismatch.op, sizeof mismatch.op, "%s", lt_user_op());
  return lt_error_device_mismatch(&mismatch);
}

/* Checks the device of t, an argument for parameter p, against the ones before it, and updates the
 * deciding argument. Any other tensor overrides a 0-d tensor on the CPU. index: in its list, or
 * -1. */
static inline bool place_tensor(const lt_Param *p, Place *place, const lt_Tensor *t, int index) {
  if (is_anywhere(p)) return true;
  if (!place->tensor || (follows(place->tensor) && !follows(t))) {
    place->tensor = t;
    place->name = p->name;
    place->index = index;
    return true;
  }
  lt_Device d = lt_tensor_device(t), chosen = lt_tensor_device(place->tensor);
  return lt_device_equal(d, chosen) || may_lend(p, t) ||
         fail_device_mismatch(place, &(Place){t, p->name, index});
}

/* Copies the arguments that are on the CPU (a 0-d tensor, an index) to the call's device, because
 * kernels other than elementwise ones only accept tensors of their own device. The copies are
 * recorded for gradients and belong to the open scope. `list` is memory for one list of tensors. */
static bool copy_lent_args(lt_Call *c, lt_Tensor **list, int room) {
  for (int i = 0; i < c->nargs; i++) {
    lt_Arg *a = &c->arg[i];
    if (is_anywhere(&c->signature->param[i])) continue;
    int n = a->kind == LT_ARG_TENSOR ? 1 : a->kind == LT_ARG_TENSORS ? a->count : 0;
    lt_Tensor *const *tensors = a->kind == LT_ARG_TENSOR ? &a->tensor : a->tensors;
    for (int k = 0; k < n; k++) {
      lt_Tensor *t = tensors[k];
      if (!t || lt_device_equal(lt_tensor_device(t), c->device)) continue;
      if (n > room)
        return lt_fail("expected at most %d tensors from other devices, got more", room);
      t = lt_do(to, LT_ARG(t), LT_ARG(c->device));
      if (!t) return false;
      if (a->kind == LT_ARG_TENSOR) {
        a->tensor = t;
        break;
      }
      if (a->tensors != list) {
        memcpy(list, a->tensors, sizeof *list * (size_t)n);
        a->tensors = list;
        tensors = list;
      }
      list[k] = t;
    }
  }
  return true;
}

/* Returns true when copy_lent_args has something to copy. */
static bool has_lent_args(const lt_Call *c) {
  for (int i = 0; i < c->nargs; i++) {
    const lt_Arg *a = &c->arg[i];
    if (is_anywhere(&c->signature->param[i])) continue;
    if (a->kind == LT_ARG_TENSOR && !lt_device_equal(lt_tensor_device(a->tensor), c->device))
      return true;
    for (int k = 0; a->kind == LT_ARG_TENSORS && k < a->count; k++)
      if (a->tensors[k] && !lt_device_equal(lt_tensor_device(a->tensors[k]), c->device))
        return true;
  }
  return false;
}

/* Returns the device of a call without tensors: while a program is recorded the recording device
 * stands for its device. */
static lt_Device default_device(void) {
  const lt_Recorder *r = lt_recording_program();
  lt_Device d = lt_device_default();
  if (!r) return d;
  if (!lt_device_equal(d, r->device))
    lt_recorder_refuse("it creates a tensor on \"%s\"", lt_device_name(d));
  return lt_recording();
}

/* Chooses where the call runs: on the device of its tensors; a factory function on the one that its
 * argument `device` names, otherwise on the default device. */
static bool choose_device(lt_Call *c) {
  Place place = {NULL, NULL, -1};
  for (int i = 0; i < c->nargs; i++) {
    const lt_Arg *a = &c->arg[i];
    const lt_Param *p = &c->signature->param[i];
    if (a->kind == LT_ARG_TENSOR && !place_tensor(p, &place, a->tensor, -1)) return false;
    if (a->kind != LT_ARG_TENSORS) continue;
    for (int k = 0; k < a->count; k++)
      if (a->tensors[k] && !place_tensor(p, &place, a->tensors[k], k)) return false;
  }
  int given = c->signature->device_param;
  if (given >= 0 && lt_given(c, given))
    c->device = c->arg[given].device;
  else
    c->device = place.tensor ? lt_tensor_device(place.tensor)
                : c->ngiven  ? lt_tensor_device(c->given[0])
                             : default_device();
  return true;
}

/* ---- elementwise ops ------------------------------------------------------------------------- */

/* Reads the scalar argument i (0-based) after the inputs: a or b of the op's expression. It is
 * copied member by member: in calls with few elements, one wide load of what two stores have just
 * written would stall. */
static void read_extra(lt_Scalar *s, const lt_Call *c, int i) {
  i += c->info->inputs;
  *s = lt_scalar_int(0);
  if (i >= c->nargs) return;
  const lt_Arg *a = &c->arg[i];
  s->kind = a->kind == LT_ARG_FLOAT ? LT_FLOATING : a->scalar.kind;
  if (a->kind == LT_ARG_FLOAT) {
    s->f = a->f;
  } else {
    s->i = a->scalar.i; /* or the bits of f */
    s->im = a->scalar.im;
  }
}

/* Converts a number to the compute dtype as lt_number_store does. */
static int64_t wrapped(lt_Scalar s, lt_Dtype compute) {
  int64_t v = lt_scalar_to_int(s);
  return compute == LT_int32 ? (int32_t)v : v;
}

/* Checks that the divisor of an integer division is not 0: a number here, a tensor by its own
 * device. */
static bool divisor_fits(const lt_Call *c, const lt_Tensor *out) {
  if (c->info->rule != LT_RULE_DIVIDE || lt_dtype_category(c->compute) != LT_INTEGER ||
      out->numel == 0)
    return true;
  const lt_Arg *a = &c->arg[1];
  const char *name = c->signature->param[1].name;
  if (a->kind == LT_ARG_SCALAR)
    return wrapped(a->scalar, c->compute) != 0 ||
           lt_bad_divisor(name, 0, NULL, 0, lt_scalar_to_int(a->scalar), c->compute);
  const lt_Backend *b = lt_backend_of(a->tensor);
  return !b->kernels.check_divisor || b->kernels.check_divisor(c, a->tensor);
}

/* Returns true when the device has no loop for this elementwise op. */
static inline bool lacks_loop(const lt_Backend *b, const lt_Call *c) {
  return __builtin_expect(b->kernels.elementwise_supported != NULL, 0) &&
         !b->kernels.elementwise_supported(c->op, c->compute);
}

static bool run_elementwise(lt_Call *c, lt_Tensor *out);
static bool run_loop(lt_Call *host) { return run_elementwise(host, host->out[0]); }

/* Runs a wide op, whose integers may become float32 first, as for other functions. */
static bool run_wide(lt_Call *c, lt_Tensor *out, lt_Scalar a, lt_Scalar b) {
  lt_Arg args[3];
  lt_Tensor *rounded[3] = {NULL, NULL, NULL};
  bool ok = true;
  for (int i = 0; ok && i < c->info->inputs; i++) {
    args[i] = c->arg[i];
    const lt_Tensor *t = args[i].kind == LT_ARG_TENSOR ? args[i].tensor : NULL;
    if (!t || !lt_op_rounds(c->op, t->dtype, out->dtype)) continue;
    rounded[i] = lt_empty(LT_float32, lt_tensor_device(t), t->ndim, t->shape);
    ok = rounded[i] && lt_copy_into(rounded[i], t, false);
    args[i] = lt_arg_tensor(rounded[i]);
  }
  ok = ok && lt_loop_run(c->op, out, c->compute, c->info->inputs, args, a, b);
  for (int i = 0; i < 3; i++) lt_release(rounded[i]);
  return ok;
}

/* Runs an elementwise op into out, which is c->out[0]. */
static bool run_elementwise(lt_Call *c, lt_Tensor *out) {
  if (lacks_loop(lt_backend_of(out), c)) return lt_fallback_run(c, run_loop);
  if (c->device.type != LT_DEVICE_cpu && !lt_check_device_dtype(c->device, c->compute))
    return false;
  if (!divisor_fits(c, out)) return false;
  lt_Scalar a, b;
  read_extra(&a, c, 0);
  read_extra(&b, c, 1);
  if (c->info->is_wide) return run_wide(c, out, a, b);
  return lt_loop_run(c->op, out, c->compute, c->info->inputs, c->arg, a, b);
}

/* ---- running --------------------------------------------------------------------------------- */

/* Releases the results of a call that has failed. */
static void drop_outputs(lt_Call *c) {
  for (int i = 0; i < c->nout; i++) {
    lt_release(c->out[i]);
    c->out[i] = NULL;
  }
}

static bool has_trait(const lt_Call *c, unsigned trait) { return (c->info->traits & trait) != 0; }

/* Returns the tensor that an op with the traits COPY and BUILTIN copies: its argument with the mark
 * `@any`. */
static lt_Tensor *copied(const lt_Call *c) {
  int i = 0;
  while (c->signature->param[i].place != LT_PLACE_ANY) i++;
  return c->arg[i].tensor;
}

/* Returns true when the call has non_blocking = true. */
static bool is_non_blocking(const lt_Call *c) {
  int i = c->signature->non_blocking_param;
  return i >= 0 && c->arg[i].b;
}

/* Allocates the result of a non-blocking copy to the host in pinned memory, to which the device
 * copies asynchronously. NULL, for the usual allocation, when the call is no such copy or there is
 * no pinned memory. */
static lt_Tensor *pinned_output(const lt_Call *c) {
  const lt_Spec *s = &c->spec[0];
  if (!has_trait(c, LT_TRAIT_COPY) || !is_non_blocking(c)) return NULL;
  int64_t numel;
  const lt_Tensor *source = copied(c);
  if (!lt_backend_of(source)->memory.host_alloc || s->device.type != LT_DEVICE_cpu ||
      !lt_shape_numel(NULL, s->ndim, s->shape, &numel) || !numel)
    return NULL;
  lt_Storage *storage =
      lt_storage_new_pinned(lt_tensor_device(source).type, (size_t)numel * lt_dtype_size(s->dtype));
  if (!storage) return NULL;
  int64_t strides[LT_MAX_DIMS];
  lt_shape_strides(s->ndim, s->shape, strides);
  lt_Tensor *t = lt_tensor_on(storage, s->dtype, 0, s->ndim, s->shape, strides);
  lt_storage_release(storage);
  return t;
}

/* Gives the new result of an elementwise op, or of a copy to a device or dtype, the order that its
 * inputs have in memory. The elementwise op `copy` makes a tensor contiguous. */
static void keep_order(lt_Call *c) {
  bool copies = has_trait(c, LT_TRAIT_COPY);
  lt_Tensor *input[3];
  int n = 0;
  if (c->ngiven) return;
  if (copies && has_trait(c, LT_TRAIT_BUILTIN)) input[n++] = copied(c);
  if (!copies && c->info->kind == LT_KIND_ELEMENTWISE)
    for (; n < c->info->inputs; n++) input[n] = lt_in(c, n);
  lt_keep_order(c->out[0], n, input);
}

/* Allocates the results from the specs. On failure none remains. */
static bool make_outputs(lt_Call *c) {
  for (int i = 0; i < c->nout; i++) c->out[i] = NULL; /* also those after a failure */
  for (int i = 0; i < c->nout; i++) {
    c->out[i] = lt_out_is_direct(c, i) ? lt_retain(c->given[i]) : pinned_output(c);
    if (c->out[i]) continue;
    c->out[i] = lt_empty(c->spec[i].dtype, c->spec[i].device, c->spec[i].ndim, c->spec[i].shape);
    if (c->out[i]) continue;
    c->nout = i; /* so that drop_outputs skips the others */
    drop_outputs(c);
    return false;
  }
  keep_order(c);
  return true;
}

/* Runs an op that needs no kernel: the result is already allocated; with the trait COPY the
 * argument is copied into it. Kernels rely on bools of 0 and 1, in memory that is new too. */
static bool run_builtin(lt_Call *c) {
  lt_Tensor *out = c->out[0];
  if (has_trait(c, LT_TRAIT_COPY)) return lt_copy_into(out, copied(c), is_non_blocking(c));
  lt_Scalar zero = lt_scalar_bool(false);
  return out->dtype != LT_bool ||
         lt_loop_run(LT_OP_fill, out, LT_bool, 1, (lt_Arg[]){LT_ARG(out)}, zero, zero);
}

/* Runs the kernel of the call's device, or the fallback when it has none. On a device without data
 * it only checks that the result's shape does not depend on data. */
static bool run_kernel(lt_Call *c) {
  const lt_Backend *b = lt_device_backend(c->device.type);
  if (!b) return false;
  if (has_trait(c, LT_TRAIT_BUILTIN)) return run_builtin(c);
  if (!b->has_data) {
    if (c->nout) return true;
    return lt_fail("cannot infer the shape of the result: it depends on the data, and a \"%s\" "
                   "tensor has none",
                   b->name);
  }
  if (!b->kernels.table[c->op]) return lt_fallback_run(c, run_kernel);
  c->stream = b->streams.current ? b->streams.current(b, c->device.index) : NULL;
  return b->kernels.table[c->op](c) && lt_check_interrupt();
}

bool lt_host_run(lt_Call *c) { return lt_fallback_run(c, run_kernel); }

bool lt_run_at_once(lt_OpId op, const lt_Arg *args, int nargs, lt_Tensor *out) {
  lt_Call c; /* kernels read no other members */
  c.op = op;
  c.info = &lt_ops[op];
  c.signature = lt_op_signature(op);
  c.in_place = false;
  c.nargs = nargs;
  for (int i = 0; i < nargs; i++) c.arg[i] = args[i];
  c.device = lt_cpu();
  c.compute = LT_DTYPE_NONE;
  c.nout = 1;
  c.out[0] = out;
  return run_kernel(&c);
}

/* Tells the allocator that memory allocated on one stream is used on another, so that it is not
 * reused too early; in a capture that it is used at all. */
static void note_stream(const lt_Backend *b, lt_Stream *stream, const lt_Tensor *t, bool always) {
  lt_Storage *s = t->storage;
  if ((s->stream != stream || always) && s->stream && s->stream->index == stream->index &&
      s->stream->backend == b)
    b->memory.record_stream(s, stream);
}

/* Does that for all tensor arguments. */
static void note_streams(const lt_Call *c) {
  const lt_Backend *b = lt_device_backend(c->device.type);
  if (!b->memory.record_stream) return;
  lt_Stream *stream = b->streams.current(b, c->device.index);
  bool always = lt_thread()->capturing != NULL;
  for (int i = 0; i < c->nargs; i++) {
    const lt_Arg *a = &c->arg[i];
    if (a->kind == LT_ARG_TENSOR) note_stream(b, stream, a->tensor, always);
    for (int k = 0; a->kind == LT_ARG_TENSORS && k < a->count; k++)
      if (a->tensors[k]) note_stream(b, stream, a->tensors[k], always);
  }
  for (int i = 0; always && i < c->nout; i++)
    if (c->out[i]) note_stream(b, stream, c->out[i], true);
}

/* Finishes a call: records the streams that use its operands; on meta, adds it to the recorder. */
static bool note_call(const lt_Call *c) {
  if (c->device.type == LT_DEVICE_meta) return lt_record_call(c);
  note_streams(c);
  return true;
}

/* Runs a call into new results. An UPDATE op starts from a copy of self. */
static bool run_fresh(lt_Call *c) {
  if (!lt_out_check(c) || !make_outputs(c)) return false;
  bool ok;
  if (c->info->kind == LT_KIND_ELEMENTWISE)
    ok = run_elementwise(c, c->out[0]);
  else if (c->info->kind == LT_KIND_UPDATE)
    ok = lt_copy_into(c->out[0], lt_in(c, 0), false) && run_kernel(c);
  else
    ok = run_kernel(c);
  if (!ok) drop_outputs(c);
  return ok;
}

/* Returns true when writing self in place would change another input before it is read. */
static bool needs_temporary(const lt_Call *c) {
  const lt_Tensor *self = lt_in(c, 0);
  for (int i = 1; i < c->nargs; i++) {
    const lt_Arg *a = &c->arg[i];
    if (a->kind == LT_ARG_TENSOR && lt_tensor_overlaps(self, a->tensor)) return true;
    if (a->kind == LT_ARG_TENSOR && c->info->kind != LT_KIND_ELEMENTWISE &&
        a->tensor->storage == self->storage)
      return true;
  }
  return false;
}

/* Runs a call in place: directly into self if that is safe, otherwise into a temporary that is
 * copied to self. */
static bool run_in_place(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0);
  bool over = c->info->kind == LT_KIND_UPDATE ||
              (has_trait(c, LT_TRAIT_OVER) && c->spec[0].dtype == self->dtype);
  bool direct = !needs_temporary(c) &&
                (c->info->kind == LT_KIND_ELEMENTWISE || (over && lt_tensor_is_contiguous(self)));
  if (has_trait(c, LT_TRAIT_BUILTIN)) direct = true; /* lt_copy_into handles overlap itself */
  if (direct) {
    c->out[0] = self;
    bool ok = c->info->kind == LT_KIND_ELEMENTWISE ? run_elementwise(c, self) : run_kernel(c);
    c->out[0] = ok ? lt_retain(self) : NULL;
    return ok;
  }
  if (!run_fresh(c)) return false;
  bool ok = lt_copy_into(self, c->out[0], false);
  lt_release(c->out[0]);
  c->out[0] = ok ? lt_retain(self) : NULL;
  return ok;
}

/* Checks that the result fits self: variant, shape, dtype category, device, memory, and autograd's
 * rules. */
static bool check_in_place(const lt_Call *c) {
  const lt_Tensor *self = lt_in(c, 0);
  const lt_Spec *s = &c->spec[0];
  if (!self) return lt_fail("expected a tensor for argument 'self', which is changed in place");
  if (!(c->info->variants & LT_VARIANT_IN_PLACE) && c->info->kind != LT_KIND_UPDATE)
    return lt_fail("cannot run in place: the op has no in-place variant");
  if (!lt_shape_equal(self->ndim, self->shape, s->ndim, s->shape))
    return lt_fail("cannot store the result in self: the result has the shape %s, self has %s",
                   lt_shape_text(s->ndim, s->shape), lt_shape_text(self->ndim, self->shape));
  if (lt_dtype_category(s->dtype) > lt_dtype_category(self->dtype))
    return lt_fail("cannot store the result in self: the result is \"%s\", self is \"%s\"",
                   lt_dtype_name(s->dtype), lt_dtype_name(self->dtype));
  if (lt_dtype_is_complex(self->dtype) && !lt_dtype_is_complex(s->dtype) && s->dtype != LT_bool)
    return lt_fail("expected a real tensor for argument '%s', got \"%s\": the result is \"%s\"",
                   c->signature->param[0].name, lt_dtype_name(self->dtype),
                   lt_dtype_name(s->dtype));
  if (!lt_device_equal(lt_tensor_device(self), s->device))
    return lt_fail("cannot store the result in self: the result is on \"%s\", self is on \"%s\"",
                   lt_device_name(s->device), lt_device_name(lt_tensor_device(self)));
  if (lt_tensor_overlaps_itself(self))
    return lt_fail("cannot change self in place: its elements share memory (it was "
                   "expanded)\nhint: self:clone()");
  return lt_autograd_check_in_place(c);
}

/* Runs and records an in-place call. The gradient's node is created before the run, because nothing
 * may fail after self has been written. */
static bool call_in_place(lt_Call *c) {
  if (!check_in_place(c)) return false;
  void *state = NULL;
  bool recorded = lt_autograd_required(c);
  if (recorded && !lt_autograd_before_in_place(c, &state)) return false;
  bool ok = run_in_place(c);
  if (ok && !note_call(c)) {
    drop_outputs(c);
    ok = false;
  }
  if (!ok) {
    if (recorded) lt_autograd_drop_in_place(state);
    return false;
  }
  lt_tensor_touch(lt_in(c, 0));
  for (unsigned left = c->signature->written; left; left &= left - 1)
    lt_tensor_touch(lt_in(c, __builtin_ctz(left)));
  if (!recorded || lt_autograd_record_in_place(c, state)) return true;
  drop_outputs(c);
  return false;
}

/* Returns true when a factory function is called with requires_grad = true. */
static bool sets_requires_grad(const lt_Call *c) {
  int i = c->signature->requires_grad_param;
  return i >= 0 && c->arg[i].kind == LT_ARG_BOOL && c->arg[i].b;
}

/* Runs and records a call with new results. */
static bool call_fresh(lt_Call *c) {
  if (!run_fresh(c)) return false;
  bool ok = note_call(c) && (!lt_autograd_required(c) || lt_autograd_record(c));
  if (ok && sets_requires_grad(c)) ok = lt_tensor_set_requires_grad(c->out[0], true);
  if (!ok) drop_outputs(c);
  return ok;
}

/* Runs a map, which writes tensors of its lists and has no results. */
static bool call_map(lt_Call *c) {
  c->nout = 0;
  if (c->in_place) return lt_fail("cannot run in place: the op has no in-place variant");
  if (!c->info->infer(c)) return false;
  const lt_Backend *b = lt_device_backend(c->device.type);
  if (!b || (b->has_data && !run_kernel(c)) || !note_call(c)) return false;
  lt_map_touch(c);
  return true;
}

/* Creates a view. `infer` sets the result itself; no kernel runs. */
static bool call_view(lt_Call *c) {
  c->out[0] = NULL;
  if (!c->info->infer(c)) return false;
  c->nout = 1;
  bool ok = (c->device.type != LT_DEVICE_meta || lt_record_call(c)) &&
            (!lt_autograd_required(c) || lt_autograd_record(c)) && lt_autograd_note_view(c);
  if (!ok) drop_outputs(c);
  return ok;
}

/* Runs a composite in a scope. Its results are borrowed from the scope, an argument or a list, so
 * references are taken before the scope closes. */
static bool call_composite(lt_Call *c, bool (*composite)(lt_Call *)) {
  size_t mark = lt_scope_open();
  for (int i = 0; i < LT_MAX_OUT; i++) c->out[i] = NULL;
  bool ok = composite(c);
  if (ok)
    for (int i = c->nout - 1; i >= 0; i--) lt_scope_take(mark, c->out[i]);
  lt_scope_close(mark, NULL);
  return ok;
}

/* ---- the fast path --------------------------------------------------------------------------- */

/* Returns true when the op's result and compute dtype follow from d alone. */
static bool quick_dtype(lt_Rule rule, lt_Dtype d) {
  switch (rule) {
  case LT_RULE_SAME:
  case LT_RULE_SELF:
  case LT_RULE_LIMIT:
  case LT_RULE_TEST:
    return true;
  case LT_RULE_NUMBER:
  case LT_RULE_WIDEN:
  case LT_RULE_DIVIDE:
  case LT_RULE_POWER:
    return d != LT_bool;
  case LT_RULE_FLOAT:
  case LT_RULE_FLOATING:
    return lt_dtype_is_float(d);
  default:
    return false;
  }
}

/* Returns true when u is broadcast to the shape of t. */
static bool expands_to(const lt_Tensor *u, const lt_Tensor *t) {
  int lead = t->ndim - u->ndim;
  if (lead < 0) return false;
  for (int d = 0; d < u->ndim; d++)
    if (u->shape[d] != t->shape[lead + d] && u->shape[d] != 1) return false;
  return true;
}

/* Returns true when an operand has the dtype, device and layout of t, and broadcasts to its shape.
 * A number qualifies when its kind does not change the dtype. */
static bool quick_operand(const lt_Arg *a, const lt_Tensor *t) {
  const lt_Tensor *u = a->tensor;
  if (a->kind == LT_ARG_SCALAR) return lt_dtype_is_float(t->dtype) && a->scalar.kind != LT_COMPLEX;
  if (u == t) return true;
  return !u->freed && u->dtype == t->dtype &&
         lt_device_equal(lt_tensor_device(u), lt_tensor_device(t)) && expands_to(u, t) &&
         lt_tensor_is_contiguous(u);
}

/* Returns true when the arguments after the inputs are real numbers, which change no dtype of a
 * float tensor, or defaults. */
static bool quick_numbers(const lt_Call *c, const lt_Arg *args, int nargs, const lt_Tensor *t) {
  for (int i = c->info->inputs; i < nargs; i++)
    if (args[i].kind != LT_ARG_SCALAR || c->signature->param[i].type != LT_PARAM_SCALAR ||
        c->signature->param[i].has_least || args[i].scalar.kind < LT_INTEGER ||
        !quick_operand(&args[i], t))
      return false;
  return nargs == c->signature->count || c->signature->param[nargs].has_default;
}

/* Returns true when an in-place call that fits otherwise writes t, on the CPU, reads no other
 * tensor of its storage, and has no gradient. */
static bool quick_in_place_fits(const lt_Call *c, const lt_Arg *args, const lt_Tensor *t) {
  if (args[0].kind != LT_ARG_TENSOR || args[0].tensor != t || c->info->rule == LT_RULE_TEST ||
      !(c->info->variants & LT_VARIANT_IN_PLACE) || t->storage->device.type != LT_DEVICE_cpu)
    return false;
  for (int i = 0; i < c->info->inputs; i++) {
    if (args[i].kind != LT_ARG_TENSOR) continue;
    if (args[i].tensor != t && args[i].tensor->storage == t->storage) return false;
    if (lt_tensor_requires_grad(args[i].tensor)) return false;
  }
  return true;
}

/* Returns true when u rather than t may have the shape to which both are broadcast. */
static bool is_larger(const lt_Tensor *u, const lt_Tensor *t) {
  return u->numel > t->numel || (u->numel == t->numel && u->ndim > t->ndim);
}

/* Returns the deciding tensor of a call that can take the fast path, otherwise NULL: an elementwise
 * op on contiguous tensors of one dtype and device, which broadcast to the shape of one of them,
 * and numbers. Most calls in inner loops are of this form, in which nothing is left to infer or
 * refuse. */
static const lt_Tensor *quick_fits(const lt_Call *c, const lt_Arg *args, int nargs) {
  const lt_Tensor *t = NULL;
  int inputs = c->info->inputs;
  if (c->info->kind != LT_KIND_ELEMENTWISE || nargs < inputs || nargs > c->signature->count ||
      c->ngiven || c->info->is_wide)
    return NULL;
  for (int i = 0; i < inputs; i++) {
    if (args[i].kind != LT_ARG_TENSOR && args[i].kind != LT_ARG_SCALAR) return NULL;
    if (args[i].kind != LT_ARG_TENSOR) continue;
    if (!args[i].tensor) return NULL;
    if (!t || is_larger(args[i].tensor, t)) t = args[i].tensor;
  }
  if (!t || t->freed || lt_dtype_is_complex(t->dtype) || !quick_dtype(c->info->rule, t->dtype) ||
      !lt_tensor_is_contiguous(t))
    return NULL;
  for (int i = 0; i < inputs; i++)
    if (!quick_operand(&args[i], t) || (t->dtype == LT_bool && lt_bools_are_loose(args[i].tensor)))
      return NULL;
  if (!quick_numbers(c, args, nargs, t)) return NULL;
  return !c->in_place || quick_in_place_fits(c, args, t) ? t : NULL;
}

/* Runs an elementwise op on contiguous tensors of one shape; numbers only follow the inputs. */
static bool quick_run(lt_Call *c, lt_Tensor *out) {
  const lt_Backend *backend = lt_backend_of(out);
  if (!backend->has_data || out->numel == 0) return true;
  if (lacks_loop(backend, c)) return lt_fallback_run(c, run_loop);
  if (!divisor_fits(c, out)) return false;
  lt_Loop l;
  l.op = c->op;
  l.compute = c->compute;
  l.inputs = c->info->inputs;
  l.ndim = 1;
  l.layout = LT_LAYOUT_CONTIGUOUS;
  l.numel = l.shape[0] = out->numel;
  read_extra(&l.a, c, 0);
  read_extra(&l.b, c, 1);
  l.device = lt_tensor_device(out);
  l.stream = backend->streams.current ? backend->streams.current(backend, l.device.index) : NULL;
  for (int k = 0; k <= l.inputs; k++) {
    const lt_Tensor *t = k ? c->arg[k - 1].tensor : out;
    l.operand[k].data = lt_tensor_data(t);
    l.operand[k].dtype = t->dtype;
    l.operand[k].host = false;
    l.operand[k].strides[0] = (int64_t)lt_dtype_size(t->dtype);
  }
  return backend->kernels.elementwise(&l);
}

/* Runs an in-place call that quick_fits accepted. */
static bool call_quick_in_place(lt_Call *c, bool uneven) {
  lt_Tensor *self = c->arg[0].tensor;
  if (!lt_autograd_check_in_place(c)) return false;
  c->out[0] = self;
  bool ok = uneven ? run_elementwise(c, self) : quick_run(c, self);
  c->out[0] = ok ? lt_retain(self) : NULL;
  c->nout = ok;
  if (ok) lt_tensor_touch(self);
  return ok;
}

/* Runs and records a call that quick_fits accepted. */
static bool call_quick(lt_Call *c, const lt_Arg *args, int nargs, const lt_Tensor *t) {
  bool tracked = false, uneven = false; /* some operands have fewer elements, or are numbers */
  c->nargs = c->signature->count;
  for (int i = 0; i < c->info->inputs; i++) {
    if (args[i].kind == LT_ARG_SCALAR) {
      c->arg[i] = args[i];
      uneven = true;
    } else {
      c->arg[i].kind = LT_ARG_TENSOR; /* by member, see read_extra */
      c->arg[i].tensor = args[i].tensor;
      uneven |= args[i].tensor->numel != t->numel;
      tracked |= lt_tensor_requires_grad(args[i].tensor);
    }
  }
  for (int i = c->info->inputs; i < c->nargs; i++)
    c->arg[i] = i < nargs ? args[i] : c->signature->param[i].value;
  c->device = lt_tensor_device(t);
  c->compute = lt_dtype_compute(t->dtype);
  if (c->in_place) return call_quick_in_place(c, uneven);
  c->out[0] =
      lt_empty(c->info->rule == LT_RULE_TEST ? LT_bool : t->dtype, c->device, t->ndim, t->shape);
  if (!c->out[0]) return false;
  c->nout = 1;
  bool ok = uneven ? run_elementwise(c, c->out[0]) : quick_run(c, c->out[0]);
  if (ok && c->device.type != LT_DEVICE_cpu) ok = note_call(c);
  if (ok && (!tracked || !lt_autograd_required(c) || lt_autograd_record(c))) return true;
  drop_outputs(c);
  return false;
}

/* Runs a call whose arguments are partly on the CPU: copies them to the call's device first. */
static bool call_with_lent_args(lt_Call *c) {
  lt_Tensor *list[LT_MAX_DIMS];
  size_t mark = lt_scope_open();
  bool ok = copy_lent_args(c, list, LT_MAX_DIMS) && c->info->infer(c) &&
            (c->in_place ? call_in_place(c) : call_fresh(c));
  lt_scope_close(mark, NULL);
  return ok;
}

/* Returns true when the device has no kernel for the op. In-place ops are excluded, because
 * composite forms create new results. */
static bool lacks_kernel(const lt_Call *c) {
  const lt_Backend *b = lt_device_loaded(c->device.type);
  return b && b->has_data && !b->kernels.table[c->op] && !c->in_place;
}

/* Runs a composite form of an in-place call and copies the result into self. */
static bool form_in_place(lt_Call *c, lt_KernelFn form) {
  size_t mark = lt_scope_open();
  for (int i = 0; i < LT_MAX_OUT; i++) c->out[i] = NULL;
  c->in_place = false;
  bool ok = form(c) && lt_do_in_place(_copy, c->arg[0], LT_ARG(c->out[0]));
  c->in_place = true;
  c->out[0] = ok ? lt_retain(lt_in(c, 0)) : NULL;
  lt_scope_close(mark, NULL);
  return ok;
}

/* Runs an op whose kernels accept real tensors only with complex arguments: by calls on their parts
 * if it is linear, or by its composite form; otherwise it is an error. */
static bool call_complex(lt_Call *c) {
  const lt_Tensor *t;
  bool by_parts = (c->info->traits & (LT_TRAIT_PARTS | LT_TRAIT_BILINEAR)) != 0, any = false;
  lt_KernelFn form = by_parts ? lt_form_by_parts : lt_complex_form(c->op);
  int dtype = c->signature->dtype_param;
  if (!form) form = lt_composite_form(c->op);
  if (!form && dtype > 0 && lt_given(c, dtype) && !lt_dtype_is_complex(c->arg[dtype].dtype))
    form = lt_form_by_dtype;
  for (int i = 0; i < c->nargs; i++) /* tensors, and the dtype of a result */
    any |= c->arg[i].kind != LT_ARG_SCALAR && lt_arg_is_complex(&c->arg[i], &t);
  if (!any || !form) return lt_refuse_complex(c);
  return c->in_place && !by_parts ? form_in_place(c, form) : call_composite(c, form);
}

/* Returns whether the op's kernels accept the complex arguments that it has, if any. */
static bool accepts_complex(const lt_Call *c) {
  int dtype = c->signature->dtype_param;
  bool as_it_is = dtype < 0 || !lt_given(c, dtype);
  if (c->info->traits & LT_TRAIT_COMPLEX || !lt_has_complex_arg(c)) return true;
  return c->info->traits & LT_TRAIT_COMPLEX_CPU && c->device.type == LT_DEVICE_cpu && as_it_is;
}

/* Runs a call with results of its own or in place. */
static bool run_read(lt_Call *c) {
  if (c->info->kind == LT_KIND_ELEMENTWISE) {
    if (!lt_infer_elementwise(c)) return false;
  } else {
    if (!accepts_complex(c)) return call_complex(c);
    if (c->device.type != LT_DEVICE_cpu && lacks_kernel(c) && lt_composite_form(c->op))
      return call_composite(c, lt_composite_form(c->op));
    if (c->device.type != LT_DEVICE_cpu && has_lent_args(c)) return call_with_lent_args(c);
    if (!c->info->infer(c)) return false;
  }
  return c->in_place ? call_in_place(c) : call_fresh(c);
}

/* Runs a call by the kind of its op. */
static bool run_kind(lt_Call *c, const lt_Arg *args, int nargs) {
  const lt_Tensor *t = quick_fits(c, args, nargs);
  if (t) return call_quick(c, args, nargs, t);
  if (!lt_read_args(c, args, nargs) || !choose_device(c)) return false;
  switch (c->info->kind) {
  case LT_KIND_COMPOSITE:
    return call_composite(c, c->info->infer);
  case LT_KIND_VIEW:
    return call_view(c);
  case LT_KIND_MAP:
    return call_map(c);
  default:
    return lt_bools_in_args(c) ? lt_bools_run(c, run_read) : run_read(c);
  }
}

/* Runs a call, under autocast with other arguments. */
static inline bool run_call(lt_Call *c, const lt_Arg *args, int nargs) {
  if (__builtin_expect(lt_thread()->autocast.on, 0) && lt_autocast_applies(c, args, nargs))
    return lt_autocast_call(c, args, nargs, run_kind);
  return run_kind(c, args, nargs);
}

/* Returns the storage of the first tensor that the op reads (in place: besides self), for its
 * event. */
static const lt_Storage *read_by(const lt_Arg *args, int nargs, bool in_place) {
  for (int i = in_place; i < nargs; i++)
    if (args[i].kind == LT_ARG_TENSOR && args[i].tensor) return args[i].tensor->storage;
  return NULL;
}

/* Returns the first result, or the first tensor that a map has written; NULL when there is none. */
static const lt_Tensor *written_first(const lt_Call *c) {
  if (c->info->kind == LT_KIND_MAP) return lt_map_count(c) ? lt_map_tensor(c, 0, 0) : NULL;
  return c->nout ? c->out[0] : NULL;
}

/* Fills in the event of an op that has run. */
static void describe_call(lt_TraceEvent *e, const lt_Call *c, bool ok) {
  lt_Kind kind = c->info->kind;
  e->op = c->op;
  e->name = c->info->name;
  e->in_place = c->in_place;
  e->device = c->device;
  e->kernel = kind != LT_KIND_VIEW && kind != LT_KIND_COMPOSITE;
  if (!ok || c->results->is_list || c->results->is_flag) return;
  const lt_Tensor *first = written_first(c);
  if (!first) return;
  e->device = lt_tensor_device(first);
  if (e->kernel) e->stream = lt_stream_current(e->device);
  e->target = first->storage;
  e->offset = first->offset * (int64_t)lt_dtype_size(first->dtype);
  e->dtype = first->dtype;
  e->ndim = first->ndim;
  memcpy(e->shape, first->shape, sizeof *e->shape * (size_t)first->ndim);
  for (int i = 0; e->kernel && i < c->nout; i++)
    e->bytes += c->out[i]->numel * (int64_t)lt_dtype_size(c->out[i]->dtype);
  if (kind == LT_KIND_MAP) e->bytes = lt_map_bytes(c);
}

/* Runs a call and reports its event to the tracers. */
static bool traced_call(lt_Call *c, const lt_Arg *args, int nargs) {
  lt_TraceSpan span;
  c->device = lt_cpu();
  if (!lt_trace_begin_op(&span, c->info->name)) return run_call(c, args, nargs);
  bool ok = run_call(c, args, nargs);
  describe_call(&span.event, c, ok);
  span.event.storage = read_by(args, nargs, c->in_place);
  if (ok && span.event.kernel && !lt_trace_synchronize(span.event.device)) {
    drop_outputs(c);
    ok = false;
  }
  return lt_trace_end(&span, ok);
}

/* Runs an op, whose results are written into `given` if there are any. */
static bool run_op(lt_OpId op, bool in_place, const lt_Arg *args, int nargs,
                   lt_Tensor *const *given, int ngiven, lt_Results *r) {
  lt_Call c;
  lt_Use use;
  lt_Thread *thread = lt_thread();
  bool outermost = !thread->user_op;
  r->count = 0;
  r->is_list = r->is_flag = r->flag = false;
  r->many = NULL;
  c.op = op;
  c.info = &lt_ops[op];
  c.signature = lt_op_signature(op);
  c.in_place = in_place;
  c.given = given;
  c.ngiven = ngiven;
  c.nout = 0;
  c.out[0] = NULL;
  c.compute = LT_DTYPE_NONE;
  c.stream = NULL;
  c.results = r;
  if (outermost) {
    thread->user_op = c.info->name;
    thread->user_in_place = in_place;
  }
  lt_use_enter(thread, &use, args, nargs);
  bool ok = ngiven == 0 || lt_out_accept(&c);
  ok = ok && (__builtin_expect(thread->tracers != NULL, 0) ? traced_call(&c, args, nargs)
                                                           : run_call(&c, args, nargs));
  if (ok && ngiven && !lt_out_store(&c)) {
    drop_outputs(&c);
    ok = false;
  }
  lt_use_leave(thread, &use);
  if (outermost) thread->user_op = NULL;
  if (!ok) {
    lt_results_release(r);
    return false;
  }
  if (r->is_list || r->is_flag) return true;
  r->count = c.nout;
  r->few[0] = c.out[0]; /* most ops have one result */
  for (int i = 1; i < c.nout; i++) r->few[i] = c.out[i];
  return true;
}

/* Records a call of a program, on stand-ins of its tensors. */
static bool record_op(lt_Recorder *recorder, lt_OpId op, bool in_place, const lt_Arg *args,
                      int nargs, int ngiven, lt_Results *r) {
  lt_StandIns s;
  r->count = 0;
  if (ngiven) lt_recorder_refuse("it calls an op with the argument 'out'");
  const lt_Arg *own = lt_record_arguments(recorder, op, args, nargs, &s);
  bool ok = own && (!ngiven || lt_fail("cannot record: %s", recorder->reason)) &&
            run_op(op, in_place, own, nargs, NULL, 0, r);
  free(s.lists);
  return ok;
}

/* Runs an op, or records it while a program is recorded. */
static bool call_op(lt_OpId op, bool in_place, const lt_Arg *args, int nargs,
                    lt_Tensor *const *given, int ngiven, lt_Results *r) {
  lt_Recorder *recorder = lt_recording_program();
  if (__builtin_expect(recorder != NULL, 0))
    return record_op(recorder, op, in_place, args, nargs, ngiven, r);
  return run_op(op, in_place, args, nargs, given, ngiven, r);
}

bool lt_call(lt_OpId op, bool in_place, const lt_Arg *args, int nargs, lt_Results *r) {
  return call_op(op, in_place, args, nargs, NULL, 0, r);
}

bool lt_call_out(lt_OpId op, const lt_Arg *args, int nargs, lt_Tensor *const *out, int nout,
                 lt_Results *r) {
  return call_op(op, false, args, nargs, out, nout, r);
}

void lt_results_release(lt_Results *r) {
  lt_Tensor **items = lt_results_items(r);
  for (int i = 0; i < r->count; i++) lt_release(items[i]);
  free(r->many);
  r->many = NULL;
  r->count = 0;
  r->is_list = false;
}

lt_Tensor *lt_op1(lt_OpId op, const lt_Arg *args, int nargs) {
  lt_Results r;
  if (!lt_call(op, false, args, nargs, &r)) return NULL;
  if (r.is_list || r.count == 0) {
    lt_results_release(&r);
    return lt_error_set("%s: expected an op with one result", lt_ops[op].name);
  }
  for (int i = 1; i < r.count; i++) lt_release(r.few[i]);
  return r.few[0];
}

lt_Tensor *lt_do_(lt_OpId op, bool in_place, const lt_Arg *args, int nargs, int result) {
  lt_Results r;
  lt_Tensor *kept = NULL;
  if (!lt_call(op, in_place, args, nargs, &r)) return NULL;
  lt_Tensor **items = lt_results_items(&r);
  for (int i = 0; i < r.count; i++) {
    if (i == result)
      kept = items[i];
    else
      lt_release(items[i]);
  }
  free(r.many);
  return lt_scope_own(kept);
}
