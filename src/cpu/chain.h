/* chain.h: chains: several cheap elementwise ops of one compute type that run as one loop. */
#ifndef LT_CPU_CHAIN_H
#define LT_CPU_CHAIN_H

#include "opids.h"
#include "vector.h"

/* A step of a chain: it computes the chain's value, of which the value before is one operand, and
 * the others are in memory. The last step of a chain is LT_CHAIN_END. */
typedef struct lt_ChainStep {
  lt_ChainFn fn;   /* chained[row][form] of lt_Vectors */
  void *memory[2]; /* the other operands in order; NULL: none */
  int64_t mask[2]; /* -1; 0 for memory of LT_CHAIN_TILE elements: of a number, or of one tile */
  lt_Number a, b;  /* the scalar arguments */
} lt_ChainStep;

enum {
  /* The rows of ops are LT_OP_x, those of powers LT_OP_COUNT + LT_POWER_x. */
  LT_CHAIN_MEMORY = LT_OP_COUNT + LT_POWER_COUNT,
  LT_CHAIN_ROWS,
  /* The forms of LT_CHAIN_MEMORY: the value = memory[0]; memory[0] = the value; the latter as the
   * end of the chain. */
  LT_CHAIN_LOAD = 0,
  LT_CHAIN_STORE = 1,
  LT_CHAIN_END = 2,
  /* The value is the input x, y or z of the op, or both inputs. */
  LT_CHAIN_X = 0,
  LT_CHAIN_Y = 1,
  LT_CHAIN_Z = 2,
  LT_CHAIN_BOTH = 2,
  /* The value is x or y of two inputs, and the other one is a number. */
  LT_CHAIN_X_NUMBER = 3,
  LT_CHAIN_Y_NUMBER = 4,
  LT_CHAIN_FORMS,
  LT_CHAIN_TILE = 128
};
/* Ops whose number a multiplies the second input: in a chain it must be 1. */
#define LT_CHAIN_SCALES(op) ((op) == LT_OP_add || (op) == LT_OP_sub)

#endif
