/* ops.c: the table of ops, made from ops.def, and the parser of its signatures. */
#include "core.h"

#include <pthread.h>

/* Every function that the rows name. */
bool lt_infer_reduce(lt_Call *call);
#define LT_KERNEL(name, infer, ...) bool lt_infer_##infer(lt_Call *call);
#define LT_UPDATE(name, infer, ...) bool lt_infer_##infer(lt_Call *call);
#define LT_VIEW(name, ...)          bool lt_view_##name(lt_Call *call);
#define LT_COMPOSITE(name, ...)     bool lt_composite_##name(lt_Call *call);
#include "ops.def"

enum { F = LT_VARIANT_FUNCTION, M = LT_VARIANT_METHOD, I = LT_VARIANT_IN_PLACE };
enum {
  COPY = LT_TRAIT_COPY,
  TRANSFER = LT_TRAIT_TRANSFER,
  BUILTIN = LT_TRAIT_BUILTIN,
  LAYOUT = LT_TRAIT_LAYOUT,
  CORE = LT_TRAIT_CORE
};
enum { HAS_F = 1, HAS_I = 2, HAS_FI = 3 };

/* The two fields that a row's column of variants and traits fills. */
#define FLAGS(flags) (flags) & LT_VARIANTS, (flags) & ~LT_VARIANTS

const lt_OpInfo lt_ops[LT_OP_COUNT] = {
#define LT_ELEMENTWISE(name, n, rule, types, ftext, itext, gradient, variants, signature, doc)     \
  {#name,                                                                                          \
   LT_KIND_ELEMENTWISE,                                                                            \
   LT_RULE_##rule,                                                                                 \
   n,                                                                                              \
   FLAGS(variants),                                                                                \
   NULL,                                                                                           \
   signature,                                                                                      \
   doc,                                                                                            \
   (HAS_##types & HAS_F) != 0,                                                                     \
   (HAS_##types & HAS_I) != 0},
#define LT_REDUCE(name, rule, gradient, variants, signature, doc)                                  \
  {#name, LT_KIND_REDUCE, LT_RULE_##rule, 0, FLAGS(variants), lt_infer_reduce, signature,          \
   doc,   false,          false},
#define LT_KERNEL(name, infer, gradient, variants, signature, doc)                                 \
  {#name, LT_KIND_KERNEL, LT_RULE_NONE, 0, FLAGS(variants), lt_infer_##infer, signature,           \
   doc,   false,          false},
#define LT_UPDATE(name, infer, gradient, variants, signature, doc)                                 \
  {#name, LT_KIND_UPDATE, LT_RULE_NONE, 0, FLAGS(variants), lt_infer_##infer, signature,           \
   doc,   false,          false},
#define LT_VIEW(name, gradient, variants, signature, doc)                                          \
  {#name,          LT_KIND_VIEW, LT_RULE_NONE, 0,     FLAGS(variants),                             \
   lt_view_##name, signature,    doc,          false, false},
#define LT_COMPOSITE(name, variants, signature, doc)                                               \
  {#name,           LT_KIND_COMPOSITE,                                                             \
   LT_RULE_NONE,    0,                                                                             \
   FLAGS(variants), lt_composite_##name,                                                           \
   signature,       doc,                                                                           \
   false,           false},
#include "ops.def"
};

int lt_op_find(const char *name) {
  for (int i = 0; i < LT_OP_COUNT; i++)
    if (strcmp(lt_ops[i].name, name) == 0) return i;
  return -1;
}

/* ---- signatures ------------------------------------------------------------------------------ */

static const struct {
  const char *word;
  lt_ParamType type;
} words[] = {
    {"Tensor[]", LT_PARAM_TENSORS},  {"Tensor", LT_PARAM_TENSOR},
    {"Operand", LT_PARAM_OPERAND},   {"Index", LT_PARAM_INDEX},
    {"Scalar", LT_PARAM_SCALAR},     {"int", LT_PARAM_INT},
    {"float", LT_PARAM_FLOAT},       {"bool", LT_PARAM_BOOL},
    {"string", LT_PARAM_STRING},     {"dtype", LT_PARAM_DTYPE},
    {"device", LT_PARAM_DEVICE},     {"Generator", LT_PARAM_GENERATOR},
    {"sizes", LT_PARAM_SIZES},       {"ints", LT_PARAM_INTS},
    {"dim", LT_PARAM_DIM},           {"dims", LT_PARAM_DIMS},
    {"position", LT_PARAM_POSITION},
};

static const char *skip(const char *s) {
  while (*s == ' ') s++;
  return s;
}

/* A word up to one of the stops; false when it is too long. */
static bool take(const char **s, const char *stops, char *out, size_t size) {
  const char *from = skip(*s);
  size_t n = strcspn(from, stops);
  *s = from + n;
  while (n && from[n - 1] == ' ') n--;
  if (n >= size) return false;
  memcpy(out, from, n);
  out[n] = 0;
  return true;
}

/* Takes the marks off the end of a type; false when a place is unknown. */
static bool parse_marks(lt_Param *p, char *word) {
  char *at = strchr(word, '@');
  if (at) {
    if (strcmp(at, "@host") == 0)
      p->place = LT_PLACE_HOST;
    else if (strcmp(at, "@any") == 0)
      p->place = LT_PLACE_ANY;
    else
      return false;
    *at = 0;
  }
  size_t n = strlen(word);
  p->written = n && word[n - 1] == '!';
  p->shape_only = n && word[n - 1] == '~';
  if (p->written || p->shape_only) word[n - 1] = 0;
  return true;
}

static bool parse_type(lt_Param *p, char *word) {
  if (!parse_marks(p, word)) return false;
  size_t n = strlen(word);
  if (n && word[n - 1] == '?') {
    p->optional = true;
    word[n - 1] = 0;
  }
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    if (strcmp(words[i].word, word) == 0) {
      p->type = words[i].type;
      return true;
    }
  }
  return false;
}

static bool parse_default(lt_Param *p, const char *text) {
  char *end;
  p->has_default = true;
  memcpy(p->text, text, strlen(text) + 1);
  if (strcmp(text, "nil") == 0) return p->optional;
  switch (p->type) {
  case LT_PARAM_BOOL:
    p->value = lt_arg_bool(text[0] == 't');
    return true;
  case LT_PARAM_FLOAT:
    p->value = lt_arg_float(strtod(text, &end));
    return *end == 0;
  case LT_PARAM_INT:
    p->value = lt_arg_int(strtoll(text, &end, 10));
    return *end == 0;
  case LT_PARAM_DIM:
  case LT_PARAM_POSITION:
    p->value = lt_arg_int(strtoll(text, &end, 10));
    if (p->value.i > 0) p->value.i--;
    return *end == 0;
  case LT_PARAM_STRING: /* without its quotes */
    snprintf(p->word, sizeof p->word, "%.*s", (int)strlen(text) - 2, text + 1);
    p->value = lt_arg_string(p->word);
    return text[0] == '"';
  default: {
    long long i = strtoll(text, &end, 10);
    p->value = lt_arg_scalar(*end ? lt_scalar_float(strtod(text, &end)) : lt_scalar_int(i));
    return *end == 0;
  }
  }
}

static bool parse_param(lt_Param *p, const char **s) {
  char word[24];
  if (!take(s, " ", word, sizeof word) || !parse_type(p, word)) return false;
  if (!take(s, "=,)", p->name, sizeof p->name)) return false;
  if (**s != '=') return true;
  ++*s;
  char text[sizeof p->text];
  return take(s, ",)", text, sizeof text) && parse_default(p, text);
}

static bool parse_results(lt_Signature *g, const char *s) {
  char word[24];
  if (strncmp(s, "->", 2) != 0) { /* left out: one Tensor */
    g->results = 1;
    return *s == 0;
  }
  s += 2;
  while (g->results < LT_MAX_OUT) {
    int i = g->results++;
    if (!take(&s, " ,", word, sizeof word)) return false;
    if (strcmp(word, "bool") == 0) g->result_is_flag = true;
    if (strstr(word, "[]")) g->result_is_list = true;
    g->result_is_index[i] = strncmp(word, "Index", 5) == 0;
    s = skip(s);
    if (strncmp(s, "or ", 3) == 0) { /* "Tensor or Index[]": the call decides */
      g->result_is_list = true;
      s += strcspn(s, ",");
    }
    if (!take(&s, ",", g->result_name[i], sizeof g->result_name[i])) return false;
    if (*s != ',') return *s == 0;
    s++;
  }
  return false;
}

static int find_param(const lt_Signature *g, const char *name) {
  for (int i = 0; i < g->count; i++)
    if (strcmp(g->param[i].name, name) == 0) return i;
  return -1;
}

static bool parse_signature(lt_Signature *g, const char *s) {
  if (*s++ != '(') return false;
  while (*(s = skip(s)) != ')') {
    if (g->count == LT_MAX_ARGS || !parse_param(&g->param[g->count++], &s)) return false;
    if (*s == ',') s++;
  }
  for (int i = 0; i < g->count; i++)
    if (g->param[i].written) g->written |= 1u << i;
  g->device_param = find_param(g, "device");
  g->dtype_param = find_param(g, "dtype");
  g->requires_grad_param = find_param(g, "requires_grad");
  g->non_blocking_param = find_param(g, "non_blocking");
  lt_ParamType first = g->param[0].type;
  g->takes_tensor = g->count && (first == LT_PARAM_TENSOR || first == LT_PARAM_OPERAND ||
                                 first == LT_PARAM_INDEX);
  return parse_results(g, skip(s + 1));
}

/* Parsed at their first use, into static memory: an op never fails for want of its signature. */
static lt_Signature signatures[LT_OP_COUNT];
static atomic_bool parsed[LT_OP_COUNT];

const lt_Signature *lt_op_signature(lt_OpId op) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  lt_Signature *g = &signatures[op];
  if (atomic_load_explicit(&parsed[op], memory_order_acquire)) return g;
  pthread_mutex_lock(&lock);
  if (!atomic_load(&parsed[op])) {
    if (!parse_signature(g, lt_ops[op].signature)) g->count = -1;
    atomic_store_explicit(&parsed[op], true, memory_order_release);
  }
  pthread_mutex_unlock(&lock);
  return g;
}
