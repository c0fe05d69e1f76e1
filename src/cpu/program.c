/* program.c: runs an elementwise program block by block, with the vector loops of the single ops.
 *
 * A block of every live value fits the first cache. A program is compiled to instructions on
 * registers: a register is a block of a thread's scratch memory, or the memory of an operand that
 * can be used directly. Values that are the same in every block (numbers, operands of one element,
 * and what is computed from them) are computed once, before the first block. */
#include "program.h"
#include "cpu.h"
#include "opids.h"
#include "positions.h"
#include "kernel_support.h"
#include "vector.h"

#include <float.h>
#include <omp.h>

enum {
  CACHE = 24 << 10, /* bytes for the blocks of a thread */
  FEWEST = 256,     /* smallest block, in elements, if the shape has as many */
  MOST = 1024,
  LONG_ROW = 64 /* blocks end at the ends of rows, unless rows are shorter than this */
};

typedef struct Register {
  lt_Dtype type; /* a compute type */
  bool fixed;    /* has the same value in every block */
  int operand;   /* the operand whose memory it is; -1: a block */
  int slot;      /* index of the block */
  int last;      /* last instruction that uses it */
} Register;

typedef enum Code {
  CODE_NUMBER,  /* dst = the number */
  CODE_LOAD,    /* dst = the operand, converted */
  CODE_CONVERT, /* dst = src[0], of another compute type */
  CODE_CALL,    /* dst = fn(src) */
  CODE_NARROW,  /* dst is wrapped to a narrower integer dtype */
  CODE_STORE    /* the operand = src[0], converted */
} Code;

typedef struct Instruction {
  Code code;
  int dst, src[3];
  int operand;
  lt_Dtype dtype; /* of loaded or stored memory, of a narrow integer */
  lt_VectorFn fn;
  bool divides; /* src[1] is an integer divisor */
  lt_Numbers numbers;
  char element[16];
} Instruction;

typedef struct Port { /* layout of an operand */
  bool linear, fixed, dense;
} Port;

typedef struct Plan {
  lt_ProgramLoop *loop;
  const lt_Program *program;
  const lt_Isa *isa;
  bool rows, ok;
  int last; /* the innermost dimension */
  Port *port;
  int nregisters, ninstructions, slots;
  Register *reg;
  Instruction *code;
  int (*known)[LT_DTYPE_COUNT]; /* register of a value in a compute type, plus 1; 0: none */
  int64_t block, slot_size;
  atomic_bool refused;
} Plan;

/* ---- compiling ------------------------------------------------------------------------------- */

/* Classifies the layout of operand k. */
static Port port_of(const Plan *p, int k) {
  const lt_ProgramLoop *l = p->loop;
  const lt_Operand *o = &l->operand[k];
  int64_t size = (int64_t)lt_dtype_size(o->dtype), run = size;
  bool linear = true, constant = true, periodic = !p->rows;
  for (int d = l->ndim - 1; d >= 0; d--) {
    linear &= o->strides[d] == run;
    constant &= o->strides[d] == 0;
    periodic &= o->strides[d] == 0 || d == p->last;
    run *= l->shape[d];
  }
  bool input = k >= p->program->nout;
  return (Port){.linear = linear,
                .fixed = input && l->numel > 1 && (constant || periodic),
                .dense = o->strides[p->last] == size};
}

static int new_register(Plan *p, lt_Dtype type, bool fixed) {
  if (lt_dtype_is_complex(type)) /* some of their ops have results of another size: abs, tests */
    p->ok = lt_error_set(
        "program: expected a real dtype, got \"%s\": complex numbers are not yet supported",
        lt_dtype_name(type));
  p->reg[p->nregisters] = (Register){type, fixed, -1, -1, -1};
  return p->nregisters++;
}

static Instruction *emit(Plan *p, Code code, int dst) {
  Instruction *i = &p->code[p->ninstructions++];
  *i = (Instruction){.code = code, .dst = dst, .src = {-1, -1, -1}, .operand = -1};
  return i;
}

static int number_register(Plan *p, lt_Scalar s, lt_Dtype type) {
  int dst = new_register(p, type, true);
  if (!lt_number_store(s, type, emit(p, CODE_NUMBER, dst)->element)) p->ok = false;
  return dst;
}

/* Returns a register for an input in a compute type: the operand's memory if the loops can use it,
 * else a block that a load fills. */
static int input_register(Plan *p, int value, lt_Dtype type) {
  int k = p->program->nout + value;
  const Port *port = &p->port[k];
  int dst = new_register(p, type, port->fixed);
  bool direct = p->loop->operand[k].dtype == type && !port->fixed &&
                (port->linear || (p->rows && port->dense));
  if (direct) {
    p->reg[dst].operand = k;
  } else {
    Instruction *i = emit(p, CODE_LOAD, dst);
    i->operand = k;
    i->dtype = p->loop->operand[k].dtype;
  }
  return dst;
}

/* Returns the register that holds a value in a compute type; emits its load or conversion if
 * needed. */
static int register_of(Plan *p, lt_StepInput in, lt_Dtype type) {
  if (in.value < 0) return number_register(p, in.number, type);
  int *known = &p->known[in.value][type];
  if (*known) return *known - 1;
  if (in.value < p->program->ninputs) {
    *known = input_register(p, in.value, type) + 1;
    return *known - 1;
  }
  const lt_Step *s = &p->program->step[in.value - p->program->ninputs];
  int own = p->known[in.value][lt_dtype_compute(s->result)] - 1;
  int dst = new_register(p, type, p->reg[own].fixed);
  Instruction *i = emit(p, CODE_CONVERT, dst);
  i->src[0] = own;
  i->dtype = p->reg[own].type;
  *known = dst + 1;
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

static void add_call(Plan *p, const lt_Step *s, int dst, const int *src, int inputs) {
  lt_VectorFn power = power_of(s), fn = power ? power : p->isa->vectors[s->compute]->op[s->op];
  Instruction *i = emit(p, CODE_CALL, dst);
  i->fn = fn;
  memcpy(i->src, src, sizeof *src * (size_t)inputs);
  i->divides = s->divides;
  lt_cpu_numbers(&i->numbers, s->compute, s->result, &s->a, &s->b);
  if (!fn)
    p->ok =
        lt_error_set("elementwise: cannot run with dtype \"%s\" on the CPU: no kernel for an op",
                     lt_dtype_name(s->compute));
}

/* Wraps a value to a narrow integer dtype after it was computed in int32. */
static void narrow(Plan *p, const lt_Step *s, int dst) {
  if (!is_narrow(s->result)) return;
  Instruction *i = emit(p, CODE_NARROW, dst);
  i->src[0] = dst;
  i->dtype = s->result;
}

/* Emits the instructions of one step. */
static void add_step(Plan *p, int index) {
  const lt_Step *s = &p->program->step[index];
  int *known = &p->known[p->program->ninputs + index][lt_dtype_compute(s->result)], src[3] = {0};
  int inputs = power_of(s) ? 1 : s->inputs;
  bool fixed = true;
  for (int k = 0; k < inputs; k++) {
    src[k] = register_of(p, s->input[k], s->compute);
    fixed &= p->reg[src[k]].fixed;
  }
  if (s->op == LT_NO_OP) { /* a conversion, which register_of has emitted */
    *known = src[0] + 1;
    if (!is_narrow(s->result)) return;
    int dst = new_register(p, s->compute, fixed);
    Instruction *i = emit(p, CODE_CONVERT, dst);
    i->src[0] = src[0];
    i->dtype = s->compute;
    *known = dst + 1;
    narrow(p, s, dst);
    return;
  }
  int dst = new_register(p, lt_dtype_compute(s->result), fixed);
  *known = dst + 1;
  add_call(p, s, dst, src, inputs);
  narrow(p, s, dst);
}

/* Assigns outputs: one computed in its own dtype is computed in the operand's memory; others are
 * stored. */
static void add_outputs(Plan *p) {
  for (int k = 0; k < p->program->nout; k++) {
    lt_Dtype dtype = p->program->out_dtype[k], type = lt_dtype_compute(dtype);
    int src = register_of(p, p->program->out[k], type);
    Register *r = &p->reg[src];
    if (dtype == type && !r->fixed && r->operand < 0) {
      r->operand = k;
      continue;
    }
    Instruction *i = emit(p, CODE_STORE, -1);
    i->src[0] = src;
    i->operand = k;
    i->dtype = dtype;
  }
}

static bool is_fixed(const Plan *p, const Instruction *i) {
  return i->code != CODE_STORE && p->reg[i->dst].fixed;
}

/* Assigns a block to each register: its own if it is fixed, else one that no later instruction
 * uses. */
static bool assign_slots(Plan *p) {
  bool *taken = calloc((size_t)p->nregisters + 1, sizeof *taken);
  if (!taken) return lt_fail_memory();
  for (int i = 0; i < p->ninstructions; i++) {
    for (int k = 0; k < 3; k++)
      if (p->code[i].src[k] >= 0) p->reg[p->code[i].src[k]].last = i;
    if (p->code[i].dst >= 0 && p->reg[p->code[i].dst].last < i) p->reg[p->code[i].dst].last = i;
  }
  p->slots = 1; /* slot 0 is scratch for narrowing */
  for (int i = 0; i < p->ninstructions; i++) {
    const Instruction *code = &p->code[i];
    Register *dst = code->dst >= 0 ? &p->reg[code->dst] : NULL;
    if (dst && dst->slot < 0 && dst->operand < 0) {
      int slot = p->slots;
      for (int s = p->slots - 1; s > 0 && !dst->fixed; s--)
        if (!taken[s]) slot = s;
      dst->slot = slot;
      taken[slot] = true;
      if (slot == p->slots) p->slots++;
    }
    for (int k = 0; k < 3; k++) {
      const Register *src = code->src[k] >= 0 ? &p->reg[code->src[k]] : NULL;
      if (src && src->last == i && !src->fixed && src->slot > 0) taken[src->slot] = false;
    }
  }
  free(taken);
  return true;
}

/* Chooses the number of elements of a block. */
static void size_blocks(Plan *p) {
  int64_t widest = 4, row = p->loop->shape[p->last];
  for (int i = 0; i < p->nregisters; i++)
    if (lt_dtype_size(p->reg[i].type) == 8) widest = 8;
  int64_t n = CACHE / (p->slots * widest) / 64 * 64;
  n = n < FEWEST ? FEWEST : n > MOST ? MOST : n;
  p->block = p->rows ? n : n / row * row;
  p->slot_size = n * widest;
}

/* Compiles the program. Returns false with the error set. */
static bool compile(Plan *p) {
  const lt_Program *g = p->program;
  for (int k = 0; k < g->nout + g->ninputs; k++) p->port[k] = port_of(p, k);
  for (int i = 0; i < g->nsteps; i++) add_step(p, i);
  if (!p->ok) return false;
  add_outputs(p);
  if (!p->ok || !assign_slots(p)) return false;
  size_blocks(p);
  return true;
}

/* ---- running --------------------------------------------------------------------------------- */

typedef struct Work { /* state of a thread */
  Plan *plan;
  char *scratch;
  char **where; /* memory of each register */
  int64_t position, n;
  int64_t at[LT_MAX_DIMS];
} Work;

/* Loads the elements of an operand to a block, row by row, or stores them from it. */
static void transfer(const Work *w, const Instruction *i, char *block, bool store) {
  const Plan *p = w->plan;
  const lt_ProgramLoop *l = p->loop;
  const lt_Operand *o = &l->operand[i->operand];
  lt_Dtype type = p->reg[store ? i->src[0] : i->dst].type;
  const lt_Vectors *v = p->isa->vectors[type];
  int64_t at[LT_MAX_DIMS], row = l->shape[p->last], stride = o->strides[p->last];
  int64_t left = w->n, size = (int64_t)lt_dtype_size(type);
  if (p->port[i->operand].linear) { /* also across rows */
    char *memory = o->data + w->position * (int64_t)lt_dtype_size(o->dtype);
    if (store)
      v->store[o->dtype](left, memory, (int64_t)lt_dtype_size(o->dtype), block);
    else
      v->load[o->dtype](left, block, memory, (int64_t)lt_dtype_size(o->dtype));
    return;
  }
  memcpy(at, w->at, sizeof *at * (size_t)l->ndim);
  while (left > 0) {
    int64_t piece = row - at[p->last] < left ? row - at[p->last] : left;
    char *memory = lt_position_address(l->ndim, o, at);
    if (store)
      v->store[o->dtype](piece, memory, stride, block);
    else
      v->load[o->dtype](piece, block, memory, stride);
    block += piece * size;
    left -= piece;
    if (left > 0) lt_position_advance(l->ndim, l->shape, at, piece);
  }
}

static bool has_zero(const void *values, lt_Dtype type, int64_t n) {
  bool found = false;
  if (type == LT_int32)
    for (int64_t i = 0; i < n; i++) found |= ((const int32_t *)values)[i] == 0;
  else
    for (int64_t i = 0; i < n; i++) found |= ((const int64_t *)values)[i] == 0;
  return found;
}

/* Executes one instruction on the current block. */
static void execute(const Work *w, const Instruction *i) {
  Plan *p = w->plan;
  char *dst = i->dst >= 0 ? w->where[i->dst] : NULL;
  const char *src[3];
  for (int k = 0; k < 3; k++) src[k] = i->src[k] >= 0 ? w->where[i->src[k]] : NULL;
  const lt_Vectors *v = p->isa->vectors[p->reg[i->dst >= 0 ? i->dst : i->src[0]].type];
  switch (i->code) {
  case CODE_NUMBER:
    v->load[p->reg[i->dst].type](w->n, dst, i->element, 0);
    break;
  case CODE_LOAD:
    transfer(w, i, dst, false);
    break;
  case CODE_CONVERT:
    v->load[i->dtype](w->n, dst, src[0], (int64_t)lt_dtype_size(i->dtype));
    break;
  case CODE_CALL:
    if (i->divides && has_zero(src[1], p->reg[i->src[1]].type, w->n)) p->refused = true;
    i->fn(w->n, dst, src[0], src[1], src[2], &i->numbers);
    break;
  case CODE_NARROW: {
    int64_t size = (int64_t)lt_dtype_size(i->dtype);
    v->store[i->dtype](w->n, w->scratch, size, dst);
    v->load[i->dtype](w->n, dst, w->scratch, size);
    break;
  }
  case CODE_STORE:
    transfer(w, i, (char *)src[0], true);
    break;
  }
}

/* Sets the memory of registers that are an operand's, for the next block. */
static void find_operands(const Work *w) {
  const Plan *p = w->plan;
  for (int i = 0; i < p->nregisters; i++) {
    int k = p->reg[i].operand;
    if (k < 0) continue;
    const lt_Operand *o = &p->loop->operand[k];
    w->where[i] = p->port[k].linear ? o->data + w->position * (int64_t)lt_dtype_size(o->dtype)
                                    : lt_position_address(p->loop->ndim, o, w->at);
  }
}

/* Processes elements begin <= i < end; with short rows, begin must be the start of a row. */
static void run(Plan *p, char *scratch, int64_t begin, int64_t end) {
  const lt_ProgramLoop *l = p->loop;
  Work w = {.plan = p,
            .scratch = scratch,
            .where = (char **)(void *)(scratch + p->slots * p->slot_size),
            .position = begin,
            .n = end - begin < p->block ? end - begin : p->block};
  int64_t row = l->shape[p->last], left = LT_CHUNK;
  for (int i = 0; i < p->nregisters; i++) w.where[i] = scratch + p->reg[i].slot * p->slot_size;
  for (int i = 0; i < p->ninstructions; i++)
    if (is_fixed(p, &p->code[i])) execute(&w, &p->code[i]);
  lt_position_at(l->ndim, l->shape, begin, w.at);
  for (; w.position < end; w.position += w.n) {
    w.n = end - w.position < p->block ? end - w.position : p->block;
    if (p->rows && row - w.at[p->last] < w.n) w.n = row - w.at[p->last];
    find_operands(&w);
    for (int i = 0; i < p->ninstructions; i++)
      if (!is_fixed(p, &p->code[i])) execute(&w, &p->code[i]);
    lt_position_advance(l->ndim, l->shape, w.at, w.n);
    if (p->refused) return;
    if ((left -= w.n) > 0) continue;
    left = LT_CHUNK;
    if (lt_stopped()) return;
  }
}

/* Runs the compiled program over all elements, with scratch memory for each thread. Returns false
 * after an interrupt or when out of memory. */
static bool run_all(Plan *p) {
  int64_t n = p->loop->numel, unit = p->rows ? 64 : p->loop->shape[p->last];
  int64_t bytes = p->slots * p->slot_size + (int64_t)sizeof(char *) * p->nregisters;
  int team = lt_team(n * (1 + p->program->nsteps / 4), n / FEWEST + 1);
  bytes = (bytes + 63) / 64 * 64;
  char *scratch = malloc((size_t)(bytes * team + 64));
  if (!scratch) return lt_fail_memory();
  char *first = scratch + (64 - (uintptr_t)scratch % 64) % 64;
  if (team == 1) {
    run(p, first, 0, n);
  } else {
#pragma omp parallel num_threads(team)
    {
      int64_t share = (n / omp_get_num_threads() / unit + 1) * unit;
      int64_t begin = share * omp_get_thread_num();
      char *own = first + bytes * omp_get_thread_num();
      if (begin < n) run(p, own, begin, n - begin < share ? n : begin + share);
    }
  }
  free(scratch);
  p->loop->refused = p->refused;
  return lt_check_interrupt();
}

bool lt_cpu_program(lt_ProgramLoop *loop) {
  const lt_Program *g = loop->program;
  size_t values = (size_t)(g->ninputs + g->nsteps);
  size_t most = 4 * (size_t)g->nsteps + 2 * (size_t)g->nout + values; /* upper bound of registers */
  Plan p = {.loop = loop,
            .program = g,
            .isa = lt_cpu_isa(),
            .ok = true,
            .last = loop->ndim - 1,
            .rows = loop->shape[loop->ndim - 1] >= LONG_ROW,
            .port = calloc((size_t)(g->nout + g->ninputs), sizeof *p.port),
            .reg = calloc(most + 1, sizeof *p.reg),
            .code = calloc(2 * most + 1, sizeof *p.code),
            .known = calloc(values + 1, sizeof *p.known)};
  bool ok = p.port && p.reg && p.code && p.known ? compile(&p) && run_all(&p) : lt_fail_memory();
  free(p.port);
  free(p.reg);
  free(p.code);
  free(p.known);
  return ok;
}
