/* plan_steps.c: the memory and the steps of a plan.
 *
 * Intermediate values share an arena in each part (the forward and the backward pass): two of them
 * have the same place when no step uses both. What the backward pass reads of the forward pass is
 * saved memory of each call of the program: on a device with streams one block, which graphs need,
 * otherwise a slot for each value. The blocks of slots come from the cache of freed memory, where
 * the program's other calls have left blocks of the same sizes: so a new plan touches little memory
 * for the first time, which takes longer than its steps. */
#include "plan.h"
#include "opids.h"

#define ALIGNMENT 64

static int64_t rounded(int64_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

/* ---- memory ---------------------------------------------------------------------------------- */

/* Notes that a unit uses the memory of a value. */
static void touch(lt_PlanBuilder *b, int64_t value, int at) {
  lt_PlanBuffer *buffer = lt_buffer_of(b, value);
  if (buffer->first < 0) buffer->first = at;
  if (at < buffer->first) buffer->first = at;
  if (at > buffer->last) buffer->last = at;
  buffer->used[b->unit[at].part] = true;
}

/* Notes the memory that a unit without a program uses. */
static void touch_call(lt_PlanBuilder *b, int call, int at) {
  const lt_RecordedCall *c = &b->r->call[call];
  int source[3];
  bool elementwise = lt_plan_sources(b, call, source) >= 0 && !b->call[call].keeps_order;
  for (int k = 0; k < c->nout; k++) touch(b, c->out[k], at);
  for (int k = 0; k < c->nargs; k++) {
    const lt_Arg *a = &c->arg[k];
    const int64_t *value;
    int n = lt_plan_values_of(a, &value);
    if (b->call[call].functional && !lt_plan_reads(b, call, k)) continue;
    for (int j = 0; j < n; j++) {
      int64_t v = value[j];
      if (v >= 0 && !(elementwise && b->value[v].number)) touch(b, v, at);
    }
  }
}

static void touch_all(lt_PlanBuilder *b) {
  for (int i = 0; i < b->nbuffers; i++) {
    b->buffer[i].first = b->buffer[i].last = -1;
    b->buffer[i].used[0] = b->buffer[i].used[1] = false;
  }
  for (int at = 0; at < b->nunits; at++) {
    const lt_PlanUnit *u = &b->unit[at];
    if (u->program) {
      for (int i = 0; i < u->nin; i++) touch(b, u->in[i], at);
      for (int i = 0; i < u->nresult; i++) touch(b, u->result[i], at);
    } else {
      touch_call(b, u->call[0], at);
    }
  }
  for (int i = 0; i < b->nbuffers; i++)
    for (int part = 0; part < 2; part++) {
      if (!b->buffer[i].copied[part]) continue;
      b->buffer[i].used[part] = true;
      b->buffer[i].last = b->nunits;
    }
}

/* A place in an arena that is in use. */
typedef struct Place {
  int64_t offset, bytes;
  int last;
} Place;

/* Finds the lowest free place for `bytes`. The places are sorted by offset. */
static int64_t find_place(const Place *place, int n, int64_t bytes, int *at) {
  int64_t end = 0;
  for (*at = 0; *at < n; ++*at) {
    if (place[*at].offset - end >= bytes) return end;
    end = place[*at].offset + place[*at].bytes;
  }
  return end;
}

/* Places the buffers of the arena that unit `at` uses first: `buffer`, and those linked to it. */
static void place_buffers(lt_PlanBuilder *b, Place *place, int *n, int buffer, const int *next,
                          int64_t *end) {
  for (; buffer >= 0; buffer = next[buffer]) {
    lt_PlanBuffer *new = &b->buffer[buffer];
    int index;
    int64_t bytes = rounded(new->bytes);
    new->offset = find_place(place, *n, bytes, &index);
    memmove(&place[index + 1], &place[index], sizeof *place * (size_t)((*n)++ - index));
    place[index] = (Place){new->offset, bytes, new->last};
    if (new->offset + bytes > *end) *end = new->offset + bytes;
  }
}

/* Assigns places in the arena of a part. */
static bool fill_arena(lt_PlanBuilder *b, int part) {
  Place *place = calloc((size_t)b->nbuffers + 1, sizeof *place);
  int *first = malloc(((size_t)b->nunits + (size_t)b->nbuffers + 1) * sizeof *first);
  int *next = first ? first + b->nunits : NULL, n = 0; /* lists of buffers by their first unit */
  int64_t end = 0;
  for (int at = 0; first && at < b->nunits; at++) first[at] = -1;
  for (int i = b->nbuffers - 1; first && i >= 0; i--) {
    if (b->buffer[i].kind != LT_BUFFER_ARENA || b->buffer[i].first < 0) continue;
    next[i] = first[b->buffer[i].first];
    first[b->buffer[i].first] = i;
  }
  for (int at = 0; place && first && at < b->nunits; at++) {
    if (b->unit[at].part != part) continue;
    int kept = 0;
    for (int i = 0; i < n; i++)
      if (place[i].last >= at) place[kept++] = place[i];
    n = kept;
    place_buffers(b, place, &n, first[at], next, &end);
  }
  bool ok = (place && first) || lt_fail_memory();
  free(place);
  free(first);
  b->plan->part[part].bytes = end;
  if (ok) b->plan->part[part].arena = lt_storage_new(b->plan->device, (size_t)end);
  return b->plan->part[part].arena != NULL;
}

/* Chooses where each buffer is. */
static bool assign_memory(lt_PlanBuilder *b) {
  lt_Plan *p = b->plan;
  touch_all(b);
  for (int i = 0; i < b->nbuffers; i++) {
    lt_PlanBuffer *buffer = &b->buffer[i];
    if (buffer->same != i || buffer->kind == LT_BUFFER_SLOT) continue;
    if (!buffer->used[LT_FORWARD] && !buffer->used[LT_BACKWARD]) continue;
    if (!buffer->used[LT_FORWARD] || !buffer->used[LT_BACKWARD]) {
      buffer->kind = LT_BUFFER_ARENA;
    } else if (p->stream) {
      buffer->kind = LT_BUFFER_SAVED;
      buffer->offset = p->saved_bytes;
      p->saved_bytes += rounded(buffer->bytes);
    } else {
      lt_plan_new_slot(b, buffer, LT_FORWARD);
      p->counts.saved += buffer->bytes;
    }
  }
  return fill_arena(b, LT_FORWARD) && fill_arena(b, LT_BACKWARD);
}

/* Adds a patch of a tensor to a part. */
static bool add_patch(lt_PlanPart *p, lt_Tensor *t, int slot, int64_t offset) {
  if (!lt_plan_grow(&p->patch, p->npatches, &p->patch_room, sizeof *p->patch)) return false;
  p->patch[p->npatches++] = (lt_PlanPatch){t, slot, offset};
  return true;
}

lt_Tensor *lt_plan_tensor(lt_PlanBuilder *b, int64_t value, int part) {
  lt_PlanValue *v = &b->value[value];
  const lt_PlanBuffer *buffer = lt_buffer_of(b, value);
  const lt_Tensor *t = b->r->value[value].tensor;
  int64_t size = (int64_t)lt_dtype_size(t->dtype);
  lt_Plan *p = b->plan;
  bool arena = buffer->kind == LT_BUFFER_ARENA;
  if (!v->tensor) {
    lt_Storage *s = arena ? p->part[part].arena : p->nothing;
    int64_t offset = arena ? buffer->offset / size + t->offset : 0;
    v->tensor = lt_tensor_on(s, t->dtype, offset, t->ndim, t->shape, t->strides);
    if (!v->tensor) return NULL;
    p->tensor[p->ntensors++] = v->tensor;
  }
  if (arena || buffer->kind == LT_BUFFER_NONE || v->patched[part]) return v->tensor;
  bool saved = buffer->kind == LT_BUFFER_SAVED;
  if (!add_patch(&p->part[part], v->tensor, saved ? p->saved_slot : buffer->slot,
                 (saved ? buffer->offset : 0) + t->offset * size))
    return NULL;
  v->patched[part] = true;
  return v->tensor;
}

/* ---- steps ----------------------------------------------------------------------------------- */

void lt_plan_step_free(lt_PlanStep *s) {
  if (!s) return;
  free(s->memory);
  free(s);
}

/* Notes an address that the step reads from a tensor. */
static bool add_address(lt_PlanBuilder *b, int part, char **where, const lt_Tensor *t) {
  lt_PlanPart *p = &b->plan->part[part];
  if (!lt_plan_grow(&p->address, p->naddresses, &p->address_room, sizeof *p->address)) return false;
  p->address[p->naddresses++] = (lt_PlanAddress){where, t};
  *where = lt_tensor_place(t);
  return true;
}

static lt_Scalar extra(const lt_RecordedCall *call, int i) {
  i += lt_ops[call->op].inputs;
  if (i >= call->nargs) return lt_scalar_int(0);
  const lt_Arg *a = &call->arg[i];
  return a->kind == LT_ARG_FLOAT    ? lt_scalar_float(a->f)
         : a->kind == LT_ARG_SCALAR ? a->scalar
                                    : lt_scalar_int(0);
}

/* Sets an operand of a loop to t, broadcast to the loop's shape. */
static void set_operand(const lt_Loop *l, lt_Operand *o, const lt_Tensor *t) {
  int64_t size = (int64_t)lt_dtype_size(t->dtype);
  int lead = l->ndim - t->ndim;
  o->dtype = t->dtype;
  o->host = false;
  for (int d = 0; d < l->ndim; d++)
    o->strides[d] = d < lead || t->shape[d - lead] == 1 ? 0 : t->strides[d - lead] * size;
}

/* Makes the step of one elementwise call. */
static bool make_loop(lt_PlanBuilder *b, lt_PlanStep *s, int call, int part) {
  const lt_RecordedCall *c = &b->r->call[call];
  lt_Tensor *out = lt_plan_tensor(b, c->out[0], part);
  lt_Loop *l = &s->loop;
  int source[3], n = lt_plan_sources(b, call, source);
  bool elementwise = lt_ops[c->op].kind == LT_KIND_ELEMENTWISE;
  if (!out) return false;
  s->kind = LT_STEP_LOOP;
  l->op = elementwise ? c->op : LT_OP_copy;
  l->numel = out->numel;
  l->device = b->plan->device;
  l->ndim = out->ndim;
  memcpy(l->shape, out->shape, sizeof l->shape);
  set_operand(l, &l->operand[0], out);
  l->inputs = n ? n : 1;
  l->compute = c->compute;
  if (!n) { /* fill */
    l->operand[1] = l->operand[0];
    l->compute = lt_dtype_compute(out->dtype);
  }
  for (int k = 0; k < n; k++) {
    const lt_Arg *a = &c->arg[source[k]];
    lt_Operand *o = &l->operand[k + 1];
    bool tensor = a->kind == LT_ARG_TENSOR && !b->value[a->i].number;
    const lt_Tensor *t = tensor ? lt_plan_tensor(b, a->i, part) : NULL;
    if (tensor && !t) return false;
    if (!elementwise)
      l->compute = lt_copy_compute(
          out->dtype, a->kind == LT_ARG_TENSOR ? b->r->value[a->i].tensor->dtype : out->dtype);
    if (t) {
      set_operand(l, o, t);
      continue;
    }
    lt_Scalar number = a->kind == LT_ARG_TENSOR ? b->value[a->i].as : a->scalar;
    if (!lt_number_store(number, l->compute, s->number[k])) return false;
    *o = (lt_Operand){.data = s->number[k], .dtype = l->compute, .host = true};
  }
  l->a = elementwise ? extra(c, 0) : lt_scalar_int(0);
  l->b = elementwise ? extra(c, 1) : lt_scalar_int(0);
  lt_loop_collapse(l);
  if (!add_address(b, part, &l->operand[0].data, out)) return false;
  if (!n) return add_address(b, part, &l->operand[1].data, out);
  for (int k = 0; k < n; k++) {
    const lt_Arg *a = &c->arg[source[k]];
    if (a->kind != LT_ARG_TENSOR || b->value[a->i].number) continue;
    if (!add_address(b, part, &l->operand[k + 1].data, b->value[a->i].tensor)) return false;
  }
  return true;
}

/* Fills in the launch of a kernel for the step's program. */
static bool make_launch(lt_PlanStep *s, int rank) {
  enum { THREADS = 256 };
  const lt_ProgramLoop *l = s->program;
  int nout = l->program->nout, nin = l->program->ninputs, n = 0;
  size_t operands = (size_t)(nout + nin), numbers = (size_t)(1 + rank + nin * rank);
  size_t all = operands + numbers;
  void **address = s->memory = calloc(all + 1, sizeof *address + sizeof(size_t) + sizeof(int64_t));
  if (!address) return lt_fail_memory();
  size_t *sizes = (size_t *)(void *)(address + all);
  int64_t *number = (int64_t *)(void *)(sizes + all);
  for (size_t i = 0; i < operands; i++) address[i] = &l->operand[i].data;
  for (size_t i = 0; i < numbers; i++) {
    address[operands + i] = &number[i];
    sizes[operands + i] = sizeof *number;
  }
  number[n++] = l->numel;
  for (int d = 0; d < rank; d++) number[n++] = l->shape[d];
  for (int i = nout; i < nout + nin; i++)
    for (int d = 0; d < rank; d++)
      number[n++] = l->operand[i].strides[d] / (int64_t)lt_dtype_size(l->operand[i].dtype);
  s->launch = (lt_KernelLaunch){.grid = {(l->numel + THREADS - 1) / THREADS, 1, 1},
                                .block = {THREADS, 1, 1},
                                .count = (int)all,
                                .arguments = address,
                                .sizes = sizes};
  return true;
}

/* Makes the step of a unit's program. */
static bool make_program(lt_PlanBuilder *b, lt_PlanStep *s, lt_PlanUnit *u) {
  s->kind = u->kernel ? LT_STEP_LAUNCH : LT_STEP_PROGRAM;
  s->kernel = u->kernel;
  for (int i = 0; i < u->nresult + u->nin; i++) {
    int value = i < u->nresult ? u->result[i] : u->in[i - u->nresult];
    const lt_Tensor *t = lt_plan_tensor(b, value, u->part);
    if (!t || !add_address(b, u->part, &u->loop->operand[i].data, t)) return false;
  }
  s->program = u->loop;
  u->loop = NULL;
  u->program = NULL;
  if (s->kernel && !make_launch(s, u->rank)) return false;
  b->plan->counts.groups++;
  b->plan->counts.fused += u->ncalls;
  return true;
}

/* Returns the bytes that the lists and strings of a call take. */
static size_t bytes_of(const lt_RecordedCall *c) {
  size_t n = 0;
  for (int i = 0; i < c->nargs; i++) {
    const lt_Arg *a = &c->arg[i];
    if (a->kind == LT_ARG_INTS || a->kind == LT_ARG_TENSORS) n += (size_t)a->count * 8;
    if (a->kind == LT_ARG_STRING) n += (strlen(a->string) | 7) + 1;
  }
  return n;
}

/* Copies the arguments of a call, with the plan's tensors, to the step. */
static bool copy_arguments(lt_PlanBuilder *b, lt_PlanStep *s, const lt_RecordedCall *c, int part) {
  char *more = s->memory = malloc(bytes_of(c) + 8);
  if (!more) return lt_fail_memory();
  for (int i = 0; i < c->nargs; i++) {
    const lt_Arg *a = &c->arg[i];
    lt_Arg *to = &s->call.arg[i];
    *to = *a;
    if (a->kind == LT_ARG_TENSOR) {
      to->tensor = lt_plan_tensor(b, a->i, part);
      if (!to->tensor) return false;
    } else if (a->kind == LT_ARG_TENSORS) {
      lt_Tensor **list = (lt_Tensor **)(void *)more;
      for (int k = 0; k < a->count; k++) {
        list[k] = a->ints[k] < 0 ? NULL : lt_plan_tensor(b, a->ints[k], part);
        if (a->ints[k] >= 0 && !list[k]) return false;
      }
      to->tensors = list;
      more += (size_t)a->count * 8;
    } else if (a->kind == LT_ARG_INTS) {
      if (a->count) memcpy(more, a->ints, (size_t)a->count * 8);
      to->ints = (const int64_t *)(void *)more;
      more += (size_t)a->count * 8;
    } else if (a->kind == LT_ARG_STRING) {
      to->string = strcpy(more, a->string);
      more += (strlen(a->string) | 7) + 1;
    } else if (a->kind == LT_ARG_DEVICE && lt_device_equal(a->device, lt_recording())) {
      to->device = b->plan->device;
    }
  }
  return true;
}

/* Returns true when the op's kernel can be run on the plan's tensors. */
static bool runs_kernel(const lt_PlanBuilder *b, int call) {
  const lt_RecordedCall *c = &b->r->call[call];
  const lt_OpInfo *info = &lt_ops[c->op];
  const lt_Signature *g = lt_op_signature(c->op);
  bool kind =
      info->kind == LT_KIND_REDUCE || info->kind == LT_KIND_KERNEL || info->kind == LT_KIND_UPDATE;
  if (!kind || c->in_place || g->written || info->traits & LT_TRAIT_BUILTIN || !c->nout ||
      g->result_is_list || g->result_is_flag || !b->backend->kernels.table[c->op])
    return false;
  for (int k = 0; k < c->nargs; k++)
    if (c->arg[k].kind == LT_ARG_TENSOR &&
        lt_dtype_is_complex(b->r->value[c->arg[k].i].tensor->dtype))
      return false;
  for (int k = 0; k < c->nout; k++)
    if (lt_dtype_is_complex(b->r->value[c->out[k]].tensor->dtype)) return false;
  return true;
}

/* Makes the step of a call that is not elementwise. */
static bool make_call(lt_PlanBuilder *b, lt_PlanStep *s, int call, int part) {
  const lt_RecordedCall *c = &b->r->call[call];
  s->kind = runs_kernel(b, call) ? LT_STEP_KERNEL : LT_STEP_CALL;
  s->in_place = c->in_place;
  s->update = lt_ops[c->op].kind == LT_KIND_UPDATE;
  s->nout = c->nout;
  s->call = (lt_Call){.op = c->op,
                      .info = &lt_ops[c->op],
                      .signature = lt_op_signature(c->op),
                      .in_place = c->in_place,
                      .nargs = c->nargs,
                      .device = b->plan->device,
                      .compute = c->folded,
                      .nout = c->nout};
  if (!copy_arguments(b, s, c, part)) return false;
  for (int k = 0; k < c->nout; k++) {
    s->out[k] = s->call.out[k] = lt_plan_tensor(b, c->out[k], part);
    if (!s->out[k]) return false;
    lt_spec_like(&s->call, k, s->out[k]);
  }
  return true;
}

/* Returns true when a call runs as an elementwise loop. */
static bool runs_loop(const lt_PlanBuilder *b, int call) {
  const lt_RecordedCall *c = &b->r->call[call];
  const lt_OpInfo *info = &lt_ops[c->op];
  int source[3];
  if (b->call[call].keeps_order || lt_plan_sources(b, call, source) < 0 || c->nout != 1)
    return false;
  if (info->kind != LT_KIND_ELEMENTWISE) return true; /* `compute` is of elementwise ops alone */
  if (info->rule == LT_RULE_DIVIDE && lt_dtype_category(c->compute) == LT_INTEGER) return false;
  return !b->backend->kernels.elementwise_supported ||
         b->backend->kernels.elementwise_supported(c->op, c->compute);
}

static bool make_step(lt_PlanBuilder *b, lt_PlanUnit *u, lt_PlanStep *s) {
  const lt_RecordedCall *first = &b->r->call[u->call[0]];
  s->op = first->op;
  s->user = first->user;
  s->index = first->index;
  if (u->program) return make_program(b, s, u);
  return runs_loop(b, u->call[0]) ? make_loop(b, s, u->call[0], u->part)
                                  : make_call(b, s, u->call[0], u->part);
}

bool lt_plan_steps(lt_PlanBuilder *b) {
  lt_Plan *p = b->plan;
  p->tensor = calloc((size_t)b->r->nvalues + 1, sizeof *p->tensor);
  if (!p->tensor) return lt_fail_memory();
  if (!assign_memory(b)) return false;
  for (int part = 0; part < 2; part++) {
    p->part[part].step = calloc((size_t)b->nunits + 1, sizeof *p->part[part].step);
    if (!p->part[part].step) return lt_fail_memory();
  }
  for (int at = 0; at < b->nunits; at++) {
    lt_PlanPart *part = &p->part[b->unit[at].part];
    lt_PlanStep *s = calloc(1, sizeof *s);
    if (!s) return lt_fail_memory();
    part->step[part->nsteps++] = s;
    if (!make_step(b, &b->unit[at], s)) return false;
  }
  p->counts.steps = b->nunits;
  p->counts.memory = p->part[0].bytes + p->part[1].bytes;
  p->counts.saved += p->saved_bytes;
  return true;
}
