/* chain.h: chains: several cheap elementwise ops of one compute type that run as one loop. */
#ifndef LT_CPU_CHAIN_H
#define LT_CPU_CHAIN_H

#include "opids.h"
#include "vector.h"

/* A step of a chain: it computes the chain's value, of which the value before is one operand, and
 * the others are in memory. */
typedef struct lt_ChainStep {
  int code;        /* LT_CHAIN_OF(op or LT_OP_COUNT + power) + where the value is an operand */
  void *memory[2]; /* the other operands in order; NULL: none */
  int64_t mask[2]; /* -1; 0 for a number, with which LT_CHAIN_TILE elements are filled */
  lt_Number a, b;  /* the scalar arguments */
} lt_ChainStep;

enum {
  LT_CHAIN_LOAD,  /* the value = memory[0] */
  LT_CHAIN_STORE, /* memory[0] = the value */
  /* The value is the input x, y or z of the op, or both inputs. */
  LT_CHAIN_X = 0,
  LT_CHAIN_Y = 1,
  LT_CHAIN_Z = 2,
  LT_CHAIN_BOTH = 2,
  /* The value is x or y of two inputs, and the other one is a number. */
  LT_CHAIN_X_NUMBER = 3,
  LT_CHAIN_Y_NUMBER = 4,
  LT_CHAIN_TILE = 128
};
#define LT_CHAIN_OF(row) (8 + 8 * (row))
/* Ops whose number a multiplies the second input: in a chain it must be 1. */
#define LT_CHAIN_SCALES(op) ((op) == LT_OP_add || (op) == LT_OP_sub)

#endif
