/* recorder.c: implements recorder.h. A value is identified by storage and geometry, not by its
 * tensor: autograd saves aliases of tensors, and tensors are freed while the record stays. The
 * record keeps an alias of each value, so that its storage is not reused. */
#include "recorder.h"

#include <stdarg.h>

lt_Recorder *lt_recorder_begin(void) {
  lt_Recorder *r = calloc(1, sizeof *r);
  if (!r) {
    lt_error_memory("out of memory");
    return NULL;
  }
  if (!lt_device_backend(LT_DEVICE_meta)) {
    free(r);
    return NULL;
  }
  r->outer = lt_thread()->recorder;
  r->running = true;
  lt_thread()->recorder = r;
  return r;
}

void lt_recorder_end(lt_Recorder *r) {
  lt_Recorder **place = &lt_thread()->recorder;
  if (!r->running) return;
  while (*place && *place != r) place = &(*place)->outer;
  if (*place) *place = r->outer;
  r->running = false;
}

void lt_recorder_free(lt_Recorder *r) {
  if (!r) return;
  lt_recorder_end(r);
  for (int i = 0; i < r->nvalues; i++) {
    lt_release(r->value[i].tensor);
    lt_release(r->value[i].source);
    lt_release(r->value[i].stand_in);
  }
  for (int i = 0; i < r->nmade; i++) lt_storage_release(r->made[i]);
  free(r->made);
  for (int i = 0; i < r->ncalls; i++) free(r->call[i].arg);
  free(r->value);
  free(r->call);
  free(r->slot);
  free(r);
}

/* ---- values ---------------------------------------------------------------------------------- */

/* Makes room for one more item of an array. */
static bool grow(void *array, int count, int *room, size_t item) {
  if (count < *room) return true;
  int bigger = *room ? 2 * *room : 16;
  void *p = realloc(*(void **)array, (size_t)bigger * item);
  if (!p) return lt_fail_memory();
  *(void **)array = p;
  *room = bigger;
  return true;
}

/* Returns the slot of a storage in the hash table: it holds the number of the storage's last value
 * + 1, or 0. */
static int *slot_of(const lt_Recorder *r, const lt_Storage *s) {
  uint64_t h = (uint64_t)(uintptr_t)s * 0x9e3779b97f4a7c15u;
  int at = (int)((h >> 32) & (uint64_t)(r->slots - 1));
  while (r->slot[at] && r->value[r->slot[at] - 1].tensor->storage != s)
    at = (at + 1) & (r->slots - 1);
  return &r->slot[at];
}

/* Doubles the hash table, and enters the last value of each storage. */
static bool rehash(lt_Recorder *r) {
  int slots = r->slots ? 2 * r->slots : 64, *slot = calloc((size_t)slots, sizeof *slot);
  if (!slot) return lt_fail_memory();
  free(r->slot);
  r->slot = slot;
  r->slots = slots;
  for (int i = 0; i < r->nvalues; i++) *slot_of(r, r->value[i].tensor->storage) = i + 1;
  return true;
}

/* Adds a value and returns its number; -1 when memory is out. */
static int add_value(lt_Recorder *r, lt_ValueKind kind, int call, int result, const lt_Tensor *t) {
  if (!grow(&r->value, r->nvalues, &r->value_room, sizeof *r->value)) return -1;
  if (2 * r->nvalues >= r->slots && !rehash(r)) return -1;
  lt_Tensor *alias = lt_alias(t);
  if (!alias) return -1;
  int *slot = slot_of(r, alias->storage);
  r->value[r->nvalues] = (lt_RecordedValue){
      .kind = kind, .call = call, .result = result, .tensor = alias, .earlier = *slot - 1};
  *slot = ++r->nvalues;
  return r->nvalues - 1;
}

/* Returns true when two tensors on one storage have the same dtype and geometry. */
static bool is_same(const lt_Tensor *a, const lt_Tensor *b) {
  return a->dtype == b->dtype && a->offset == b->offset &&
         lt_shape_equal(a->ndim, a->shape, b->ndim, b->shape) &&
         lt_shape_equal(a->ndim, a->strides, b->ndim, b->strides);
}

int lt_recorder_value(const lt_Recorder *r, const lt_Tensor *t) {
  int i = r->slots ? *slot_of(r, t->storage) - 1 : -1;
  while (i >= 0 && !is_same(r->value[i].tensor, t)) i = r->value[i].earlier;
  return i;
}

int lt_recorder_references(const lt_Storage *s) {
  const lt_Recorder *r = lt_thread()->recorder;
  int count = 0;
  if (!r || !r->slots) return 0;
  for (int i = *slot_of(r, s) - 1; i >= 0; i = r->value[i].earlier) count++;
  return count;
}

lt_Tensor *lt_recorder_input(lt_Recorder *r, lt_Dtype dtype, int ndim, const int64_t *shape) {
  lt_Tensor *t = lt_empty(dtype, lt_recording(), ndim, shape);
  if (!t || add_value(r, LT_VALUE_INPUT, -1, -1, t) >= 0) return t;
  lt_release(t);
  return NULL;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* Returns the number of an argument's value. A tensor on another device becomes a constant; one of
 * another record is an error, -1. */
static int value_of(lt_Recorder *r, const lt_Call *c, int i, const lt_Tensor *t) {
  int value = lt_recorder_value(r, t);
  if (value >= 0) return value;
  if (!lt_device_equal(lt_tensor_device(t), lt_recording()))
    return add_value(r, LT_VALUE_CONSTANT, -1, -1, t);
  lt_fail("expected a tensor of this recording for argument '%s', got one of another",
          c->signature->param[i].name);
  return -1;
}

/* Returns the bytes that an argument refers to: a list, or a string. */
static size_t bytes_behind(const lt_Arg *a) {
  if (a->kind == LT_ARG_INTS || a->kind == LT_ARG_TENSORS)
    return (size_t)a->count * sizeof(int64_t);
  return a->kind == LT_ARG_STRING ? (strlen(a->string) | 7) + 1 : 0;
}

/* Copies argument i, and what it refers to, to *more, which is advanced. */
static bool copy_arg(lt_Recorder *r, const lt_Call *c, int i, lt_Arg *out, char **more) {
  const lt_Arg *a = &c->arg[i];
  size_t bytes = bytes_behind(a);
  int64_t *list = (int64_t *)(void *)*more;
  *out = *a;
  *more += bytes;
  switch (a->kind) {
  case LT_ARG_TENSOR:
    out->i = value_of(r, c, i, a->tensor);
    return out->i >= 0;
  case LT_ARG_TENSORS:
    for (int k = 0; k < a->count; k++) {
      list[k] = a->tensors[k] ? value_of(r, c, i, a->tensors[k]) : -1;
      if (a->tensors[k] && list[k] < 0) return false;
    }
    out->ints = list;
    return true;
  case LT_ARG_INTS:
    if (a->count) memcpy(list, a->ints, bytes);
    out->ints = list;
    return true;
  case LT_ARG_STRING:
    out->string = strcpy((char *)list, a->string);
    return true;
  default:
    return true;
  }
}

/* Appends a call and its results to the record. */
static bool note(lt_Recorder *r, const lt_Call *c) {
  if (!grow(&r->call, r->ncalls, &r->call_room, sizeof *r->call)) return false;
  lt_RecordedCall *call = &r->call[r->ncalls];
  lt_UserIndex index = lt_thread()->user_index;
  size_t bytes = (size_t)c->nargs * sizeof(lt_Arg);
  for (int i = 0; i < c->nargs; i++) bytes += bytes_behind(&c->arg[i]);
  *call = (lt_RecordedCall){
      .op = c->op,
      .in_place = c->in_place,
      .user = index.name ? lt_user_op_get() : (lt_UserOp){c->info->name, c->in_place},
      .index = index,
      .compute = c->info->kind == LT_KIND_ELEMENTWISE ? c->compute : LT_DTYPE_NONE,
      .folded = c->compute,
      .nargs = c->nargs,
      .nout = c->nout,
      .arg = malloc(bytes ? bytes : 1)};
  bool ok = call->arg || lt_fail_memory();
  char *more = (char *)(call->arg + c->nargs);
  for (int i = 0; ok && i < c->nargs; i++) ok = copy_arg(r, c, i, &call->arg[i], &more);
  for (int i = 0; ok && i < c->nout; i++) {
    call->out[i] = add_value(r, LT_VALUE_RESULT, r->ncalls, i, c->out[i]);
    ok = call->out[i] >= 0;
  }
  if (ok)
    r->ncalls++;
  else
    free(call->arg);
  return ok;
}

int lt_recorder_repeat_call(lt_Recorder *r, int call) {
  if (!grow(&r->call, r->ncalls, &r->call_room, sizeof *r->call)) return -1;
  lt_RecordedCall *made = &r->call[r->ncalls];
  size_t bytes = (size_t)r->call[call].nargs * sizeof(lt_Arg);
  *made = r->call[call];
  made->arg = malloc(bytes ? bytes : 1);
  if (!made->arg) {
    lt_fail_memory();
    return -1;
  }
  memcpy(made->arg, r->call[call].arg, bytes);
  return r->ncalls++;
}

int lt_recorder_repeat_value(lt_Recorder *r, int value, int call) {
  return add_value(r, LT_VALUE_RESULT, call, 0, r->value[value].tensor);
}

bool lt_record_call(const lt_Call *c) {
  lt_Recorder *r = lt_thread()->recorder;
  return !r || !lt_device_equal(c->device, lt_recording()) || note(r, c);
}

/* ---- programs -------------------------------------------------------------------------------- */

lt_Recorder *lt_recorder_begin_for(lt_Device device) {
  lt_Recorder *r = lt_recorder_begin();
  if (!r) return NULL;
  r->captures = true;
  r->device = device;
  if (!lt_device_backend(device.type)->has_data)
    lt_recorder_refuse("it computes on \"%s\", which has no data", lt_device_name(device));
  return r;
}

void lt_recorder_refuse(const char *format, ...) {
  lt_Recorder *r = lt_recording_program();
  if (!r || r->reason[0]) return;
  va_list list;
  va_start(list, format);
  vsnprintf(r->reason, sizeof r->reason, format, list);
  va_end(list);
}

bool lt_record_created(lt_Recorder *r, const lt_Tensor *t) {
  if (t->numel > 1) lt_recorder_refuse("it creates a tensor from data");
  if (!grow(&r->made, r->nmade, &r->made_room, sizeof *r->made)) return false;
  r->made[r->nmade++] = lt_storage_retain(t->storage);
  return true;
}

lt_Device lt_shown_device(const lt_Tensor *t) {
  const lt_Recorder *r = lt_recording_program();
  lt_Device own = lt_tensor_device(t);
  return r && lt_device_equal(own, lt_recording()) ? r->device : own;
}

static bool was_made(const lt_Recorder *r, const lt_Storage *s) {
  for (int i = 0; i < r->nmade; i++)
    if (r->made[i] == s) return true;
  return false;
}

/* Returns the bytes from the start of a tensor to the end of its last element. */
static size_t reach_of(const lt_Tensor *t) {
  int64_t last = 0;
  for (int i = 0; t->numel && i < t->ndim; i++) last += (t->shape[i] - 1) * t->strides[i];
  return t->numel ? (size_t)(last + 1) * lt_dtype_size(t->dtype) : 0;
}

/* Creates the stand-in of a tensor. */
static lt_Tensor *stand_in_new(lt_Tensor *t) {
  bool grad = lt_tensor_requires_grad(t);
  if (lt_bools_are_loose(t)) lt_recorder_refuse("it reads memory as bool that is not bool");
  lt_Storage *s = lt_storage_new(lt_recording(), reach_of(t));
  if (!s) return NULL;
  lt_Tensor *made = lt_tensor_on(s, t->dtype, 0, t->ndim, t->shape, t->strides);
  lt_storage_release(s);
  if (!made || !grad || lt_tensor_set_requires_grad(made, true)) return made;
  lt_release(made);
  return NULL;
}

/* Refuses a program with tensors on this device, which is not that of the record. */
static bool refuse_device(lt_Recorder *r, lt_Device d) {
  lt_recorder_refuse("it uses tensors on \"%s\" and \"%s\"", lt_device_name(r->device),
                     lt_device_name(d));
  return lt_fail("cannot record: %s", r->reason);
}

lt_Tensor *lt_recorder_stand_in(lt_Recorder *r, lt_Tensor *t, bool input) {
  lt_ValueKind kind = input ? LT_VALUE_INPUT : LT_VALUE_CAPTURED;
  if (!lt_device_equal(lt_tensor_device(t), r->device)) {
    refuse_device(r, lt_tensor_device(t));
    return NULL;
  }
  for (int i = 0; i < r->nvalues; i++)
    if (r->value[i].source == t && r->value[i].kind == kind) return r->value[i].stand_in;
  lt_Tensor *made = stand_in_new(t);
  int i = made ? add_value(r, kind, -1, -1, made) : -1;
  if (i < 0) {
    lt_release(made);
    return NULL;
  }
  r->value[i].source = lt_retain(t);
  r->value[i].stand_in = made;
  r->value[i].made = was_made(r, t->storage);
  return made;
}

bool lt_recorder_is_stand_in(const lt_Recorder *r, const lt_Tensor *t) {
  int i = r->slots ? *slot_of(r, t->storage) - 1 : -1;
  while (i >= 0 && r->value[i].stand_in != t) i = r->value[i].earlier;
  return i >= 0;
}

/* Replaces one tensor of a call. False with the error. */
static bool replace(lt_Recorder *r, lt_Tensor **t) {
  if ((*t)->freed || lt_device_equal(lt_tensor_device(*t), lt_recording())) return true;
  lt_Tensor *stand_in = lt_recorder_stand_in(r, *t, false);
  if (stand_in) *t = stand_in;
  return stand_in != NULL;
}

/* Returns the number of tensors in the lists of a call. */
static int listed(const lt_Arg *args, int nargs) {
  int n = 0;
  for (int i = 0; i < nargs; i++)
    if (args[i].kind == LT_ARG_TENSORS) n += args[i].count;
  return n;
}

const lt_Arg *lt_record_arguments(lt_Recorder *r, lt_OpId op, const lt_Arg *args, int nargs,
                                  lt_StandIns *s) {
  int lists = listed(args, nargs);
  (void)op;
  s->lists = NULL;
  if (nargs < 0 || nargs > LT_MAX_ARGS) return args; /* dispatch reports it */
  if (nargs) memcpy(s->arg, args, sizeof *args * (size_t)nargs);
  if (lists && !(s->lists = malloc(sizeof *s->lists * (size_t)lists))) {
    lt_fail_memory();
    return NULL;
  }
  lt_Tensor **next = s->lists;
  for (int i = 0; i < nargs; i++) {
    lt_Arg *a = &s->arg[i];
    if (a->kind == LT_ARG_TENSOR && a->tensor && !replace(r, &a->tensor)) return NULL;
    if (a->kind == LT_ARG_DEVICE && lt_device_equal(a->device, r->device)) {
      a->device = lt_recording();
    } else if (a->kind == LT_ARG_DEVICE && !lt_device_equal(a->device, lt_recording())) {
      refuse_device(r, a->device);
      return NULL;
    }
    if (a->kind != LT_ARG_TENSORS) continue;
    if (a->count) memcpy(next, a->tensors, sizeof *next * (size_t)a->count);
    for (int k = 0; k < a->count; k++)
      if (next[k] && !replace(r, &next[k])) return NULL;
    a->tensors = next;
    next += a->count;
  }
  return s->arg;
}
