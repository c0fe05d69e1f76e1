/* create.c: creates tensors from Lua values, and Lua tables from tensors.
 *
 * A nested table is traversed twice: first its shape and the kind of its numbers are determined and
 * checked, then the elements are written, so nothing is allocated for an invalid table. The
 * allocation in between may run a finalizer that changes the table: the second pass checks all of
 * it again. */
#include "bindings.h"
#include "recorder.h"
#include "opids.h"

#include <math.h>

/* State of the two passes. */
typedef struct {
  const char *name; /* name of the function, for messages */
  int ndim;
  int64_t shape[LT_MAX_DIMS];
  lt_Category kind;              /* the highest category found */
  bool any;                      /* whether an element was found */
  lt_Dtype tensor_dtype;         /* promoted dtype of tensors among the elements */
  const void *open[LT_MAX_DIMS]; /* tables on the path to this element, to detect cycles */
  int64_t at[LT_MAX_DIMS];       /* index of the current element, for messages */
} Walk;

/* Pushes and returns the name of the current element, "element {2, 1}", or "the data" at the
 * top. */
static const char *element_name(lua_State *L, const Walk *w, int depth) {
  return depth ? lua_pushfstring(L, "element %s", lt_shape_text(depth, w->at)) : "the data";
}

/* Checks the element at i and records its kind; raises an error if it is no number or boolean. */
static void check_leaf(lua_State *L, Walk *w, int i, int depth) {
  lt_Scalar s = {0};
  lt_Tensor *t = lt_lua_to_tensor(L, i);
  if (lua_type(L, i) == LUA_TNIL)
    lt_lua_error(L, "%s: expected a number or a boolean for %s, got nil", w->name,
                 element_name(L, w, depth));
  if (t && t->numel != 1)
    lt_lua_error(L,
                 "%s: expected a number or a boolean for %s, got a tensor of shape %s\nhint: "
                 "lt.stack{a, b} joins a list of tensors",
                 w->name, element_name(L, w, depth), lt_shape_text(t->ndim, t->shape));
  if (!lt_lua_scalar(L, i, &s)) {
    if (t) lt_lua_fail(L, w->name);
    lt_lua_error(L, "%s: expected a number or a boolean for %s, got %s", w->name,
                 element_name(L, w, depth), lt_lua_describe(L, i));
  }
  if (t)
    w->tensor_dtype =
        w->tensor_dtype == LT_DTYPE_NONE ? t->dtype : lt_dtype_promote(w->tensor_dtype, t->dtype);
  if (!w->any || s.kind > w->kind) w->kind = s.kind;
  w->any = true;
}

static void fail_ragged(lua_State *L, const Walk *w, int depth, int64_t n) {
  lt_lua_error(L,
               "%s: expected lists of one length, got a ragged table: %s has %lld elements, the "
               "ones before it have %lld",
               w->name, element_name(L, w, depth), (long long)n, (long long)w->shape[depth]);
}

/* Checks the table at i and determines its shape. `first`: all indices before this one are 1, so
 * this table sets the size of its dim. */
static void walk(lua_State *L, Walk *w, int i, int depth, bool first) {
  bool table = lua_type(L, i) == LUA_TTABLE;
  if (first) w->ndim = depth + (table && 1);
  if (!table) {
    if (depth != w->ndim)
      lt_lua_error(
          L, "%s: expected tables of one depth, got a mixed table: %s is %s, others are tables",
          w->name, element_name(L, w, depth), lt_lua_describe(L, i));
    check_leaf(L, w, i, depth);
    return;
  }
  if (depth >= w->ndim)
    lt_lua_error(
        L, "%s: expected tables of one depth, got a mixed table: %s is a table, others are numbers",
        w->name, element_name(L, w, depth));
  const void *self = lua_topointer(L, i);
  for (int k = 0; k < depth; k++)
    if (w->open[k] == self)
      lt_lua_error(L, "%s: cannot read a cyclic table: %s contains itself", w->name,
                   element_name(L, w, k));
  if (depth == LT_MAX_DIMS)
    lt_lua_error(
        L, "%s: cannot read a table of more than %d nested levels: a tensor has at most %d dims",
        w->name, LT_MAX_DIMS, LT_MAX_DIMS);
  int64_t n = (int64_t)lua_rawlen(L, i);
  if (first) w->shape[depth] = n;
  if (n != w->shape[depth]) fail_ragged(L, w, depth, n);
  w->open[depth] = self;
  luaL_checkstack(L, 6, "nested tables");
  for (int64_t k = 1; k <= n; k++) {
    lt_lua_check_interrupt(L, k);
    w->at[depth] = k;
    lua_rawgeti(L, i, k);
    walk(L, w, lua_gettop(L), depth + 1, first && k == 1);
    lua_pop(L, 1);
  }
}

static void fail_store(lua_State *L, const Walk *w) {
  const char *reason = lt_error(), *colon = strstr(reason, ": ");
  lt_lua_error(L, "%s: cannot store %s: %s", w->name, element_name(L, w, w->ndim),
               colon ? colon + 2 : reason);
}

static void fail_changed(lua_State *L, const Walk *w) {
  lt_lua_error(L, "%s: cannot read the table: it changed while it was read", w->name);
}

/* Writes the elements of the table at i to `out`, in order; returns the end. */
static char *store(lua_State *L, Walk *w, int i, int depth, lt_Dtype dtype, char *out) {
  if (depth == w->ndim) {
    lt_Scalar s = {0};
    if (!lt_lua_scalar(L, i, &s) || s.kind > w->kind) fail_changed(L, w);
    if (dtype == LT_float32 && s.kind == LT_FLOATING)
      *(float *)(void *)out = (float)s.f;
    else if (!lt_scalar_store(s, dtype, out))
      fail_store(L, w);
    return out + lt_dtype_size(dtype);
  }
  if (lua_type(L, i) != LUA_TTABLE || (int64_t)lua_rawlen(L, i) != w->shape[depth])
    fail_changed(L, w);
  luaL_checkstack(L, 6, "nested tables");
  for (int64_t k = 1; k <= w->shape[depth]; k++) {
    lt_lua_check_interrupt(L, k);
    w->at[depth] = k;
    lua_rawgeti(L, i, k);
    out = store(L, w, lua_gettop(L), depth + 1, dtype, out);
    lua_pop(L, 1);
  }
  return out;
}

/* Returns the dtype of the elements: that of tensors among them, promoted with the kind of the
 * numbers. */
static lt_Dtype inferred(const Walk *w) {
  lt_Scalar one = {.kind = w->kind};
  lt_Dtype d = lt_result_type((lt_Arg[]){LT_ARG(one)}, 1);
  if (!w->any) return lt_dtype_default();
  return w->tensor_dtype == LT_DTYPE_NONE ? d
         : w->kind == LT_FLOATING         ? w->tensor_dtype
                                          : lt_dtype_promote(d, w->tensor_dtype);
}

lt_Tensor *lt_lua_from_value(lua_State *L, const char *name, int i, lt_Dtype dtype,
                             lt_Device device) {
  Walk w = {.name = name, .tensor_dtype = LT_DTYPE_NONE};
  i = lua_absindex(L, i);
  walk(L, &w, i, 0, true);
  if (dtype == LT_DTYPE_NONE) dtype = inferred(&w);
  lt_lua_enter(L, lt_lua_state(L));
  lt_Box *box = lt_lua_box(L);
  bool meta = device.type == LT_DEVICE_meta;
  box->tensor = lt_empty(dtype, meta ? device : lt_cpu(), w.ndim, w.shape);
  if (!box->tensor) lt_lua_fail(L, name);
  if (meta) return box->tensor;
  if (box->tensor->numel > 0) store(L, &w, i, 0, dtype, lt_tensor_data(box->tensor));
  lt_lua_charge(L, lt_lua_state(L));
  if (device.type == LT_DEVICE_cpu) return box->tensor;
  lt_Tensor *t = lt_lua_op1(L, name, LT_OP_to, (lt_Arg[]){LT_ARG(box->tensor), LT_ARG(device)}, 2);
  lua_remove(L, -2);
  return t;
}

/* ---- lt.tensor ------------------------------------------------------------------------------- */

#define LT_SIG_DATA                                                                                \
  "data data, dtype? dtype = nil, device? device = nil, bool requires_grad = false"
static const char tensor_signature[] = "(" LT_SIG_DATA ")";
static const char new_tensor_signature[] = "(Tensor self, " LT_SIG_DATA ")";

/* Pushes a copy of t with this dtype and device, outside the autograd graph; with `share`, t itself
 * if it has them already. */
static void push_converted(lua_State *L, const char *name, lt_Tensor *t, lt_Arg dtype,
                           lt_Arg device, bool share) {
  lt_Results r = {0};
  lt_Box *box = lt_lua_box(L);
  bool grad = lt_grad_enabled();
  lt_lua_enter(L, lt_lua_state(L));
  if (!share) lt_grad_set_enabled(false);
  bool ok = lt_call(LT_OP_to, false,
                    (lt_Arg[]){LT_ARG(t), device, dtype, LT_ARG(false), LT_ARG(!share)}, 5, &r);
  if (!share) lt_grad_set_enabled(grad);
  if (!ok) lt_lua_fail(L, name);
  box->tensor = r.few[0];
}

/* Creates the tensor described by the parameters from p on (data, dtype, device, requires_grad). */
static int make(lua_State *L, lt_LuaArgs *a, int p, lt_Dtype dtype, lt_Device device) {
  lt_Tensor *data = lt_lua_to_tensor(L, a->slot[p]);
  if (a->arg[p + 1].kind == LT_ARG_DTYPE) dtype = a->arg[p + 1].dtype;
  if (a->arg[p + 2].kind == LT_ARG_DEVICE) device = a->arg[p + 2].device;
  if (data) {
    lt_Arg to_dtype = lt_arg_dtype(dtype == LT_DTYPE_NONE ? data->dtype : dtype);
    push_converted(L, a->name, data, to_dtype, a->arg[p + 2], false);
  } else {
    lt_lua_from_value(L, a->name, a->slot[p], dtype, device);
  }
  if (a->arg[p + 3].kind == LT_ARG_BOOL &&
      !lt_tensor_set_requires_grad(lt_lua_to_tensor(L, -1), a->arg[p + 3].b))
    lt_lua_fail(L, a->name);
  lt_lua_charge(L, lt_lua_state(L));
  return 1;
}

/* tensor(data, dtype, device, requires_grad) -> a tensor with a copy of the data */
static int create_tensor(lua_State *L) {
  lt_LuaArgs a;
  lt_lua_arguments(L, lt_lua_state(L), &a, "tensor", lt_lua_signature(L, tensor_signature), false);
  return make(L, &a, 0, LT_DTYPE_NONE, lt_device_default());
}

/* as_tensor(data, dtype, device) -> the tensor itself if it has this dtype and device, else a
 * copy */
static int create_as_tensor(lua_State *L) {
  lt_LuaArgs a;
  lt_lua_arguments(L, lt_lua_state(L), &a, "as_tensor", lt_lua_signature(L, tensor_signature),
                   false);
  lt_Tensor *t = lt_lua_to_tensor(L, a.slot[0]);
  if (!t) return make(L, &a, 0, LT_DTYPE_NONE, lt_device_default());
  push_converted(L, "as_tensor", t, a.arg[1], a.arg[2], true);
  if (lt_lua_to_tensor(L, -1) == t) lua_pushvalue(L, a.slot[0]);
  return 1;
}

static const char frombuffer_signature[] =
    "(any buffer, dtype dtype, int count = -1, int(>=0) offset = 0, bool requires_grad = false)";

/* Returns the number of elements of `size` bytes to read from n bytes of a buffer. */
static int64_t buffer_count(lua_State *L, size_t n, int64_t size, int64_t count, int64_t offset) {
  if (offset < 0 || (size_t)offset > n)
    lt_lua_error(L,
                 "frombuffer: expected an offset from 0 to %lld, the length of the buffer, for "
                 "argument 'offset', got %lld",
                 (long long)n, (long long)offset);
  int64_t room = (int64_t)n - offset;
  if (count < 0 && room % size)
    lt_lua_error(L,
                 "frombuffer: expected a multiple of %lld bytes behind the offset for argument "
                 "'buffer', got %lld",
                 (long long)size, (long long)room);
  if (count > room / size)
    lt_lua_error(L, "frombuffer: expected at most %lld elements for argument 'count', got %lld",
                 (long long)(room / size), (long long)count);
  return count < 0 ? room / size : count;
}

/* frombuffer(buffer, dtype, count, offset, requires_grad) -> a vector with a copy of the bytes */
static int create_frombuffer(lua_State *L) {
  lt_LuaArgs a;
  size_t n;
  lt_lua_arguments(L, lt_lua_state(L), &a, "frombuffer", lt_lua_signature(L, frombuffer_signature),
                   false);
  if (lua_type(L, a.slot[0]) != LUA_TSTRING)
    lt_lua_error(L, "frombuffer: expected a string for argument 'buffer', got %s",
                 lt_lua_describe(L, a.slot[0]));
  const char *bytes = lua_tolstring(L, a.slot[0], &n);
  lt_Dtype dtype = a.arg[1].dtype;
  int64_t offset = a.arg[3].kind == LT_ARG_INT ? a.arg[3].i : 0;
  int64_t count = buffer_count(L, n, (int64_t)lt_dtype_size(dtype),
                               a.arg[2].kind == LT_ARG_INT ? a.arg[2].i : -1, offset);
  lt_lua_enter(L, lt_lua_state(L));
  lt_Box *box = lt_lua_box(L);
  box->tensor = lt_empty(dtype, lt_cpu(), 1, &count);
  if (!box->tensor) lt_lua_fail(L, "frombuffer");
  if (count)
    memcpy(lt_tensor_data(box->tensor), bytes + offset, (size_t)count * lt_dtype_size(dtype));
  if (a.arg[4].kind == LT_ARG_BOOL && !lt_tensor_set_requires_grad(box->tensor, a.arg[4].b))
    lt_lua_fail(L, "frombuffer");
  lt_lua_charge(L, lt_lua_state(L));
  return 1;
}

/* x:new_tensor(data) -> a tensor with x's dtype and device by default */
static int create_new_tensor(lua_State *L) {
  lt_LuaArgs a;
  lt_lua_arguments(L, lt_lua_state(L), &a, "new_tensor", lt_lua_signature(L, new_tensor_signature),
                   true);
  return make(L, &a, 1, a.arg[0].tensor->dtype, lt_tensor_device(a.arg[0].tensor));
}

/* ---- tensors as Lua tables ------------------------------------------------------------------- */

/* Rows of so many elements are made by the table constructor {...}, which takes down to half the
 * time of a call for each element. In shorter rows its own call costs more. The stack that longer
 * ones need would stay, and each step of the collector in its generational mode clears the free
 * part. */
enum { LEAST_PACKED = 7, MOST_PACKED = 256 };

/* Pushes n elements, `stride` bytes apart. */
static void push_elements(lua_State *L, lt_Dtype dtype, int64_t n, const char *data,
                          int64_t stride) {
  if (dtype != LT_float32) {
    for (int64_t k = 0; k < n; k++, data += stride)
      lt_lua_push_scalar(L, lt_scalar_load(dtype, data));
    return;
  }
  for (int64_t k = 0; k < n; k++, data += stride) {
    float x = *(const float *)(const void *)data;
    lua_pushnumber(L, x == x ? (double)x : (double)NAN); /* tostring would show NaN's sign */
  }
}

/* Pushes a table of n elements. */
static void push_row(lua_State *L, lt_Dtype dtype, int64_t n, const char *data, int64_t stride) {
  lt_lua_check_interrupt(L, 0);
  if (n >= LEAST_PACKED && n <= MOST_PACKED && lua_checkstack(L, 3 * (int)n + LUA_MINSTACK)) {
    lua_rawgeti(L, LUA_REGISTRYINDEX, lt_lua_state(L)->pack_ref);
    push_elements(L, dtype, n, data, stride);
    lua_call(L, (int)n, 1);
    return;
  }
  lua_createtable(L, n < INT32_MAX ? (int)n : 0, 0);
  for (int64_t k = 0; k < n; k++) {
    lt_lua_check_interrupt(L, k);
    push_elements(L, dtype, 1, data + k * stride, 0);
    lua_rawseti(L, -2, k + 1);
  }
}

/* Pushes the elements from dim on as nested tables; `data` is the first one in the host's
 * memory. */
static void push_level(lua_State *L, const lt_Tensor *t, int dim, const char *data, size_t size) {
  if (dim == t->ndim) {
    lt_lua_push_scalar(L, lt_scalar_load(t->dtype, data));
    return;
  }
  int64_t n = t->shape[dim];
  luaL_checkstack(L, 3, "nested tables");
  if (dim == t->ndim - 1) {
    push_row(L, t->dtype, n, data, t->strides[dim] * (int64_t)size);
    return;
  }
  lua_createtable(L, n < INT32_MAX ? (int)n : 0, 0);
  for (int64_t k = 0; k < n; k++) {
    lt_lua_check_interrupt(L, k);
    push_level(L, t, dim + 1, data + k * t->strides[dim] * (int64_t)size, size);
    lua_rawseti(L, -2, k + 1);
  }
}

/* Pushes the tables of a dense tensor of few elements in the host's memory, read from a copy on the
 * stack; returns false for any other tensor. */
static bool push_few(lua_State *L, const lt_Tensor *t) {
  _Alignas(16) char data[4096];
  lt_Tensor own;
  const lt_Backend *b = lt_backend_of(t);
  size_t size = lt_dtype_size(t->dtype), n = (size_t)t->numel;
  if (n > sizeof data / size || !b->has_data || !b->host_memory) return false;
  if (!lt_tensor_is_contiguous(t)) return false;
  lt_recorder_refuse("it reads the values of a tensor");
  if (n) memcpy(data, lt_tensor_data(t), n * size);
  own.dtype = t->dtype;
  own.ndim = t->ndim;
  memcpy(own.shape, t->shape, sizeof *t->shape * (size_t)t->ndim);
  lt_shape_strides(t->ndim, t->shape, own.strides);
  push_level(L, &own, 0, data, size);
  return true;
}

/* x:totable() -> nested tables of numbers, read from an alias, or from a copy of few elements or of
 * a device's tensor */
static int create_totable(lua_State *L) {
  lt_Lua *S = lt_lua_state(L);
  lt_lua_enter(L, S);
  const lt_Box *self = lua_gettop(L) == 1 ? lt_lua_box_at(L, S, 1) : NULL;
  bool plain = self && !lt_lua_is_freed(self);
  if (plain && push_few(L, self->tensor)) return 1;
  if (!plain) lt_lua_read(L);
  lt_Tensor *t = lt_lua_push_alias(L, 1, "totable", "self");
  const lt_Backend *b = lt_backend_of(t);
  lt_recorder_refuse("it reads the values of a tensor");
  if (!b->has_data)
    lt_lua_error(L, "totable: cannot read a tensor on \"%s\": it has no data", b->name);
  if (!b->host_memory) {
    lt_Box *box = lt_lua_box(L);
    bool grad = lt_grad_enabled();
    lt_lua_enter(L, S);
    lt_grad_set_enabled(false);
    box->tensor = lt_op1(LT_OP_to, (lt_Arg[]){LT_ARG(t), LT_ARG(lt_cpu())}, 2);
    lt_grad_set_enabled(grad);
    if (!(t = box->tensor)) lt_lua_fail(L, "totable");
  }
  push_level(L, t, 0, lt_tensor_data(t), lt_dtype_size(t->dtype));
  return 1;
}

/* Loads the function that makes a table of its arguments. */
static void open_pack(lua_State *L) {
  static const char text[] = "return {...}";
  if (luaL_loadbufferx(L, text, sizeof text - 1, "=totable", "t") != LUA_OK) lua_error(L);
  lt_lua_state(L)->pack_ref = luaL_ref(L, LUA_REGISTRYINDEX);
}

void lt_lua_open_create(lua_State *L, int functions, int methods) {
  static const luaL_Reg module[] = {{"tensor", create_tensor},
                                    {"as_tensor", create_as_tensor},
                                    {"frombuffer", create_frombuffer},
                                    {NULL, NULL}};
  static const luaL_Reg own[] = {{"new_tensor", create_new_tensor}, {NULL, NULL}};
  static const lt_Function tables[] = {
      {"totable", create_totable, "(Tensor self) -> nil", true, true},
      {"tolist", create_totable, "(Tensor self) -> nil", true, true},
      {NULL, NULL, NULL, false, false}};
  open_pack(L);
  lua_pushvalue(L, functions);
  lt_lua_setfuncs(L, module);
  lt_lua_set_signature(L, -1, "tensor", tensor_signature, false);
  lt_lua_set_signature(L, -1, "as_tensor", tensor_signature, false);
  lt_lua_set_signature(L, -1, "frombuffer", frombuffer_signature, false);
  lua_pushvalue(L, methods);
  lt_lua_setfuncs(L, own);
  lt_lua_set_read(L, tables);
  lt_lua_set_signature(L, -1, "new_tensor", new_tensor_signature, true);
  lua_pop(L, 2);
}
