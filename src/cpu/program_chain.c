/* program_chain.c: chains in an elementwise program: instructions that follow each other, each a
 * cheap op of floats, which run as one loop (kernels/chain_loop.h).
 *
 * A result that only the next instruction reads is passed in CPU registers; it has no block. One
 * that several instructions of the chain read is kept in other registers, where there are so many,
 * while they are free. Other results are stored to their blocks. All operands of an element are
 * read and written at its own index, so it does not matter that a chain finishes a tile before it
 * begins the next one. */
#include "program_plan.h"
#include "chain.h"

enum { LONGEST = 96 /* steps of a chain */ };

int lt_chain_code(const lt_PreparedProgram *p, const lt_Step *s, lt_VectorFn power) {
  const lt_Vectors *v = p->isa->vectors[s->compute];
  int row = (int)s->op;
  if (!v->chained || s->op == LT_NO_OP) return 0;
  for (int k = 0; power && k < LT_POWER_COUNT; k++)
    if (v->power[k] == power) row = LT_OP_COUNT + k;
  bool scaled = LT_CHAIN_SCALES(s->op) && lt_scalar_to_double(s->a) != 1;
  return scaled ? 0 : v->chained[row];
}

static lt_PlannedStep *add_step(lt_PreparedProgram *p, int code, int first, int second) {
  lt_PlannedStep *s = &p->step[p->nsteps++];
  *s = (lt_PlannedStep){.code = code, .operand = {first, second}};
  return s;
}

/* Returns how often an instruction uses the value that the step before has computed. */
static int uses_of_value(const lt_Instruction *i, int value) {
  const int x = i->src[0], y = i->src[1], z = i->src[2];
  return x == value && y == value && z < 0 ? 2 : x == value || y == value || z == value;
}

/* Adds the steps of an instruction. `value`: the register that the step before has computed,
 * `kept`: that of the kept value; -1: none. */
static void add_member(lt_PreparedProgram *p, const lt_Instruction *i, int value, int kept) {
  const int *src = i->src;
  const bool two = src[1] >= 0 && src[2] < 0, both = two && src[0] == src[1];
  int at = 0; /* the input that is the value */
  if (src[0] != value && src[1] >= 0) {
    if (src[1] == value || (two && p->reg[src[0]].number))
      at = 1;
    else if (src[2] >= 0 && src[2] == value)
      at = 2;
  }
  if (src[at] != value) {
    const bool take = src[at] == kept;
    add_step(p, take ? LT_CHAIN_TAKE : LT_CHAIN_LOAD, take ? -1 : src[at], -1);
  }
  int code = both ? LT_CHAIN_BOTH : at, memory[2] = {-1, -1}, n = 0;
  bool keeps = false;
  for (int k = 0; k < 3 && !both; k++) {
    if (k == at || src[k] < 0) continue;
    if (src[k] == kept && !keeps) {
      code = LT_CHAIN_KEPT(at, k);
      keeps = true;
    } else {
      memory[n++] = src[k];
    }
  }
  if (two && !keeps && !both && p->reg[memory[0]].number)
    code = at == 0 ? LT_CHAIN_X_NUMBER : LT_CHAIN_Y_NUMBER;
  lt_PlannedStep *s = add_step(p, i->step + code, memory[0], memory[1]);
  s->a = i->numbers.a;
  s->b = i->numbers.b;
}

/* Returns whether two inputs of an instruction of the chain are the register, beside the value. */
static bool reads_twice(const lt_PreparedProgram *p, int first, int end, int reg) {
  for (int i = first; i < end; i++) {
    const int *src = p->code[i].src;
    if (src[2] >= 0 && (src[0] == reg) + (src[1] == reg) + (src[2] == reg) > 1) return true;
  }
  return false;
}

/* Returns whether the loops of chains have registers to keep a value in. */
static bool keeps_values(const lt_PreparedProgram *p) { return p->isa->level == LT_LEVEL_avx512; }

/* Plans the chain of the instructions `first` to `end` - 1. */
static void plan_chain(lt_PreparedProgram *p, int first, int end) {
  lt_Instruction *head = &p->code[first];
  head->first = p->nsteps;
  head->members = end - first;
  for (int i = first, value = -1, kept = -1; i < end; i++) {
    lt_Register *r = value >= 0 ? &p->reg[value] : NULL;
    bool block = r && r->operand >= 0; /* of an operand: others read it */
    if (r && !block && r->uses == uses_of_value(&p->code[i], value)) {
      r->passed = true;
    } else if (r && !block && keeps_values(p) && r->last < end &&
               (kept < 0 || p->reg[kept].last < i) && !reads_twice(p, i, end, value)) {
      r->passed = true;
      kept = value;
      add_step(p, LT_CHAIN_KEEP, -1, -1);
    } else if (r) {
      add_step(p, LT_CHAIN_STORE, value, -1);
    }
    add_member(p, &p->code[i], value, kept);
    value = p->code[i].dst;
    if (i == end - 1) add_step(p, LT_CHAIN_STORE, value, -1);
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
  lt_ChainStep step[LONGEST];
  for (int k = 0; k < head->count; k++) {
    const lt_PlannedStep *s = &p->step[head->first + k];
    step[k] = (lt_ChainStep){.code = s->code, .a = s->a, .b = s->b};
    for (int j = 0; j < 2 && s->operand[j] >= 0; j++) {
      step[k].memory[j] = where[s->operand[j]];
      step[k].mask[j] = -!p->reg[s->operand[j]].number;
    }
  }
  p->isa->vectors[p->reg[head->src[0]].type]->chain(n, step, head->count);
}
