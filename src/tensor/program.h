/* program.h: elementwise programs: calls of elementwise ops from a record, as one pass over memory.
 *
 * A program has inputs, steps and outputs. A step is a row of ops.def, or a conversion, on inputs,
 * results of earlier steps, and numbers; every value of a program has one element for each element
 * of the outputs' shape, which all inputs broadcast to. What no output needs is left out, and equal
 * steps are one.
 *
 * Invariant: a program gives what its calls give one after the other, in the same dtypes, but that
 * float16 and bfloat16 are not rounded between steps; they are computed in float32.
 */
#ifndef LT_PROGRAM_H
#define LT_PROGRAM_H

#include "kernel.h"

struct lt_Recorder;

typedef struct lt_StepInput {
  int value; /* an input, or the number of inputs + a step; -1: `number` */
  lt_Scalar number;
} lt_StepInput;

typedef struct lt_Step {
  lt_OpId op;       /* LT_NO_OP: input 0, converted to `result` */
  lt_Dtype compute; /* what it computes in: a compute dtype */
  lt_Dtype result;  /* the dtype of what it gives */
  bool divides;     /* input 1 is an integer divisor, which must not be 0 */
  int inputs;
  lt_StepInput input[3];
  lt_Scalar a, b; /* as in the op's text */
} lt_Step;

typedef struct lt_Program {
  int ninputs, nsteps, nout;
  lt_Dtype *dtype; /* of the inputs */
  lt_Step *step;
  lt_StepInput *out;
  lt_Dtype *out_dtype;
} lt_Program;

/* The program that computes the tensors `out`, results or inputs of the record. The first `strict`
 * calls must be elementwise; of the others, which are the gradients', those that sum up or view
 * a gradient to undo broadcasting are left out: its result has the full shape. Returns NULL with
 * the error, which names the op when one is not elementwise. */
lt_Program *lt_program_new(const struct lt_Recorder *r, int strict, int nout,
                           lt_Tensor *const *out);
void lt_program_free(lt_Program *p); /* NULL is fine */

/* A program on memory, as a device runs it. */
typedef struct lt_ProgramLoop {
  const lt_Program *program;
  int ndim;
  int64_t numel; /* above 0 */
  int64_t shape[LT_MAX_DIMS];
  lt_Operand *operand; /* the outputs, each contiguous, then the inputs */
  bool refused;        /* set by the device: an integer divisor was 0; nothing may be relied on */
} lt_ProgramLoop;

/* Runs it on inputs of its dtypes, which are all on one device, with one reference in out[i] for
 * each output. Returns false with the error. *refused: an integer divisor is 0, which the op itself
 * reports with its position; then there are no outputs. Records no gradients. */
bool lt_program_run(const lt_Program *p, lt_Tensor *const *inputs, lt_Tensor **out, bool *refused);

#endif
