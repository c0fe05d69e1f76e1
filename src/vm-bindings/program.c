/* program.c: elementwise programs for lib/lutra/elementwise, and the expressions of ops.def with
 * the vocabulary that they use, for the generation of source code from a program.
 *
 *   r:program(strict, tensors)          the program that computes them; see lt_program_new
 *   p:describe()                        its inputs, outputs and steps
 *   p:run(tensors)                      its outputs; nil where an integer divisor is 0 */
#include "program.h"
#include "bindings.h"
#include "recorder.h"
#include "trace.h"
#include "mathx.h" /* embedded below; the include makes this file depend on it */

#define PROGRAM "lutra.elementwise_program"

static int recorder_program(lua_State *L) {
  lt_Recorder *r = lt_lua_recorder(L);
  int strict = (int)luaL_checkinteger(L, 2), n;
  lt_Program **p = lua_newuserdatauv(L, sizeof *p, 0);
  int at = lua_gettop(L);
  *p = NULL;
  luaL_setmetatable(L, PROGRAM);
  lt_Tensor **out = lt_lua_tensors(L, "recorder", "tensors", 3, false, &n);
  lt_lua_enter(L, lt_lua_state(L));
  *p = lt_program_new(r, strict, n, out);
  if (!*p) lt_lua_fail(L, "elementwise");
  lua_pushvalue(L, at);
  return 1;
}

/* ---- programs -------------------------------------------------------------------------------- */

static lt_Program *program_at(lua_State *L) {
  lt_Program **p = luaL_checkudata(L, 1, PROGRAM);
  if (!*p) luaL_error(L, "program: cannot run it: it was finalized");
  return *p;
}

static int program_gc(lua_State *L) {
  lt_Program **p = luaL_checkudata(L, 1, PROGRAM);
  lt_program_free(*p);
  *p = NULL;
  return 0;
}

static void set_string(lua_State *L, const char *key, const char *value) {
  lua_pushstring(L, value);
  lua_setfield(L, -2, key);
}

static void set_scalar(lua_State *L, const char *key, lt_Scalar s) {
  lt_lua_push_scalar(L, s);
  lua_setfield(L, -2, key);
}

/* Pushes {value = n}, counted from 1, or {number = x}. */
static void push_input(lua_State *L, const lt_StepInput *in) {
  lua_createtable(L, 0, 1);
  if (in->value < 0) {
    set_scalar(L, "number", in->number);
  } else {
    lua_pushinteger(L, in->value + 1);
    lua_setfield(L, -2, "value");
  }
}

static void push_step(lua_State *L, const lt_Step *s) {
  lua_createtable(L, s->inputs, 5);
  if (s->op != LT_NO_OP) set_string(L, "op", lt_ops[s->op].name);
  set_string(L, "compute", lt_dtype_name(s->compute));
  set_string(L, "result", lt_dtype_name(s->result));
  set_scalar(L, "a", s->a);
  set_scalar(L, "b", s->b);
  for (int i = 0; i < s->inputs; i++) {
    push_input(L, &s->input[i]);
    lua_rawseti(L, -2, i + 1);
  }
}

/* Pushes a table: {inputs = {dtype ...}, outputs = {{value or number, dtype} ...}, steps ...}. A
 * step is {op (nil: a conversion), compute, result, a, b, inputs ...}; values are numbered from the
 * inputs on, then the steps */
void lt_lua_push_program(lua_State *L, const lt_Program *p) {
  lua_createtable(L, p->nsteps, 2);
  lua_createtable(L, p->ninputs, 0);
  for (int i = 0; i < p->ninputs; i++) {
    lua_pushstring(L, lt_dtype_name(p->dtype[i]));
    lua_rawseti(L, -2, i + 1);
  }
  lua_setfield(L, -2, "inputs");
  lua_createtable(L, p->nout, 0);
  for (int i = 0; i < p->nout; i++) {
    push_input(L, &p->out[i]);
    set_string(L, "dtype", lt_dtype_name(p->out_dtype[i]));
    lua_rawseti(L, -2, i + 1);
  }
  lua_setfield(L, -2, "outputs");
  for (int i = 0; i < p->nsteps; i++) {
    push_step(L, &p->step[i]);
    lua_rawseti(L, -2, i + 1);
  }
}

/* p:describe() -> the program as a table */
static int program_describe(lua_State *L) {
  lt_lua_push_program(L, program_at(L));
  return 1;
}

/* Runs the program as one traced op. Returns false with the reason, or with *refused when an
 * integer divisor is 0. */
static bool run(lua_State *L, const lt_Program *p, int n, lt_Tensor **in, lt_Tensor **out,
                bool *refused) {
  lt_Use use;
  lt_Arg args = lt_arg_tensors(in, n);
  lt_TraceSpan span;
  lt_lua_enter(L, lt_lua_state(L));
  lt_use_enter(lt_thread(), &use, &args, 1);
  bool traced = lt_trace_begin_op(&span, "elementwise");
  bool ok = lt_program_run(p, in, out, refused);
  if (traced) {
    span.event.op = LT_NO_OP; /* not an op of the table */
    span.event.name = "elementwise";
    span.event.device = lt_tensor_device(in[0]);
    span.event.kernel = true;
    span.event.ndim = -1;
    lt_trace_end(&span, ok);
  }
  lt_use_leave(lt_thread(), &use);
  return ok;
}

static int program_run(lua_State *L) {
  const lt_Program *p = program_at(L);
  enum { OUTPUTS = 128 };
  lt_Tensor *out[OUTPUTS];
  lt_Box *box[OUTPUTS];
  int n;
  bool refused;
  lt_Tensor **in = lt_lua_tensors(L, "elementwise", "tensors", 2, false, &n);
  if (n != p->ninputs || p->nout > OUTPUTS)
    return lt_lua_error(L, "elementwise: expected %d inputs, got %d", p->ninputs, n);
  lua_createtable(L, p->nout, 0);
  luaL_checkstack(L, 2, "elementwise");
  for (int i = 0; i < p->nout; i++) {
    box[i] = lt_lua_box(L);
    lua_rawseti(L, -2, i + 1);
  }
  if (!run(L, p, n, in, out, &refused)) {
    if (!refused) lt_lua_fail(L, "elementwise");
    lua_pushnil(L);
    return 1;
  }
  for (int i = 0; i < p->nout; i++) box[i]->tensor = out[i];
  lt_lua_charge(L, lt_lua_state(L));
  return 1;
}

/* ---- expressions of ops ---------------------------------------------------------------------- */

#ifdef __APPLE__
#define SECTION ".section __TEXT,__const\n"
#define PREFIX  "_"
#else
#define SECTION ".section .rodata\n"
#define PREFIX  ""
#endif
extern const char lt_text_mathx[] __attribute__((visibility("hidden")));
__asm__(SECTION ".globl " PREFIX "lt_text_mathx\n" PREFIX "lt_text_mathx:\n"
                ".incbin \"src/tensor/mathx.h\"\n.byte 0\n.text\n");

static const struct {
  const char *name, *rule, *floats, *integers;
} texts[] = {
#define TEXT_F(...)   {__VA_ARGS__},
#define TEXT_I(...)   {__VA_ARGS__},
#define TEXT_FI(...)  {__VA_ARGS__},
#define TEXT_FC(...)  {__VA_ARGS__},
#define TEXT_FIC(...) {__VA_ARGS__},
#define TEXT_W(...)   /* not in mathx.h */
#define TEXT_WF(...)
#define LT_ELEMENTWISE(name, inputs, rule, types, floats, integers, ...)                           \
  TEXT_##types(#name, #rule, #floats, #integers)
#include "ops.def"
};

/* _elementwise_texts() -> the contents of mathx.h; a table {op = {rule, float, integer}} of
 * expressions */
static int elementwise_texts(lua_State *L) {
  lua_pushstring(L, lt_text_mathx);
  lua_newtable(L);
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    lua_createtable(L, 0, 3);
    set_string(L, "rule", texts[i].rule);
    set_string(L, "float", texts[i].floats);
    set_string(L, "integer", texts[i].integers);
    lua_setfield(L, -2, texts[i].name);
  }
  return 2;
}

void lt_lua_open_program(lua_State *L, int functions, int methods) {
  static const luaL_Reg recorder[] = {{"program", recorder_program}, {NULL, NULL}};
  static const luaL_Reg program[] = {
      {"describe", program_describe}, {"run", program_run}, {NULL, NULL}};
  static const luaL_Reg module[] = {{"_elementwise_texts", elementwise_texts}, {NULL, NULL}};
  (void)methods;
  lt_lua_add_to_recorder(L, recorder);
  lt_lua_open_class(L, PROGRAM, program, program_gc);
  lua_pushvalue(L, functions);
  lt_lua_setfuncs(L, module);
  lua_pop(L, 1);
}
