/* test_tables.c: every table that grows with the ops is complete. */
#include "maps.h"
#include "opids.h"
#include "check.h"
#include "core.h"

static void signatures_parse(void) {
  for (int i = 0; i < LT_OP_COUNT; i++) {
    const lt_Signature *g = lt_op_signature((lt_OpId)i);
    if (g->count < 1)
      check_report(__FILE__, __LINE__, "%s's signature does not parse: %s", lt_ops[i].name,
                   lt_ops[i].signature);
  }
  const lt_Signature *g = lt_op_signature(LT_OP__max);
  CHECK_INT(g->results, 2);
  CHECK(g->result_is_index[1] && !g->result_is_index[0] && g->takes_tensor);
  CHECK_STR(g->result_name[1], "indices");
  CHECK_STR(g->param[1].name, "dim");
  CHECK(g->param[1].type == LT_PARAM_DIM && !g->param[1].has_default);
  CHECK(g->param[2].has_default && g->param[2].value.kind == LT_ARG_BOOL && !g->param[2].value.b);
  g = lt_op_signature(LT_OP_diagonal); /* dims count from 1 in the signature, from 0 in C */
  CHECK_INT(g->param[2].value.i, 0);
  CHECK_INT(g->param[3].value.i, 1);
}

/* The marks after a type: the tensor is written, only its shape is read, where it may be. */
static void signatures_have_marks(void) {
  const lt_Signature *g = lt_op_signature(LT_OP__adam_step);
  CHECK_INT(g->written, 1 << 0 | 1 << 2 | 1 << 3);
  CHECK(g->param[2].written && g->param[2].type == LT_PARAM_TENSORS && !g->param[1].written);
  g = lt_op_signature(LT_OP__sgd_step);
  CHECK(g->param[2].written && g->param[2].optional && g->param[2].type == LT_PARAM_TENSORS);
  g = lt_op_signature(LT_OP_expand_as);
  CHECK(g->param[1].shape_only && !g->param[0].shape_only && !g->written);
  g = lt_op_signature(LT_OP__index);
  CHECK(g->param[1].place == LT_PLACE_HOST && g->param[1].type == LT_PARAM_TENSORS);
  g = lt_op_signature(LT_OP_copy_);
  CHECK(g->written == 1 && g->param[1].place == LT_PLACE_ANY);
  CHECK_INT(g->non_blocking_param, 2);
}

/* A map's lists of tensors and numbers agree with its signature. */
static void maps_fit_their_signatures(void) {
  for (int id = 0; id < LT_MAP_COUNT; id++) {
    const lt_MapInfo *m = lt_map_info(id);
    const lt_OpInfo *o = &lt_ops[m->op];
    const lt_Signature *g = lt_op_signature(m->op);
    char names[512] = "";
    CHECK_INT(lt_map_id(m->op), id);
    CHECK(o->kind == LT_KIND_MAP && o->variants == 0 && g->results == 0);
    CHECK_INT(g->count, m->tensors + m->given);
    for (int i = 0; i < g->count && i < m->tensors; i++)
      CHECK(g->param[i].type == LT_PARAM_TENSORS && g->param[i].place == LT_PLACE_DEVICE);
    CHECK(!g->param[0].optional);
    for (const char *s = m->names, *end; (end = strchr(s, ',')) != NULL; s = end + 2) {
      int i = 0; /* the index of this tensor */
      for (const char *before = m->names; before < s; before++) i += *before == ',';
      if (i >= g->count) break;
      bool tensor = i < m->tensors;
      snprintf(names, sizeof names, "GIVEN %s", g->param[i].name);
      if (tensor)
        CHECK((strncmp(s, "WRITES", 6) == 0) == g->param[i].written &&
              (strncmp(s, "WRITES_OPTIONAL", 15) == 0) == g->param[i].optional);
      else
        CHECK(strlen(names) == (size_t)(end - s) && strncmp(s, names, strlen(names)) == 0);
      lt_ParamType type = g->param[i].type;
      CHECK(tensor || type == LT_PARAM_FLOAT || type == LT_PARAM_INT || type == LT_PARAM_BOOL);
    }
  }
  CHECK_INT(lt_map_id(LT_OP_add), -1);
}

static void traits_fit_their_rows(void) {
  for (int i = 0; i < LT_OP_COUNT; i++) {
    const lt_OpInfo *o = &lt_ops[i];
    const lt_Signature *g = lt_op_signature((lt_OpId)i);
    int anywhere = 0;
    for (int p = 0; p < g->count; p++) {
      bool takes_tensor = g->param[p].type <= LT_PARAM_INDEX;
      CHECK(takes_tensor || (!g->param[p].written && !g->param[p].shape_only &&
                             g->param[p].place == LT_PLACE_DEVICE));
      anywhere += g->param[p].place == LT_PLACE_ANY;
    }
    /* Dispatch copies the tensor that may be on any device, as `non_blocking` requires. */
    unsigned copied = LT_TRAIT_COPY | LT_TRAIT_BUILTIN;
    if ((o->traits & copied) == copied) CHECK(anywhere == 1 && g->non_blocking_param >= 0);
    if (o->traits & LT_TRAIT_BUILTIN) CHECK(o->kind == LT_KIND_KERNEL || o->kind == LT_KIND_UPDATE);
    CHECK((o->variants & ~(unsigned)LT_VARIANTS) == 0 && (o->traits & LT_VARIANTS) == 0);
  }
  CHECK(lt_ops[LT_OP_to].traits == (LT_TRAIT_COPY | LT_TRAIT_TRANSFER));
  CHECK_INT(lt_ops[LT_OP_add].traits, 0);
}

/* Parses a signature of one parameter, and returns that; NULL when it does not parse. */
static const lt_Param *parse(lt_Signature *g, const char *text) {
  return lt_signature_parse(g, text) && g->count == 1 ? g->param : NULL;
}

static void defaults_are_values(void) {
  lt_Signature g;
  const lt_Param *p = parse(&g, "(ints stride = 1)");
  CHECK(p && p->value.kind == LT_ARG_INTS && p->value.count == 1 && p->value.ints[0] == 1);
  p = parse(&g, "(ints stride = {1, 2, -3})");
  CHECK(p && p->value.count == 3 && p->value.ints[1] == 2 && p->value.ints[2] == -3);
  if (p) CHECK_STR(p->text, "{1, 2, -3}");
  p = parse(&g, "(dims dims = {1, -1})"); /* counted from 1, from 0 in C */
  CHECK(p && p->value.count == 2 && p->value.ints[0] == 0 && p->value.ints[1] == -1);
  p = parse(&g, "(dims dims = {})");
  CHECK(p && p->has_default && p->value.kind == LT_ARG_INTS && p->value.count == 0);
  p = parse(&g, "(string text = 'a, b')");
  CHECK(p && p->value.kind == LT_ARG_STRING);
  if (p) CHECK_STR(p->value.string, "a, b");
  if (p) CHECK_STR(p->text, "\"a, b\"");
  p = parse(&g, "(string prefix = '')");
  CHECK(p && p->value.kind == LT_ARG_STRING && p->value.string[0] == 0);
  p = parse(&g, "(Tensor? weight = nil)");
  CHECK(p && p->optional && p->has_default && p->value.kind == LT_ARG_NIL);
}

static void lists_of_lists_are_types(void) {
  static const struct {
    const char *text;
    lt_ParamType type;
  } rows[] = {{"(ints[] pairs = {{1, 2}, {3}})", LT_PARAM_INT_LISTS},
              {"(dims[] dims = {{1}, {-1}})", LT_PARAM_DIM_LISTS},
              {"(floats[](>=0) limits = {{}, {0.5}})", LT_PARAM_FLOAT_LISTS},
              {"(Tensor[][]? sequences = nil)", LT_PARAM_TENSOR_LISTS}};
  lt_Signature g;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const lt_Param *p = parse(&g, rows[i].text);
    CHECK(p && p->type == rows[i].type && p->has_default);
  }
  const lt_Param *p = parse(&g, "(int|dims[] dims = 2)");
  CHECK(p && p->type == LT_PARAM_UNION && p->value.kind == LT_ARG_INT && p->value.i == 2);
  p = parse(&g, "(ints[] pairs = {{1, 2}, {3}})");
  if (p) CHECK_STR(p->text, "{{1, 2}, {3}}");
  CHECK(!parse(&g, "(int[] pairs)") && !parse(&g, "(ints[][] pairs)"));
  CHECK(!parse(&g, "(ints[] pairs = {{1, 2})") && !parse(&g, "(ints[] pairs = 1)"));
  for (int op = 0; op < LT_OP_COUNT; op++) /* only functions of a host language have them */
    for (int i = 0; i < lt_op_signature((lt_OpId)op)->count; i++)
      CHECK(lt_op_signature((lt_OpId)op)->param[i].type <= LT_PARAM_UNION);
}

static void namespaces_have_names(void) {
  CHECK_STR(lt_namespaces[LT_SPACE_NN].name, "F");
  CHECK_STR(lt_namespace_op_name(LT_SPACE_LINALG, "linalg_norm"), "norm");
  CHECK_STR(lt_namespace_op_name(LT_SPACE_SPECIAL, "linalg_norm"), "linalg_norm");
  CHECK_STR(lt_namespace_op_name(LT_SPACE_LINALG, "linalgnorm"), "linalgnorm");
  CHECK_STR(lt_namespace_op_name(LT_SPACE_FFT, "fft_fft"), "fft");
  CHECK(lt_ops[LT_OP_erf].variants & LT_VARIANT_SPECIAL);
  CHECK(!(lt_ops[LT_OP_erf].variants & LT_VARIANT_NN));
}

static void types_have_limits(void) {
  lt_Signature g;
  char text[64];
  const lt_Param *p = parse(&g, "('mean'|'sum'|'none' reduction = 'mean')");
  CHECK(p && p->type == LT_PARAM_STRING && lt_param_allows(p, "sum") && lt_param_allows(p, "none"));
  CHECK(p && !lt_param_allows(p, "su") && !lt_param_allows(p, "sums") && !lt_param_allows(p, "|"));
  if (p) CHECK_STR(lt_param_choices(p, text, sizeof text), "'mean', 'sum' or 'none'");
  if (p) CHECK_STR(p->value.string, "mean");
  p = parse(&g, "('floor'|'trunc'? mode = nil)");
  CHECK(p && p->optional && p->has_choices);
  if (p) CHECK_STR(lt_param_choices(p, text, sizeof text), "'floor' or 'trunc'");
  p = parse(&g, "(string|ints padding = 0)");
  CHECK(p && p->type == LT_PARAM_UNION && p->value.kind == LT_ARG_INTS && p->value.ints[0] == 0);
  p = parse(&g, "('same'|'valid'|ints padding = 'valid')");
  CHECK(p && p->type == LT_PARAM_UNION && p->value.kind == LT_ARG_STRING);
  CHECK(p && p->types == (1u << LT_PARAM_STRING | 1u << LT_PARAM_INTS));
  p = parse(&g, "(Tensor|dim? dim = nil)");
  CHECK(p && p->type == LT_PARAM_UNION && p->optional);
  if (p) CHECK(p->spelling_length == 10 && strncmp(p->spelling, "Tensor|dim", 10) == 0);
  p = parse(&g, "(int(>=1) k)");
  CHECK(p && p->type == LT_PARAM_INT && p->has_least && p->least == 1);
  p = parse(&g, "(ints(false) size)");
  CHECK(p && p->type == LT_PARAM_INTS && p->has_gaps && !p->has_least);
  p = parse(&g, "(dtype(float32|float64)? dtype = nil)");
  CHECK(p && p->type == LT_PARAM_DTYPE && p->dtypes == (1u << LT_float32 | 1u << LT_float64));
}

static void malformed_signatures_fail(void) {
  static const char *const texts[] = {
      "",
      "int n",
      "(int)",
      "(int n",
      "(int n,)",
      "(int n int m)",
      "(integer n)",
      "(int n, int n)",
      "(int n = )",
      "(int n = one)",
      "(int n = 1.5)",
      "(int(>=1) n = 0)",
      "(int(>1) n)",
      "(int(>=) n)",
      "(int() n)",
      "(int(>=1 n)",
      "(int(false) n)",
      "(int| n)",
      "(|int n)",
      "(int|int n)",
      "(int n = nil)",
      "(bool b = yes)",
      "(string s = word)",
      "(string s = 'word)",
      "('a'|'b' s = 'c')",
      "('a'|b s)",
      "('a s)",
      "(string|'a' s)",
      "('' s)",
      "(dtype(float7) d)",
      "(dtype() d)",
      "(dtype d = 'float7')",
      "(dims d = {1, two})",
      "(dims d = {1)",
      "(ints n = {1, 2, 3, 4, 5})",
      "(Tensor x = 1)",
      "(int a_name_of_many_more_letters_than_fit)",
      "(int n) ->",
      "(int n) Tensor",
      "(int n) -> Tensor, ",
  };
  lt_Signature g;
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    if (lt_signature_parse(&g, texts[i]))
      check_report(__FILE__, __LINE__, "it parses: %s", texts[i]);
}

/* No row uses a type that only a host language can read. */
static void rows_use_types_of_the_core_only(void) {
  for (int i = 0; i < LT_OP_COUNT; i++) {
    const lt_Signature *g = lt_op_signature((lt_OpId)i);
    for (int p = 0; p < g->count; p++) CHECK(g->param[p].types < 1u << LT_PARAM_UNION);
  }
}

/* Called from C, an op names the argument and what is allowed. */
static void invalid_arguments_are_refused(void) {
  const int64_t two = 2;
  lt_Tensor *x = lt_op1(LT_OP_ones, (lt_Arg[]){LT_INTS(&two, 1)}, 1);
  lt_Results r;
  CHECK(!lt_call(LT_OP_gelu, false, (lt_Arg[]){lt_arg_tensor(x), lt_arg_string("fast")}, 2, &r));
  CHECK_STR(lt_error(),
            "gelu: expected 'none' or 'tanh' for argument 'approximate', got the string \"fast\"");
  CHECK(!lt_call(LT_OP_max, false, (lt_Arg[]){lt_arg_tensor(x), lt_arg_string("fast")}, 2, &r));
  CHECK_STR(lt_error(), "max: expected Tensor|int for argument 'dim', got a string");
  lt_release(x);
}

static void rows_are_complete(void) {
  for (int i = 0; i < LT_OP_COUNT; i++) {
    const lt_OpInfo *o = &lt_ops[i];
    const lt_Signature *g = lt_op_signature((lt_OpId)i);
    CHECK_INT(lt_op_find(o->name), i); /* names are unique */
    CHECK(strlen(o->doc) > 1);
    CHECK((o->kind == LT_KIND_ELEMENTWISE) == (o->infer == NULL));
    if (o->variants & (LT_VARIANT_METHOD | LT_VARIANT_IN_PLACE)) CHECK(g->takes_tensor);
    if (o->kind == LT_KIND_ELEMENTWISE)
      CHECK((o->has_float || o->has_integer) && o->inputs <= g->count);
    if (o->name[0] != '_') CHECK(o->variants || o->kind == LT_KIND_ELEMENTWISE);
  }
  CHECK_INT(lt_op_find("no_such_op"), -1);
}

/* The CPU and meta support every op. */
static void the_cpu_has_every_kernel(void) {
  for (int i = 0; i < LT_OP_COUNT; i++) {
    if (!lt_op_supported((lt_OpId)i, LT_DEVICE_cpu, LT_DTYPE_NONE))
      check_report(__FILE__, __LINE__, "the CPU has no kernel for %s", lt_ops[i].name);
    CHECK(lt_op_supported((lt_OpId)i, LT_DEVICE_meta, LT_DTYPE_NONE));
  }
}

static void devices_are_listed(void) {
  CHECK_STR(lt_device_type_name(LT_DEVICE_cpu), "cpu");
  CHECK_STR(lt_device_name(lt_meta()), "meta");
  CHECK_INT(lt_device_count(LT_DEVICE_cpu, NULL, 0), 1);
}

int main(void) {
  RUN(signatures_parse);
  RUN(signatures_have_marks);
  RUN(maps_fit_their_signatures);
  RUN(traits_fit_their_rows);
  RUN(defaults_are_values);
  RUN(lists_of_lists_are_types);
  RUN(namespaces_have_names);
  RUN(types_have_limits);
  RUN(malformed_signatures_fail);
  RUN(rows_use_types_of_the_core_only);
  RUN(invalid_arguments_are_refused);
  RUN(rows_are_complete);
  RUN(the_cpu_has_every_kernel);
  RUN(devices_are_listed);
  return check_end();
}
