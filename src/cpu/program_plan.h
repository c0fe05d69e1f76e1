/* program_plan.h: an elementwise program that was compiled to instructions on registers; see
 * program.c. */
#ifndef LT_CPU_PROGRAM_PLAN_H
#define LT_CPU_PROGRAM_PLAN_H

#include "program.h"
#include "rows.h"
#include "vector.h"

typedef struct lt_Register {
  lt_Dtype type; /* a compute type */
  bool fixed;    /* has the same value in every block */
  bool by_row;   /* has one value for each row */
  bool number;   /* all elements of its block are the same number */
  bool whole;    /* a number: more than the first elements of its block are used */
  bool passed;   /* has no memory: a chain passes it from one step to the next */
  /* Its block has LT_CHAIN_TILE elements: a number that is not `whole`, or a value that only the
   * chain uses that computes it. */
  bool tile;
  int operand; /* the operand whose memory it is; -1: a block */
  int slot;    /* index of the block, among those of its size */
  int last;    /* last instruction that uses it */
  int uses;    /* how often instructions use it */
} lt_Register;

typedef enum lt_Code {
  CODE_NUMBER,  /* dst = the number */
  CODE_LOAD,    /* dst = the operand, converted */
  CODE_CONVERT, /* dst = src[0], of another compute type */
  CODE_CALL,    /* dst = fn(src) */
  CODE_NARROW,  /* dst = src[0] as a narrower integer dtype */
  CODE_EXPAND,  /* dst = src[0], one value for each row, in all elements of the row */
  CODE_REDUCE,  /* dst = the reductions of the rows of src[0] */
  CODE_STORE    /* the operand = src[0], converted */
} lt_Code;

typedef struct lt_Instruction {
  lt_Code code;
  int dst, src[3];
  int operand;
  lt_Dtype dtype; /* of loaded or stored memory, of a narrow integer */
  lt_VectorFn fn;
  /* Its forms as a step of a chain, see chain.h; NULL: it cannot be one. */
  const lt_ChainFn *step;
  bool divides;        /* src[1] is an integer divisor */
  bool once;           /* src[1] is one value: for all elements, or for those of each row */
  bool by_row;         /* it computes one value for each row */
  bool must;           /* it must be one, because its result is not of the type that fn computes */
  int members;         /* above 0: it and the instructions after it are a chain of so many */
  int first, count;    /* the chain's steps */
  const lt_Fold *fold; /* of a reduction, or: */
  const lt_Centered *centered;
  double amount;
  lt_Numbers numbers;
  char element[16];
} lt_Instruction;

typedef struct lt_Port { /* layout of an operand */
  bool linear, fixed, dense;
} lt_Port;

/* A step of a chain, with registers in place of memory. */
typedef struct lt_PlannedStep {
  lt_ChainFn fn;
  int operand[2]; /* -1: none */
  lt_Number a, b;
} lt_PlannedStep;

typedef struct lt_PreparedProgram {
  lt_ProgramLoop *loop;
  const lt_Program *program;
  const lt_Isa *isa;
  bool rows, ok;
  int last; /* the innermost dimension */
  lt_Port *port;
  int nregisters, nfixed, ncode, nsteps;
  int slots[2]; /* number of blocks, and of those for a tile */
  lt_Register *reg;
  lt_Instruction *fixed;        /* those whose results are the same in every block */
  lt_Instruction *code;         /* the others */
  lt_PlannedStep *step;         /* of the chains */
  int (*known)[LT_DTYPE_COUNT]; /* register of a value in a compute type, plus 1; 0: none */
  int (*wide)[LT_DTYPE_COUNT];  /* the same of a value for each row, in all elements of the row */
  int64_t block, slot_size[2];
  char *scratch; /* of all threads of the last run, to be used again */
  size_t scratch_size;
  atomic_bool refused;
} lt_PreparedProgram;

/* Returns the forms of the step of a chain that does the same as this step; NULL: there is none. */
const lt_ChainFn *lt_chain_forms(const lt_PreparedProgram *p, const lt_Step *s, lt_VectorFn power);
/* Combines instructions to chains. The uses of the registers are counted. */
void lt_chains_plan(lt_PreparedProgram *p);
/* Runs a chain on n elements. where: the memory of each register. */
void lt_chain_run(const lt_PreparedProgram *p, const lt_Instruction *first, int64_t n,
                  char *const *where);

#endif
