/* plan_units.c: the units of a plan: each call that is needed, or several elementwise calls, and
 * reductions of rows, that run in one pass over memory.
 *
 * A unit that is fusible has a shape, that of its elementwise results. A call joins the last unit
 * of its shape that computes one of its operands, or reads the same, if all of its operands are
 * ready there. A reduction of the last dimension joins as well: its result, and the results of
 * calls on it, have one element for each row, with or without a last dimension of size 1.
 *
 * An earlier unit that computes another operand of the call is then merged with the call's unit, if
 * the order allows it: so the three calls of a * x + b * y are one unit. */
#include "plan.h"
#include "reductions.h"

enum {
  MOST_CALLS = 64,
  MOST_OPERANDS = 24,
  SEARCHED = 12,        /* units that a call may join */
  LONGEST_ROW = 1 << 14 /* of a unit with reductions: a row of several values fits a cache */
};

/* How the result of a call lies in the shape of a unit. */
typedef enum Form { FORM_NONE, FORM_FULL, FORM_ROW, FORM_ROW_KEPT } Form;

bool lt_plan_grow(void *array, int count, int *room, size_t item) {
  if (count < *room) return true;
  int more = *room ? 2 * *room : 16;
  void *p = realloc(*(void **)array, (size_t)more * item);
  if (!p) return lt_fail_memory();
  *(void **)array = p;
  *room = more;
  return true;
}

static const lt_Tensor *tensor_of(const lt_PlanBuilder *b, int64_t value) {
  return b->r->value[value].tensor;
}

static const lt_Tensor *result_of(const lt_PlanBuilder *b, int call) {
  return tensor_of(b, b->r->call[call].out[0]);
}

/* ---- reductions ------------------------------------------------------------------------------ */

/* Returns true when the call reduces the last dimension of float32 or float64 numbers to one number
 * of the same dtype, and fills in r. */
static bool reduces_rows(const lt_PlanBuilder *b, int call, lt_ReductionCall *r) {
  const lt_RecordedCall *c = &b->r->call[call];
  lt_Call full = {.op = c->op, .info = &lt_ops[c->op], .signature = lt_op_signature(c->op)};
  if (full.info->kind != LT_KIND_REDUCE || c->nout != 1 || b->call[call].keeps_order ||
      c->in_place || !b->backend->kernels.program)
    return false;
  full.nargs = c->nargs;
  memcpy(full.arg, c->arg, sizeof *c->arg * (size_t)c->nargs);
  const lt_Tensor *x = tensor_of(b, c->arg[0].i);
  full.arg[0].tensor = (lt_Tensor *)x;
  if (x->ndim < 1 || !lt_reduction_of_call(&full, r)) return false;
  lt_FormKind kind = lt_reductions[r->id].kind;
  int64_t row = x->shape[x->ndim - 1];
  return kind != LT_FORM_BEST && !lt_reductions[r->id].of_truth && r->mask == 1u << (x->ndim - 1) &&
         row > 1 && row <= LONGEST_ROW && (x->dtype == LT_float32 || x->dtype == LT_float64) &&
         r->dtype == x->dtype && result_of(b, call)->dtype == x->dtype && x->numel > 0;
}

/* ---- layouts --------------------------------------------------------------------------------- */

/* Returns how a result of this shape lies in the unit's shape. */
static Form form_of(const lt_PlanUnit *u, const lt_Tensor *t) {
  int n = u->ndim;
  if (lt_shape_equal(t->ndim, t->shape, n, u->shape)) return FORM_FULL;
  if (!u->rows) return FORM_NONE;
  if (lt_shape_equal(t->ndim, t->shape, n - 1, u->shape)) return FORM_ROW;
  if (t->ndim == n && t->shape[n - 1] == 1 && lt_shape_equal(n - 1, t->shape, n - 1, u->shape))
    return FORM_ROW_KEPT;
  return FORM_NONE;
}

/* Computes the strides of t, in elements, in the unit's shape, as an operand of a call of this
 * form. Returns false when it does not broadcast to that. */
static bool strides_in(const lt_PlanUnit *u, const lt_Tensor *t, Form form, int64_t *strides) {
  int n = form == FORM_ROW ? u->ndim - 1 : u->ndim, lead = n - t->ndim;
  if (lead < 0) return false;
  for (int d = 0; d < u->ndim; d++) strides[d] = 0;
  for (int d = 0; d < t->ndim; d++) {
    if (t->shape[d] == 1) continue;
    bool kept = form == FORM_ROW_KEPT && lead + d == u->ndim - 1;
    if (t->shape[d] != u->shape[lead + d] || kept) return false;
    strides[lead + d] = t->strides[d];
  }
  return true;
}

/* Returns true when the unit's leading dimensions are one in these strides, and the elements of a
 * row are close to each other: rows across memory would cost more than a pass of their own. */
static bool is_matrix(const lt_PlanUnit *u, const int64_t *strides) {
  int64_t inner = -1, size = 1;
  if (u->shape[u->ndim - 1] > 1 && strides[u->ndim - 1] > 2) return false;
  for (int d = u->ndim - 2; d >= 0; d--) {
    if (u->shape[d] == 1) continue;
    if (inner < 0)
      inner = strides[d];
    else if (strides[d] != inner * size)
      return false;
    size *= u->shape[d];
  }
  return true;
}

/* Returns the distance of rows, in elements. */
static int64_t row_stride(const lt_PlanUnit *u, const int64_t *strides) {
  for (int d = u->ndim - 2; d >= 0; d--)
    if (u->shape[d] > 1) return strides[d];
  return 0;
}

/* ---- joining --------------------------------------------------------------------------------- */

/* A call that may join a unit. */
typedef struct Candidate {
  int call, nsource, source[3];
  bool reduces;
  lt_ReductionCall reduction;
} Candidate;

/* Returns the form of the candidate's operands in a unit. */
static Form form_in(const lt_PlanBuilder *b, const lt_PlanUnit *u, const Candidate *c) {
  if (!c->reduces) return form_of(u, result_of(b, c->call));
  return form_of(u, tensor_of(b, b->r->call[c->call].arg[0].i)) == FORM_FULL ? FORM_FULL
                                                                             : FORM_NONE;
}

/* Returns the call of a unit that computes this buffer. */
static int producer_in(const lt_PlanBuilder *b, const lt_PlanUnit *u, const lt_PlanBuffer *buffer) {
  for (int i = u->ncalls - 1; i >= 0; i--)
    if (lt_buffer_of(b, b->r->call[u->call[i]].out[0]) == buffer) return u->call[i];
  return -1;
}

/* Returns true when t is, element by element, the result of a call of the unit. */
static bool is_result(const lt_PlanBuilder *b, const lt_PlanUnit *u, int call, const lt_Tensor *t,
                      Form form) {
  int64_t own[LT_MAX_DIMS], strides[LT_MAX_DIMS];
  const lt_Tensor *made = result_of(b, call);
  return t->dtype == made->dtype && t->offset == made->offset &&
         strides_in(u, made, form_of(u, made), own) && strides_in(u, t, form, strides) &&
         lt_shape_equal(u->ndim, own, u->ndim, strides);
}

/* Returns true when the unit has noted all of its operands, and they are matrices in its shape. */
static bool reads_matrices(const lt_PlanBuilder *b, const lt_PlanUnit *u) {
  int64_t strides[LT_MAX_DIMS];
  if (u->nin >= MOST_OPERANDS) return false;
  for (int i = 0; i < u->nin; i++)
    if (!strides_in(u, tensor_of(b, u->in[i]), FORM_FULL, strides) || !is_matrix(u, strides))
      return false;
  return true;
}

/* Returns true when the call may become a part of unit `at`. *related: they share an operand. */
static bool may_join(lt_PlanBuilder *b, int at, const Candidate *c, bool *related) {
  lt_PlanUnit *u = &b->unit[at];
  const lt_RecordedCall *call = &b->r->call[c->call];
  int rows = u->rows;
  if (!u->fusible || u->ncalls >= MOST_CALLS) return false;
  if (c->reduces) u->rows++; /* so that forms are known */
  Form form = form_in(b, u, c);
  bool ok = form != FORM_NONE;
  *related = false;
  for (int k = 0; ok && k < c->nsource; k++) {
    const lt_Arg *a = &call->arg[c->source[k]];
    int64_t strides[LT_MAX_DIMS];
    if (a->kind != LT_ARG_TENSOR || b->value[a->i].number) continue;
    const lt_PlanBuffer *buffer = lt_buffer_of(b, a->i);
    const lt_Tensor *t = tensor_of(b, a->i);
    ok = buffer->producer <= at && !buffer->written && strides_in(u, t, form, strides) &&
         (!u->rows || is_matrix(u, strides));
    if (ok && buffer->producer == at) {
      *related = true;
      ok = is_result(b, u, producer_in(b, u, buffer), t, form);
    }
    for (int i = 0; ok && i < u->nin; i++)
      *related |= form == FORM_FULL && lt_buffer_of(b, u->in[i]) == buffer;
  }
  if (ok && u->rows && !rows) ok = reads_matrices(b, u); /* at the first reduction */
  u->rows = rows;
  return ok;
}

/* Notes the values that a call reads, to find calls that read the same. */
static bool note_operands(lt_PlanBuilder *b, int at, const Candidate *c) {
  lt_PlanUnit *u = &b->unit[at];
  for (int k = 0; k < c->nsource; k++) {
    const lt_Arg *a = &b->r->call[c->call].arg[c->source[k]];
    if (a->kind != LT_ARG_TENSOR || b->value[a->i].number) continue;
    if (lt_buffer_of(b, a->i)->producer == at || u->nin >= MOST_OPERANDS) continue;
    if (!u->in && !(u->in = calloc(MOST_OPERANDS, sizeof *u->in))) return lt_fail_memory();
    u->in[u->nin++] = (int)a->i;
  }
  return true;
}

/* Appends a call to a unit. */
static bool append(lt_PlanBuilder *b, int at, int call) {
  lt_PlanUnit *u = &b->unit[at];
  if (!lt_plan_grow(&u->call, u->ncalls, &u->room, sizeof *u->call)) return false;
  u->call[u->ncalls++] = call;
  for (int k = 0; k < b->r->call[call].nout; k++)
    if (!b->call[call].keeps_order) lt_buffer_of(b, b->r->call[call].out[k])->producer = at;
  return true;
}

/* Adds a unit, which the caller fills in. NULL when memory is out. */
static lt_PlanUnit *new_unit(lt_PlanBuilder *b, int call) {
  if (!lt_plan_grow(&b->unit, b->nunits, &b->unit_room, sizeof *b->unit)) return NULL;
  lt_PlanUnit *u = &b->unit[b->nunits++];
  *u = (lt_PlanUnit){.part = call < b->mark ? LT_FORWARD : LT_BACKWARD};
  return u;
}

/* Returns whether a call may be part of a unit with others, and fills in c. */
static bool is_candidate(const lt_PlanBuilder *b, int call, Candidate *c) {
  const lt_RecordedCall *recorded = &b->r->call[call];
  const lt_OpInfo *info = &lt_ops[recorded->op];
  *c = (Candidate){.call = call};
  if (b->call[call].keeps_order || recorded->nout != 1 || !lt_plan_fuses(b)) return false;
  c->reduces = reduces_rows(b, call, &c->reduction);
  c->nsource = c->reduces ? 1 : lt_plan_sources(b, call, c->source);
  const lt_Tensor *out = result_of(b, call);
  if (c->nsource < 1 || out->numel == 0 || lt_dtype_is_complex(out->dtype)) return false;
  bool integer =
      recorded->compute != LT_DTYPE_NONE && lt_dtype_category(recorded->compute) == LT_INTEGER;
  if (info->rule == LT_RULE_DIVIDE && integer) return false;
  for (int k = 0; k < c->nsource; k++) {
    const lt_Arg *a = &recorded->arg[c->source[k]];
    if (a->kind == LT_ARG_TENSOR &&
        (lt_dtype_is_complex(tensor_of(b, a->i)->dtype) || lt_buffer_of(b, a->i)->written))
      return false;
  }
  return true;
}

int lt_plan_fused_sources(const lt_PlanBuilder *b, int call, int source[3]) {
  Candidate c;
  if (!is_candidate(b, call, &c)) return -1;
  memcpy(source, c.source, sizeof c.source);
  return c.nsource;
}

/* ---- merging --------------------------------------------------------------------------------- */

/* Returns true when unit `at` reads a result of unit `from`. */
static bool reads_unit(const lt_PlanBuilder *b, int at, int from) {
  const lt_PlanUnit *u = &b->unit[at];
  for (int i = 0; i < u->ncalls; i++)
    for (int k = 0; k < b->r->call[u->call[i]].nargs; k++) {
      const int64_t *value;
      int n = lt_plan_values_of(&b->r->call[u->call[i]].arg[k], &value);
      for (int j = 0; j < n; j++)
        if (value[j] >= 0 && lt_buffer_of(b, value[j])->producer == from) return true;
    }
  return false;
}

/* Moves a unit to a later place. */
static void move_unit(lt_PlanBuilder *b, int from, int to) {
  lt_PlanUnit u = b->unit[from];
  memmove(&b->unit[from], &b->unit[from + 1], sizeof u * (size_t)(to - from));
  b->unit[to] = u;
  for (int i = 0; i < b->nbuffers; i++) {
    int *producer = &b->buffer[i].producer;
    if (*producer == from)
      *producer = to;
    else if (*producer > from && *producer <= to)
      --*producer;
  }
}

/* Removes a unit whose calls have joined another one. */
static void remove_unit(lt_PlanBuilder *b, int at) {
  move_unit(b, at, b->nunits - 1);
  b->nunits--;
  free(b->unit[b->nunits].call);
  free(b->unit[b->nunits].in);
}

/* Makes the calls of a unit a part of the earlier unit `to`, if all of them may join it. */
static bool merge(lt_PlanBuilder *b, int at, int to) {
  lt_PlanUnit *u = &b->unit[at], *t = &b->unit[to], before = *t;
  bool fits = u->fusible && u->nin + t->nin <= MOST_OPERANDS, related;
  for (int i = 0; fits && i < u->ncalls; i++) {
    Candidate c;
    fits = is_candidate(b, u->call[i], &c) && may_join(b, to, &c, &related);
    if (!fits) break;
    t->rows += c.reduces;
    if (!note_operands(b, to, &c) || !append(b, to, c.call)) return false;
  }
  if (fits) {
    remove_unit(b, at);
    return true;
  }
  for (; t->ncalls > before.ncalls; t->ncalls--)
    lt_buffer_of(b, b->r->call[t->call[t->ncalls - 1]].out[0])->producer = at;
  t->nin = before.nin;
  t->rows = before.rows;
  return true;
}

/* Merges the unit of a call with earlier units, from `floor` on, that compute its operands: where
 * those are, or, if no unit between the two reads them, here. */
static bool merge_operands(lt_PlanBuilder *b, const Candidate *c, int floor) {
  const lt_RecordedCall *call = &b->r->call[c->call];
  for (int k = 0; k < c->nsource; k++) {
    const lt_Arg *a = &call->arg[c->source[k]];
    if (a->kind != LT_ARG_TENSOR || b->value[a->i].number) continue;
    int at = lt_buffer_of(b, call->out[0])->producer, from = lt_buffer_of(b, a->i)->producer;
    if (from < floor || from >= at || !b->unit[from].fusible) continue;
    bool unread = true;
    for (int i = from + 1; i < at; i++) unread &= !reads_unit(b, i, from);
    if (unread) {
      move_unit(b, from, at - 1);
      from = at - 1;
    }
    if (!merge(b, at, from)) return false;
  }
  return true;
}

/* ---- placing --------------------------------------------------------------------------------- */

/* Adds a call to a unit, or as a new one; `floor`: the first unit that it may join. */
static bool place(lt_PlanBuilder *b, int call, int *floor) {
  Candidate c;
  bool fusible = is_candidate(b, call, &c), related;
  bool is_repeated = call >= b->plan->counts.calls; /* its first reader is the next call */
  int part = call < b->mark ? LT_FORWARD : LT_BACKWARD;
  for (int at = b->nunits - 1, n = 0; fusible && at >= *floor && n < SEARCHED; at--, n++) {
    if (b->unit[at].part != part || !may_join(b, at, &c, &related)) continue;
    if (!related && !(is_repeated && at == b->nunits - 1)) continue;
    b->unit[at].rows += c.reduces;
    return note_operands(b, at, &c) && append(b, at, call) && merge_operands(b, &c, *floor);
  }
  lt_PlanUnit *u = new_unit(b, call);
  if (!u) return false;
  u->fusible = fusible;
  u->ordered = b->call[call].keeps_order;
  if (u->ordered) *floor = b->nunits;
  if (fusible) {
    const lt_Tensor *shape =
        c.reduces ? tensor_of(b, b->r->call[call].arg[0].i) : result_of(b, call);
    int64_t strides[LT_MAX_DIMS];
    u->ndim = shape->ndim;
    memcpy(u->shape, shape->shape, sizeof u->shape);
    u->rows = c.reduces;
    if (c.reduces) u->fusible = strides_in(u, shape, FORM_FULL, strides) && is_matrix(u, strides);
    if (!note_operands(b, b->nunits - 1, &c)) return false;
  }
  return append(b, b->nunits - 1, call) && (!fusible || merge_operands(b, &c, *floor));
}

/* ---- programs -------------------------------------------------------------------------------- */

/* Returns the number of a value that the program reads, which is added if it is new. */
static int input_of(lt_PlanBuilder *b, lt_PlanUnit *u, int64_t value, bool by_row) {
  lt_Program *p = u->program;
  const lt_Tensor *t = tensor_of(b, value);
  for (int i = 0; i < u->nin; i++) {
    const lt_Tensor *s = tensor_of(b, u->in[i]);
    if (lt_buffer_of(b, u->in[i]) == lt_buffer_of(b, value) && s->dtype == t->dtype &&
        s->offset == t->offset && p->by_row[i] == by_row &&
        lt_shape_equal(s->ndim, s->shape, t->ndim, t->shape) &&
        lt_shape_equal(s->ndim, s->strides, t->ndim, t->strides))
      return i;
  }
  if (u->nin >= MOST_OPERANDS) return -1;
  p->dtype[u->nin] = t->dtype;
  p->by_row[u->nin] = by_row;
  u->in[u->nin] = (int)value;
  return u->nin++;
}

/* The value that an argument of a call has in the program. Returns false when it has too many. */
static bool step_input(lt_PlanBuilder *b, lt_PlanUnit *u, const lt_Arg *a, bool by_row,
                       const lt_StepInput *made, lt_StepInput *out) {
  if (a->kind != LT_ARG_TENSOR) {
    *out = (lt_StepInput){-1, a->scalar};
  } else if (b->value[a->i].number) {
    *out = (lt_StepInput){-1, b->value[a->i].as};
  } else {
    int at = (int)(u - b->unit);
    const lt_PlanBuffer *buffer = lt_buffer_of(b, a->i);
    if (buffer->producer == at) {
      int call = producer_in(b, u, buffer), i = 0;
      while (u->call[i] != call) i++;
      *out = made[i];
    } else {
      int input = input_of(b, u, a->i, by_row);
      *out = (lt_StepInput){input, lt_scalar_int(0)};
      return input >= 0;
    }
  }
  return true;
}

/* Appends the steps of a call; made[i] becomes its value. */
static bool add_steps(lt_PlanBuilder *b, lt_PlanUnit *u, int i, lt_StepInput *made) {
  Candidate c;
  (void)is_candidate(b, u->call[i], &c);
  const lt_RecordedCall *call = &b->r->call[u->call[i]];
  const lt_Tensor *out = result_of(b, u->call[i]);
  lt_StepInput input[3];
  bool by_row = !c.reduces && form_of(u, out) != FORM_FULL;
  for (int k = 0; k < c.nsource; k++)
    if (!step_input(b, u, &call->arg[c.source[k]], by_row, made, &input[k])) return false;
  if (c.reduces) {
    lt_Step step = {.op = call->op,
                    .compute = out->dtype,
                    .result = out->dtype,
                    .inputs = 1,
                    .input = {input[0]},
                    .by_row = true,
                    .reduces = true,
                    .id = (int)c.reduction.id,
                    .amount = c.reduction.a,
                    .a = lt_scalar_int(0),
                    .b = lt_scalar_int(0)};
    made[i] = lt_program_step(u->program, &step);
  } else if (lt_ops[call->op].kind == LT_KIND_ELEMENTWISE) {
    made[i] = lt_program_add(u->program, call, input, out->dtype, by_row);
  } else {
    lt_Dtype from = call->arg[c.source[0]].kind == LT_ARG_TENSOR
                        ? tensor_of(b, call->arg[c.source[0]].i)->dtype
                        : out->dtype;
    made[i] = lt_program_convert(u->program, input[0], from, out->dtype, by_row);
  }
  return true;
}

/* Finds the inputs, so that steps, which are numbered after them, can be added. */
static bool find_inputs(lt_PlanBuilder *b, lt_PlanUnit *u) {
  lt_StepInput none;
  u->nin = 0;
  if (!u->in && !(u->in = calloc(MOST_OPERANDS, sizeof *u->in))) return lt_fail_memory();
  lt_StepInput *made = calloc((size_t)u->ncalls + 1, sizeof *made);
  if (!made) return lt_fail_memory();
  bool ok = true;
  for (int i = 0; ok && i < u->ncalls; i++) {
    Candidate c;
    (void)is_candidate(b, u->call[i], &c);
    bool by_row = !c.reduces && form_of(u, result_of(b, u->call[i])) != FORM_FULL;
    for (int k = 0; ok && k < c.nsource; k++)
      ok = step_input(b, u, &b->r->call[u->call[i]].arg[c.source[k]], by_row, made, &none);
  }
  free(made);
  u->program->ninputs = u->nin;
  return ok;
}

/* Sets an operand of the loop to t's strides. */
static void set_operand(const lt_PlanUnit *u, lt_Operand *o, const lt_Tensor *t, Form form) {
  int64_t strides[LT_MAX_DIMS], size = (int64_t)lt_dtype_size(t->dtype);
  (void)strides_in(u, t, form, strides);
  o->dtype = t->dtype;
  if (u->rows) {
    o->strides[0] = row_stride(u, strides) * size;
    o->strides[1] = strides[u->ndim - 1] * size;
  } else {
    for (int d = 0; d < u->ndim; d++) o->strides[d] = strides[d] * size;
  }
}

/* Returns whether the operand is contiguous in the loop's shape. */
static bool is_contiguous(const lt_ProgramLoop *l, const lt_Operand *o) {
  int64_t size = (int64_t)lt_dtype_size(o->dtype);
  for (int d = l->ndim - 1; d >= 0; size *= l->shape[d--])
    if (o->strides[d] != size) return false;
  return true;
}

/* Makes the kernel of the unit's program. False when there is none. */
static bool make_kernel(lt_PlanBuilder *b, lt_PlanUnit *u) {
  enum { MOST_PARAMETERS = 100 };
  const lt_ProgramLoop *l = u->loop;
  int nout = u->program->nout, nin = u->program->ninputs;
  bool flat = true;
  for (int i = 0; i < nout; i++)
    if (!is_contiguous(l, &l->operand[i])) return false;
  for (int i = 0; i < nin; i++) flat &= is_contiguous(l, &l->operand[nout + i]);
  u->rank = flat ? 0 : l->ndim;
  if (nout + nin * (1 + u->rank) + u->rank + 1 > MOST_PARAMETERS) return false;
  u->kernel = b->compiler->compile(b->compiler->context, l, u->rank);
  return u->kernel != NULL;
}

/* Makes the loop of the unit's program and compiles it for the device. */
static bool prepare(lt_PlanBuilder *b, lt_PlanUnit *u) {
  lt_Program *p = u->program;
  lt_ProgramLoop *l = u->loop = calloc(1, sizeof *l);
  lt_Operand *o = calloc((size_t)(p->nout + p->ninputs) + 1, sizeof *o);
  bool *inputs = calloc((size_t)p->ninputs + 1, sizeof *inputs);
  if (!l || !o || !inputs) {
    free(o);
    free(inputs);
    return lt_fail_memory();
  }
  l->program = p;
  l->operand = o;
  l->ndim = u->ndim;
  l->numel = 1;
  memcpy(l->shape, u->shape, sizeof l->shape);
  for (int d = 0; d < u->ndim; d++) l->numel *= u->shape[d];
  memcpy(inputs, p->by_row, sizeof *inputs * (size_t)p->ninputs);
  for (int i = 0; i < p->nout; i++) {
    const lt_Tensor *t = tensor_of(b, u->result[i]);
    Form form = form_of(u, t);
    p->by_row[i] = form != FORM_FULL;
    set_operand(u, &o[i], t, form);
  }
  for (int i = 0; i < p->ninputs; i++) {
    const lt_Tensor *t = tensor_of(b, u->in[i]);
    int64_t strides[LT_MAX_DIMS];
    Form form = !inputs[i]                            ? FORM_FULL
                : strides_in(u, t, FORM_ROW, strides) ? FORM_ROW
                                                      : FORM_ROW_KEPT;
    p->by_row[p->nout + i] = inputs[i];
    set_operand(u, &o[p->nout + i], t, form);
  }
  free(inputs);
  if (u->rows) {
    p->row = u->shape[u->ndim - 1];
    l->ndim = 2;
    l->shape[0] = l->numel / p->row;
    l->shape[1] = p->row;
  } else {
    lt_operands_collapse(&l->ndim, l->shape, p->nout + p->ninputs, o);
  }
  if (!b->backend->kernels.program) return make_kernel(b, u);
  l->action = LT_PROGRAM_PREPARE;
  bool ok = b->backend->kernels.program(l);
  l->action = LT_PROGRAM_RUN;
  return ok;
}

/* Makes the program of a unit. */
static bool make_program(lt_PlanBuilder *b, lt_PlanUnit *u) {
  u->program = lt_program_alloc(MOST_OPERANDS, u->ncalls, u->ncalls);
  u->result = calloc((size_t)u->ncalls + 1, sizeof *u->result);
  lt_StepInput *made = calloc((size_t)u->ncalls + 1, sizeof *made);
  bool ok = u->program && u->result && made;
  if (!ok) lt_fail_memory();
  ok = ok && find_inputs(b, u);
  for (int i = 0; ok && i < u->ncalls; i++) ok = add_steps(b, u, i, made);
  for (int i = 0; ok && i < u->ncalls; i++) {
    int out = b->r->call[u->call[i]].out[0];
    const lt_PlanBuffer *buffer = lt_buffer_of(b, out);
    if (!buffer->result && !buffer->shared) continue;
    u->program->out[u->nresult] = made[i];
    u->program->out_dtype[u->nresult] = tensor_of(b, out)->dtype;
    u->result[u->nresult++] = out;
  }
  if (ok) u->program->nout = u->nresult;
  free(made);
  return ok && prepare(b, u);
}

void lt_plan_loop_free(lt_ProgramLoop *l, const lt_Backend *b) {
  if (!l) return;
  l->action = LT_PROGRAM_FREE;
  if (l->prepared) (void)b->kernels.program(l);
  free(l->operand);
  free(l);
}

/* Removes the program of a unit. */
static void drop_program(const lt_PlanBuilder *b, lt_PlanUnit *u) {
  lt_plan_loop_free(u->loop, b->backend);
  lt_program_free(u->program);
  free(u->result);
  u->loop = NULL;
  u->program = NULL;
  u->result = NULL;
  u->nresult = 0;
}

/* ---- all units ------------------------------------------------------------------------------- */

/* Marks the buffers that units other than their producer read. */
static void mark_shared(lt_PlanBuilder *b) {
  for (int at = 0; at < b->nunits; at++)
    for (int i = 0; i < b->unit[at].ncalls; i++) {
      int call = b->unit[at].call[i], source[3];
      const lt_RecordedCall *c = &b->r->call[call];
      bool elementwise = lt_plan_sources(b, call, source) >= 0 && !b->call[call].keeps_order;
      for (int k = 0; k < c->nargs; k++) {
        const lt_Arg *a = &c->arg[k];
        const int64_t *value;
        int n = lt_plan_values_of(a, &value);
        if (!lt_plan_reads(b, call, k)) continue;
        for (int j = 0; j < n; j++) {
          int64_t v = value[j];
          if (v < 0 || (elementwise && b->value[v].number)) continue;
          lt_PlanBuffer *buffer = lt_buffer_of(b, v);
          buffer->shared |= buffer->producer != at;
          buffer->used[b->unit[at].part] = true;
        }
      }
    }
}

/* Replaces a unit by units of one call each. */
static bool split(lt_PlanBuilder *b, int at) {
  lt_PlanUnit old = b->unit[at];
  int more = old.ncalls - 1;
  for (int i = 0; i < more; i++)
    if (!new_unit(b, old.call[0])) return false;
  memmove(&b->unit[at + 1 + more], &b->unit[at + 1],
          sizeof *b->unit * (size_t)(b->nunits - more - at - 1));
  for (int i = 0; i <= more; i++) {
    b->unit[at + i] = (lt_PlanUnit){.part = old.part};
    if (!append(b, at + i, old.call[i])) return false;
  }
  free(old.call);
  free(old.in);
  for (int i = 0; i < b->nbuffers; i++) b->buffer[i].producer = -1;
  for (int i = 0; i < b->nunits; i++)
    for (int k = 0; k < b->unit[i].ncalls; k++) {
      int call = b->unit[i].call[k];
      for (int j = 0; j < b->r->call[call].nout; j++)
        if (!b->call[call].keeps_order) lt_buffer_of(b, b->r->call[call].out[j])->producer = i;
    }
  mark_shared(b);
  return true;
}

bool lt_plan_units(lt_PlanBuilder *b) {
  int floor = 0, calls = lt_plan_calls(b);
  for (int k = 0; k < calls; k++) {
    int i = lt_plan_call(b, k);
    if (k == b->mark) floor = b->nunits;
    if (b->call[i].needed && !place(b, i, &floor)) return false;
  }
  mark_shared(b);
  for (int at = 0; at < b->nunits; at++) {
    lt_PlanUnit *u = &b->unit[at];
    if (!u->fusible || u->ncalls < 2) continue;
    if (make_program(b, u)) continue;
    drop_program(b, u);
    if (lt_error_is_memory() || !split(b, at)) return false;
  }
  return true;
}
