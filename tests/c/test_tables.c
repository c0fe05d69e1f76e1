/* test_tables.c: every table that grows with the ops is complete. */
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
  g = lt_op_signature(LT_OP_diagonal); /* dims count from 1 in the text, from 0 in C */
  CHECK_INT(g->param[2].value.i, 0);
  CHECK_INT(g->param[3].value.i, 1);
}

/* What stands behind a type: who writes the tensor, what of it is read, where it may be. */
static void signatures_have_marks(void) {
  const lt_Signature *g = lt_op_signature(LT_OP__adamw_step);
  CHECK_INT(g->written, 1 << 2 | 1 << 3);
  CHECK(g->param[2].written && g->param[2].type == LT_PARAM_TENSOR && !g->param[1].written);
  g = lt_op_signature(LT_OP_expand_as);
  CHECK(g->param[1].shape_only && !g->param[0].shape_only && !g->written);
  g = lt_op_signature(LT_OP__index);
  CHECK(g->param[1].place == LT_PLACE_HOST && g->param[1].type == LT_PARAM_TENSORS);
  g = lt_op_signature(LT_OP_copy_);
  CHECK(g->written == 1 && g->param[1].place == LT_PLACE_ANY);
  CHECK_INT(g->non_blocking_param, 2);
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
    /* Dispatch copies the tensor that may be anywhere, and as `non_blocking` says. */
    unsigned copied = LT_TRAIT_COPY | LT_TRAIT_BUILTIN;
    if ((o->traits & copied) == copied) CHECK(anywhere == 1 && g->non_blocking_param >= 0);
    if (o->traits & LT_TRAIT_BUILTIN) CHECK(o->kind == LT_KIND_KERNEL || o->kind == LT_KIND_UPDATE);
    CHECK((o->variants & ~(unsigned)LT_VARIANTS) == 0 && (o->traits & LT_VARIANTS) == 0);
  }
  CHECK(lt_ops[LT_OP_to].traits == (LT_TRAIT_COPY | LT_TRAIT_TRANSFER));
  CHECK_INT(lt_ops[LT_OP_add].traits, 0);
}

static void rows_are_whole(void) {
  for (int i = 0; i < LT_OP_COUNT; i++) {
    const lt_OpInfo *o = &lt_ops[i];
    const lt_Signature *g = lt_op_signature((lt_OpId)i);
    CHECK_INT(lt_op_find(o->name), i); /* no name twice */
    CHECK(strlen(o->doc) > 1);
    CHECK((o->kind == LT_KIND_ELEMENTWISE) == (o->infer == NULL));
    if (o->variants & (LT_VARIANT_METHOD | LT_VARIANT_IN_PLACE)) CHECK(g->takes_tensor);
    if (o->kind == LT_KIND_ELEMENTWISE)
      CHECK((o->has_float || o->has_integer) && o->inputs <= g->count);
    if (o->name[0] != '_') CHECK(o->variants || o->kind == LT_KIND_ELEMENTWISE);
  }
  CHECK_INT(lt_op_find("no_such_op"), -1);
}

/* The CPU and meta do everything. */
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
  RUN(traits_fit_their_rows);
  RUN(rows_are_whole);
  RUN(the_cpu_has_every_kernel);
  RUN(devices_are_listed);
  return check_end();
}
