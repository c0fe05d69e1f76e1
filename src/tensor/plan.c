/* plan.c: makes a plan from a record, and runs it.
 *
 * A run sets the tensors of the plan that lie on slots to the memory of this call, for as long as
 * the steps run. With gradients, the call becomes one node of the autograd graph. */
#include "plan.h"
#include "trace.h"

/* ---- lifetime -------------------------------------------------------------------------------- */

static void free_part(const lt_Plan *p, lt_PlanPart *part) {
  const lt_Backend *b = lt_device_backend(p->device.type);
  for (int i = 0; i < part->nsteps; i++) {
    lt_PlanStep *s = part->step[i];
    if (s && s->program) {
      lt_Program *program = (lt_Program *)s->program->program;
      lt_plan_loop_free(s->program, b);
      lt_program_free(program);
    }
    lt_plan_step_free(s);
  }
  free(part->step);
  free(part->patch);
  free(part->address);
  lt_storage_release(part->arena);
}

static void free_outs(lt_PlanOut *out, int n) {
  for (int i = 0; out && i < n; i++)
    if (!out[i].copied) lt_release(out[i].tensor); /* else it is one of the plan's */
  free(out);
}

lt_Plan *lt_plan_retain(lt_Plan *p) {
  if (p) atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
  return p;
}

void lt_plan_release(lt_Plan *p) {
  if (!p || atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) != 1) return;
  lt_plan_graphs_free(p);
  free_part(p, &p->part[0]);
  free_part(p, &p->part[1]);
  free_outs(p->out, p->nout);
  free_outs(p->gradient, p->nwanted);
  for (int i = 0; i < p->ntensors; i++) lt_release(p->tensor[i]);
  for (int i = 0; p->captured && i < p->ncaptured; i++) lt_release(p->captured[i]);
  for (int i = 0; p->like && i < p->ncaptured; i++) lt_release(p->like[i]);
  lt_storage_release(p->nothing);
  lt_storage_release(p->spare);
  free(p->captured);
  free(p->like);
  free(p->made);
  free(p->wrote);
  free(p->slot_bytes);
  free(p->slot_part);
  free(p->wanted);
  free(p->keeps);
  free(p->tensor);
  free(p->slot);
  free(p);
}

int lt_plan_captured_count(const lt_Plan *p) { return p->ncaptured; }
lt_Tensor *lt_plan_captured(const lt_Plan *p, int i) { return p->captured[i]; }
bool lt_plan_captured_made(const lt_Plan *p, int i) { return p->made[i]; }
int lt_plan_results(const lt_Plan *p) { return p->nout; }
void lt_plan_counts(const lt_Plan *p, lt_PlanCounts *out) {
  *out = p->counts;
  out->graphs = (p->graph[0] != NULL) + (p->graph[1] != NULL);
  out->no_graph = p->no_graph;
}

/* ---- the backward pass of a record ----------------------------------------------------------- */

/* What is recorded after the program: gradients of its results and of what it reads. */
typedef struct Gradients {
  int n, nwanted;
  lt_Tensor **out, **grad;     /* results that require grad, borrowed, and their gradients */
  lt_Tensor **wanted, **found; /* stand-ins, borrowed, and their gradients or NULL */
} Gradients;

static void free_gradients(Gradients *g) {
  for (int i = 0; g->grad && i < g->n; i++) lt_release(g->grad[i]);
  for (int i = 0; g->found && i < g->nwanted; i++) lt_release(g->found[i]);
  free(g->out);
  free(g->grad);
  free(g->wanted);
  free(g->found);
}

/* Returns true when an earlier result is the same tensor. */
static bool is_repeated(lt_Tensor *const *out, int i) {
  for (int k = 0; k < i; k++)
    if (out[k] == out[i]) return true;
  return false;
}

/* Records the backward pass. */
static bool record_backward(lt_Recorder *r, int nout, lt_Tensor *const *out, Gradients *g) {
  g->out = calloc((size_t)nout + 1, sizeof *g->out);
  g->grad = calloc((size_t)nout + 1, sizeof *g->grad);
  g->wanted = calloc((size_t)r->nvalues + 1, sizeof *g->wanted);
  g->found = calloc((size_t)r->nvalues + 1, sizeof *g->found);
  if (!g->out || !g->grad || !g->wanted || !g->found) return lt_fail_memory();
  for (int v = 0; v < r->nvalues; v++) {
    lt_Tensor *t = r->value[v].stand_in;
    if (t && lt_tensor_requires_grad(t) && lt_tensor_is_leaf(t)) g->wanted[g->nwanted++] = t;
    if (t && lt_tensor_grad(t)) return lt_error_set("it runs a backward pass");
  }
  for (int i = 0; i < nout; i++)
    if (lt_tensor_requires_grad(out[i]) && !lt_recorder_is_stand_in(r, out[i]) &&
        !is_repeated(out, i))
      g->out[g->n++] = out[i];
  if (!g->n || !g->nwanted) {
    g->n = g->nwanted = 0;
    return true;
  }
  for (int i = 0; i < g->n; i++) {
    g->grad[i] = lt_recorder_input(r, g->out[i]->dtype, g->out[i]->ndim, g->out[i]->shape);
    if (!g->grad[i]) return false;
  }
  return lt_grad(g->n, g->out, g->grad, false, false, true, g->nwanted, g->wanted, g->found);
}

/* ---- making ---------------------------------------------------------------------------------- */

/* Returns the number of a result's value; a tensor with data is captured. -1 with an error. */
static int value_of(lt_Recorder *r, lt_Tensor *t) {
  if (!lt_device_equal(lt_tensor_device(t), lt_recording())) {
    if (!lt_device_equal(lt_tensor_device(t), r->device)) {
      lt_error_set("a result is on \"%s\"", lt_device_name(lt_tensor_device(t)));
      return -1;
    }
    t = lt_recorder_stand_in(r, t, false);
  }
  int v = t ? lt_recorder_value(r, t) : -1;
  if (t && v < 0) lt_error_set("a result was recorded by another program");
  return v;
}

/* Creates the plan with its slots for what is given, and room for a slot for each value. */
static bool make_slots(lt_PlanBuilder *b, const Gradients *g) {
  const lt_Recorder *r = b->r;
  lt_Plan *p = b->plan;
  for (int v = 0; v < r->nvalues; v++) {
    if (!r->value[v].source) continue;
    if (r->value[v].kind == LT_VALUE_INPUT)
      p->ninputs++;
    else
      p->ncaptured++;
  }
  size_t n = (size_t)(p->ninputs + p->ncaptured + 1 + g->n + r->nvalues);
  p->captured = calloc((size_t)p->ncaptured + 1, sizeof *p->captured);
  p->like = calloc((size_t)p->ncaptured + 1, sizeof *p->like);
  p->made = calloc((size_t)p->ncaptured + 1, sizeof *p->made);
  p->wrote = calloc((size_t)p->ncaptured + 1, sizeof *p->wrote);
  p->slot_bytes = calloc(n, sizeof *p->slot_bytes);
  p->slot_part = calloc(n, sizeof *p->slot_part);
  p->slot = calloc(n, sizeof *p->slot);
  p->keeps = calloc(n, sizeof *p->keeps);
  p->wanted = calloc((size_t)g->nwanted + 1, sizeof *p->wanted);
  p->nothing = lt_storage_new(p->device, 0);
  if (!p->captured || !p->like || !p->made || !p->wrote || !p->slot_bytes || !p->slot_part ||
      !p->slot || !p->keeps || !p->wanted || !p->nothing)
    return lt_fail_memory();
  p->saved_slot = p->ninputs + p->ncaptured;
  p->nslots = p->saved_slot + 1 + g->n;
  p->ngrads = g->n;
  for (int i = 0; i < p->nslots; i++) p->slot_part[i] = -1;
  return true;
}

void lt_plan_new_slot(lt_PlanBuilder *b, lt_PlanBuffer *buffer, int part) {
  lt_Plan *p = b->plan;
  buffer->kind = LT_BUFFER_SLOT;
  buffer->slot = p->nslots;
  p->slot_bytes[p->nslots] = buffer->bytes;
  p->slot_part[p->nslots++] = part;
}

static void set_slot(lt_PlanBuilder *b, int value, int slot) {
  lt_PlanBuffer *buffer = lt_buffer_of(b, value);
  buffer->kind = LT_BUFFER_SLOT;
  buffer->slot = slot;
}

/* Assigns the slots of inputs, captured tensors and gradients of results. */
static bool give_slots(lt_PlanBuilder *b, const Gradients *g) {
  const lt_Recorder *r = b->r;
  lt_Plan *p = b->plan;
  int input = 0, captured = 0, wanted = 0;
  for (int v = 0; v < r->nvalues; v++) {
    const lt_RecordedValue *value = &r->value[v];
    if (value->kind == LT_VALUE_CONSTANT) return lt_error_set("it uses a number on another device");
    if (!value->source) continue;
    int slot = value->kind == LT_VALUE_INPUT ? input++ : p->ninputs + captured;
    set_slot(b, v, slot);
    if (value->kind == LT_VALUE_INPUT) p->slot_bytes[slot] = lt_buffer_of(b, v)->bytes;
    if (wanted < g->nwanted && g->wanted[wanted] == value->stand_in) p->wanted[wanted++] = slot;
    if (value->kind == LT_VALUE_INPUT) continue;
    p->captured[captured] = lt_retain(value->source);
    p->like[captured] = lt_alias(value->tensor);
    if (!p->like[captured]) return false;
    p->like[captured]->requires_grad = lt_tensor_requires_grad(value->stand_in);
    p->made[captured] = value->made;
    p->wrote[captured] = lt_buffer_of(b, v)->written;
    p->writes_captured |= p->wrote[captured];
    captured++;
  }
  for (int i = 0; i < g->n; i++) {
    int v = lt_recorder_value(r, g->grad[i]);
    set_slot(b, v, p->saved_slot + 1 + i);
    p->slot_bytes[p->saved_slot + 1 + i] = lt_buffer_of(b, v)->bytes;
  }
  return true;
}

/* Determines where result i, the value of tensor t, comes from. */
static bool place_out(lt_PlanBuilder *b, lt_PlanOut *out, int i, lt_Tensor *t, int part) {
  lt_PlanOut *o = &out[i];
  lt_PlanBuffer *buffer = lt_buffer_of(b, o->value);
  const lt_Tensor *geometry = b->r->value[o->value].tensor;
  bool stand_in =
      lt_recorder_is_stand_in(b->r, t) || !lt_device_equal(lt_tensor_device(t), lt_recording());
  bool gradient = part == LT_BACKWARD;
  bool made = b->r->value[b->value[o->value].root].made; /* each call creates it anew */
  o->offset = geometry->offset * (int64_t)lt_dtype_size(geometry->dtype);
  o->slot = -1;
  if (buffer->external) {
    bool whole = lt_shape_equal(geometry->ndim, geometry->shape, t->ndim, t->shape) &&
                 b->r->value[o->value].kind == LT_VALUE_INPUT && !b->r->value[o->value].source;
    o->given = gradient ? whole : stand_in && !made;
    o->slot = buffer->slot;
    o->copied = gradient ? !whole : made;
    if (!gradient && !stand_in && o->grad)
      return lt_error_set("a result that requires grad is a view of an argument");
  } else if (gradient ? buffer->made_by < b->mark || buffer->result
                      : buffer->result && buffer->root != b->value[o->value].root) {
    o->copied = true;
  } else {
    if (!buffer->result) lt_plan_new_slot(b, buffer, part);
    buffer->result = true;
    buffer->root = b->value[o->value].root;
    o->slot = buffer->slot;
  }
  if (o->copied) buffer->copied[part] = true;
  return true;
}

/* Fails when two results that require grad share memory. */
static bool check_shared(const lt_PlanBuilder *b, const lt_PlanOut *out, int n) {
  for (int i = 0; i < n; i++)
    for (int k = 0; k < i; k++)
      if (out[i].same < 0 && out[k].same < 0 && out[i].grad && out[k].grad &&
          b->value[out[i].value].root == b->value[out[k].value].root)
        return lt_error_set("two results that require grad share memory");
  return true;
}

/* Fills in the results and the gradients. */
static bool make_outs(lt_PlanBuilder *b, lt_Recorder *r, int nout, lt_Tensor *const *out,
                      const Gradients *g) {
  lt_Plan *p = b->plan;
  for (int i = 0; i < nout; i++) {
    lt_PlanOut *o = &p->out[i];
    o->same = -1;
    for (int k = 0; k < i && o->same < 0; k++)
      if (out[k] == out[i]) o->same = k;
    o->grad = g->n > 0 && lt_tensor_requires_grad(out[i]) && !lt_recorder_is_stand_in(r, out[i]) &&
              lt_device_equal(lt_tensor_device(out[i]), lt_recording());
    if (o->same < 0 && !place_out(b, p->out, i, out[i], LT_FORWARD)) return false;
  }
  if (!check_shared(b, p->out, nout)) return false;
  for (int i = 0; i < g->nwanted; i++) {
    lt_PlanOut *o = &p->gradient[i];
    o->same = -1;
    o->value = g->found[i] ? lt_recorder_value(r, g->found[i]) : -1;
    if (o->value >= 0 && !place_out(b, p->gradient, i, g->found[i], LT_BACKWARD)) return false;
  }
  return true;
}

/* Gives the results their geometry, and those that are copied the plan's tensors. */
static bool finish_outs(lt_PlanBuilder *b, lt_PlanOut *out, int n, int part) {
  for (int i = 0; i < n; i++) {
    lt_PlanOut *o = &out[i];
    if (o->value < 0 || o->same >= 0) {
      o->copied = false;
      continue;
    }
    o->tensor =
        o->copied ? lt_plan_tensor(b, o->value, part) : lt_alias(b->r->value[o->value].tensor);
    if (!o->tensor) return false;
  }
  return true;
}

/* Marks the slots that the backward pass reads. */
static void mark_kept(lt_Plan *p) {
  for (int i = 0; i < p->part[LT_BACKWARD].npatches; i++) {
    int slot = p->part[LT_BACKWARD].patch[i].slot;
    bool grad = slot > p->saved_slot && slot <= p->saved_slot + p->ngrads;
    if (!grad && p->slot_part[slot] != LT_BACKWARD) p->keeps[slot] = true;
  }
}

/* Fails when a tensor that the program writes shares memory with another one that it reads. */
static bool check_written(const lt_Recorder *r, const lt_Plan *p) {
  for (int i = 0; i < p->ncaptured; i++) {
    if (!p->wrote[i]) continue;
    for (int v = 0; v < r->nvalues; v++) {
      const lt_RecordedValue *value = &r->value[v];
      bool own = value->kind == LT_VALUE_CAPTURED && value->source == p->captured[i];
      if (value->source && !own && value->source->storage == p->captured[i]->storage)
        return lt_error_set("it changes a tensor in place that shares memory with another one");
    }
  }
  return true;
}

/* Builds the plan; b->value, b->call and b->buffer have been allocated. */
static bool build(lt_PlanBuilder *b, lt_Recorder *r, int nout, lt_Tensor *const *out,
                  const Gradients *g) {
  lt_Plan *p = b->plan;
  int n = 0, *needed = calloc((size_t)(nout + g->nwanted) + 1, sizeof *needed);
  if (!needed) return lt_fail_memory();
  bool ok = make_slots(b, g) && lt_plan_values(b) && give_slots(b, g) && check_written(r, p) &&
            make_outs(b, r, nout, out, g);
  for (int i = 0; ok && i < nout; i++) needed[n++] = p->out[i].value;
  for (int i = 0; ok && i < g->nwanted; i++) needed[n++] = p->gradient[i].value;
  p->counts.calls = r->ncalls;
  if (ok) lt_plan_need(b, needed, n);
  ok = ok && lt_plan_recompute(b, r);
  if (ok) lt_plan_need(b, needed, n);
  free(needed);
  ok = ok && lt_plan_units(b) && lt_plan_steps(b) && finish_outs(b, p->out, nout, LT_FORWARD) &&
       finish_outs(b, p->gradient, g->nwanted, LT_BACKWARD);
  if (ok) mark_kept(p);
  return ok;
}

static void free_builder(lt_PlanBuilder *b) {
  for (int i = 0; i < b->nunits; i++) {
    lt_PlanUnit *u = &b->unit[i];
    lt_plan_loop_free(u->loop, b->backend);
    lt_program_free(u->program);
    free(u->call);
    free(u->in);
    free(u->result);
  }
  free(b->unit);
  free(b->order);
  free(b->value);
  free(b->call);
  free(b->buffer);
}

/* Makes the plan after the backward pass has been recorded. */
static lt_Plan *plan_of(lt_Recorder *r, int mark, int nout, lt_Tensor *const *out,
                        const Gradients *g, const int *values, const lt_PlanCompiler *compiler) {
  lt_PlanBuilder b = {
      .r = r, .mark = mark, .backend = lt_device_backend(r->device.type), .compiler = compiler};
  lt_Plan *p = b.plan = calloc(1, sizeof *p);
  b.value = calloc((size_t)r->nvalues + 1, sizeof *b.value);
  b.call = calloc((size_t)r->ncalls + 1, sizeof *b.call);
  b.buffer = calloc((size_t)r->nvalues + 1, sizeof *b.buffer);
  bool ok = p && b.value && b.call && b.buffer && b.backend;
  if (p) {
    atomic_init(&p->refs, 1);
    p->device = r->device;
    p->stream = lt_stream_current(r->device);
    p->out = calloc((size_t)nout + 1, sizeof *p->out);
    p->gradient = calloc((size_t)g->nwanted + 1, sizeof *p->gradient);
    ok = ok && p->out && p->gradient;
  }
  if (!ok) lt_fail_memory();
  if (ok) {
    p->nout = nout;
    p->nwanted = g->nwanted;
    for (int i = 0; i < nout; i++) p->out[i].value = values[i];
    ok = build(&b, r, nout, out, g);
    p->counts.gradients = g->n > 0;
  }
  free_builder(&b);
  if (ok) return p;
  lt_plan_release(p);
  return NULL;
}

lt_Plan *lt_plan_new(lt_Recorder *r, int nout, lt_Tensor *const *out, bool grad,
                     const lt_PlanCompiler *compiler, bool graphs) {
  Gradients g = {0};
  lt_Plan *p = NULL;
  int *values = calloc((size_t)nout + 1, sizeof *values), mark = r->ncalls;
  bool ok = values || lt_fail_memory();
  for (int i = 0; ok && i < nout; i++) ok = (values[i] = value_of(r, out[i])) >= 0;
  if (ok && grad && !r->reason[0]) ok = record_backward(r, nout, out, &g);
  lt_recorder_end(r);
  if (ok && r->reason[0]) ok = lt_error_set("%s", r->reason);
  if (ok) p = plan_of(r, mark, nout, out, &g, values, compiler);
  if (p) p->graphs = graphs && p->stream && lt_device_backend(p->device.type)->graphs.begin;
  free_gradients(&g);
  free(values);
  return p;
}

/* ---- running --------------------------------------------------------------------------------- */

/* Runs one step. */
static bool run_step(lt_PlanStep *s, const lt_Backend *b, lt_Stream *stream) {
  lt_Results r;
  switch (s->kind) {
  case LT_STEP_LOOP:
    s->loop.stream = stream;
    return s->loop.layout == LT_LAYOUT_EMPTY || b->kernels.elementwise(&s->loop);
  case LT_STEP_PROGRAM:
    return b->kernels.program(s->program);
  case LT_STEP_LAUNCH:
    return b->kernels.user_launch(s->kernel, &s->launch, stream) && lt_check_interrupt();
  case LT_STEP_KERNEL:
    s->call.stream = stream;
    if (s->update && !lt_copy_into(s->out[0], s->call.arg[0].tensor, false)) return false;
    return b->kernels.table[s->op](&s->call) && lt_check_interrupt();
  case LT_STEP_CALL:
    if (!lt_call(s->op, s->in_place, s->call.arg, s->call.nargs, &r)) return false;
    for (int i = 0; i < s->nout && !s->in_place; i++)
      if (!lt_copy_into(s->out[i], lt_results_items(&r)[i], false)) {
        lt_results_release(&r);
        return false;
      }
    lt_results_release(&r);
    return true;
  }
  return false;
}

void lt_plan_note_streams(const lt_Plan *p, const lt_PlanSlot *slot) {
  const lt_Backend *b = lt_device_backend(p->device.type);
  if (!p->stream || !b->memory.record_stream || lt_thread()->capturing) return;
  for (int i = 0; i < p->nslots; i++) {
    lt_Storage *s = slot[i].storage;
    if (s && s->stream && s->stream != p->stream) b->memory.record_stream(s, p->stream);
  }
}

bool lt_plan_run_steps(lt_Plan *p, int which, const lt_PlanSlot *slot) {
  const lt_PlanPart *part = &p->part[which];
  const lt_Backend *b = lt_device_backend(p->device.type);
  lt_Stream *stream = lt_stream_current(p->device);
  lt_UserOp user = lt_user_op_get();
  lt_UserIndex index = lt_thread()->user_index;
  bool ok = true;
  for (int i = 0; i < part->npatches; i++) {
    const lt_PlanPatch *patch = &part->patch[i];
    const lt_PlanSlot *from = &slot[patch->slot];
    patch->tensor->storage = from->storage;
    patch->tensor->offset =
        (from->offset + patch->offset) / (int64_t)lt_dtype_size(patch->tensor->dtype);
  }
  for (int i = 0; i < part->naddresses; i++)
    *part->address[i].where = lt_tensor_data(part->address[i].tensor);
  for (int i = 0; ok && i < part->nsteps; i++) {
    lt_user_op_set(part->step[i]->user);
    lt_user_index_set(part->step[i]->index);
    ok = run_step(part->step[i], b, stream);
  }
  lt_user_op_set(user);
  lt_user_index_set(index);
  lt_plan_note_streams(p, slot);
  for (int i = 0; i < part->npatches; i++) {
    part->patch[i].tensor->storage = p->nothing;
    part->patch[i].tensor->offset = 0;
  }
  return ok;
}

/* Allocates the new memory of a part. */
static bool make_memory(lt_Plan *p, lt_PlanSlot *slot, int part) {
  for (int i = p->saved_slot + 1; i < p->nslots; i++) {
    if (p->slot_part[i] != part) continue;
    slot[i] = (lt_PlanSlot){lt_storage_new(p->device, (size_t)p->slot_bytes[i]), 0};
    if (!slot[i].storage) return false;
  }
  return true;
}

/* Releases it. */
static void drop_memory(const lt_Plan *p, lt_PlanSlot *slot, int part) {
  for (int i = p->saved_slot + 1; i < p->nslots; i++) {
    if (p->slot_part[i] != part) continue;
    lt_storage_release(slot[i].storage);
    slot[i].storage = NULL;
  }
}

/* Returns result i of a part as a tensor; `given` are the tensors of the slots. */
static lt_Tensor *make_out(const lt_PlanOut *o, const lt_PlanSlot *slot, lt_Tensor *given) {
  const lt_Tensor *t = o->tensor;
  if (o->given) return lt_retain(given);
  int64_t offset = slot[o->slot].offset + o->offset;
  return lt_tensor_on(slot[o->slot].storage, t->dtype, offset / (int64_t)lt_dtype_size(t->dtype),
                      t->ndim, t->shape, t->strides);
}

/* Returns a copy of the plan's tensor; the part's tensors must be on their memory. */
static lt_Tensor *copy_out(const lt_Plan *p, const lt_PlanOut *o, int part,
                           const lt_PlanSlot *slot) {
  const lt_PlanPart *own = &p->part[part];
  lt_Tensor view = *o->tensor;
  for (int i = 0; i < own->npatches; i++)
    if (own->patch[i].tensor == o->tensor) {
      view.storage = slot[own->patch[i].slot].storage;
      view.offset = (slot[own->patch[i].slot].offset + own->patch[i].offset) /
                    (int64_t)lt_dtype_size(view.dtype);
    }
  lt_Tensor *t = lt_empty(view.dtype, p->device, view.ndim, view.shape);
  if (t && lt_copy_into(t, &view, false)) return t;
  lt_release(t);
  return NULL;
}

static void release_all(lt_Tensor **out, int n) {
  for (int i = 0; i < n; i++) {
    lt_release(out[i]);
    out[i] = NULL;
  }
}

/* Runs a part as one traced op. */
static bool run_traced(lt_Plan *p, int part, const lt_PlanSlot *slot, const char *name) {
  lt_TraceSpan span;
  if (!lt_thread()->tracers || !lt_trace_begin_op(&span, name))
    return lt_plan_run_part(p, part, slot);
  bool ok = lt_plan_run_part(p, part, slot);
  span.event.op = LT_NO_OP;
  span.event.name = name;
  span.event.device = p->device;
  span.event.kernel = true;
  span.event.ndim = -1;
  return lt_trace_end(&span, ok);
}

/* ---- the node of a call ---------------------------------------------------------------------- */

/* What a call keeps for its backward pass. */
typedef struct Kept {
  lt_Plan *plan;
  bool released;
  unsigned *version; /* by slot */
  lt_PlanSlot slot[];
} Kept;

/* Releases the memory; the saved memory serves for the next call. */
static void kept_release(void *context) {
  Kept *k = context;
  lt_Plan *p = k->plan;
  if (k->released) return;
  k->released = true;
  for (int i = 0; i < p->nslots; i++) {
    lt_Storage *s = k->slot[i].storage;
    if (i == p->saved_slot && s && !p->spare && atomic_load(&s->refs) == 1)
      p->spare = s;
    else
      lt_storage_release(s);
    k->slot[i].storage = NULL;
  }
}

static void kept_forget(void *context) {
  Kept *k = context;
  lt_Plan *p = k->plan;
  kept_release(k);
  free(k->version);
  free(k);
  lt_plan_release(p);
}

/* Keeps the slots of the run that has ended. NULL when memory is out. */
static Kept *keep(lt_Plan *p) {
  Kept *k = calloc(1, sizeof *k + sizeof *k->slot * (size_t)p->nslots);
  unsigned *version = calloc((size_t)p->nslots, sizeof *version);
  if (!k || !version) {
    free(k);
    free(version);
    lt_fail_memory();
    return NULL;
  }
  k->plan = lt_plan_retain(p);
  k->version = version;
  for (int i = 0; i < p->nslots; i++) {
    if (!p->keeps[i]) continue;
    k->slot[i] = p->slot[i];
    lt_storage_retain(p->slot[i].storage);
    version[i] = atomic_load(&p->slot[i].storage->version);
  }
  return k;
}

/* Checks that the backward pass can run. */
static bool check_backward(const Kept *k) {
  const lt_Plan *p = k->plan;
  if (lt_grad_enabled())
    return lt_error_set("backward: cannot record the gradients of a compiled function: its plan "
                        "has no second derivatives\nhint: call the function without lt.compile");
  if (k->released)
    return lt_error_set("backward: cannot run a second time: the values that the compiled function "
                        "saved were freed\nhint: loss:backward{retain_graph = true}");
  if (p->running) return lt_error_set("backward: cannot run: the plan of this function is running");
  for (int i = 0; i < p->nslots; i++)
    if (p->keeps[i] && i != p->saved_slot &&
        atomic_load(&k->slot[i].storage->version) != k->version[i])
      return lt_error_set("backward: cannot compute a gradient: a tensor that the compiled "
                          "function saved was changed in place since");
  return true;
}

/* Returns the gradient of a result as contiguous memory; zeros where there is none. */
static lt_Tensor *own_gradient(lt_Tensor *grad, const lt_PlanOut *o, lt_Device device) {
  if (grad) return lt_as_contiguous(grad, o->tensor->dtype);
  lt_Tensor *t = lt_empty(o->tensor->dtype, device, o->tensor->ndim, o->tensor->shape);
  lt_Results r;
  lt_Arg args[] = {LT_ARG(t), LT_ARG(lt_scalar_int(0))};
  if (t && lt_call((lt_OpId)lt_op_find("fill"), true, args, 2, &r)) {
    lt_results_release(&r);
    return t;
  }
  lt_release(t);
  return NULL;
}

static bool kept_backward(void *context, int noutputs, lt_Tensor *const *grads, int ninputs,
                          lt_Tensor **in) {
  Kept *k = context;
  lt_Plan *p = k->plan;
  if (!check_backward(k)) return false;
  int first = p->saved_slot + 1, n = 0;
  lt_Tensor **own = calloc((size_t)noutputs + 1, sizeof *own);
  bool ok = own || lt_fail_memory();
  for (int i = 0; ok && i < p->nout && n < noutputs; i++) {
    if (!p->out[i].grad || p->out[i].same >= 0) continue;
    own[n] = own_gradient(grads[n], &p->out[i], p->device);
    ok = own[n] != NULL;
    if (ok)
      k->slot[first + n] =
          (lt_PlanSlot){own[n]->storage, own[n]->offset * (int64_t)lt_dtype_size(own[n]->dtype)};
    n++;
  }
  p->running = true;
  ok = ok && make_memory(p, k->slot, LT_BACKWARD) &&
       run_traced(p, LT_BACKWARD, k->slot, "compiled_backward");
  for (int i = 0; i < ninputs; i++) {
    const lt_PlanOut *o = &p->gradient[i];
    in[i] = NULL;
    if (!ok || o->value < 0) continue;
    in[i] = o->copied ? copy_out(p, o, LT_BACKWARD, k->slot)
                      : make_out(o, k->slot, o->given ? own[o->slot - first] : NULL);
    ok = in[i] != NULL;
  }
  p->running = false;
  if (!ok) release_all(in, ninputs);
  drop_memory(p, k->slot, LT_BACKWARD);
  for (int i = 0; i < n; i++) {
    k->slot[first + i].storage = NULL;
    lt_release(own[i]);
  }
  free(own);
  return ok;
}

/* Connects the results to what the program reads in the graph. */
static bool connect(lt_Plan *p, lt_Tensor *const *inputs, lt_Tensor *const *captured,
                    lt_Tensor **out) {
  Kept *k = keep(p);
  if (!k) return false;
  lt_CustomFunction f = {.name = "Compiled",
                         .backward = kept_backward,
                         .forget = kept_forget,
                         .release = kept_release,
                         .context = k};
  lt_Tensor **wanted = calloc((size_t)p->nwanted + 1, sizeof *wanted);
  lt_Tensor **made = calloc((size_t)p->nout + 1, sizeof *made);
  int n = 0;
  bool ok = (wanted && made) || lt_fail_memory();
  for (int i = 0; ok && i < p->nwanted; i++)
    wanted[i] =
        p->wanted[i] < p->ninputs ? inputs[p->wanted[i]] : captured[p->wanted[i] - p->ninputs];
  for (int i = 0; ok && i < p->nout; i++)
    if (p->out[i].grad && p->out[i].same < 0) made[n++] = out[i];
  ok = ok && lt_autograd_custom(&f, p->nwanted, wanted, n, made);
  if (!ok) kept_forget(k);
  n = 0;
  for (int i = 0; i < p->nout && made; i++) /* the function may have replaced them */
    if (p->out[i].grad && p->out[i].same < 0) out[i] = made[n++];
  free(wanted);
  free(made);
  return ok;
}

/* ---- a call ---------------------------------------------------------------------------------- */

/* Returns true when the captured tensors have the recorded geometry, none of them is a bool tensor
 * on a loose storage, no other tensor shares memory that the plan writes, and the stream is the
 * plan's. */
static bool is_current(const lt_Plan *p, lt_Tensor *const *inputs, lt_Tensor *const *captured) {
  if (p->stream != lt_stream_current(p->device)) return false;
  for (int i = 0; i < p->ncaptured; i++) {
    lt_Tensor *t = captured[i];
    const lt_Tensor *like = p->like[i];
    if (t->freed || t->dtype != like->dtype || lt_bools_are_loose(t) ||
        !lt_device_equal(lt_tensor_device(t), p->device) ||
        !lt_shape_equal(t->ndim, t->shape, like->ndim, like->shape) ||
        !lt_shape_equal(t->ndim, t->strides, like->ndim, like->strides) ||
        lt_tensor_requires_grad(t) != like->requires_grad)
      return false;
  }
  for (int i = 0; p->writes_captured && i < p->ncaptured; i++) {
    if (!p->wrote[i]) continue;
    for (int k = 0; k < p->ncaptured; k++)
      if (k != i && captured[k]->storage == captured[i]->storage) return false;
    for (int k = 0; k < p->ninputs; k++)
      if (inputs[k]->storage == captured[i]->storage) return false;
  }
  return true;
}

/* Sets the slots of what is given and allocates the others. */
static bool open_slots(lt_Plan *p, lt_Tensor *const *inputs, lt_Tensor *const *captured) {
  for (int i = 0; i < p->saved_slot; i++) {
    const lt_Tensor *t = i < p->ninputs ? inputs[i] : captured[i - p->ninputs];
    p->slot[i] = (lt_PlanSlot){t->storage, t->offset * (int64_t)lt_dtype_size(t->dtype)};
  }
  for (int i = p->saved_slot; i < p->nslots; i++) p->slot[i].storage = NULL;
  if (p->counts.gradients && p->stream) {
    lt_Storage *saved = lt_plan_fixed_saved(p);
    if (!saved) {
      saved = p->spare;
      p->spare = NULL;
    }
    if (!saved) saved = lt_storage_new(p->device, (size_t)p->saved_bytes);
    p->slot[p->saved_slot] = (lt_PlanSlot){saved, 0};
    if (!saved) return false;
  }
  return make_memory(p, p->slot, LT_FORWARD);
}

lt_PlanResult lt_plan_run(lt_Plan *p, lt_Tensor *const *inputs, lt_Tensor *const *captured,
                          lt_Tensor **out) {
  if (p->running || !is_current(p, inputs, captured)) return LT_PLAN_OUTDATED;
  p->running = true;
  for (int i = 0; i < p->nout; i++) out[i] = NULL;
  bool ok = open_slots(p, inputs, captured) && run_traced(p, LT_FORWARD, p->slot, "compiled");
  for (int i = 0; ok && i < p->nout; i++) {
    const lt_PlanOut *o = &p->out[i];
    lt_Tensor *given = !o->given              ? NULL
                       : o->slot < p->ninputs ? inputs[o->slot]
                                              : captured[o->slot - p->ninputs];
    out[i] = o->same >= 0 ? lt_retain(out[o->same])
             : o->copied  ? copy_out(p, o, LT_FORWARD, p->slot)
                          : make_out(o, p->slot, given);
    ok = out[i] != NULL;
  }
  if (ok && p->counts.gradients) ok = connect(p, inputs, captured, out);
  if (ok) /* of two results that are the same tensor */
    for (int i = 0; i < p->nout; i++)
      if (p->out[i].same >= 0 && out[i] != out[p->out[i].same]) {
        lt_release(out[i]);
        out[i] = lt_retain(out[p->out[i].same]);
      }
  if (!ok) release_all(out, p->nout);
  drop_memory(p, p->slot, LT_FORWARD);
  if (p->slot[p->saved_slot].storage) {
    lt_storage_release(p->slot[p->saved_slot].storage);
    p->slot[p->saved_slot].storage = NULL;
  }
  p->running = false;
  return ok ? LT_PLAN_RAN : LT_PLAN_FAILED;
}
