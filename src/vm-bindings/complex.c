/* complex.c: complex numbers as Lua values, the result of item() on a complex tensor and of
 * lt.complex(1, 2). An immutable userdata with the fields re and im, arithmetic with numbers and
 * tensors, and equality. */
#include "bindings.h"
#include "opids.h"

#include <complex.h>
#include <math.h>
#undef complex

#define NAME "complex number"

typedef double _Complex Number;

static void push(lua_State *L, Number z) {
  lt_Scalar s = lt_scalar_complex(creal(z), cimag(z));
  lt_lua_push_complex(L, s);
}

void lt_lua_push_complex(lua_State *L, lt_Scalar s) {
  Number *z = lua_newuserdatauv(L, sizeof *z, 0);
  *z = CMPLX(s.f, s.im);
  luaL_setmetatable(L, NAME);
}

bool lt_lua_is_complex(lua_State *L, int i, lt_Scalar *out) {
  const Number *z = luaL_testudata(L, i, NAME);
  if (z) *out = lt_scalar_complex(creal(*z), cimag(*z));
  return z != NULL;
}

/* ---- arithmetic ------------------------------------------------------------------------------ */

/* Returns the number at i, real or complex; raises an error otherwise. `what` is the verb of the
 * message. */
static Number check(lua_State *L, int i, const char *what) {
  lt_Scalar s = {0};
  bool number = lua_type(L, i) == LUA_TNUMBER;
  if (!number && !lt_lua_is_complex(L, i, &s))
    lt_lua_error(L, "complex: cannot %s a complex number and %s", what, lt_lua_describe(L, i));
  return number ? CMPLX(lua_tonumber(L, i), 0) : CMPLX(s.f, s.im);
}

/* Multiplication and division round as those of tensors do: see mathx.h. */
static Number product(Number x, Number y) {
  double a = creal(x), b = cimag(x), c = creal(y), d = cimag(y);
  return CMPLX(a * c - b * d, a * d + b * c);
}

static Number quotient(Number x, Number y) {
  double a = creal(x), b = cimag(x), c = creal(y), d = cimag(y);
  if (c == 0 && d == 0) return CMPLX(a / fabs(c), b / fabs(d));
  bool wide = fabs(c) >= fabs(d);
  double ratio = wide ? d / c : c / d, scale = 1 / (wide ? c + d * ratio : c * ratio + d);
  return wide ? CMPLX((a + b * ratio) * scale, (b - a * ratio) * scale)
              : CMPLX((a * ratio + b) * scale, (b * ratio - a) * scale);
}

static Number power(Number x, Number y) {
  if (y == 2) return product(x, x);
  if (y == 3) return product(product(x, x), x);
  if (y == 0.5) return csqrt(x);
  return y == 0 ? 1 : cpow(x, y);
}

/* Calls the tensor's operator if an operand is a tensor, and pushes its result; returns false if
 * none is. */
static bool by_tensor(lua_State *L, const char *event) {
  for (int i = 1; i <= 2; i++) {
    if (!lt_lua_to_box(L, i) || luaL_getmetafield(L, i, event) == LUA_TNIL) continue;
    lua_pushvalue(L, 1);
    lua_pushvalue(L, 2);
    lua_call(L, 2, 1);
    return true;
  }
  return false;
}

#define OPERATOR(event, what, result)                                                              \
  static int number_##event(lua_State *L) {                                                        \
    if (by_tensor(L, "__" #event)) return 1;                                                       \
    Number x = check(L, 1, what), y = check(L, 2, what);                                           \
    push(L, result);                                                                               \
    return 1;                                                                                      \
  }
OPERATOR(add, "add", x + y)
OPERATOR(sub, "subtract", x - y)
OPERATOR(mul, "multiply", product(x, y))
OPERATOR(div, "divide", quotient(x, y))
OPERATOR(pow, "raise", power(x, y))

static int number_unm(lua_State *L) {
  push(L, -check(L, 1, "negate"));
  return 1;
}

static int number_eq(lua_State *L) {
  lt_Scalar a, b;
  bool both = lt_lua_is_complex(L, 1, &a) && lt_lua_is_complex(L, 2, &b);
  lua_pushboolean(L, both && a.f == b.f && a.im == b.im);
  return 1;
}

/* ---- text and parts -------------------------------------------------------------------------- */

/* Appends a part as tostring writes a number, but 1 for 1.0. */
static void add_part(luaL_Buffer *b, double v) {
  char text[40];
  if (isnan(v))
    snprintf(text, sizeof text, "nan");
  else
    snprintf(text, sizeof text, "%.14g", v);
  luaL_addstring(b, text);
}

static int number_tostring(lua_State *L) {
  Number z = check(L, 1, "write");
  bool minus = signbit(cimag(z)) && !isnan(cimag(z));
  luaL_Buffer b;
  luaL_buffinit(L, &b);
  add_part(&b, creal(z));
  luaL_addstring(&b, minus ? " - " : " + ");
  add_part(&b, fabs(cimag(z)));
  luaL_addchar(&b, 'i');
  luaL_pushresult(&b);
  return 1;
}

static int number_abs(lua_State *L) {
  lua_pushnumber(L, cabs(check(L, 1, "measure")));
  return 1;
}
static int number_angle(lua_State *L) {
  lua_pushnumber(L, carg(check(L, 1, "measure")));
  return 1;
}
static int number_conj(lua_State *L) {
  push(L, conj(check(L, 1, "conjugate")));
  return 1;
}

static const lt_Function methods_of_numbers[] = {
    {"abs", number_abs, "(any self) -> nil", true, false},
    {"angle", number_angle, "(any self) -> nil", true, false},
    {"conj", number_conj, "(any self) -> nil", true, false},
    {NULL, NULL, NULL, false, false}};

/* z.re, z.im, and the methods, which are in the field `methods` of the metatable */
static int number_index(lua_State *L) {
  Number z = check(L, 1, "index");
  const char *key = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "";
  if (strcmp(key, "re") == 0 || strcmp(key, "real") == 0)
    lua_pushnumber(L, creal(z));
  else if (strcmp(key, "im") == 0 || strcmp(key, "imag") == 0)
    lua_pushnumber(L, cimag(z));
  else {
    /* not the value's own metatable: the function may be called with a number */
    luaL_getmetatable(L, NAME);
    lua_getfield(L, -1, "methods");
    lua_pushvalue(L, 2);
    lua_rawget(L, -2);
    if (lua_isnil(L, -1))
      lt_lua_error(
          L,
          "complex: expected a field of a complex number (re, im, abs(), angle(), conj()), got %s",
          lt_lua_describe(L, 2));
  }
  return 1;
}

static int number_newindex(lua_State *L) {
  lt_lua_error(
      L, "complex: cannot assign to a complex number: it is immutable\nhint: lt.complex(re, im)");
}

/* ---- lt.complex, lt.is_complex --------------------------------------------------------------- */

/* complex(real, imag) -> a complex number if both are numbers, else the result of the op */
static int make(lua_State *L) {
  lt_LuaArgs a;
  const lt_Signature *g = lt_op_signature(LT_OP_complex);
  lt_lua_charge(L, lt_lua_state(L));
  lt_lua_arguments(L, lt_lua_state(L), &a, "complex", g, false);
  if (a.arg[0].kind != LT_ARG_SCALAR || a.arg[1].kind != LT_ARG_SCALAR)
    return lt_lua_call(L, LT_OP_complex, false, &a);
  for (int i = 0; i < 2; i++)
    if (a.arg[i].scalar.kind == LT_COMPLEX)
      lt_lua_error(L, "complex: expected a real number for argument '%s', got %s", g->param[i].name,
                   lt_scalar_text(a.arg[i].scalar));
  lt_lua_push_complex(L, lt_scalar_complex(lt_scalar_to_double(a.arg[0].scalar),
                                           lt_scalar_to_double(a.arg[1].scalar)));
  return 1;
}

/* is_complex(x) -> boolean, for a tensor, a complex number or a number */
static int is_complex(lua_State *L) {
  lt_Scalar s;
  lt_Tensor *t = lt_lua_to_tensor(L, 1);
  bool number = lua_type(L, 1) == LUA_TNUMBER;
  bool complex = t ? lt_dtype_is_complex(t->dtype) : lt_lua_is_complex(L, 1, &s);
  if (!t && !number && !complex) lt_lua_check(L, 1, "is_complex", "self");
  lua_pushboolean(L, complex);
  return 1;
}

void lt_lua_open_complex(lua_State *L, int functions, int methods) {
  (void)methods;
  static const luaL_Reg events[] = {{"__add", number_add},
                                    {"__sub", number_sub},
                                    {"__mul", number_mul},
                                    {"__div", number_div},
                                    {"__pow", number_pow},
                                    {"__unm", number_unm},
                                    {"__eq", number_eq},
                                    {"__index", number_index},
                                    {"__newindex", number_newindex},
                                    {"__tostring", number_tostring},
                                    {NULL, NULL}};
  static const luaL_Reg module[] = {{"complex", make}, {NULL, NULL}};
  static const luaL_Reg fast[] = {{"is_complex", is_complex}, {NULL, NULL}};
  luaL_newmetatable(L, NAME); /* also sets __name */
  lt_lua_setfuncs(L, events);
  lua_newtable(L);
  lt_lua_set_read(L, methods_of_numbers);
  lua_setfield(L, -2, "methods");
  lua_pushliteral(L, NAME);
  lua_setfield(L, -2, "__metatable");
  lua_pushvalue(L, functions);
  lt_lua_setfuncs(L, module);
  lt_lua_set_fast(L, fast);
  lua_pop(L, 2);
}
