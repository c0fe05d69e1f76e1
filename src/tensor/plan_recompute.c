/* plan_recompute.c: computes cheap values of the forward pass again in the backward pass, which
 * otherwise would write them to memory in the one and read them in the other.
 *
 * A value is computed again if all its readers in the backward pass are fused calls, and if what it
 * is computed from is in memory there in any case, or is computed again as well, or is small. The
 * calls are appended to the record, and stand in b->order before their first readers. */
#include "plan.h"

enum {
  SMALLER = 8
}; /* so many times smaller than the result is a value that may be saved for it */

/* The state of the pass. */
typedef struct Recompute {
  lt_PlanBuilder *b;
  lt_Recorder *r;
  int nvalues, ncalls; /* before the pass */
  bool *read, *pinned; /* of buffers: in the backward pass; by a call that is not fused */
  bool *can;           /* of forward calls: they may be repeated */
  int *again;          /* of forward calls: the buffer of the repeated result + 1 */
  int *value;          /* of values: the value on this buffer + 1 */
} Recompute;

static int index_of(const lt_PlanBuilder *b, int64_t value) {
  return (int)(lt_buffer_of(b, value) - b->buffer);
}

static bool is_source(const int *source, int n, int k) {
  for (int i = 0; i < n; i++)
    if (source[i] == k) return true;
  return false;
}

/* Notes the memory that a call of the backward pass reads. */
static void note_reads(Recompute *p, int call) {
  const lt_PlanBuilder *b = p->b;
  const lt_RecordedCall *c = &p->r->call[call];
  int source[3], n = lt_plan_fused_sources(b, call, source);
  for (int k = 0; k < c->nargs; k++) {
    const lt_Arg *a = &c->arg[k];
    const int64_t *value;
    int count = lt_plan_values_of(a, &value);
    if (!lt_plan_reads(b, call, k)) continue;
    for (int j = 0; j < count; j++) {
      int64_t v = value[j];
      if (v < 0) continue;
      p->read[index_of(b, v)] = true;
      if (a->kind != LT_ARG_TENSOR || !is_source(source, n, k)) p->pinned[index_of(b, v)] = true;
    }
  }
}

/* Returns true when a call that computes `bytes` bytes may read a value in the backward pass. */
static bool can_read(const Recompute *p, int64_t value, int64_t bytes) {
  const lt_PlanBuffer *buffer = lt_buffer_of(p->b, value);
  bool read = p->read[index_of(p->b, value)];
  if (buffer->written || buffer->made_by >= p->b->mark) return false;
  if (buffer->external || buffer->result) return read;
  return read || p->can[buffer->made_by] || buffer->bytes <= bytes / SMALLER;
}

/* Returns true when a call of the forward pass may be repeated. An op that is defined for integers,
 * too, calls no function such as exp. */
static bool can_repeat(const Recompute *p, int call) {
  const lt_PlanBuilder *b = p->b;
  const lt_RecordedCall *c = &p->r->call[call];
  const lt_OpInfo *info = &lt_ops[c->op];
  int source[3], n = lt_plan_fused_sources(b, call, source);
  if (n < 1 || !b->call[call].needed || info->kind != LT_KIND_ELEMENTWISE || !info->has_integer ||
      info->rule == LT_RULE_POWER || info->rule == LT_RULE_DIVIDE)
    return false;
  const lt_PlanBuffer *out = lt_buffer_of(b, c->out[0]);
  if (out->made_by != call || out->external || out->result || out->written ||
      out->copied[LT_BACKWARD] || p->pinned[out - b->buffer])
    return false;
  for (int k = 0; k < c->nargs; k++) {
    const lt_Arg *a = &c->arg[k];
    if (a->kind == LT_ARG_TENSORS || a->kind == LT_ARG_INTS || a->kind == LT_ARG_STRING)
      return false;
    if (a->kind == LT_ARG_TENSOR && is_source(source, n, k) && !b->value[a->i].number &&
        !can_read(p, a->i, out->bytes))
      return false;
  }
  return true;
}

/* Returns the value with the geometry of `value` on another buffer; -1 when memory is out. */
static int value_on(Recompute *p, int value, int buffer, int call) {
  int v = lt_recorder_repeat_value(p->r, value, call);
  if (v >= 0) p->b->value[v] = (lt_PlanValue){.root = v, .buffer = buffer};
  return v;
}

static bool read_again(Recompute *p, lt_Arg *a);

/* Appends a call that repeats a call of the forward pass. Returns its buffer; -1 when memory is
 * out. */
static int repeat(Recompute *p, int call) {
  lt_PlanBuilder *b = p->b;
  if (p->again[call]) return p->again[call] - 1;
  int made = lt_recorder_repeat_call(p->r, call);
  if (made < 0) return -1;
  for (int k = 0; k < p->r->call[made].nargs; k++) {
    lt_Arg a = p->r->call[made].arg[k];
    if (!read_again(p, &a)) return -1;
    p->r->call[made].arg[k] = a;
  }
  int buffer = b->nbuffers++; /* after those of the calls that it reads */
  b->buffer[buffer] = (lt_PlanBuffer){.same = buffer,
                                      .kind = LT_BUFFER_NONE,
                                      .bytes = lt_buffer_of(b, p->r->call[call].out[0])->bytes,
                                      .slot = -1,
                                      .made_by = made,
                                      .producer = -1,
                                      .first = -1,
                                      .last = -1};
  b->call[made] = b->call[call];
  int out = value_on(p, p->r->call[call].out[0], buffer, made);
  if (out < 0) return -1;
  p->r->call[made].out[0] = out;
  b->order[b->norder++] = made;
  p->again[call] = buffer + 1;
  return buffer;
}

/* Replaces a value that is computed again in an argument. False when memory is out. */
static bool read_again(Recompute *p, lt_Arg *a) {
  if (a->kind != LT_ARG_TENSOR || a->i >= p->nvalues || p->b->value[a->i].number) return true;
  int maker = lt_buffer_of(p->b, a->i)->made_by;
  if (maker < 0 || maker >= p->b->mark || !p->can[maker]) return true;
  int *value = &p->value[a->i];
  if (!*value) {
    int buffer = repeat(p, maker);
    *value = buffer < 0 ? 0 : value_on(p, (int)a->i, buffer, p->r->ncalls - 1) + 1;
    if (!*value) return false;
  }
  a->i = *value - 1;
  return true;
}

/* Replaces what a fused call of the backward pass reads. */
static bool replace_reads(Recompute *p, int call) {
  int source[3], n = lt_plan_fused_sources(p->b, call, source);
  for (int k = 0; p->b->call[call].needed && k < n; k++) {
    lt_Arg a = p->r->call[call].arg[source[k]];
    if (!read_again(p, &a)) return false;
    p->r->call[call].arg[source[k]] = a;
  }
  return true;
}

/* Makes room for as many calls as there may be, and sets the order. */
static bool make_room(Recompute *p) {
  lt_PlanBuilder *b = p->b;
  size_t calls = (size_t)(p->ncalls + b->mark), values = 2 * (size_t)p->nvalues + (size_t)b->mark;
  lt_PlanValue *value = realloc(b->value, (values + 1) * sizeof *value);
  if (value) b->value = value;
  lt_PlanCall *call = realloc(b->call, (calls + 1) * sizeof *call);
  if (call) b->call = call;
  lt_PlanBuffer *buffer =
      realloc(b->buffer, ((size_t)b->nbuffers + (size_t)b->mark + 1) * sizeof *buffer);
  if (buffer) b->buffer = buffer;
  b->order = malloc((calls + 1) * sizeof *b->order);
  return (value && call && buffer && b->order) || lt_fail_memory();
}

/* Repeats what can be repeated. */
static bool run(Recompute *p) {
  lt_PlanBuilder *b = p->b;
  for (int i = b->mark; i < p->ncalls; i++)
    if (b->call[i].needed) note_reads(p, i);
  for (int i = 0; i < b->mark; i++) p->can[i] = can_repeat(p, i);
  if (!make_room(p)) return false;
  for (int i = 0; i < p->ncalls; i++) {
    if (i >= b->mark && !replace_reads(p, i)) return false;
    b->order[b->norder++] = i;
  }
  return true;
}

bool lt_plan_recompute(lt_PlanBuilder *b, lt_Recorder *r) {
  if (b->mark == r->ncalls || !lt_plan_fuses(b)) return true;
  Recompute p = {.b = b, .r = r, .nvalues = r->nvalues, .ncalls = r->ncalls};
  size_t buffers = (size_t)b->nbuffers + 1, calls = (size_t)b->mark + 1;
  p.read = calloc(buffers, sizeof *p.read);
  p.pinned = calloc(buffers, sizeof *p.pinned);
  p.can = calloc(calls, sizeof *p.can);
  p.again = calloc(calls, sizeof *p.again);
  p.value = calloc((size_t)r->nvalues + 1, sizeof *p.value);
  bool ok = p.read && p.pinned && p.can && p.again && p.value;
  ok = ok ? run(&p) : lt_fail_memory();
  free(p.read);
  free(p.pinned);
  free(p.can);
  free(p.again);
  free(p.value);
  return ok;
}
