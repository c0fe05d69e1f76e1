/* program.c: elementwise programs: created from a record, and run by a device. */
#include "program.h"
#include "recorder.h"

/* ---- building -------------------------------------------------------------------------------- */

/* A value of the record: whether the outputs depend on it, and which value of the program it is. */
typedef struct ValueInfo {
  bool needed;
  lt_StepInput as;
  lt_Dtype dtype;
} ValueInfo;

/* The state while a program is built from a record. */
typedef struct Builder {
  const lt_Recorder *r;
  int strict;
  ValueInfo *known; /* by the value's number in the record */
  lt_Program *p;
} Builder;

void lt_program_free(lt_Program *p) {
  if (!p) return;
  free(p->dtype);
  free(p->step);
  free(p->out);
  free(p->out_dtype);
  free(p->by_row);
  free(p);
}

lt_Program *lt_program_alloc(int inputs, int calls, int outputs) {
  lt_Program *p = calloc(1, sizeof *p);
  if (!p) return NULL;
  p->dtype = calloc((size_t)inputs + 1, sizeof *p->dtype);
  p->step = calloc(2 * (size_t)calls + 1, sizeof *p->step); /* a call may need a conversion, too */
  p->out = calloc((size_t)outputs + 1, sizeof *p->out);
  p->out_dtype = calloc((size_t)outputs + 1, sizeof *p->out_dtype);
  p->by_row = calloc((size_t)inputs + (size_t)outputs + 1, sizeof *p->by_row);
  if (p->dtype && p->step && p->out && p->out_dtype && p->by_row) return p;
  lt_program_free(p);
  return NULL;
}

/* What a call that is not elementwise becomes in a program. */
typedef enum Role {
  ROLE_NONE,   /* it cannot be part of one */
  ROLE_SAME,   /* its result is the source's value, converted to the result's dtype */
  ROLE_NOTHING /* its result is uninitialized memory, which other calls fill */
} Role;

/* Returns the index of the tensor argument that a call copies, sums or views. */
static int source_of(const lt_RecordedCall *call) {
  const lt_Signature *g = lt_op_signature(call->op);
  for (int i = 0; i < g->count; i++)
    if (g->param[i].place == LT_PLACE_ANY && call->arg[i].kind == LT_ARG_TENSOR) return i;
  return 0;
}

/* Returns the role of call i, which is not elementwise. */
static Role role_of(const Builder *m, int i) {
  const lt_RecordedCall *call = &m->r->call[i];
  const lt_OpInfo *info = &lt_ops[call->op];
  bool copies = (info->traits & LT_TRAIT_COPY) != 0;
  if (call->in_place || call->nout != 1) return ROLE_NONE;
  if (copies && call->arg[source_of(call)].kind == LT_ARG_TENSOR) return ROLE_SAME;
  if (info->traits & LT_TRAIT_BUILTIN) return copies ? ROLE_NONE : ROLE_NOTHING;
  if (i < m->strict || call->arg[0].kind != LT_ARG_TENSOR) return ROLE_NONE;
  if (info->kind == LT_KIND_VIEW) return ROLE_SAME;
  return info->kind == LT_KIND_REDUCE && info->rule == LT_RULE_SUM ? ROLE_SAME : ROLE_NONE;
}

static bool is_elementwise(const lt_RecordedCall *call) {
  return lt_ops[call->op].kind == LT_KIND_ELEMENTWISE;
}

/* Marks the values that the outputs depend on. Fails when a call among them cannot be part of a
 * program. */
static bool mark(Builder *m) {
  for (int i = m->r->ncalls - 1; i >= 0; i--) {
    const lt_RecordedCall *call = &m->r->call[i];
    bool needed = false;
    for (int k = 0; k < call->nout; k++) needed |= m->known[call->out[k]].needed;
    if (!needed) continue;
    Role role = is_elementwise(call) ? ROLE_SAME : role_of(m, i);
    if (role == ROLE_NONE)
      return lt_error_set("'%s%s' is not an elementwise op", lt_ops[call->op].name,
                          call->in_place ? "_" : "");
    for (int k = 0; k < call->nargs; k++)
      if (call->arg[k].kind == LT_ARG_TENSOR) m->known[call->arg[k].i].needed = true;
  }
  return true;
}

/* Returns true when two numbers have the same kind and bits, so that -0 differs from 0. */
static bool same_number(lt_Scalar a, lt_Scalar b) {
  if (a.kind != b.kind) return false;
  return a.kind == LT_FLOATING ? memcmp(&a.f, &b.f, sizeof a.f) == 0 : a.i == b.i;
}

/* Returns true when two steps compute the same. */
static bool same_step(const lt_Step *s, const lt_Step *t) {
  if (s->op != t->op || s->compute != t->compute || s->result != t->result ||
      s->inputs != t->inputs || s->by_row != t->by_row || s->reduces != t->reduces ||
      s->id != t->id || s->amount != t->amount || !same_number(s->a, t->a) ||
      !same_number(s->b, t->b))
    return false;
  for (int i = 0; i < s->inputs; i++)
    if (s->input[i].value != t->input[i].value ||
        (s->input[i].value < 0 && !same_number(s->input[i].number, t->input[i].number)))
      return false;
  return true;
}

lt_StepInput lt_program_step(lt_Program *p, const lt_Step *step) {
  int i = 0;
  while (i < p->nsteps && !same_step(&p->step[i], step)) i++;
  if (i == p->nsteps) p->step[p->nsteps++] = *step;
  return (lt_StepInput){p->ninputs + i, lt_scalar_int(0)};
}

lt_StepInput lt_program_convert(lt_Program *p, lt_StepInput in, lt_Dtype from, lt_Dtype to,
                                bool by_row) {
  if (from == to || in.value < 0) return in; /* a number needs no conversion */
  lt_Step step = {.op = LT_NO_OP,
                  .compute = lt_dtype_compute(to),
                  .result = to,
                  .inputs = 1,
                  .input = {in},
                  .by_row = by_row,
                  .a = lt_scalar_int(0),
                  .b = lt_scalar_int(0)};
  return lt_program_step(p, &step);
}

/* Returns the scalar argument i (0-based) after the inputs: a or b of the op's expression. */
static lt_Scalar extra(const lt_RecordedCall *call, int i) {
  i += lt_ops[call->op].inputs;
  if (i >= call->nargs) return lt_scalar_int(0);
  const lt_Arg *a = &call->arg[i];
  return a->kind == LT_ARG_FLOAT ? lt_scalar_float(a->f) : a->scalar;
}

lt_StepInput lt_program_add(lt_Program *p, const lt_RecordedCall *call, const lt_StepInput *input,
                            lt_Dtype result, bool by_row) {
  const lt_OpInfo *info = &lt_ops[call->op];
  bool test = info->rule == LT_RULE_TEST;
  if (info->traits & LT_TRAIT_COPY && info->rule == LT_RULE_SELF) /* fill: the value is a number */
    return (lt_StepInput){-1, extra(call, 0)};
  lt_Dtype given = test ? LT_bool : result;
  if (!test && lt_dtype_compute(given) != call->compute) given = call->compute; /* in place */
  lt_Step step = {.op = call->op,
                  .compute = call->compute,
                  .result = given,
                  .divides = info->rule == LT_RULE_DIVIDE &&
                             lt_dtype_category(call->compute) == LT_INTEGER,
                  .by_row = by_row,
                  .inputs = info->inputs,
                  .a = extra(call, 0),
                  .b = extra(call, 1)};
  memcpy(step.input, input, sizeof *input * (size_t)info->inputs);
  for (int k = 0; info->is_wide && k < info->inputs; k++) {
    const int value = input[k].value;
    if (value < 0) continue;
    lt_Dtype d = value < p->ninputs ? p->dtype[value] : p->step[value - p->ninputs].result;
    if (lt_op_rounds(call->op, d, result)) /* first, as a call does */
      step.input[k] = lt_program_convert(p, input[k], d, LT_float32, by_row);
  }
  return lt_program_convert(p, lt_program_step(p, &step), given, result, by_row);
}

/* Appends the steps of an elementwise call. */
static void add_elementwise(Builder *m, const lt_RecordedCall *call, ValueInfo *out) {
  lt_StepInput input[3];
  for (int i = 0; i < lt_ops[call->op].inputs; i++)
    input[i] = call->arg[i].kind == LT_ARG_TENSOR ? m->known[call->arg[i].i].as
                                                  : (lt_StepInput){-1, call->arg[i].scalar};
  out->as = lt_program_add(m->p, call, input, out->dtype, false);
}

/* Appends what a call becomes, if the outputs depend on it. */
static void add_call(Builder *m, int i) {
  const lt_RecordedCall *call = &m->r->call[i];
  ValueInfo *out = &m->known[call->out[0]];
  if (!out->needed) return;
  if (is_elementwise(call)) {
    add_elementwise(m, call, out);
  } else if (role_of(m, i) == ROLE_NOTHING) {
    out->as = (lt_StepInput){-1, lt_scalar_int(0)};
  } else {
    const ValueInfo *source = &m->known[call->arg[source_of(call)].i];
    out->as = lt_program_convert(m->p, source->as, source->dtype, out->dtype, false);
  }
}

/* Numbers the inputs and reads the constants. */
static bool begin(Builder *m) {
  for (int i = 0; i < m->r->nvalues; i++) {
    const lt_RecordedValue *v = &m->r->value[i];
    ValueInfo *known = &m->known[i];
    known->dtype = v->tensor->dtype;
    known->as = (lt_StepInput){-1, lt_scalar_int(0)};
    if (v->kind == LT_VALUE_CONSTANT && !lt_tensor_item(v->tensor, &known->as.number)) return false;
    if (v->kind != LT_VALUE_INPUT) continue;
    known->as.value = m->p->ninputs;
    m->p->dtype[m->p->ninputs++] = known->dtype;
  }
  return true;
}

/* Builds the program for the tensors `out`. */
static bool make(Builder *m, int nout, lt_Tensor *const *out) {
  if (!begin(m)) return false;
  for (int i = 0; i < nout; i++) {
    int value = lt_recorder_value(m->r, out[i]);
    if (value < 0) return lt_error_set("program: expected outputs that were recorded");
    m->known[value].needed = true;
  }
  if (!mark(m)) return false;
  for (int i = 0; i < m->r->ncalls; i++) add_call(m, i);
  for (int i = 0; i < nout; i++) {
    const ValueInfo *known = &m->known[lt_recorder_value(m->r, out[i])];
    m->p->out[i] = known->as;
    m->p->out_dtype[i] = known->dtype;
  }
  m->p->nout = nout;
  return true;
}

lt_Program *lt_program_new(const lt_Recorder *r, int strict, int nout, lt_Tensor *const *out) {
  Builder m = {.r = r, .strict = strict, .p = lt_program_alloc(r->nvalues, r->ncalls, nout)};
  m.known = calloc((size_t)r->nvalues + 1, sizeof *m.known);
  bool ok = m.p && m.known ? make(&m, nout, out) : lt_fail_memory();
  free(m.known);
  if (ok) return m.p;
  lt_program_free(m.p);
  return NULL;
}

/* ---- running --------------------------------------------------------------------------------- */

/* Checks the inputs' dtypes and devices, and broadcasts their shapes. */
static bool broadcast(const lt_Program *p, lt_Tensor *const *inputs, int *ndim, int64_t *shape) {
  *ndim = 0;
  for (int i = 0; i < p->ninputs; i++) {
    const lt_Tensor *t = inputs[i];
    if (t->dtype != p->dtype[i])
      return lt_error_set("program: expected dtype \"%s\" for input %d, got \"%s\"",
                          lt_dtype_name(p->dtype[i]), i + 1, lt_dtype_name(t->dtype));
    if (!lt_device_equal(lt_tensor_device(t), lt_tensor_device(inputs[0])))
      return lt_error_set("program: cannot run: inputs 1 and %d are on different devices", i + 1);
    if (!lt_shape_broadcast(ndim, shape, t->ndim, t->shape))
      return lt_error_set("program: cannot broadcast the shapes of the inputs together");
  }
  return true;
}

/* Sets an operand to t, broadcast to the loop's shape. */
static void set_operand(const lt_ProgramLoop *l, lt_Operand *o, const lt_Tensor *t) {
  int64_t size = (int64_t)lt_dtype_size(t->dtype);
  int lead = l->ndim - t->ndim;
  o->data = lt_tensor_data(t);
  o->dtype = t->dtype;
  for (int i = 0; i < l->ndim; i++)
    o->strides[i] = i < lead || t->shape[i - lead] == 1 ? 0 : t->strides[i - lead] * size;
}

/* Runs the program on the device of `out`. */
static bool run(lt_ProgramLoop *l, lt_Tensor *const *inputs, lt_Tensor *const *out) {
  const lt_Program *p = l->program;
  const lt_Backend *b = lt_backend_of(out[0]);
  if (!b->has_data || !l->numel) return true;
  if (!b->kernels.program)
    return lt_error_set(
        "program: cannot run on device \"%s\": it does not support elementwise programs", b->name);
  l->operand = calloc((size_t)(p->nout + p->ninputs), sizeof *l->operand);
  if (!l->operand) return lt_fail_memory();
  for (int i = 0; i < p->nout; i++) set_operand(l, &l->operand[i], out[i]);
  for (int i = 0; i < p->ninputs; i++) set_operand(l, &l->operand[p->nout + i], inputs[i]);
  lt_operands_collapse(&l->ndim, l->shape, p->nout + p->ninputs, l->operand);
  bool ok = b->kernels.program(l) && !l->refused;
  free(l->operand);
  return ok;
}

bool lt_program_run(const lt_Program *p, lt_Tensor *const *inputs, lt_Tensor **out, bool *refused) {
  lt_ProgramLoop l = {.program = p};
  *refused = false;
  if (!p->ninputs) return lt_error_set("program: expected at least one input, got none");
  if (!broadcast(p, inputs, &l.ndim, l.shape) ||
      !lt_shape_numel("program", l.ndim, l.shape, &l.numel))
    return false;
  int made = 0;
  while (made < p->nout) {
    out[made] = lt_empty(p->out_dtype[made], lt_tensor_device(inputs[0]), l.ndim, l.shape);
    if (!out[made]) break;
    lt_keep_order(out[made++], p->ninputs, inputs);
  }
  if (made == p->nout && run(&l, inputs, out)) return true;
  *refused = l.refused;
  for (int i = 0; i < made; i++) lt_release(out[i]);
  return false;
}
