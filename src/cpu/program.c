/* program.c: runs an elementwise program block by block, with the vector loops of the single ops.
 *
 * A block of every live value fits the first cache. A program is compiled to instructions on
 * registers: a register is a block of a thread's scratch memory, or the memory of an operand that
 * can be used directly. Values that are the same in every block (numbers, operands of one element,
 * and what is computed from them) are computed once, before the first block.
 *
 * Cheap ops that follow each other run as one instruction, a chain; see program_chain.c.
 *
 * In a program with reductions a block is a number of whole rows, and a register `by_row` holds one
 * value for each of them. */
#include "program_plan.h"
#include "blocks.h"
#include "chain.h"
#include "cpu.h"
#include "opids.h"
#include "positions.h"
#include "kernel_support.h"

#include <float.h>
#include <omp.h>

enum {
  CACHE = 32 << 10, /* bytes for the blocks of a thread */
  FEWEST = 256,     /* smallest block, in elements, if the shape has as many */
  MOST = 8192,      /* largest block */
  MOST_ROWS = 4096, /* the same with reductions, unless a row is longer */
  LONG_ROW = 256,   /* blocks end at the ends of rows, unless rows are shorter than this */
  ONCE_ROW = 64     /* least elements of rows with one y that are worth a call of the loop */
};

/* ---- compiling ------------------------------------------------------------------------------- */

/* Classifies the layout of operand k. */
static lt_Port port_of(const lt_PreparedProgram *p, int k) {
  const lt_ProgramLoop *l = p->loop;
  const lt_Operand *o = &l->operand[k];
  int64_t size = (int64_t)lt_dtype_size(o->dtype), run = size;
  if (p->program->row) {
    bool by_row = p->program->by_row[k], dense = o->strides[by_row ? 0 : 1] == size;
    return (lt_Port){.linear = dense && (by_row || o->strides[0] == l->shape[1] * size),
                     .fixed = k >= p->program->nout && o->strides[0] == 0 && l->shape[0] > 1,
                     .dense = dense};
  }
  bool linear = true, constant = true, periodic = !p->rows;
  for (int d = l->ndim - 1; d >= 0; d--) {
    linear &= o->strides[d] == run;
    constant &= o->strides[d] == 0;
    periodic &= o->strides[d] == 0 || d == p->last;
    run *= l->shape[d];
  }
  bool input = k >= p->program->nout;
  return (lt_Port){.linear = linear,
                   .fixed = input && l->numel > 1 && (constant || periodic),
                   .dense = o->strides[p->last] == size};
}

static int new_register(lt_PreparedProgram *p, lt_Dtype type, bool fixed, bool by_row) {
  if (lt_dtype_is_complex(type)) /* some of their ops have results of another size: abs, tests */
    p->ok = lt_error_set(
        "program: expected a real dtype, got \"%s\": complex numbers are not yet supported",
        lt_dtype_name(type));
  p->reg[p->nregisters] = (lt_Register){
      .type = type, .fixed = fixed, .by_row = by_row, .operand = -1, .slot = -1, .last = -1};
  return p->nregisters++;
}

static lt_Instruction *emit(lt_PreparedProgram *p, lt_Code code, int dst) {
  bool fixed = dst >= 0 && p->reg[dst].fixed;
  lt_Instruction *i = fixed ? &p->fixed[p->nfixed++] : &p->code[p->ncode++];
  *i = (lt_Instruction){.code = code,
                        .dst = dst,
                        .src = {-1, -1, -1},
                        .operand = -1,
                        .by_row = dst >= 0 && p->reg[dst].by_row};
  return i;
}

static int number_register(lt_PreparedProgram *p, lt_Scalar s, lt_Dtype type) {
  int dst = new_register(p, type, true, false);
  if (!lt_number_store(s, type, emit(p, CODE_NUMBER, dst)->element)) p->ok = false;
  p->reg[dst].number = true;
  return dst;
}

/* Returns a register for an input in a compute type: the operand's memory if the loops can use it,
 * else a block that a load fills. */
static int input_register(lt_PreparedProgram *p, int value, lt_Dtype type) {
  int k = p->program->nout + value;
  const lt_Port *port = &p->port[k];
  int dst = new_register(p, type, port->fixed, p->program->row && p->program->by_row[k]);
  bool direct = p->loop->operand[k].dtype == type && !port->fixed &&
                (port->linear || (p->rows && port->dense && !p->program->row));
  if (direct) {
    p->reg[dst].operand = k;
  } else {
    lt_Instruction *i = emit(p, CODE_LOAD, dst);
    i->operand = k;
    i->dtype = p->loop->operand[k].dtype;
  }
  return dst;
}

/* Returns the register that holds a value in a compute type, with one element for each row if it is
 * such a value; emits its load or conversion if needed. */
static int own_register(lt_PreparedProgram *p, lt_StepInput in, lt_Dtype type) {
  if (in.value < 0) return number_register(p, in.number, type);
  int *known = &p->known[in.value][type];
  if (*known) return *known - 1;
  if (in.value < p->program->ninputs) {
    *known = input_register(p, in.value, type) + 1;
    return *known - 1;
  }
  const lt_Step *s = &p->program->step[in.value - p->program->ninputs];
  int own = p->known[in.value][lt_dtype_compute(s->result)] - 1;
  int dst = new_register(p, type, p->reg[own].fixed, p->reg[own].by_row);
  lt_Instruction *i = emit(p, CODE_CONVERT, dst);
  i->src[0] = own;
  i->dtype = p->reg[own].type;
  *known = dst + 1;
  return dst;
}

/* Returns the register that holds a value in a compute type, for a step that computes one value for
 * each row, or for each element. */
static int register_of(lt_PreparedProgram *p, lt_StepInput in, lt_Dtype type, bool by_row) {
  int own = own_register(p, in, type);
  if (by_row || !p->reg[own].by_row) return own;
  int *wide = &p->wide[in.value][type];
  if (*wide) return *wide - 1;
  int dst = new_register(p, type, p->reg[own].fixed, false);
  emit(p, CODE_EXPAND, dst)->src[0] = own;
  *wide = dst + 1;
  return dst;
}

static bool is_narrow(lt_Dtype d) {
  return lt_dtype_category(d) == LT_INTEGER && lt_dtype_compute(d) != d;
}

/* Returns the loop of pow with a constant exponent that has one, else NULL. */
static lt_VectorFn power_of(const lt_Step *s) {
  return s->op == LT_OP_pow && s->input[1].value < 0 ? lt_cpu_power(s->compute, s->input[1].number)
                                                     : NULL;
}

/* Returns whether input k of a step is read as one value: a number, or the value of a row that is
 * worth a call of the loop. */
static bool reads_once(const lt_PreparedProgram *p, const lt_Step *s, int k) {
  const lt_Program *g = p->program;
  int value = s->input[k].value, step = value - g->ninputs;
  if (k != 1 || s->inputs != 2) return false;
  if (value < 0) return true;
  if (g->row < ONCE_ROW || s->by_row) return false;
  return step < 0 ? g->by_row[g->nout + value] : g->step[step].by_row;
}

/* Returns whether a call reads one value for each row in all elements of the row. */
static bool expands(const lt_PreparedProgram *p, const int *src, bool once, bool by_row) {
  return once && p->reg[src[1]].by_row && !by_row;
}

static void add_call(lt_PreparedProgram *p, const lt_Step *s, int dst, const int *src, int inputs,
                     bool once) {
  lt_VectorFn power = power_of(s), fn = power ? power : p->isa->vectors[s->compute]->op[s->op];
  lt_Instruction *i = emit(p, CODE_CALL, dst);
  i->fn = fn;
  memcpy(i->src, src, sizeof *src * (size_t)inputs);
  i->divides = s->divides;
  i->once = once;
  lt_cpu_numbers(&i->numbers, s->compute, s->result, &s->a, &s->b);
  i->numbers.y_once = once;
  bool chains = !expands(p, src, once, i->by_row) || p->program->row % LT_CHAIN_TILE == 0;
  if (p->reg[dst].type == s->compute && chains) i->step = lt_chain_forms(p, s, power);
  i->must = p->reg[dst].type != lt_dtype_compute(s->result);
  if (!fn)
    p->ok =
        lt_error_set("elementwise: cannot run with dtype \"%s\" on the CPU: no kernel for an op",
                     lt_dtype_name(s->compute));
}

/* Makes a value one of a narrow integer dtype, if the step's result is: integers wrap, and floats
 * are clipped. */
static void narrow(lt_PreparedProgram *p, const lt_Step *s, int dst, int src) {
  if (!is_narrow(s->result)) return;
  lt_Instruction *i = emit(p, CODE_NARROW, dst);
  i->src[0] = src;
  i->dtype = s->result;
}

/* Emits the reduction of a row. */
static void add_reduction(lt_PreparedProgram *p, const lt_Step *s, int dst, int src) {
  lt_FormKind kind = lt_reductions[s->id].kind;
  bool fold = kind == LT_FORM_FOLD || kind == LT_FORM_FOLD_WIDE;
  lt_Instruction *i = emit(p, CODE_REDUCE, dst);
  i->src[0] = src;
  i->amount = s->amount;
  if (fold)
    i->fold = lt_fold(s->id, s->compute, false);
  else
    i->centered = lt_centered(s->id, s->compute);
  if (!i->fold && !i->centered) p->ok = lt_error_set("program: cannot run: no loop for an op");
}

/* Returns the type that a step reads input k in: of floats that become narrow integers their own,
 * since its stores clip them; int32 would be wrapped. */
static lt_Dtype input_type(const lt_PreparedProgram *p, const lt_Step *s, int k) {
  const lt_Program *g = p->program;
  int value = s->input[k].value, step = value - g->ninputs;
  if (s->op != LT_NO_OP || !is_narrow(s->result) || value < 0) return s->compute;
  lt_Dtype d = step < 0 ? p->loop->operand[g->nout + value].dtype : g->step[step].result;
  return lt_dtype_is_float(d) ? lt_dtype_compute(d) : s->compute;
}

/* Returns whether the result of a test can stay in the type that it is computed in: a step of a
 * chain computes it, and all others read it in this type. */
static bool stays_wide(const lt_PreparedProgram *p, int index) {
  const lt_Program *g = p->program;
  const lt_Step *s = &g->step[index];
  int value = g->ninputs + index;
  if (s->result != LT_bool || s->compute == LT_bool || !lt_chain_forms(p, s, NULL)) return false;
  for (int k = 0; k < g->nout; k++)
    if (g->out[k].value == value) return false;
  for (int i = index + 1; i < g->nsteps; i++)
    for (int k = 0; k < g->step[i].inputs; k++)
      if (g->step[i].input[k].value == value && input_type(p, &g->step[i], k) != s->compute)
        return false;
  return true;
}

/* Emits the instructions of one step. */
static void add_step(lt_PreparedProgram *p, int index) {
  const lt_Step *s = &p->program->step[index];
  lt_Dtype type = lt_dtype_compute(s->result);
  int *known = p->known[p->program->ninputs + index], src[3] = {0};
  int inputs = power_of(s) ? 1 : s->inputs;
  bool fixed = true, once = false;
  for (int k = 0; k < inputs; k++) {
    once = reads_once(p, s, k);
    src[k] = register_of(p, s->input[k], input_type(p, s, k), once || (s->by_row && !s->reduces));
    fixed &= p->reg[src[k]].fixed;
  }
  if (s->reduces) {
    int dst = new_register(p, type, false, true);
    known[type] = dst + 1;
    add_reduction(p, s, dst, src[0]);
    return;
  }
  if (s->op == LT_NO_OP) { /* a conversion, which register_of has emitted */
    known[type] = src[0] + 1;
    if (!is_narrow(s->result)) return;
    int dst = new_register(p, s->compute, fixed, s->by_row);
    known[type] = dst + 1;
    narrow(p, s, dst, src[0]);
    return;
  }
  if (!fixed && !expands(p, src, once, s->by_row) && stays_wide(p, index)) type = s->compute;
  int dst = new_register(p, type, fixed, s->by_row);
  known[type] = dst + 1;
  add_call(p, s, dst, src, inputs, once);
  narrow(p, s, dst, dst);
}

/* Assigns outputs: one computed in its own dtype is computed in the operand's memory; others are
 * stored. */
static void add_outputs(lt_PreparedProgram *p) {
  for (int k = 0; k < p->program->nout; k++) {
    lt_Dtype dtype = p->program->out_dtype[k], type = lt_dtype_compute(dtype);
    bool by_row = p->program->row && p->program->by_row[k];
    int src = register_of(p, p->program->out[k], type, by_row);
    lt_Register *r = &p->reg[src];
    if (dtype == type && !r->fixed && r->operand < 0 && p->port[k].linear) {
      r->operand = k;
      continue;
    }
    lt_Instruction *i = emit(p, CODE_STORE, -1);
    i->src[0] = src;
    i->operand = k;
    i->dtype = dtype;
    i->by_row = by_row;
  }
}

/* Counts the uses of registers, and finds the last ones. */
static void find_uses(lt_PreparedProgram *p) {
  for (int i = 0; i < p->ncode; i++) {
    const lt_Instruction *code = &p->code[i];
    for (int k = 0; k < 3; k++) {
      if (code->src[k] < 0) continue;
      p->reg[code->src[k]].last = i;
      p->reg[code->src[k]].uses++;
    }
    if (code->dst >= 0 && p->reg[code->dst].last < i) p->reg[code->dst].last = i;
  }
}

/* Finds the numbers of which a whole block is needed: those that are no operand of a chain, and not
 * read once. */
static void find_whole(lt_PreparedProgram *p) {
  for (int i = 0, k; i < p->nfixed; i++)
    for (k = 0; k < 3; k++)
      if (p->fixed[i].src[k] >= 0) p->reg[p->fixed[i].src[k]].whole = true;
  for (int i = 0, chain = 0; i < p->ncode; i++, chain--) {
    const lt_Instruction *code = &p->code[i];
    if (code->members) chain = code->members;
    for (int k = 0; k < 3 && chain <= 0; k++)
      if (code->src[k] >= 0 && !(code->once && k == 1)) p->reg[code->src[k]].whole = true;
  }
}

/* Assigns a block to each register that needs one: its own if it is fixed, else one that no later
 * instruction uses. */
static bool assign_slots(lt_PreparedProgram *p) {
  bool *memory = calloc(2 * ((size_t)p->nregisters + 1), sizeof *memory);
  if (!memory) return lt_fail_memory();
  bool *const taken[2] = {memory, memory + p->nregisters + 1};
  p->slots[false] = 1; /* slot 0 is scratch for narrowing */
  taken[false][0] = true;
  for (int i = 0; i < p->nregisters; i++) {
    lt_Register *r = &p->reg[i];
    if (!r->fixed || r->operand >= 0) continue;
    r->tile = r->number && !r->whole;
    r->slot = p->slots[r->tile]++;
    taken[r->tile][r->slot] = true;
  }
  for (int i = 0; i < p->ncode; i++) {
    const lt_Instruction *code = &p->code[i];
    lt_Register *dst = code->dst >= 0 ? &p->reg[code->dst] : NULL;
    if (dst && dst->slot < 0 && dst->operand < 0 && !dst->passed) {
      dst->slot = 0;
      while (taken[dst->tile][dst->slot]) dst->slot++;
      taken[dst->tile][dst->slot] = true;
      if (dst->slot == p->slots[dst->tile]) p->slots[dst->tile]++;
    }
    for (int k = 0; k < p->nregisters; k++) {
      const lt_Register *r = &p->reg[k];
      if (r->last == i && !r->fixed && r->slot >= 0) taken[r->tile][r->slot] = false;
    }
  }
  free(memory);
  return true;
}

/* Chooses the number of elements of a block. */
static void size_blocks(lt_PreparedProgram *p) {
  int64_t widest = 4, row = p->loop->shape[p->last];
  for (int i = 0; i < p->nregisters; i++)
    if (lt_dtype_size(p->reg[i].type) == 8) widest = 8;
  p->slot_size[true] = LT_CHAIN_TILE * widest;
  int64_t n = CACHE / (p->slots[false] * widest) / LT_CHAIN_TILE * LT_CHAIN_TILE;
  n = n < FEWEST ? FEWEST : n > MOST ? MOST : n;
  if (p->program->row) { /* the number of rows in a block */
    int64_t rows = (2 * n < MOST_ROWS ? 2 * n : MOST_ROWS) / row;
    p->block = rows > 1 ? rows : 1;
    p->slot_size[false] = (p->block * row * widest + 63) / 64 * 64;
    return;
  }
  p->block = p->rows ? n : n / row * row;
  p->slot_size[false] = n * widest;
}

/* Compiles the program. Returns false with the error set. */
static bool compile(lt_PreparedProgram *p) {
  const lt_Program *g = p->program;
  for (int k = 0; k < g->nout + g->ninputs; k++) p->port[k] = port_of(p, k);
  for (int i = 0; i < g->nsteps; i++) add_step(p, i);
  if (!p->ok) return false;
  add_outputs(p);
  if (!p->ok) return false;
  find_uses(p);
  lt_chains_plan(p);
  find_whole(p);
  if (!assign_slots(p)) return false;
  size_blocks(p);
  return true;
}

/* ---- running --------------------------------------------------------------------------------- */

typedef struct Work { /* state of a thread */
  lt_PreparedProgram *plan;
  char *scratch;
  char **where;        /* memory of each register */
  int64_t position, n; /* the first element, or row, and the number of elements */
  int64_t rows;
  int64_t at[LT_MAX_DIMS];
} Work;

/* Loads an operand of a program with rows to a block, or stores it from the block. */
static void transfer_rows(const Work *w, const lt_Instruction *i, char *block, bool store) {
  const lt_PreparedProgram *p = w->plan;
  const lt_Operand *o = &p->loop->operand[i->operand];
  lt_Dtype type = p->reg[store ? i->src[0] : i->dst].type;
  const lt_Vectors *v = p->isa->vectors[type];
  int64_t row = p->loop->shape[1], stride = o->strides[i->by_row ? 0 : 1], pieces = w->rows,
          n = row;
  char *memory = o->data + w->position * o->strides[0];
  if (i->by_row || p->port[i->operand].linear) { /* one piece */
    n = i->by_row ? w->rows : w->n;
    pieces = 1;
  }
  for (int64_t k = 0; k < pieces; k++) {
    if (store)
      v->store[o->dtype](n, memory, stride, block);
    else
      v->load[o->dtype](n, block, memory, stride);
    block += n * (int64_t)lt_dtype_size(type);
    memory += o->strides[0];
  }
}

/* Computes the reduction of each row of a block. */
static void reduce_rows(const Work *w, const lt_Instruction *i, char *dst, const char *src) {
  const lt_PreparedProgram *p = w->plan;
  lt_Dtype from = p->reg[i->src[0]].type, to = p->reg[i->dst].type;
  lt_Dtype state = i->fold ? i->fold->to : i->centered->to;
  int64_t row = p->loop->shape[1], size = row * (int64_t)lt_dtype_size(from);
  if (i->fold && state == to) {
    i->fold->elements.rows(src, w->rows, row, row, dst);
    if (i->fold->finish) i->fold->finish(dst, w->rows, (double)row, i->amount);
    return;
  }
  for (int64_t k = 0; k < w->rows; k++) {
    double states[3], result[1]; /* memory for values of any type */
    if (i->fold) {
      i->fold->elements.rows(src + k * size, 1, row, row, result);
      if (i->fold->finish) i->fold->finish(result, 1, (double)row, i->amount);
    } else {
      i->centered->row(src + k * size, row, states);
      i->centered->finish(states, i->amount, result);
    }
    p->isa->vectors[to]->load[state](1, dst + k * (int64_t)lt_dtype_size(to), result, 0);
  }
}

/* Copies the value of each row to all elements of the row. */
static void expand_rows(const Work *w, lt_Dtype type, char *dst, const char *src) {
  const lt_Vectors *v = w->plan->isa->vectors[type];
  int64_t row = w->plan->loop->shape[1], size = (int64_t)lt_dtype_size(type);
  for (int64_t k = 0; k < w->rows; k++) v->load[type](row, dst + k * row * size, src + k * size, 0);
}

/* Loads the elements of an operand to a block, row by row, or stores them from it. */
static void transfer(const Work *w, const lt_Instruction *i, char *block, bool store) {
  const lt_PreparedProgram *p = w->plan;
  if (p->program->row) {
    transfer_rows(w, i, block, store);
    return;
  }
  const lt_ProgramLoop *l = p->loop;
  lt_Dtype type = p->reg[store ? i->src[0] : i->dst].type;
  lt_Elements e = {l->ndim,
                   l->shape,
                   &l->operand[i->operand],
                   p->isa->vectors[type],
                   (int64_t)lt_dtype_size(type),
                   l->operand[i->operand].dtype == type};
  if (store)
    lt_block_store(&e, w->at, w->n, block);
  else
    lt_block_load(&e, w->at, w->n, block, false);
}

static bool has_zero(const void *values, lt_Dtype type, int64_t n) {
  bool found = false;
  if (type == LT_int32)
    for (int64_t i = 0; i < n; i++) found |= ((const int32_t *)values)[i] == 0;
  else
    for (int64_t i = 0; i < n; i++) found |= ((const int64_t *)values)[i] == 0;
  return found;
}

/* Calls the loop of an instruction whose src[1] is one value for each row. */
static void call_rows(const Work *w, const lt_Instruction *i, char *dst, const char *x,
                      const char *y) {
  const lt_PreparedProgram *p = w->plan;
  int64_t row = p->loop->shape[1], size = (int64_t)lt_dtype_size(p->reg[i->src[0]].type);
  lt_Numbers numbers = i->numbers;
  numbers.rows = w->rows;
  numbers.step[0] = row * (int64_t)lt_dtype_size(p->reg[i->dst].type);
  numbers.step[1] = row * size;
  numbers.step[2] = size;
  i->fn(row, dst, x, y, NULL, &numbers);
}

/* Calls the loop of an instruction. */
static void call(const Work *w, const lt_Instruction *i, char *dst, const char *const src[3]) {
  lt_PreparedProgram *p = w->plan;
  int64_t n = i->by_row ? w->rows : w->n;
  bool rows = i->once && p->reg[i->src[1]].by_row && !i->by_row;
  if (i->divides && has_zero(src[1], p->reg[i->src[1]].type, rows ? w->rows : i->once ? 1 : n))
    p->refused = true;
  if (rows)
    call_rows(w, i, dst, src[0], src[1]);
  else
    i->fn(n, dst, src[0], src[1], src[2], &i->numbers);
}

/* Executes one instruction on the current block. */
static void execute(const Work *w, const lt_Instruction *i) {
  const lt_PreparedProgram *p = w->plan;
  char *dst = i->dst >= 0 ? w->where[i->dst] : NULL;
  int64_t n = i->by_row ? w->rows : w->n;
  const char *src[3];
  for (int k = 0; k < 3; k++) src[k] = i->src[k] >= 0 ? w->where[i->src[k]] : NULL;
  const lt_Vectors *v = p->isa->vectors[p->reg[i->dst >= 0 ? i->dst : i->src[0]].type];
  switch (i->code) {
  case CODE_NUMBER:
    if (p->reg[i->dst].tile && n > LT_CHAIN_TILE) n = LT_CHAIN_TILE;
    v->load[p->reg[i->dst].type](n, dst, i->element, 0);
    break;
  case CODE_LOAD:
    transfer(w, i, dst, false);
    break;
  case CODE_CONVERT:
    v->load[i->dtype](n, dst, src[0], (int64_t)lt_dtype_size(i->dtype));
    break;
  case CODE_CALL:
    call(w, i, dst, src);
    break;
  case CODE_NARROW: {
    int64_t size = (int64_t)lt_dtype_size(i->dtype);
    p->isa->vectors[p->reg[i->src[0]].type]->store[i->dtype](n, w->scratch, size, src[0]);
    v->load[i->dtype](n, dst, w->scratch, size);
    break;
  }
  case CODE_EXPAND:
    expand_rows(w, p->reg[i->dst].type, dst, src[0]);
    break;
  case CODE_REDUCE:
    reduce_rows(w, i, dst, src[0]);
    break;
  case CODE_STORE:
    transfer(w, i, (char *)src[0], true);
    break;
  }
}

/* Executes the instructions on the current block. */
static void execute_all(const Work *w) {
  const lt_PreparedProgram *p = w->plan;
  for (int i = 0; i < p->ncode; i++) {
    const lt_Instruction *code = &p->code[i];
    if (code->members) {
      lt_chain_run(p, code, code->by_row ? w->rows : w->n, w->where);
      i += code->members - 1;
    } else {
      execute(w, code);
    }
  }
}

/* Sets the memory of registers that are an operand's, for the next block. */
static void find_operands(const Work *w) {
  const lt_PreparedProgram *p = w->plan;
  for (int i = 0; i < p->nregisters; i++) {
    int k = p->reg[i].operand;
    if (k < 0) continue;
    const lt_Operand *o = &p->loop->operand[k];
    w->where[i] = p->program->row     ? o->data + w->position * o->strides[0]
                  : p->port[k].linear ? o->data + w->position * (int64_t)lt_dtype_size(o->dtype)
                                      : lt_position_address(p->loop->ndim, o, w->at);
  }
}

/* Returns the bytes of all blocks. */
static int64_t block_bytes(const lt_PreparedProgram *p) {
  return p->slots[false] * p->slot_size[false] + p->slots[true] * p->slot_size[true];
}

/* Returns the memory of each register, an array after the blocks. */
static char **place_registers(const lt_PreparedProgram *p, char *scratch) {
  char **where = (char **)(void *)(scratch + block_bytes(p));
  char *const first[2] = {scratch, scratch + p->slots[false] * p->slot_size[false]};
  for (int i = 0; i < p->nregisters; i++) {
    const lt_Register *r = &p->reg[i];
    where[i] = r->slot < 0 ? NULL : first[r->tile] + r->slot * p->slot_size[r->tile];
  }
  return where;
}

/* Processes elements begin <= i < end; with short rows, begin must be the start of a row. */
static void run(lt_PreparedProgram *p, char *scratch, int64_t begin, int64_t end) {
  const lt_ProgramLoop *l = p->loop;
  Work w = {.plan = p,
            .scratch = scratch,
            .where = place_registers(p, scratch),
            .position = begin,
            .n = end - begin < p->block ? end - begin : p->block};
  int64_t row = l->shape[p->last], left = LT_CHUNK;
  for (int i = 0; i < p->nfixed; i++) execute(&w, &p->fixed[i]);
  lt_position_at(l->ndim, l->shape, begin, w.at);
  for (; w.position < end; w.position += w.n) {
    w.n = end - w.position < p->block ? end - w.position : p->block;
    if (p->rows && row - w.at[p->last] < w.n) w.n = row - w.at[p->last];
    find_operands(&w);
    execute_all(&w);
    lt_position_advance(l->ndim, l->shape, w.at, w.n);
    if (p->refused) return;
    if ((left -= w.n) > 0) continue;
    left = LT_CHUNK;
    if (lt_stopped()) return;
  }
}

/* Processes rows begin <= i < end of a program with rows. */
static void run_rows(lt_PreparedProgram *p, char *scratch, int64_t begin, int64_t end) {
  int64_t row = p->loop->shape[1], left = LT_CHUNK;
  Work w = {.plan = p,
            .scratch = scratch,
            .where = place_registers(p, scratch),
            .position = begin,
            .rows = end - begin < p->block ? end - begin : p->block};
  w.n = w.rows * row;
  for (int i = 0; i < p->nfixed; i++) execute(&w, &p->fixed[i]);
  for (; w.position < end; w.position += w.rows) {
    w.rows = end - w.position < p->block ? end - w.position : p->block;
    w.n = w.rows * row;
    find_operands(&w);
    execute_all(&w);
    if ((left -= w.n) > 0) continue;
    left = LT_CHUNK;
    if (lt_stopped()) return;
  }
}

/* Returns scratch memory of at least this size, aligned to 64 bytes; that of the last run if it is
 * large enough. NULL with the error set when out of memory. */
static char *scratch_of(lt_PreparedProgram *p, size_t size) {
  if (size + 64 > p->scratch_size) {
    free(p->scratch);
    p->scratch_size = size + 64;
    p->scratch = malloc(p->scratch_size);
    if (!p->scratch) {
      p->scratch_size = 0;
      lt_fail_memory();
      return NULL;
    }
  }
  return p->scratch + (64 - (uintptr_t)p->scratch % 64) % 64;
}

/* Runs the compiled program over all elements, with scratch memory for each thread. Returns false
 * after an interrupt or when out of memory. */
static bool run_all(lt_PreparedProgram *p) {
  bool by_rows = p->program->row > 0;
  void (*part)(lt_PreparedProgram *, char *, int64_t, int64_t) = by_rows ? run_rows : run;
  int64_t work = p->loop->numel, n = by_rows ? p->loop->shape[0] : work;
  int64_t unit = by_rows ? 1 : p->rows ? 64 : p->loop->shape[p->last];
  int64_t bytes = block_bytes(p) + (int64_t)sizeof(char *) * p->nregisters;
  int team = lt_team(work * (1 + p->program->nsteps / 4), by_rows ? n : n / FEWEST + 1);
  bytes = (bytes + 63) / 64 * 64;
  char *first = scratch_of(p, (size_t)(bytes * team));
  if (!first) return false;
  p->refused = false;
  if (team == 1) {
    part(p, first, 0, n);
  } else {
#pragma omp parallel num_threads(team)
    {
      int64_t share = (n / omp_get_num_threads() / unit + 1) * unit;
      int64_t begin = share * omp_get_thread_num();
      char *own = first + bytes * omp_get_thread_num();
      if (begin < n) part(p, own, begin, n - begin < share ? n : begin + share);
    }
  }
  p->loop->refused = p->refused;
  return lt_check_interrupt();
}

/* Frees a compiled program. NULL is allowed. */
static void free_plan(lt_PreparedProgram *p) {
  if (!p) return;
  free(p->port);
  free(p->reg);
  free(p->fixed);
  free(p->code);
  free(p->step);
  free(p->known);
  free(p->wide);
  free(p->scratch);
  free(p);
}

/* Compiles the program of a loop. NULL with the error set. */
static lt_PreparedProgram *prepare(lt_ProgramLoop *loop) {
  const lt_Program *g = loop->program;
  size_t values = (size_t)(g->ninputs + g->nsteps);
  size_t most = 8 * (size_t)g->nsteps + 2 * (size_t)g->nout + 3 * values; /* of registers */
  lt_PreparedProgram *p = calloc(1, sizeof *p);
  if (!p) {
    lt_fail_memory();
    return NULL;
  }
  p->loop = loop;
  p->program = g;
  p->isa = lt_cpu_isa();
  p->ok = true;
  p->last = loop->ndim - 1;
  p->rows = loop->shape[loop->ndim - 1] >= LONG_ROW;
  p->port = calloc((size_t)(g->nout + g->ninputs), sizeof *p->port);
  p->reg = calloc(most + 1, sizeof *p->reg);
  p->fixed = calloc(2 * most + 1, sizeof *p->fixed);
  p->code = calloc(2 * most + 1, sizeof *p->code);
  p->step = calloc(3 * (size_t)g->nsteps + 1, sizeof *p->step);
  p->known = calloc(values + 1, sizeof *p->known);
  p->wide = calloc(values + 1, sizeof *p->wide);
  bool memory = p->port && p->reg && p->fixed && p->code && p->step && p->known && p->wide;
  if (memory ? compile(p) : lt_fail_memory()) return p;
  free_plan(p);
  return NULL;
}

bool lt_cpu_program(lt_ProgramLoop *loop) {
  if (loop->action == LT_PROGRAM_RUN) return run_all(loop->prepared);
  if (loop->action == LT_PROGRAM_FREE) {
    free_plan(loop->prepared);
    loop->prepared = NULL;
    return true;
  }
  lt_PreparedProgram *p = prepare(loop);
  if (loop->action == LT_PROGRAM_PREPARE) {
    loop->prepared = p;
    return p != NULL;
  }
  bool ok = p && run_all(p);
  free_plan(p);
  return ok;
}
