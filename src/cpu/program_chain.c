/* program_chain.c: chains in an elementwise program: instructions that follow each other, each a
 * cheap op of floats, which run as one loop (kernels/chain_loop.h).
 *
 * A result that only the next instruction reads is passed in CPU registers; it has no block. Other
 * results are stored: to the memory of one tile if only the chain reads them, else to their blocks.
 * All operands of an element are read and written at its own index, so it does not matter that a
 * chain finishes a tile before it begins the next one.
 *
 * A chain that reads values of rows, where rows are whole tiles, runs row by row: there such a
 * value is a number. */
#include "program_plan.h"
#include "chain.h"

enum { LONGEST = 96 /* steps of a chain */ };

const lt_ChainFn *lt_chain_forms(const lt_PreparedProgram *p, const lt_Step *s, lt_VectorFn power) {
  const lt_Vectors *v = p->isa->vectors[s->compute];
  int row = (int)s->op;
  if (!v->chained || s->op == LT_NO_OP) return NULL;
  for (int k = 0; power && k < LT_POWER_COUNT; k++)
    if (v->power[k] == power) row = LT_OP_COUNT + k;
  bool scaled = LT_CHAIN_SCALES(s->op) && lt_scalar_to_double(s->a) != 1;
  return scaled ? NULL : v->chained[row];
}

static lt_PlannedStep *add_step(lt_PreparedProgram *p, lt_ChainFn fn, int first, int second) {
  lt_PlannedStep *s = &p->step[p->nsteps++];
  *s = (lt_PlannedStep){.fn = fn, .operand = {first, second}};
  return s;
}

/* Returns whether a register has one value for each row, and the instruction computes all elements
 * of the rows. */
static bool is_of_row(const lt_PreparedProgram *p, const lt_Instruction *i, int reg) {
  return p->reg[reg].by_row && !i->by_row;
}

/* Adds the steps of an instruction. `value`: the register that the step before has computed; -1:
 * none. memory: the forms of LT_CHAIN_MEMORY. Returns how often the value is used as such. */
static int add_member(lt_PreparedProgram *p, const lt_Instruction *i, int value,
                      const lt_ChainFn *memory) {
  const int x = i->src[0], y = i->src[1], z = i->src[2];
  int used = (x == value) + (y == value) + (z == value);
  const bool two = y >= 0 && z < 0;
  const bool from_y = x != value && y >= 0 && (y == value || (two && p->reg[x].number));
  const bool from_z = x != value && !from_y && z >= 0 && z == value;
  const int from = from_y ? y : from_z ? z : x;
  if (from != value) add_step(p, memory[LT_CHAIN_LOAD], from, -1);
  lt_PlannedStep *s;
  if (two && y == x) {
    s = add_step(p, i->step[LT_CHAIN_BOTH], -1, -1);
    used = x == value ? 2 : 0;
  } else {
    const int other = from_y ? x : y;
    const bool number = two && (p->reg[other].number || is_of_row(p, i, other));
    if (from_y)
      s = add_step(p, i->step[number ? LT_CHAIN_Y_NUMBER : LT_CHAIN_Y], x, z);
    else if (from_z)
      s = add_step(p, i->step[LT_CHAIN_Z], x, y);
    else
      s = add_step(p, i->step[number ? LT_CHAIN_X_NUMBER : LT_CHAIN_X], y, z);
    used = used > 0;
  }
  s->a = i->numbers.a;
  s->b = i->numbers.b;
  return used;
}

/* Keeps the values of rows that an instruction of a chain reads until the chain's last one: the
 * next row reads them after this row is finished. */
static void keep_values_of_rows(lt_PreparedProgram *p, const lt_Instruction *i, int last) {
  for (int k = 0; k < 3; k++) {
    lt_Register *r = i->src[k] >= 0 ? &p->reg[i->src[k]] : NULL;
    if (r && is_of_row(p, i, i->src[k]) && r->last < last) r->last = last;
  }
}

/* Plans the chain of the instructions `first` to `end` - 1. */
static void plan_chain(lt_PreparedProgram *p, int first, int end) {
  lt_Instruction *head = &p->code[first];
  const lt_ChainFn *memory = p->isa->vectors[p->reg[head->src[0]].type]->chained[LT_CHAIN_MEMORY];
  head->first = p->nsteps;
  head->members = end - first;
  for (int i = first, value = -1; i < end; i++) {
    int before = p->nsteps, used = add_member(p, &p->code[i], value, memory);
    keep_values_of_rows(p, &p->code[i], end - 1);
    lt_Register *r = value >= 0 ? &p->reg[value] : NULL;
    if (r) r->tile = r->operand < 0 && r->last < end;
    if (r && r->operand < 0 && r->uses == used) {
      r->passed = true;
    } else if (r) { /* store the value before this instruction */
      memmove(&p->step[before + 1], &p->step[before],
              sizeof *p->step * (size_t)(p->nsteps - before));
      p->step[before] = (lt_PlannedStep){.fn = memory[LT_CHAIN_STORE], .operand = {value, -1}};
      p->nsteps++;
    }
    value = p->code[i].dst;
    if (i == end - 1) add_step(p, memory[LT_CHAIN_END], value, -1);
  }
  head->count = p->nsteps - head->first;
}

void lt_chains_plan(lt_PreparedProgram *p) {
  for (int first = 0, end; first < p->ncode; first = end) {
    const lt_Instruction *head = &p->code[first];
    end = first + 1;
    if (!head->step) continue;
    lt_Dtype type = p->reg[head->src[0]].type;
    while (end < p->ncode && end - first < LONGEST / 3 && p->code[end].step &&
           p->reg[p->code[end].src[0]].type == type && p->code[end].by_row == head->by_row)
      end++;
    if (end - first > 1 || head->must) plan_chain(p, first, end);
  }
}

void lt_chain_run(const lt_PreparedProgram *p, const lt_Instruction *head, int64_t n,
                  char *const *where) {
  const lt_Vectors *v = p->isa->vectors[p->reg[head->src[0]].type];
  const int64_t size = (int64_t)lt_dtype_size(p->reg[head->src[0]].type);
  lt_ChainStep step[LONGEST];
  int64_t next[LONGEST][2], row = n; /* next: bytes to the operand of the next row */
  for (int k = 0; k < head->count; k++) {
    const lt_PlannedStep *s = &p->step[head->first + k];
    step[k] = (lt_ChainStep){.fn = s->fn, .a = s->a, .b = s->b};
    for (int j = 0; j < 2 && s->operand[j] >= 0; j++) {
      const lt_Register *r = &p->reg[s->operand[j]];
      const bool of_row = is_of_row(p, head, s->operand[j]);
      if (of_row) row = p->program->row;
      step[k].memory[j] = where[s->operand[j]];
      step[k].mask[j] = -!(r->number || r->tile || of_row);
      next[k][j] = of_row ? size : step[k].mask[j] & p->program->row * size;
    }
  }
  for (int64_t i = 0; i < n; i += row) {
    v->chain(row, step);
    if (row == n) return;
    for (int k = 0; k < head->count; k++)
      for (int j = 0; j < 2 && step[k].memory[j]; j++)
        step[k].memory[j] = (char *)step[k].memory[j] + next[k][j];
  }
}
