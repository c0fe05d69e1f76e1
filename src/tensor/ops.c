/* ops.c: the table of ops, made from ops.def, and the parser of signatures (the grammar is in
 * ops.def). */
#include "core.h"
#include "opids.h"

#include <pthread.h>

/* Every function that the rows name. */
bool lt_infer_reduce(lt_Call *call);
#define LT_KERNEL(name, infer, ...) bool lt_infer_##infer(lt_Call *call);
#define LT_UPDATE(name, infer, ...) bool lt_infer_##infer(lt_Call *call);
#define LT_VIEW(name, ...)          bool lt_view_##name(lt_Call *call);
#define LT_COMPOSITE(name, ...)     bool lt_composite_##name(lt_Call *call);
#include "ops.def"

enum {
  F = LT_VARIANT_FUNCTION,
  M = LT_VARIANT_METHOD,
  I = LT_VARIANT_IN_PLACE,
#define LT_NAMESPACE(flag, name, doc) flag = LT_VARIANT_##flag,
#include "namespaces.def"
};
enum {
  COPY = LT_TRAIT_COPY,
  TRANSFER = LT_TRAIT_TRANSFER,
  BUILTIN = LT_TRAIT_BUILTIN,
  LAYOUT = LT_TRAIT_LAYOUT,
  CORE = LT_TRAIT_CORE,
  COMPLEX = LT_TRAIT_COMPLEX,
  PARTS = LT_TRAIT_PARTS,
  LINEAR = LT_TRAIT_LINEAR,
  BILINEAR = LT_TRAIT_BILINEAR,
  HOST = LT_TRAIT_HOST,
  COMPLEX_CPU = LT_TRAIT_COMPLEX_CPU,
  OVER = LT_TRAIT_OVER,
  LOW = LT_AUTOCAST_LOW,
  LOW_GPU = LT_AUTOCAST_LOW_GPU,
  HIGH = LT_AUTOCAST_HIGH,
  HIGH_CPU = LT_AUTOCAST_HIGH_CPU,
  HIGH_GPU = LT_AUTOCAST_HIGH_GPU,
  WIDEST = LT_AUTOCAST_WIDEST,
  AS_IS = LT_AUTOCAST_AS_IS
};
enum {
  HAS_F = 1,
  HAS_I = 2,
  HAS_FI = 3,
  HAS_C = 4,
  HAS_FC = 5,
  HAS_FIC = 7,
  HAS_W = 9,
  HAS_WF = 25
};

/* Expands to the two members that are set by a row's column of variants and traits. */
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
   (HAS_##types & HAS_I) != 0,                                                                     \
   (HAS_##types & HAS_C) != 0,                                                                     \
   (HAS_##types & HAS_W) == HAS_W},
#define LT_REDUCE(name, rule, form, gradient, variants, signature, doc)                            \
  {#name, LT_KIND_REDUCE, LT_RULE_##rule, 0,    FLAGS(variants), lt_infer_reduce, signature, doc,  \
   false, false,          false,          false},
#define LT_KERNEL(name, infer, gradient, variants, signature, doc)                                 \
  {#name, LT_KIND_KERNEL, LT_RULE_NONE, 0,    FLAGS(variants), lt_infer_##infer, signature, doc,   \
   false, false,          false,        false},
#define LT_UPDATE(name, infer, gradient, variants, signature, doc)                                 \
  {#name, LT_KIND_UPDATE, LT_RULE_NONE, 0,    FLAGS(variants), lt_infer_##infer, signature, doc,   \
   false, false,          false,        false},
#define LT_MAP(name, tensors, numbers, text, signature, doc)                                       \
  {#name,     LT_KIND_MAP, LT_RULE_NONE, 0,     FLAGS(0), lt_map_check,                            \
   signature, doc,         false,        false, false,    false},
#define LT_VIEW(name, gradient, variants, signature, doc)                                          \
  {#name,     LT_KIND_VIEW, LT_RULE_NONE, 0,     FLAGS(variants), lt_view_##name,                  \
   signature, doc,          false,        false, false,           false},
#define LT_COMPOSITE(name, variants, signature, doc)                                               \
  {#name,           LT_KIND_COMPOSITE,                                                             \
   LT_RULE_NONE,    0,                                                                             \
   FLAGS(variants), lt_composite_##name,                                                           \
   signature,       doc,                                                                           \
   false,           false,                                                                         \
   false,           false},
#include "ops.def"
};

const lt_OpAlias lt_op_aliases[] = {
#define LT_ALIAS(name, op, variants) {#name, LT_OP_##op, variants},
#include "ops.def"
    {NULL, LT_NO_OP, 0}};

const char *lt_arg_name(const lt_Call *c, int i) { return c->signature->param[i].name; }

bool lt_op_is_test(lt_OpId op) { return lt_ops[op].rule == LT_RULE_TEST; }

bool lt_op_is_wide(lt_OpId op) { return lt_ops[op].is_wide; }

bool lt_op_rounds(lt_OpId op, lt_Dtype input, lt_Dtype result) {
  return lt_ops[op].is_wide && result != LT_float64 && (input == LT_int32 || input == LT_int64);
}

bool lt_op_is_function(lt_OpId op) {
  const lt_OpInfo *o = &lt_ops[op];
  return (o->rule == LT_RULE_FLOAT && o->inputs == 1) || o->rule == LT_RULE_POWER;
}

int lt_op_find(const char *name) {
  for (int i = 0; i < LT_OP_COUNT; i++)
    if (strcmp(lt_ops[i].name, name) == 0) return i;
  return -1;
}

const lt_Namespace lt_namespaces[LT_SPACE_COUNT] = {
#define LT_NAMESPACE(flag, name, doc) {#flag, #name, doc},
#include "namespaces.def"
};

const char *lt_namespace_op_name(int space, const char *op) {
  size_t n = strlen(lt_namespaces[space].name);
  return strncmp(op, lt_namespaces[space].name, n) == 0 && op[n] == '_' ? op + n + 1 : op;
}

/* ---- signatures ------------------------------------------------------------------------------ */

static const struct {
  const char *word;
  lt_ParamType type;
} words[] = {
    {"Tensor[]", LT_PARAM_TENSORS},
    {"Tensor", LT_PARAM_TENSOR},
    {"Operand", LT_PARAM_OPERAND},
    {"Index", LT_PARAM_INDEX},
    {"Scalar", LT_PARAM_SCALAR},
    {"int", LT_PARAM_INT},
    {"float", LT_PARAM_FLOAT},
    {"bool", LT_PARAM_BOOL},
    {"string", LT_PARAM_STRING},
    {"dtype", LT_PARAM_DTYPE},
    {"device", LT_PARAM_DEVICE},
    {"Generator", LT_PARAM_GENERATOR},
    {"sizes", LT_PARAM_SIZES},
    {"ints", LT_PARAM_INTS},
    {"dim", LT_PARAM_DIM},
    {"dims", LT_PARAM_DIMS},
    {"position", LT_PARAM_POSITION},
    {"any", LT_PARAM_ANY},
    {"data", LT_PARAM_DATA},
    {"list", LT_PARAM_LIST},
    {"table", LT_PARAM_TABLE},
    {"floats", LT_PARAM_FLOATS},
    {"function", LT_PARAM_FUNCTION},
    {"ints[]", LT_PARAM_INT_LISTS},
    {"dims[]", LT_PARAM_DIM_LISTS},
    {"floats[]", LT_PARAM_FLOAT_LISTS},
    {"Tensor[][]", LT_PARAM_TENSOR_LISTS},
};

const char *lt_param_type_name(lt_ParamType type) {
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (words[i].type == type) return words[i].word;
  return NULL;
}

static const char *skip(const char *s) {
  while (*s == ' ') s++;
  return s;
}

/* Reads a word, up to one of the characters in `stops`, into out; false when it is too long. */
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

/* ---- types ---- */

/* Parses a list of dtypes, "float32|float64". */
static bool parse_dtypes(lt_Param *p, const char *s, const char *end) {
  while (s < end) {
    size_t n = strcspn(s, "|)");
    int found = LT_DTYPE_NONE;
    for (int d = 0; d < LT_DTYPE_COUNT && found == LT_DTYPE_NONE; d++) {
      const char *name = lt_dtype_name((lt_Dtype)d);
      if (strlen(name) == n && strncmp(name, s, n) == 0) found = d;
    }
    if (found == LT_DTYPE_NONE) return false;
    p->dtypes |= UINT32_C(1) << found;
    s += n + 1;
  }
  return p->dtypes != 0;
}

/* Parses the limit in parentheses after a type: "(>=0)", "(float32|float64)", "(false)". */
static bool parse_limit(lt_Param *p, lt_ParamType type, const char *s, const char *end) {
  char *stop;
  if (end - s < 2 || *s != '(' || end[-1] != ')') return false;
  if (type == LT_PARAM_DTYPE) return parse_dtypes(p, s + 1, end - 1);
  p->has_gaps = type == LT_PARAM_INTS && end - s == 7 && strncmp(s, "(false)", 7) == 0;
  if (p->has_gaps) return true;
  if (strncmp(s, "(>=", 3) != 0) return false;
  p->has_least = true;
  p->least = strtod(s + 3, &stop);
  return stop == end - 1 && stop > s + 3;
}

/* Parses one type of a union: a quoted string, or a type with its limit. */
static bool parse_alternative(lt_Param *p, const char *s, const char *end) {
  if (*s == '\'') { /* a string that is allowed */
    if (end - s < 3 || end[-1] != '\'' || memchr(s + 1, '\'', (size_t)(end - s - 2))) return false;
    if (p->types & (1u << LT_PARAM_STRING) && !p->has_choices) return false;
    p->has_choices = true;
    p->types |= 1u << LT_PARAM_STRING;
    return true;
  }
  size_t n = 0, length = (size_t)(end - s);
  while (n < length && s[n] != '(') n++;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    if (strlen(words[i].word) != n || strncmp(words[i].word, s, n) != 0) continue;
    if (p->types & (1u << words[i].type)) return false;
    p->types |= 1u << words[i].type;
    return n == length || parse_limit(p, words[i].type, s + n, end);
  }
  return false;
}

/* Returns the end of the alternative that starts at s: the next `|` outside of quotes and
 * parentheses, or `end`. */
static const char *alternative_end(const char *s, const char *end) {
  bool quoted = false, inside = false;
  for (; s < end && (quoted || inside || *s != '|'); s++) {
    if (*s == '\'') quoted = !quoted;
    if (!quoted && *s == '(') inside = true;
    if (!quoted && *s == ')') inside = false;
  }
  return s;
}

/* Parses the marks at the end of a type and moves *end before them. False when the mark after `@`
 * is unknown. */
static bool parse_marks(lt_Param *p, const char *s, const char **end) {
  p->spreads = *end - s > 3 && strncmp(*end - 3, "...", 3) == 0;
  if (p->spreads) *end -= 3;
  const char *at = memchr(s, '@', (size_t)(*end - s));
  if (at) {
    size_t n = (size_t)(*end - at);
    if (n == 5 && strncmp(at, "@host", n) == 0)
      p->place = LT_PLACE_HOST;
    else if (n == 4 && strncmp(at, "@any", n) == 0)
      p->place = LT_PLACE_ANY;
    else
      return false;
    *end = at;
  }
  char last = *end > s ? (*end)[-1] : 0;
  p->written = last == '!';
  p->shape_only = last == '~';
  if (p->written || p->shape_only) --*end;
  return true;
}

/* Parses a type, up to the next space. */
static bool parse_type(lt_Param *p, const char **text) {
  const char *s = skip(*text), *end = s + strcspn(s, " ");
  *text = end;
  if (!parse_marks(p, s, &end)) return false;
  if (end > s && end[-1] == '?') {
    p->optional = true;
    end--;
  }
  p->spelling = s;
  p->spelling_length = (int)(end - s);
  for (;;) {
    const char *stop = alternative_end(s, end);
    if (stop == s || !parse_alternative(p, s, stop)) return false;
    if (stop == end) break;
    s = stop + 1;
  }
  for (int t = 0; t < LT_PARAM_TYPE_COUNT; t++)
    if (p->types == 1u << t) p->type = (lt_ParamType)t;
  if (p->types & (p->types - 1)) p->type = LT_PARAM_UNION;
  return true;
}

/* Moves *s to the next quoted string of a type and returns its length; 0 when there is none. */
static int next_choice(const char **s, const char *end) {
  const char *from = memchr(*s, '\'', (size_t)(end - *s));
  if (!from) return 0;
  const char *to = memchr(from + 1, '\'', (size_t)(end - from - 1));
  *s = from + 1;
  return to ? (int)(to - from - 1) : 0;
}

bool lt_param_allows(const lt_Param *p, const char *word) {
  if (!p->has_choices) return true;
  const char *s = p->spelling, *end = s + p->spelling_length;
  for (int n; (n = next_choice(&s, end)) > 0; s += n + 1)
    if (strlen(word) == (size_t)n && strncmp(word, s, (size_t)n) == 0) return true;
  return false;
}

const char *lt_param_choices(const lt_Param *p, char *out, size_t size) {
  const char *s = p->spelling, *end = s + p->spelling_length, *more;
  size_t used = 0;
  *out = 0;
  for (int n; (n = next_choice(&s, end)) > 0 && used < size;) {
    more = s + n + 1;
    const char *behind = more;
    bool last = next_choice(&behind, end) == 0;
    used += (size_t)snprintf(out + used, size - used, "%s'%.*s'",
                             used == 0 ? ""
                             : last    ? " or "
                                       : ", ",
                             n, s);
    s = more;
  }
  return out;
}

/* ---- defaults ---- */

static bool parse_integer(const char *text, int64_t *out) {
  char *end;
  *out = strtoll(text, &end, 10);
  return end != text && *end == 0;
}

/* Returns true for types whose values are 1-based in signatures and 0-based in C. */
static bool is_counted(lt_ParamType type) {
  return type == LT_PARAM_DIM || type == LT_PARAM_DIMS || type == LT_PARAM_POSITION;
}

/* Parses the default of a list: "1", which is a list of one, or "{1, 2}". */
static bool parse_list(lt_Param *p, lt_ParamType type, const char *text) {
  enum { MOST = sizeof p->list / sizeof *p->list };
  bool braces = *text == '{';
  int n = 0;
  text = skip(text + braces);
  while (*text && *text != '}') {
    char *end;
    if (n == MOST) return false;
    int64_t i = strtoll(text, &end, 10);
    if (end == text) return false;
    p->list[n++] = is_counted(type) && i > 0 ? i - 1 : i;
    text = skip(end);
    if (*text == ',') text = skip(text + 1);
  }
  p->value = lt_arg_ints(p->list, n);
  return braces ? strcmp(text, "}") == 0 : n == 1 && *text == 0;
}

/* Parses a quoted default. In the text for help the quotes become Lua's usual ones. */
static bool parse_word(lt_Param *p, const char *text) {
  size_t n = strlen(text);
  if (n < 2 || (text[0] != '"' && text[0] != '\'') || text[n - 1] != text[0]) return false;
  snprintf(p->word, sizeof p->word, "%.*s", (int)n - 2, text + 1);
  p->text[0] = p->text[n - 1] = '"';
  p->value = lt_arg_string(p->word);
  return lt_param_allows(p, p->word);
}

/* Parses a default as a value of this type, and stores it; false when it is none. */
static bool parse_value(lt_Param *p, lt_ParamType type, const char *text) {
  char *end;
  int64_t i;
  double f = strtod(text, &end);
  bool number = end != text && *end == 0;
  switch (type) {
  case LT_PARAM_BOOL:
    p->value = lt_arg_bool(text[0] == 't');
    return strcmp(text, "true") == 0 || strcmp(text, "false") == 0;
  case LT_PARAM_FLOAT:
    p->value = lt_arg_float(f);
    return number && !(p->has_least && f < p->least);
  case LT_PARAM_INT:
  case LT_PARAM_DIM:
  case LT_PARAM_POSITION:
    if (!parse_integer(text, &i) || (p->has_least && (double)i < p->least)) return false;
    p->value = lt_arg_int(is_counted(type) && i > 0 ? i - 1 : i);
    return true;
  case LT_PARAM_STRING:
    return parse_word(p, text);
  case LT_PARAM_DTYPE:
    if (!parse_word(p, text)) return false;
    p->value = lt_arg_dtype(lt_dtype_from_name(p->word));
    return p->value.dtype != LT_DTYPE_NONE && (!p->dtypes || p->dtypes >> p->value.dtype & 1);
  case LT_PARAM_SIZES:
  case LT_PARAM_INTS:
  case LT_PARAM_DIMS:
    return parse_list(p, type, text);
  case LT_PARAM_FLOATS: /* these are only read by the host language */
  case LT_PARAM_INT_LISTS:
  case LT_PARAM_DIM_LISTS:
  case LT_PARAM_FLOAT_LISTS:
    return text[0] == '{' && text[strlen(text) - 1] == '}';
  case LT_PARAM_OPERAND:
  case LT_PARAM_SCALAR:
    p->value = lt_arg_scalar(parse_integer(text, &i) ? lt_scalar_int(i) : lt_scalar_float(f));
    return number;
  default:
    return false;
  }
}

/* Parses a default, which may be of any of the parameter's types. */
static bool parse_default(lt_Param *p, const char *text) {
  p->has_default = true;
  memcpy(p->text, text, strlen(text) + 1);
  if (strcmp(text, "nil") == 0) return p->optional;
  for (int t = 0; t < LT_PARAM_TYPE_COUNT; t++)
    if (p->types & (1u << t) && parse_value(p, (lt_ParamType)t, text)) return true;
  return false;
}

/* Returns the brace that closes the one at s; NULL when there is none. */
static const char *closing_brace(const char *s) {
  for (int depth = 0; *s; s++) {
    if (*s == '{') depth++;
    if (*s == '}' && --depth == 0) return s;
  }
  return NULL;
}

/* Reads the text of a default, including commas in a list or in quotes. */
static bool take_default(const char **s, char *out, size_t size) {
  const char *from = skip(*s), *close = NULL;
  if (*from == '{') close = closing_brace(from);
  if (*from == '"' || *from == '\'') close = strchr(from + 1, *from);
  if (!close) return take(s, ",)", out, size) && *out;
  size_t n = (size_t)(close - from) + 1;
  if (n >= size) return false;
  memcpy(out, from, n);
  out[n] = 0;
  *s = skip(close + 1);
  return true;
}

/* Parses one parameter: type, name, and default if there is one. */
static bool parse_param(lt_Param *p, const char **s) {
  char text[sizeof p->text];
  if (!parse_type(p, s)) return false;
  if (!take(s, "=,)", p->name, sizeof p->name) || !p->name[0] || strchr(p->name, ' ')) return false;
  if (**s != '=') return true;
  ++*s;
  return take_default(s, text, sizeof text) && parse_default(p, text);
}

/* Parses the results, "-> Tensor values, Index indices"; nothing means one Tensor. */
static bool parse_results(lt_Signature *g, const char *s) {
  char word[24];
  if (strncmp(s, "->", 2) != 0) { /* no results are stated: one Tensor */
    g->results = 1;
    return *s == 0;
  }
  s += 2;
  while (g->results < LT_MAX_OUT) {
    int i = g->results++;
    if (!take(&s, " ,", word, sizeof word) || !word[0]) return false;
    if (strcmp(word, "nil") == 0) { /* of maps and functions of the host: no results */
      g->results = 0;
      return i == 0 && *s == 0;
    }
    if (strcmp(word, "bool") == 0) g->result_is_flag = true;
    if (strstr(word, "[]")) g->result_is_list = true;
    g->result_is_index[i] = strncmp(word, "Index", 5) == 0;
    s = skip(s);
    if (strncmp(s, "or ", 3) == 0) { /* "Tensor or Index[]": depends on the arguments */
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

bool lt_signature_parse(lt_Signature *g, const char *text) {
  const char *s = text;
  memset(g, 0, sizeof *g);
  if (*s++ != '(') return false;
  while (*(s = skip(s)) != ')') {
    if (g->count == LT_MAX_PARAMS || !parse_param(&g->param[g->count++], &s)) return false;
    if (find_param(g, g->param[g->count - 1].name) != g->count - 1) return false; /* twice */
    if (*s == ',' && *skip(s + 1) != ')')
      s++;
    else if (*s != ')')
      return false;
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

/* Signatures are parsed on first use into static memory, so that no call fails because memory for
 * its signature is out. */
const lt_Signature *_Atomic lt_op_signatures[LT_OP_COUNT];

const lt_Signature *lt_op_parse(lt_OpId op) {
  static lt_Signature signatures[LT_OP_COUNT];
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  lt_Signature *g = &signatures[op];
  pthread_mutex_lock(&lock);
  if (!atomic_load(&lt_op_signatures[op])) {
    if (!lt_signature_parse(g, lt_ops[op].signature) || g->count > LT_MAX_ARGS) g->count = -1;
    g->of_op = true;
    atomic_store_explicit(&lt_op_signatures[op], g, memory_order_release);
  }
  pthread_mutex_unlock(&lock);
  return g;
}
