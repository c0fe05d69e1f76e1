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
  RUN(rows_are_whole);
  RUN(the_cpu_has_every_kernel);
  RUN(devices_are_listed);
  return check_end();
}
