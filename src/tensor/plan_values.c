/* plan_values.c: values and buffers of a plan: which memory each value of a record is in, which
 * calls are equal, and what the results depend on. */
#include "plan.h"

static const lt_OpInfo *info_of(const lt_PlanBuilder *b, int call) {
  return &lt_ops[b->r->call[call].op];
}

static bool has_trait(const lt_PlanBuilder *b, int call, unsigned trait) {
  return (info_of(b, call)->traits & trait) != 0;
}

/* Returns true when the op only allocates memory. */
static bool allocates(const lt_PlanBuilder *b, int call) {
  return has_trait(b, call, LT_TRAIT_BUILTIN) && !has_trait(b, call, LT_TRAIT_COPY);
}

/* Returns true for the op that fills self with a number. */
static bool fills(const lt_PlanBuilder *b, int call) {
  const lt_OpInfo *info = info_of(b, call);
  return info->kind == LT_KIND_ELEMENTWISE && info->rule == LT_RULE_SELF &&
         has_trait(b, call, LT_TRAIT_COPY);
}

/* Returns the argument that an op with the traits COPY and BUILTIN copies. */
static int copied(const lt_RecordedCall *call) {
  const lt_Signature *g = lt_op_signature(call->op);
  for (int i = 0; i < g->count; i++)
    if (g->param[i].place == LT_PLACE_ANY && call->arg[i].kind == LT_ARG_TENSOR) return i;
  return 0;
}

int lt_plan_sources(const lt_PlanBuilder *b, int call, int source[3]) {
  const lt_RecordedCall *c = &b->r->call[call];
  const lt_OpInfo *info = info_of(b, call);
  if (fills(b, call)) return 0;
  if (info->kind == LT_KIND_ELEMENTWISE) {
    for (int i = 0; i < info->inputs; i++) source[i] = i;
    return info->inputs;
  }
  if (!has_trait(b, call, LT_TRAIT_COPY) || !has_trait(b, call, LT_TRAIT_BUILTIN)) return -1;
  source[0] = copied(c);
  return 1;
}

bool lt_plan_reads(const lt_PlanBuilder *b, int call, int k) {
  const lt_Param *p = &lt_op_signature(b->r->call[call].op)->param[k];
  if (p->shape_only) return false;
  if (!b->call[call].functional || k > 0) return true;
  int source[3], n = lt_plan_sources(b, call, source);
  return n > 0 && source[0] == 0;
}

/* ---- buffers --------------------------------------------------------------------------------- */

static bool same_geometry(const lt_Tensor *s, const lt_Tensor *t) {
  return s->dtype == t->dtype && s->offset == t->offset &&
         lt_shape_equal(s->ndim, s->shape, t->ndim, t->shape) &&
         lt_shape_equal(s->ndim, s->strides, t->ndim, t->strides);
}

static int new_buffer(lt_PlanBuilder *b, const lt_Storage *s, int made_by) {
  b->buffer[b->nbuffers] = (lt_PlanBuffer){.same = b->nbuffers,
                                           .kind = LT_BUFFER_NONE,
                                           .bytes = (int64_t)s->nbytes,
                                           .slot = -1,
                                           .made_by = made_by,
                                           .producer = -1,
                                           .first = -1,
                                           .last = -1};
  return b->nbuffers++;
}

/* Returns, for each storage by its first value, whether all of its values are the same elements,
 * all of the memory. NULL when memory is out. */
static bool *uniform_storages(lt_PlanBuilder *b) {
  const lt_Recorder *r = b->r;
  bool *uniform = calloc((size_t)r->nvalues + 1, sizeof *uniform);
  if (!uniform) return NULL;
  for (int v = 0; v < r->nvalues; v++) {
    const lt_RecordedValue *value = &r->value[v];
    const lt_Tensor *t = value->tensor;
    int root = value->earlier >= 0 ? b->value[value->earlier].root : v;
    b->value[v].root = root;
    if (root == v)
      uniform[v] = value->kind == LT_VALUE_RESULT && !lt_tensor_overlaps_itself(t) &&
                   (size_t)t->numel * lt_dtype_size(t->dtype) == t->storage->nbytes;
    else
      uniform[root] &= same_geometry(t, r->value[root].tensor);
  }
  return uniform;
}

/* Returns true when the call draws random numbers. */
static bool draws(const lt_RecordedCall *call) {
  const lt_Signature *g = lt_op_signature(call->op);
  for (int i = 0; i < g->count; i++)
    if (g->param[i].type == LT_PARAM_GENERATOR) return true;
  return false;
}

/* Marks the memory of a tensor argument, or of a list, as written. False with the error when a plan
 * cannot write it. */
static bool write_argument(lt_PlanBuilder *b, const lt_Arg *a) {
  const int64_t *value;
  int n = lt_plan_values_of(a, &value);
  for (int i = 0; i < n; i++) {
    int64_t v = value[i];
    if (v < 0) continue;
    const lt_RecordedValue *root = &b->r->value[b->value[v].root];
    if (root->kind == LT_VALUE_INPUT) return lt_error_set("it changes an argument in place");
    if (root->kind == LT_VALUE_CONSTANT || root->made)
      return lt_error_set("it changes a number in place");
    lt_buffer_of(b, v)->written = true;
  }
  return true;
}

/* Converts a number to a dtype, as memory of it would hold the number. */
static bool convert_number(lt_Scalar *s, lt_Dtype d) {
  char element[LT_MAX_ELEMENT];
  if (lt_dtype_is_complex(d) || s->kind == LT_COMPLEX || !lt_number_store(*s, d, element))
    return false;
  *s = lt_scalar_load(d, element);
  return true;
}

/* Notes the number that a result consists of: of a fill, or of a view or a copy of one. */
static void note_number(lt_PlanBuilder *b, int call) {
  const lt_RecordedCall *c = &b->r->call[call];
  if (c->nout != 1 || b->call[call].keeps_order) return;
  lt_PlanValue *out = &b->value[c->out[0]];
  int source[3];
  if (fills(b, call)) {
    if (c->arg[1].kind != LT_ARG_SCALAR) return;
    out->as = c->arg[1].scalar;
    out->number = true;
  } else if (info_of(b, call)->kind == LT_KIND_VIEW ||
             (info_of(b, call)->kind != LT_KIND_ELEMENTWISE &&
              lt_plan_sources(b, call, source) == 1)) {
    int at = info_of(b, call)->kind == LT_KIND_VIEW ? 0 : source[0];
    if (c->arg[at].kind != LT_ARG_TENSOR) return;
    out->number = b->value[c->arg[at].i].number && !lt_buffer_of(b, c->arg[at].i)->written;
    out->as = b->value[c->arg[at].i].as;
  }
  if (out->number) out->number = convert_number(&out->as, b->r->value[c->out[0]].tensor->dtype);
}

/* Assigns the buffers of the results of a call. */
static bool add_call(lt_PlanBuilder *b, int i, const bool *uniform) {
  const lt_RecordedCall *c = &b->r->call[i];
  const lt_Signature *g = lt_op_signature(c->op);
  int source[3];
  lt_PlanCall *known = &b->call[i];
  if (c->in_place) {
    const lt_OpInfo *info = info_of(b, i);
    bool whole = uniform[b->value[c->arg[0].i].root] && lt_plan_sources(b, i, source) >= 0;
    known->functional = whole && info->rule != LT_RULE_DIVIDE;
    if (!known->functional && !write_argument(b, &c->arg[0])) return false;
    known->keeps_order = !known->functional;
  }
  for (int k = 0; k < g->count; k++) {
    if (!(g->written >> k & 1)) continue;
    known->keeps_order = true;
    if (!write_argument(b, &c->arg[k])) return false;
  }
  if (draws(c)) known->keeps_order = true;
  for (int k = 0; k < c->nargs; k++)
    if (c->arg[k].kind == LT_ARG_GENERATOR) return lt_error_set("it uses a Generator");
  bool view = info_of(b, i)->kind == LT_KIND_VIEW;
  for (int k = 0; k < c->nout; k++) {
    lt_PlanValue *out = &b->value[c->out[k]];
    bool aliased = view || (k == 0 && c->in_place && !known->functional);
    out->buffer = aliased ? b->value[c->arg[0].i].buffer
                          : new_buffer(b, b->r->value[c->out[k]].tensor->storage, i);
  }
  note_number(b, i);
  return true;
}

/* Assigns the buffers of inputs, captured tensors and constants. */
static void add_given(lt_PlanBuilder *b) {
  for (int v = 0; v < b->r->nvalues; v++) {
    const lt_RecordedValue *value = &b->r->value[v];
    if (value->kind == LT_VALUE_RESULT || value->earlier >= 0) continue;
    b->value[v].buffer = new_buffer(b, value->tensor->storage, -1);
    b->buffer[b->value[v].buffer].external = true;
  }
}

/* ---- equal calls ----------------------------------------------------------------------------- */

static uint64_t mix(uint64_t h, uint64_t x) { return (h ^ x) * 0x9e3779b97f4a7c15u ^ (h >> 29); }

/* Returns true when two values are the same elements. */
static bool same_value(const lt_PlanBuilder *b, int64_t u, int64_t v) {
  if (u == v) return true;
  if (u < 0 || v < 0) return false;
  return lt_buffer_of(b, u) == lt_buffer_of(b, v) &&
         same_geometry(b->r->value[u].tensor, b->r->value[v].tensor);
}

static bool same_scalar(lt_Scalar s, lt_Scalar t) {
  return s.kind == t.kind && s.i == t.i && (s.kind != LT_COMPLEX || s.im == t.im);
}

/* Returns true when two arguments are equal. */
static bool same_argument(const lt_PlanBuilder *b, const lt_Arg *s, const lt_Arg *t) {
  if (s->kind != t->kind) return false;
  switch (s->kind) {
  case LT_ARG_NIL:
    return true;
  case LT_ARG_TENSOR:
    return same_value(b, s->i, t->i);
  case LT_ARG_TENSORS:
    for (int k = 0; k < s->count; k++)
      if (s->count != t->count || !same_value(b, s->ints[k], t->ints[k])) return false;
    return s->count == t->count;
  case LT_ARG_SCALAR:
    return same_scalar(s->scalar, t->scalar);
  case LT_ARG_INTS:
    return lt_shape_equal(s->count, s->ints, t->count, t->ints);
  case LT_ARG_STRING:
    return strcmp(s->string, t->string) == 0;
  case LT_ARG_BOOL:
    return s->b == t->b;
  case LT_ARG_FLOAT:
    return memcmp(&s->f, &t->f, sizeof s->f) == 0;
  case LT_ARG_DTYPE:
    return s->dtype == t->dtype;
  case LT_ARG_INT:
    return s->i == t->i;
  case LT_ARG_DEVICE:
    return lt_device_equal(s->device, t->device);
  default:
    return false;
  }
}

/* Returns true when two calls compute the same. */
static bool same_call(const lt_PlanBuilder *b, int i, int j) {
  const lt_RecordedCall *s = &b->r->call[i], *t = &b->r->call[j];
  if (s->op != t->op || s->compute != t->compute || s->folded != t->folded || s->nout != t->nout ||
      s->nargs != t->nargs || (i < b->mark) != (j < b->mark))
    return false;
  for (int k = 0; k < s->nout; k++)
    if (!same_geometry(b->r->value[s->out[k]].tensor, b->r->value[t->out[k]].tensor)) return false;
  for (int k = 0; k < s->nargs; k++)
    if ((lt_plan_reads(b, i, k) || lt_plan_reads(b, j, k)) &&
        !same_argument(b, &s->arg[k], &t->arg[k]))
      return false;
  return true;
}

/* Returns true when an equal call may replace the call. */
static bool is_pure(const lt_PlanBuilder *b, int i) {
  const lt_RecordedCall *c = &b->r->call[i];
  if (b->call[i].keeps_order || info_of(b, i)->kind == LT_KIND_VIEW || allocates(b, i) || !c->nout)
    return false;
  for (int k = 0; k < c->nargs; k++) {
    const lt_Arg *a = &c->arg[k];
    if (a->kind == LT_ARG_TENSOR && lt_buffer_of(b, a->i)->written) return false;
    for (int j = 0; a->kind == LT_ARG_TENSORS && j < a->count; j++)
      if (a->ints[j] >= 0 && lt_buffer_of(b, a->ints[j])->written) return false;
  }
  for (int k = 0; k < c->nout; k++)
    if (lt_buffer_of(b, c->out[k])->written) return false;
  return true;
}

static uint64_t hash_call(const lt_PlanBuilder *b, int i) {
  const lt_RecordedCall *c = &b->r->call[i];
  uint64_t h = mix(mix(1469598103934665603u, (uint64_t)c->op), i < b->mark);
  for (int k = 0; k < c->nargs; k++) {
    const lt_Arg *a = &c->arg[k];
    if (a->kind == LT_ARG_TENSOR && lt_plan_reads(b, i, k))
      h = mix(h, (uint64_t)(lt_buffer_of(b, a->i) - b->buffer));
    if (a->kind == LT_ARG_SCALAR) h = mix(h, (uint64_t)a->scalar.i);
  }
  return h;
}

/* Lets equal calls share their results. */
static bool merge_equal(lt_PlanBuilder *b) {
  int slots = 64;
  while (slots < 2 * b->r->ncalls) slots *= 2;
  int *slot = calloc((size_t)slots, sizeof *slot);
  if (!slot) return lt_fail_memory();
  for (int i = 0; i < b->r->ncalls; i++) {
    const lt_RecordedCall *c = &b->r->call[i];
    if (!is_pure(b, i)) continue;
    int at = (int)(hash_call(b, i) >> 20) & (slots - 1);
    while (slot[at] && !same_call(b, slot[at] - 1, i)) at = (at + 1) & (slots - 1);
    if (!slot[at]) {
      slot[at] = i + 1;
      continue;
    }
    const lt_RecordedCall *first = &b->r->call[slot[at] - 1];
    for (int k = 0; k < c->nout; k++)
      lt_buffer_of(b, c->out[k])->same = (int)(lt_buffer_of(b, first->out[k]) - b->buffer);
  }
  free(slot);
  return true;
}

bool lt_plan_values(lt_PlanBuilder *b) {
  bool *uniform = uniform_storages(b), ok = uniform || lt_fail_memory();
  if (ok) add_given(b);
  for (int i = 0; ok && i < b->r->ncalls; i++) ok = add_call(b, i, uniform);
  free(uniform);
  if (!ok) return false;
  for (int v = 0; v < b->r->nvalues; v++)
    if (lt_buffer_of(b, v)->written) b->value[v].number = false; /* or no longer, after a write */
  return merge_equal(b);
}

/* ---- what the results need ------------------------------------------------------------------- */

/* Marks the memory that an argument is read from. */
static void need_argument(lt_PlanBuilder *b, int call, int k, bool elementwise) {
  const lt_Arg *a = &b->r->call[call].arg[k];
  const int64_t *value;
  int n = lt_plan_values_of(a, &value);
  for (int i = 0; i < n; i++) {
    int64_t v = value[i];
    if (v < 0 || (elementwise && b->value[v].number)) continue;
    lt_buffer_of(b, v)->needed = true;
  }
}

/* Returns true when the call must run: something needs a result, or a buffer that it writes. */
static bool is_needed(const lt_PlanBuilder *b, int i) {
  const lt_RecordedCall *c = &b->r->call[i];
  const lt_Signature *g = lt_op_signature(c->op);
  if (draws(c)) return true;
  for (int k = 0; k < c->nout; k++)
    if (lt_buffer_of(b, c->out[k])->needed) return true;
  for (int k = 0; k < c->nargs; k++) {
    if (!(g->written >> k & 1) && !(k == 0 && c->in_place && !b->call[i].functional)) continue;
    const lt_Arg *a = &c->arg[k];
    const int64_t *value;
    int n = lt_plan_values_of(a, &value);
    for (int j = 0; j < n; j++) {
      int64_t v = value[j];
      if (v >= 0 && (lt_buffer_of(b, v)->needed || lt_buffer_of(b, v)->external)) return true;
    }
  }
  return false;
}

/* Returns true when an earlier, equal call computes the results of call i. */
static bool is_replaced(const lt_PlanBuilder *b, int i) {
  const lt_RecordedCall *c = &b->r->call[i];
  if (!c->nout || b->call[i].keeps_order || info_of(b, i)->kind == LT_KIND_VIEW) return false;
  int own = b->value[c->out[0]].buffer;
  return b->buffer[own].same != own;
}

void lt_plan_need(lt_PlanBuilder *b, const int *out, int nout) {
  for (int i = 0; i < b->nbuffers; i++) b->buffer[i].needed = false;
  for (int i = 0; i < nout; i++)
    if (out[i] >= 0) lt_buffer_of(b, out[i])->needed = true;
  for (int k = lt_plan_calls(b) - 1; k >= 0; k--) {
    int i = lt_plan_call(b, k), source[3];
    const lt_RecordedCall *c = &b->r->call[i];
    b->call[i].needed = false;
    if (info_of(b, i)->kind == LT_KIND_VIEW || is_replaced(b, i) || !is_needed(b, i)) continue;
    b->call[i].needed = !allocates(b, i);
    bool elementwise = lt_plan_sources(b, i, source) >= 0 && !b->call[i].keeps_order;
    for (int a = 0; a < c->nargs; a++)
      if (lt_plan_reads(b, i, a)) need_argument(b, i, a, elementwise);
  }
}
