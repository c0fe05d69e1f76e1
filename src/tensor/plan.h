/* plan.h: plans: recorded programs, prepared to be run many times.
 *
 * A plan is made from a record of a program (recorder.h) and, when a result requires grad, of its
 * backward pass. It runs the calls of the record that its results depend on, equal calls once, and
 * chains of elementwise ops in one pass over memory. Shapes, dtypes and addresses are resolved when
 * it is made: a run infers nothing, and allocates only results and what the backward pass reads.
 *
 *   record -> values and buffers (plan_values.c), values that are computed twice
 *   (plan_recompute.c) -> units (plan_units.c) -> steps and memory (plan_steps.c) -> runs (plan.c),
 *   as graphs of the device (plan_graph.c)
 *
 * A buffer is the memory of a recorded storage. An elementwise call in place, of all elements of a
 * storage without views, gets a new buffer, so that everything is in SSA form except buffers that
 * other calls write (`written`); these calls and all uses of such buffers keep their order. */
#ifndef LT_PLAN_H
#define LT_PLAN_H

#include "program.h"
#include "recorder.h"

typedef struct lt_Plan lt_Plan;

/* Makes the kernels of elementwise programs, on a device that does not run programs itself. Its
 * kernel gets the addresses of the loop's operands, the number of elements, and, with a rank above
 * 0, the sizes of the dimensions and the strides of each input, in elements. */
typedef struct lt_PlanCompiler {
  /* Returns NULL where there is no such kernel: the ops are run one by one. */
  lt_UserKernel *(*compile)(void *context, const lt_ProgramLoop *loop, int rank);
  void *context;
} lt_PlanCompiler;

/* Makes a plan of a program with these results; the record has ended its calls of the program, but
 * still runs. With `grad` the backward pass is recorded, too, if a result requires grad. compiler:
 * may be NULL. graphs: from the second run on, the plan is run as graphs where the device has
 * them. NULL with the error, which states why the program has no plan. */
lt_Plan *lt_plan_new(lt_Recorder *r, int nout, lt_Tensor *const *out, bool grad,
                     const lt_PlanCompiler *compiler, bool graphs);
lt_Plan *lt_plan_retain(lt_Plan *p);
/* Releases a plan, which lives on while an autograd graph refers to it. NULL is allowed. */
void lt_plan_release(lt_Plan *p);

/* Returns the number of captured tensors, and tensor i of them, borrowed. */
int lt_plan_captured_count(const lt_Plan *p);
lt_Tensor *lt_plan_captured(const lt_Plan *p, int i);
/* Returns true when captured tensor i was created by the program, from a number. */
bool lt_plan_captured_made(const lt_Plan *p, int i);

/* Returns the number of results. */
int lt_plan_results(const lt_Plan *p);

typedef enum lt_PlanResult {
  LT_PLAN_FAILED, /* with the error */
  LT_PLAN_RAN,
  LT_PLAN_OUTDATED /* a captured tensor has another geometry or loose bools, another tensor shares
                      memory that the plan writes, or the plan was made on another stream; nothing
                      was changed */
} lt_PlanResult;
/* Runs the plan on inputs of the recorded geometry, in the order in which their stand-ins were
 * created, and stores one reference for each result in out. captured: the tensors that are read in
 * place of the recorded ones. */
lt_PlanResult lt_plan_run(lt_Plan *p, lt_Tensor *const *inputs, lt_Tensor *const *captured,
                          lt_Tensor **out);

/* What a plan consists of. */
typedef struct lt_PlanCounts {
  int calls;             /* recorded */
  int steps;             /* that a run executes, of the forward and of the backward pass */
  int groups;            /* steps that compute several calls in one pass */
  int fused;             /* calls in them */
  int64_t memory, saved; /* bytes: of intermediate values; that a backward pass reads */
  int graphs;            /* captured so far: of the forward and of the backward pass */
  const char *no_graph;  /* why there are none, or "" */
  bool gradients;
} lt_PlanCounts;
void lt_plan_counts(const lt_Plan *p, lt_PlanCounts *out);

/* ---- between the files ----------------------------------------------------------------------- */

enum { LT_FORWARD, LT_BACKWARD };

typedef enum lt_BufferKind {
  LT_BUFFER_NONE,  /* no memory: unused, or a value inside of a unit */
  LT_BUFFER_ARENA, /* a part of the plan's memory for intermediate values */
  LT_BUFFER_SLOT,  /* the memory of a slot: an input, a captured tensor, a gradient, a result */
  LT_BUFFER_SAVED  /* a part of the block that one call keeps for its backward pass */
} lt_BufferKind;

typedef struct lt_PlanBuffer {
  int same; /* an equal buffer that replaces it, or itself */
  lt_BufferKind kind;
  int slot;              /* of LT_BUFFER_SLOT */
  int64_t bytes, offset; /* offset: in the arena or in the saved memory */
  int made_by;           /* the call that creates it, or -1 */
  bool external;         /* an input, a captured tensor or a gradient of a result */
  bool written;          /* by a call that keeps its order */
  bool needed;           /* its memory is */
  bool result;           /* its memory is that of a result, */
  int root;              /* whose storage has this first value */
  bool shared;           /* a unit other than its producer reads it */
  bool used[2];          /* by the forward, by the backward pass */
  bool copied[2];        /* it is copied to a result at the end of the pass */
  int producer;          /* the unit that computes it, or -1 */
  int first, last;       /* units between which its memory is in use */
} lt_PlanBuffer;

typedef struct lt_PlanValue {
  int root; /* the first value of its storage */
  int buffer;
  bool number; /* every element is the number `as` */
  lt_Scalar as;
  lt_Tensor *tensor; /* a tensor on its memory, or NULL until a step needs it */
  bool patched[2];   /* in the forward, in the backward pass */
} lt_PlanValue;

typedef struct lt_PlanCall {
  bool keeps_order; /* it writes a buffer, or draws random numbers */
  bool functional;  /* an in-place call with a new buffer for its result */
  bool needed;
} lt_PlanCall;

/* Calls that become one step. */
typedef struct lt_PlanUnit {
  int part;
  bool fusible, ordered;
  int ncalls, room;
  int *call;
  int ndim; /* the shape that a fusible unit runs over */
  int64_t shape[LT_MAX_DIMS];
  int rows; /* 0, or the number of its reductions of the last dimension */
  lt_Program *program;
  int nin, *in;         /* values that the program reads, */
  int nresult, *result; /* and those that it writes */
  lt_ProgramLoop *loop;
  lt_UserKernel *kernel; /* of the program, on a device that does not run it */
  int rank;              /* of this kernel */
} lt_PlanUnit;

/* The state while a plan is made. */
typedef struct lt_PlanBuilder {
  const lt_Recorder *r;
  lt_Plan *plan;
  const lt_Backend *backend;
  const lt_PlanCompiler *compiler;
  int mark; /* the first call of the backward pass */
  lt_PlanValue *value;
  lt_PlanCall *call;
  int nbuffers;
  lt_PlanBuffer *buffer;
  int norder, *order; /* the calls in the order in which they run; NULL: that of the record */
  int nunits, unit_room;
  lt_PlanUnit *unit;
} lt_PlanBuilder;

/* Memory that differs from call to call. */
typedef struct lt_PlanSlot {
  lt_Storage *storage;
  int64_t offset; /* in bytes */
} lt_PlanSlot;

/* A tensor of the plan on a slot, or on the saved memory. */
typedef struct lt_PlanPatch {
  lt_Tensor *tensor;
  int slot;
  int64_t offset; /* in bytes, from the slot's */
} lt_PlanPatch;

/* An address that a step has read from a tensor. */
typedef struct lt_PlanAddress {
  char **where;
  const lt_Tensor *tensor;
} lt_PlanAddress;

typedef enum lt_StepKind {
  LT_STEP_LOOP,    /* one elementwise op */
  LT_STEP_PROGRAM, /* several of them */
  LT_STEP_LAUNCH,  /* several of them, as a kernel that was compiled for them */
  LT_STEP_KERNEL,  /* a kernel that writes the tensors call->out */
  LT_STEP_CALL     /* a call of the op, whose results are copied */
} lt_StepKind;

typedef struct lt_PlanStep {
  lt_StepKind kind;
  lt_OpId op;
  bool in_place;
  bool update;        /* the kernel starts from a copy of argument 0 */
  lt_UserOp user;     /* in whose name its errors are reported, and */
  lt_UserIndex index; /* which argument errors about index values name */
  lt_Loop loop;
  _Alignas(LT_MAX_ELEMENT) char number[3][LT_MAX_ELEMENT];
  lt_ProgramLoop *program;
  lt_UserKernel *kernel;
  lt_KernelLaunch launch;
  lt_Call call;
  int nout;
  lt_Tensor *out[LT_MAX_OUT];
  void *memory; /* of lists and strings that arguments refer to */
} lt_PlanStep;

typedef struct lt_PlanPart {
  int nsteps;
  lt_PlanStep **step;
  int npatches, patch_room;
  lt_PlanPatch *patch;
  int naddresses, address_room;
  lt_PlanAddress *address;
  lt_Storage *arena;
  int64_t bytes;
} lt_PlanPart;

/* A result of the forward pass, or a gradient. */
typedef struct lt_PlanOut {
  int value;      /* of the record; -1: there is none, and NULL is returned */
  int same;       /* an earlier one that is the same tensor, or -1 */
  bool given;     /* it is the tensor of a slot itself: an input, a captured tensor, a gradient */
  bool copied;    /* a copy of `tensor` is returned */
  int slot;       /* of its memory, or -1 */
  int64_t offset; /* in bytes, from the slot's */
  lt_Tensor *tensor; /* with its geometry */
  bool grad;         /* requires grad */
} lt_PlanOut;

struct lt_Plan {
  atomic_int refs;
  lt_Device device;
  lt_Stream *stream; /* on which all runs are, since they share memory; NULL: there are none */
  bool running;
  bool writes_captured;
  int ninputs, ncaptured;
  lt_Tensor **captured, **like; /* `like`: their recorded geometry; requires_grad as recorded */
  bool *made, *wrote;           /* of captured tensors */
  int nslots; /* inputs, captured tensors, saved memory, gradients of results, new memory */
  int saved_slot;
  int64_t saved_bytes; /* of the block; without streams 0, see plan_steps.c */
  int64_t *slot_bytes; /* 0 for captured tensors and the saved memory */
  int *slot_part;      /* of new memory: the part for whose runs it is allocated; otherwise -1 */
  int nout;
  lt_PlanOut *out;
  int ngrads;           /* of results that require grad, in their order */
  int nwanted, *wanted; /* inputs and captured tensors that get gradients */
  lt_PlanOut *gradient; /* of them */
  bool *keeps;          /* slots that the backward pass reads */
  lt_PlanPart part[2];
  int ntensors;
  lt_Tensor **tensor;  /* all tensors of the plan */
  lt_Storage *nothing; /* the storage of tensors whose slot is empty */
  lt_Storage *spare;   /* saved memory that was released */
  lt_PlanSlot *slot;   /* of the running call */
  bool graphs;         /* it runs as graphs, where that works; see plan_graph.c */
  bool ran[2];         /* the part's steps, at least once */
  int captures[2];
  lt_Graph *graph[2];
  lt_PlanSlot *fixed; /* the memory that the graphs use, by slot; NULL: there are none */
  char no_graph[256]; /* why there are none, or "" */
  lt_PlanCounts counts;
};

/* Makes room for one more item of an array. False with the error when memory is out. */
bool lt_plan_grow(void *array, int count, int *room, size_t item);
/* Returns whether elementwise calls can be fused. */
static inline bool lt_plan_fuses(const lt_PlanBuilder *b) {
  return b->backend->kernels.program || (b->compiler && b->backend->kernels.user_launch);
}
/* Returns the number of calls, and call i of them, in the order in which they run. */
static inline int lt_plan_calls(const lt_PlanBuilder *b) {
  return b->order ? b->norder : b->r->ncalls;
}
static inline int lt_plan_call(const lt_PlanBuilder *b, int i) {
  return b->order ? b->order[i] : i;
}
/* Returns the buffer of a value. */
static inline lt_PlanBuffer *lt_buffer_of(const lt_PlanBuilder *b, int64_t value) {
  int i = b->value[value].buffer;
  while (b->buffer[i].same != i) i = b->buffer[i].same;
  return &b->buffer[i];
}
/* Stores the indices of the arguments that a call reads element by element in `source`, and returns
 * their number; -1 when the call is not elementwise. A call that fills reads none. */
int lt_plan_sources(const lt_PlanBuilder *b, int call, int source[3]);
/* Returns true when the argument k of a call is read: not only its shape, and not a self that is
 * overwritten. */
bool lt_plan_reads(const lt_PlanBuilder *b, int call, int k);
/* Returns how many tensors an argument of a recorded call names, and sets *value to their values;
 * those below 0 are left out of a list. */
static inline int lt_plan_values_of(const lt_Arg *a, const int64_t **value) {
  *value = a->kind == LT_ARG_TENSOR ? &a->i : a->ints;
  return a->kind == LT_ARG_TENSOR ? 1 : a->kind == LT_ARG_TENSORS ? a->count : 0;
}
/* Assigns buffers, replaces equal calls, and marks what the outputs need. */
bool lt_plan_values(lt_PlanBuilder *b);
void lt_plan_need(lt_PlanBuilder *b, const int *out, int nout); /* clears earlier marks */
/* Repeats cheap calls of the forward pass in the backward pass, in place of saving their results.
 * `needed` must be set anew then. */
bool lt_plan_recompute(lt_PlanBuilder *b, lt_Recorder *r);
/* Stores the arguments that a call which may be fused reads element by element in `source`, and
 * returns their number; -1 for another call. */
int lt_plan_fused_sources(const lt_PlanBuilder *b, int call, int source[3]);
/* Forms the units, and prepares programs. */
bool lt_plan_units(lt_PlanBuilder *b);
/* Gives a buffer a slot of its own, whose memory is allocated for each run of the part. */
void lt_plan_new_slot(lt_PlanBuilder *b, lt_PlanBuffer *buffer, int part);
/* Assigns memory and makes the steps. `out`: values whose memory is that of results. */
bool lt_plan_steps(lt_PlanBuilder *b);
/* Returns the plan's tensor of a value, for a step of this part. NULL with the error. */
lt_Tensor *lt_plan_tensor(lt_PlanBuilder *b, int64_t value, int part);
/* Runs a part on these slots: its graph, or its steps. */
bool lt_plan_run_part(lt_Plan *p, int part, const lt_PlanSlot *slot);
bool lt_plan_run_steps(lt_Plan *p, int part, const lt_PlanSlot *slot);
/* Tells the allocator that memory of the slots, which was allocated on other streams, is used on
 * the plan's. */
void lt_plan_note_streams(const lt_Plan *p, const lt_PlanSlot *slot);
/* Returns the saved memory that the graphs use, retained; NULL where it is in use, or there is
 * none. */
lt_Storage *lt_plan_fixed_saved(lt_Plan *p);
void lt_plan_graphs_free(lt_Plan *p);
void lt_plan_step_free(lt_PlanStep *s);
/* Frees a loop and what the device has prepared for it. NULL is allowed. */
void lt_plan_loop_free(lt_ProgramLoop *l, const lt_Backend *b);

#endif
