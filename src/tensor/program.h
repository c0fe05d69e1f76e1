/* program.h: elementwise programs: the recorded calls of several elementwise ops, run as one pass
 * over memory (fusion).
 *
 * A program has inputs, steps and outputs. A step applies an elementwise op, or a dtype conversion,
 * to inputs, results of earlier steps, and numbers. Every value has one element for each element of
 * the outputs' shape, to which all inputs broadcast. Steps that no output needs are removed, and
 * equal steps are merged.
 *
 * Invariant: a program computes what its calls compute one after the other, in the same dtypes,
 * except that float16 and bfloat16 are computed in float32 and not rounded between steps.
 */
#ifndef LT_PROGRAM_H
#define LT_PROGRAM_H

#include "kernel.h"

struct lt_Recorder;

typedef struct lt_StepInput {
  int value; /* below ninputs: that input; else step `value` - ninputs; -1: `number` */
  lt_Scalar number;
} lt_StepInput;

typedef struct lt_Step {
  lt_OpId op;       /* LT_NO_OP: converts input 0 to `result` */
  lt_Dtype compute; /* the dtype that it computes in */
  lt_Dtype result;  /* the dtype of its result */
  bool divides;     /* input 1 is an integer divisor, which must not be 0 */
  bool by_row;      /* it has one result for each row; see lt_Program.row */
  bool reduces;     /* the reduction `id` of a row of input 0, with the argument `amount` */
  int id;
  double amount;
  int inputs;
  lt_StepInput input[3];
  lt_Scalar a, b; /* the scalar arguments, as in the op's expression */
} lt_Step;

typedef struct lt_Program {
  int ninputs, nsteps, nout;
  lt_Dtype *dtype; /* of the inputs */
  lt_Step *step;
  lt_StepInput *out;
  lt_Dtype *out_dtype;
  /* Of a program with reductions: it runs over a matrix whose rows have `row` elements, and some
   * inputs and outputs have one element for each row (by_row: outputs, then inputs). Otherwise 0
   * and NULL. */
  int64_t row;
  bool *by_row;
} lt_Program;

/* Creates the program that computes the tensors `out`, which are results or inputs of the record.
 * The first `strict` calls must be elementwise. The other calls belong to gradients: those that sum
 * or view a gradient to undo broadcasting are skipped, so such a result has the full shape. Fails,
 * with an error that names the op, when another call is not elementwise. */
lt_Program *lt_program_new(const struct lt_Recorder *r, int strict, int nout,
                           lt_Tensor *const *out);
/* Allocates a program with memory for so many inputs, calls and outputs. NULL when memory is
 * out. */
lt_Program *lt_program_alloc(int inputs, int calls, int outputs);
struct lt_RecordedCall;
/* Appends the steps of an elementwise call, whose result has the dtype `result`, and returns its
 * value. Equal steps are shared. */
lt_StepInput lt_program_add(lt_Program *p, const struct lt_RecordedCall *call,
                            const lt_StepInput *input, lt_Dtype result, bool by_row);
/* Appends a step, or finds an equal one, and returns its value. */
lt_StepInput lt_program_step(lt_Program *p, const lt_Step *step);
/* Returns a value converted to another dtype. */
lt_StepInput lt_program_convert(lt_Program *p, lt_StepInput in, lt_Dtype from, lt_Dtype to,
                                bool by_row);
/* Frees a program. NULL is allowed. */
void lt_program_free(lt_Program *p);

/* What the device does with a loop. A program may be compiled for the layout of a loop, run many
 * times, and freed: the loop must stay where it is, and the addresses of its operands may change
 * from run to run, their strides may not. Only such programs may have rows. */
typedef enum lt_ProgramAction {
  LT_PROGRAM_ONCE, /* compiles, runs and frees */
  LT_PROGRAM_PREPARE,
  LT_PROGRAM_RUN,
  LT_PROGRAM_FREE
} lt_ProgramAction;

/* A program and the memory that it runs on. */
typedef struct lt_ProgramLoop {
  lt_ProgramAction action;
  struct lt_PreparedProgram *prepared; /* the device's; NULL: it is not prepared */
  const lt_Program *program;
  int ndim;
  int64_t numel; /* above 0 */
  int64_t shape[LT_MAX_DIMS];
  lt_Operand *operand; /* the outputs, then the inputs */
  bool refused;        /* set by the device: an integer divisor was 0; the outputs are invalid */
} lt_ProgramLoop;

/* Runs a program on inputs of its dtypes, all on one device, and stores one reference for each
 * output in out. Records no gradients. When an integer divisor is 0, sets *refused and returns no
 * outputs: the caller runs the ops one by one, of which one reports the error with the index. */
bool lt_program_run(const lt_Program *p, lt_Tensor *const *inputs, lt_Tensor **out, bool *refused);

#endif
