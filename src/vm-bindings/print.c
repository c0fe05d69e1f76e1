/* print.c: prints a tensor as the call that would create it, with PyTorch's layout.
 *
 * Only the elements that are shown are read: they determine the width of the columns and whether
 * numbers are written as 1.0000e+05, and only they are copied from a device. All elements have the
 * same format. The profile "summary" is a different text, made by lutra/internal/summary.lua. */
#include "bindings.h"
#include "recorder.h"
#include "opids.h"

#include <math.h>

/* The format of all numbers of a tensor. */
typedef struct {
  int width;
  bool sci, whole;  /* for floats: scientific notation; all values are integers */
  double low, high; /* smallest and largest magnitude of the finite, nonzero elements */
  bool finite;      /* whether there is such an element */
} Format;

typedef struct {
  lua_State *L;
  lt_PrintOptions opt;
  const lt_Tensor *t;        /* the shown part, in the host's memory */
  int64_t full[LT_MAX_DIMS]; /* sizes of the printed tensor */
  bool summary;
  Format format[2]; /* for elements; for complex ones, of the real and the imaginary part */
  int parts;        /* parts of an element: 2 if it is complex, else 1 */
  int width;        /* width of an element */
  luaL_Buffer b;
} Printer;

/* Returns whether only the two ends of dim d are shown. */
static bool is_cut(const Printer *p, int d) {
  return p->summary && p->full[d] > 2 * p->opt.edgeitems;
}
static int64_t shown(const Printer *p, int d) {
  return is_cut(p, d) ? 2 * p->opt.edgeitems : p->full[d];
}

static const char *step_to(const Printer *p, const char *data, int d, int64_t k) {
  if (is_cut(p, d) && k >= p->opt.edgeitems) k += p->t->shape[d] - 2 * p->opt.edgeitems;
  return data + k * p->t->strides[d] * (int64_t)lt_dtype_size(p->t->dtype);
}

/* ---- the format ------------------------------------------------------------------------------ */

static int number_text(const Printer *p, const Format *f, lt_Scalar s, char *out, size_t size) {
  if (s.kind == LT_BOOL) return snprintf(out, size, "%s", s.i ? "true" : "false");
  if (s.kind == LT_INTEGER) return snprintf(out, size, "%lld", (long long)s.i);
  if (isnan(s.f)) return snprintf(out, size, "nan");
  if (isinf(s.f)) return snprintf(out, size, "%s", s.f < 0 ? "-inf" : "inf");
  if (f->sci) return snprintf(out, size, "%.*e", p->opt.precision, s.f);
  if (f->whole) return snprintf(out, size, "%.0f.", s.f);
  return snprintf(out, size, "%.*f", p->opt.precision, s.f);
}

/* Returns an element, or one part (0 or 1) of a complex element. */
static lt_Scalar part_of(const Printer *p, const char *data, int part) {
  lt_Scalar s = lt_scalar_load(p->t->dtype, data);
  return s.kind == LT_COMPLEX ? lt_scalar_float(part ? s.im : s.f) : s;
}

typedef void Visit(Printer *p, const char *data);

/* Calls f for each shown element from dim d on. */
static void visit(Printer *p, const char *data, int d, Visit *f) {
  if (d == p->t->ndim) {
    f(p, data);
    return;
  }
  for (int64_t k = 0; k < shown(p, d); k++) {
    lt_lua_check_interrupt(p->L, k);
    visit(p, step_to(p, data, d, k), d + 1, f);
  }
}

static void visit_range(Printer *p, const char *data) {
  for (int part = 0; part < p->parts; part++) {
    Format *f = &p->format[part];
    double x = fabs(lt_scalar_to_double(part_of(p, data, part)));
    if (x == 0 || !isfinite(x)) continue;
    if (!f->finite || x < f->low) f->low = x;
    if (!f->finite || x > f->high) f->high = x;
    f->finite = true;
    if (x != floor(x)) f->whole = false;
  }
}

/* Widens the column for an element. NaN, infinities and zeros do not widen it. */
static void visit_width(Printer *p, const char *data) {
  char text[512];
  for (int part = 0; part < p->parts; part++) {
    Format *f = &p->format[part];
    lt_Scalar s = part_of(p, data, part);
    if (s.kind == LT_FLOATING && (s.f == 0 || !isfinite(s.f))) continue;
    int n = number_text(p, f, s, text, sizeof text);
    if (n > f->width) f->width = n;
  }
}

/* Determines the format from the shown elements, by PyTorch's rules. */
static void find_format(Printer *p) {
  const char *data = lt_tensor_data(p->t);
  p->parts = lt_dtype_is_complex(p->t->dtype) ? 2 : 1;
  for (int part = 0; part < 2; part++) p->format[part] = (Format){.width = 1, .whole = true};
  if (lt_dtype_category(p->t->dtype) >= LT_FLOATING) {
    visit(p, data, 0, visit_range);
    for (int part = 0; part < p->parts; part++) {
      Format *f = &p->format[part];
      f->sci = f->finite && (f->high / f->low > 1000 || f->high > 1e8 || f->low < 1e-4);
      if (p->opt.sci_mode >= 0) f->sci = p->opt.sci_mode;
    }
  }
  visit(p, data, 0, visit_width);
  p->width = p->format[0].width;
  if (p->parts == 2) p->width += p->format[1].width + 2; /* for the sign and the unit */
}

/* ---- the text -------------------------------------------------------------------------------- */

static void add_spaces(Printer *p, int n) {
  while (n-- > 0) luaL_addchar(&p->b, ' ');
}

/* Appends an element; between the parts of a complex one is the sign of the imaginary part:
 * 1.5000-2.i. */
static void add_element(Printer *p, const char *data) {
  char text[512];
  int n = number_text(p, &p->format[0], part_of(p, data, 0), text, sizeof text);
  add_spaces(p, p->format[0].width - n);
  luaL_addlstring(&p->b, text, (size_t)n);
  if (p->parts == 1) return;
  lt_Scalar im = part_of(p, data, 1);
  n = number_text(p, &p->format[1], im, text, sizeof text);
  if (text[0] != '-') luaL_addchar(&p->b, '+');
  luaL_addlstring(&p->b, text, (size_t)n);
  luaL_addchar(&p->b, 'i');
}

/* Appends the innermost dim: elements separated by commas, broken into lines. */
static void add_row(Printer *p, const char *data, int indent) {
  int d = p->t->ndim - 1, item = 0;
  int per_line = (p->opt.linewidth - indent) / (p->width + 2);
  if (per_line < 1) per_line = 1;
  for (int64_t k = 0; k < shown(p, d); k++) {
    lt_lua_check_interrupt(p->L, k);
    for (int dots = is_cut(p, d) && k == p->opt.edgeitems; dots >= 0; dots--, item++) {
      if (item) luaL_addstring(&p->b, item % per_line ? ", " : ",\n");
      if (item && item % per_line == 0) add_spaces(p, indent + 1);
      if (dots)
        luaL_addstring(&p->b, " ...");
      else
        add_element(p, step_to(p, data, d, k));
    }
  }
}

static void add_block(Printer *p, const char *data, int d, int indent);

static void add_blocks(Printer *p, const char *data, int d, int indent) {
  int deep = p->t->ndim - d;
  for (int64_t k = 0; k < shown(p, d); k++) {
    for (int dots = is_cut(p, d) && k == p->opt.edgeitems; dots >= 0; dots--) {
      if (k || dots) {
        luaL_addchar(&p->b, ',');
        for (int i = 1; i < deep; i++) luaL_addchar(&p->b, '\n');
        add_spaces(p, indent + 1);
      }
      if (dots)
        luaL_addstring(&p->b, "...");
      else
        add_block(p, step_to(p, data, d, k), d + 1, indent + 1);
    }
  }
}

static void add_block(Printer *p, const char *data, int d, int indent) {
  luaL_addchar(&p->b, '{');
  if (d == p->t->ndim - 1)
    add_row(p, data, indent);
  else
    add_blocks(p, data, d, indent);
  luaL_addchar(&p->b, '}');
}

/* ---- suffixes: dtype, device, grad_fn -------------------------------------------------------- */

enum { INDENT = 6, MAX_SUFFIXES = 4 }; /* "tensor" */

typedef struct {
  int count;
  char text[MAX_SUFFIXES][160];
} Suffixes;

/* Collects the suffixes: each property that the printed elements do not imply. */
static void find_suffixes(Suffixes *s, const lt_Tensor *t, bool shape) {
  /* no elements from which the dtype could be inferred */
  bool bare = t->numel == 0 || lt_tensor_is_meta(t);
  bool plain = t->dtype == lt_dtype_default() ||
               (!bare && (t->dtype == LT_int64 || t->dtype == LT_bool ||
                          t->dtype == lt_dtype_complex(lt_dtype_default())));
  lt_Device device = lt_tensor_device(t);
  const char *grad_fn = lt_tensor_grad_fn_name(t);
  size_t size = sizeof s->text[0];
  if (device.type != LT_DEVICE_cpu)
    snprintf(s->text[s->count++], size, "device = \"%s\"", lt_device_name(device));
  if (shape) snprintf(s->text[s->count++], size, "shape = %s", lt_shape_text(t->ndim, t->shape));
  if (!plain) snprintf(s->text[s->count++], size, "dtype = \"%s\"", lt_dtype_name(t->dtype));
  if (grad_fn)
    snprintf(s->text[s->count++], size, "grad_fn = <%s>", grad_fn);
  else if (t->requires_grad)
    snprintf(s->text[s->count++], size, "requires_grad = true");
}

/* Pushes the text on top of the stack followed by the suffixes and the closing bracket. */
static int finish(lua_State *L, const lt_PrintOptions *opt, const Suffixes *s, bool scalar,
                  bool empty) {
  size_t n;
  luaL_Buffer b;
  const char *text = lua_tolstring(L, -1, &n), *line = strrchr(text, '\n');
  int used = (int)(line ? strlen(line) - 1 : n) + (scalar ? 2 : 3);
  luaL_buffinit(L, &b);
  luaL_addlstring(&b, text, n);
  for (int i = 0; i < s->count; i++) {
    int width = (int)strlen(s->text[i]);
    bool first = empty && i == 0;
    if (first || used + width + 2 <= opt->linewidth) {
      luaL_addstring(&b, first ? "" : ", ");
      used += width + 2;
    } else {
      luaL_addstring(&b, ",\n       ");
      used = INDENT + 1 + width;
    }
    if (scalar && i == 0) luaL_addchar(&b, '{');
    luaL_addlstring(&b, s->text[i], (size_t)width);
  }
  luaL_addstring(&b, scalar ? (s->count ? "})" : ")") : "}");
  luaL_pushresult(&b);
  return 1;
}

/* Returns the shown elements of t in the host's memory: t itself, or a copy of them, which is
 * pushed. */
static lt_Tensor *push_corner(lua_State *L, const Printer *p, lt_Tensor *t) {
  int e = p->opt.edgeitems;
  if (lt_backend_of(t)->host_memory) return t;
  lt_Box *box = lt_lua_box(L);
  bool grad = lt_grad_enabled();
  lt_grad_set_enabled(false);
  size_t mark = lt_scope_open();
  for (int d = 0; d < p->t->ndim && t; d++) {
    if (!is_cut(p, d)) continue;
    lt_Tensor *ends[2] = {
        lt_do(_slice, LT_ARG(t), LT_ARG(d), LT_ARG(0), LT_ARG(e), LT_ARG(1)),
        lt_do(_slice, LT_ARG(t), LT_ARG(d), LT_ARG(p->full[d] - e), LT_ARG(e), LT_ARG(1))};
    t = ends[0] && ends[1] ? lt_do(cat, LT_TENSORS(ends, 2), LT_ARG(d)) : NULL;
  }
  if (t) t = lt_do(to, LT_ARG(t), LT_ARG(lt_cpu()));
  box->tensor = lt_scope_close(mark, t);
  lt_grad_set_enabled(grad);
  if (!box->tensor) lt_lua_fail(L, "tostring");
  return box->tensor;
}

/* Pushes the text of the tensor at index 1, read from an alias. Its autograd properties, which an
 * alias does not have, are read from the tensor first. */
static int print_tensor(lua_State *L, lt_PrintOptions opt) {
  Suffixes s = {0};
  lt_Tensor *t = lt_lua_push_alias(L, 1, "tostring", "self"), *of = lt_lua_to_tensor(L, 1);
  bool summary = (double)t->numel > opt.threshold, empty = t->numel == 0;
  lt_recorder_refuse("it prints a tensor");
  find_suffixes(&s, of,
                !lt_backend_of(t)->has_data || (empty ? t->ndim != 1 : summary || t->ndim >= 2));
  if (!lt_backend_of(t)->has_data) {
    lua_pushliteral(L, "tensor{...");
    return finish(L, &opt, &s, false, false);
  }
  if (empty) {
    lua_pushliteral(L, "tensor{");
    return finish(L, &opt, &s, false, true);
  }
  Printer p = {.L = L, .opt = opt, .t = t, .summary = summary};
  memcpy(p.full, t->shape, sizeof p.full);
  p.t = push_corner(L, &p, t);
  find_format(&p);
  luaL_buffinit(L, &p.b);
  luaL_addstring(&p.b, t->ndim ? "tensor" : "tensor(");
  if (t->ndim == 0)
    add_element(&p, lt_tensor_data(p.t));
  else
    add_block(&p, lt_tensor_data(p.t), 0, INDENT);
  if (t->ndim > 0) luaL_buffsub(&p.b, 1); /* the last brace follows the suffixes */
  luaL_pushresult(&p.b);
  return finish(L, &opt, &s, t->ndim == 0, false);
}

enum { PROFILE_DEFAULT, PROFILE_SHORT, PROFILE_FULL, PROFILE_SUMMARY, PROFILE_COUNT };

int lt_lua_tostring(lua_State *L) {
  lt_Lua *S = lt_lua_state(L);
  const lt_Box *box = lt_lua_to_box(L, 1);
  if (!box) lt_lua_check(L, 1, "tostring", "self");
  if (lt_lua_is_freed(box)) {
    lua_pushliteral(L, "tensor (freed)");
    return 1;
  }
  if (S->print.profile == PROFILE_SUMMARY && S->summary_ref != LUA_NOREF) {
    lua_rawgeti(L, LUA_REGISTRYINDEX, S->summary_ref);
    lua_pushvalue(L, 1);
    lua_call(L, 1, 1);
    return 1;
  }
  lt_lua_enter(L, S);
  return print_tensor(L, S->print);
}

/* ---- options --------------------------------------------------------------------------------- */

static const char options_signature[] =
    "(int? precision = nil, float? threshold = nil, int? edgeitems = nil, int? linewidth = nil, "
    "string? profile = nil, any? sci_mode = nil) -> nil";

static const struct {
  const char *name;
  lt_PrintOptions options;
} profiles[PROFILE_COUNT] = {
    [PROFILE_DEFAULT] = {"default", {4, 1000, 3, 80, -1, PROFILE_DEFAULT}},
    [PROFILE_SHORT] = {"short", {2, 1000, 2, 80, -1, PROFILE_SHORT}},
    [PROFILE_FULL] = {"full", {4, INFINITY, 3, 80, -1, PROFILE_FULL}},
    [PROFILE_SUMMARY] = {"summary", {4, 1000, 3, 80, -1, PROFILE_SUMMARY}}};

static bool set_profile(lt_PrintOptions *o, const char *name) {
  for (int i = 0; i < PROFILE_COUNT; i++) {
    if (strcmp(profiles[i].name, name) != 0) continue;
    *o = profiles[i].options;
    return true;
  }
  return false;
}

/* Returns the value of sci_mode, given as true, false or "auto". */
static int read_sci_mode(lua_State *L, const lt_LuaArgs *a, int p, int old) {
  int i = a->slot[p];
  if (i == 0 || lua_isnoneornil(L, i)) return old;
  if (lua_isboolean(L, i)) return lua_toboolean(L, i);
  if (lt_lua_is_text(L, i) && strcmp(lua_tostring(L, i), "auto") == 0) return -1;
  lt_lua_error(L,
               "set_printoptions: expected true, false or \"auto\" for argument 'sci_mode', got %s",
               lt_lua_describe(L, i));
}

static int read_count(lua_State *L, const lt_LuaArgs *a, int p, int old, int least) {
  if (a->arg[p].kind != LT_ARG_INT) return old;
  int64_t n = a->arg[p].i;
  if (n < least || n > 10000)
    lt_lua_error(
        L, "set_printoptions: expected an integer from %d to 10000 for argument '%s', got %lld",
        least, a->signature->param[p].name, (long long)n);
  return (int)n;
}

/* set_printoptions{precision, threshold, edgeitems, linewidth, profile, sci_mode}: a profile sets
 * all of them, the other options change its values. */
static int set_print_options(lua_State *L) {
  lt_LuaArgs a;
  lt_lua_arguments(L, lt_lua_state(L), &a, "set_printoptions",
                   lt_lua_signature(L, options_signature), false);
  lt_PrintOptions o = lt_lua_state(L)->print;
  if (a.arg[4].kind == LT_ARG_STRING && !set_profile(&o, a.arg[4].string))
    lt_lua_error(L,
                 "set_printoptions: expected \"default\", \"short\", \"full\" or \"summary\" for "
                 "argument 'profile', got \"%s\"",
                 a.arg[4].string);
  o.precision = read_count(L, &a, 0, o.precision, 0);
  if (o.precision > 100)
    lt_lua_error(
        L, "set_printoptions: expected an integer of at most 100 for argument 'precision', got %d",
        o.precision);
  if (a.arg[1].kind == LT_ARG_FLOAT) o.threshold = a.arg[1].f;
  o.edgeitems = read_count(L, &a, 2, o.edgeitems, 1);
  o.linewidth = read_count(L, &a, 3, o.linewidth, 10);
  o.sci_mode = read_sci_mode(L, &a, 5, o.sci_mode);
  lt_lua_state(L)->print = o;
  return 0;
}

/* get_printoptions() -> a table that set_printoptions accepts */
static int get_print_options(lua_State *L) {
  const lt_PrintOptions *o = &lt_lua_state(L)->print;
  lua_createtable(L, 0, 6);
  lua_pushstring(L, profiles[o->profile].name);
  lua_setfield(L, -2, "profile");
  lua_pushinteger(L, o->precision);
  lua_setfield(L, -2, "precision");
  lua_pushnumber(L, o->threshold);
  lua_setfield(L, -2, "threshold");
  lua_pushinteger(L, o->edgeitems);
  lua_setfield(L, -2, "edgeitems");
  lua_pushinteger(L, o->linewidth);
  lua_setfield(L, -2, "linewidth");
  if (o->sci_mode >= 0)
    lua_pushboolean(L, o->sci_mode);
  else
    lua_pushliteral(L, "auto");
  lua_setfield(L, -2, "sci_mode");
  return 1;
}

/* _summarise(f): registers f, which returns the text of a tensor in the profile "summary" */
static int set_summary(lua_State *L) {
  lt_Lua *S = lt_lua_state(L);
  luaL_checktype(L, 1, LUA_TFUNCTION);
  luaL_unref(L, LUA_REGISTRYINDEX, S->summary_ref);
  lua_settop(L, 1);
  S->summary_ref = luaL_ref(L, LUA_REGISTRYINDEX);
  return 0;
}

void lt_lua_open_print(lua_State *L, int functions, int methods) {
  static const luaL_Reg module[] = {
      {"set_printoptions", set_print_options}, {"_summarise", set_summary}, {NULL, NULL}};
  static const lt_Function options[] = {
      {"get_printoptions", get_print_options, "() -> nil", false, false},
      {NULL, NULL, NULL, false, false}};
  (void)methods;
  lt_lua_state(L)->print = profiles[PROFILE_DEFAULT].options;
  lua_pushvalue(L, functions);
  lt_lua_setfuncs(L, module);
  lt_lua_set_read(L, options);
  lt_lua_set_signature(L, -1, "set_printoptions", options_signature, false);
  lua_pop(L, 1);
}
