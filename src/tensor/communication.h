/* communication.h: the part of a backend that exchanges data with other processes: collectives
 * (all_reduce, broadcast, ...) and messages between two ranks.
 *
 * A rank is one of the processes of a job; a communicator is a list of ranks that communicate with
 * each other, in which each has a rank from 0 on. All ranks of a communicator call its collectives
 * in the same order. CPU tensors go through MPI (src/cpu/), CUDA tensors through NCCL (src/cuda/).
 *
 * A call is submitted and returns a work, which is done later. On a device with streams the call is
 * ordered after the work queued on `stream` before it, runs on a stream of the communicator, and
 * `wait` makes the current stream wait for it; the host is not blocked. On the CPU, whose memory
 * the host reads, `wait` blocks the host.
 *
 * Failure: functions return NULL or false with the error in the slot. Every member of lt_CommCall
 * has been checked by the caller, as far as one rank can: the tensors are contiguous, on the
 * communicator's device, and of fitting sizes. */
#ifndef LT_COMMUNICATION_H
#define LT_COMMUNICATION_H

#include "lutra.h"

struct lt_Backend;

/* The kinds of calls, one row each: the name, and what `count` counts: the elements of the input
 * and the output as a multiple of `count` (ALL: times the size of the communicator). Of gather only
 * the root has an output, of scatter only the root has an input; `send` has no output, `recv` no
 * input, and `barrier` has no tensor. In broadcast, all_reduce and reduce the output is also the
 * input, and the results replace it (in reduce: on the root only). */
#define LT_COMM_KINDS(ROW)                                                                         \
  ROW(broadcast)                                                                                   \
  ROW(all_reduce)                                                                                  \
  ROW(reduce)                                                                                      \
  ROW(all_gather)     /* input: count; output: count * size */                                     \
  ROW(gather)         /* input: count; output of the root: count * size */                         \
  ROW(scatter)        /* input of the root: count * size; output: count */                         \
  ROW(reduce_scatter) /* input: count * size; output: count */                                     \
  ROW(all_to_all)     /* input and output: count * size, or input_counts and output_counts */      \
  ROW(send)                                                                                        \
  ROW(recv)                                                                                        \
  ROW(barrier)
typedef enum lt_CommKind {
#define ROW(name) LT_COMM_##name,
  LT_COMM_KINDS(ROW)
#undef ROW
      LT_COMM_KIND_COUNT
} lt_CommKind;

/* The reductions, one row each. Of bool: sum and max are "or", product and min are "and". Complex
 * numbers have sum and avg only; avg needs floating or complex numbers. */
#define LT_COMM_REDUCTIONS(ROW) ROW(sum) ROW(avg) ROW(max) ROW(min) ROW(product)
typedef enum lt_CommReduction {
#define ROW(name) LT_COMM_##name,
  LT_COMM_REDUCTIONS(ROW)
#undef ROW
      LT_COMM_REDUCTION_COUNT
} lt_CommReduction;

enum { LT_COMM_ANY_SOURCE = -1, LT_COMM_ID_BYTES = 128, LT_COMM_LABEL_BYTES = 200 };

typedef struct lt_CommCall {
  lt_CommKind kind;
  lt_CommReduction reduction; /* of all_reduce, reduce and reduce_scatter */
  lt_Dtype dtype;
  int peer; /* the root; of send and recv the other rank, or LT_COMM_ANY_SOURCE */
  int tag;  /* of send and recv; 0 or more */
  const void *input;
  void *output;
  int64_t count;                               /* elements, see LT_COMM_KINDS */
  const int64_t *input_counts, *output_counts; /* of all_to_all: elements for and from each rank,
                                                   copied by submit; NULL: `count` each */
  lt_Stream *stream;                           /* of the caller; NULL where there are no streams */
  int ndim;                                    /* of the tensor that messages show */
  int64_t shape[LT_MAX_DIMS];                  /* its shape */
  const char *label; /* where the program makes the call ("train.lua:12"), or ""; for messages */
  double timeout;    /* in seconds, for the other ranks; 0: the communicator's */
  bool check_only;   /* of a collective: compare the calls of all ranks, exchange no data */
  /* Why this rank cannot make the collective, or NULL: then it fails on all ranks, with an error
   * that says so. Only where calls are compared. */
  const char *refusal;
} lt_CommCall;

/* What a communicator is made from. */
typedef struct lt_CommPlan {
  int rank, size;     /* of this process in the communicator, and the number of its ranks */
  const int *members; /* their ranks in the job, in order; NULL: all, in order */
  int number;         /* the same on all members, and different for each communicator of the job */
  double timeout;     /* seconds that a call may wait for the other ranks */
  bool check;         /* compare the calls of all ranks before they run */
  char id[LT_COMM_ID_BYTES]; /* of unique_id, on a backend that has it */
} lt_CommPlan;

/* The first members of every backend's communicators and works; the backend adds its own. */
typedef struct lt_Communicator {
  const struct lt_Backend *backend;
  int index; /* of the device */
  int rank, size;
  /* Set by lt_comm_create and lt_comm_submit: */
  int number;    /* of the plan */
  int64_t calls; /* collectives submitted so far; messages are not counted */
} lt_Communicator;
typedef struct lt_Work {
  lt_Communicator *communicator;
  int source; /* of a recv that is done: the rank that sent; else -1 */
  bool keep;  /* it failed, and the library may still use its tensors: they are never freed */
  /* Set by the backend, by lt_trace_now's clock; 0: not known. They let traces show how long this
   * rank was blocked on the others. */
  int64_t arrived;  /* when all ranks of the call had submitted it */
  int64_t finished; /* when the transfer was done */
  /* Set by lt_comm_submit: */
  lt_CommCall first; /* the first of its calls, without its arrays, stream and label */
  int64_t sequence;  /* the value of communicator->calls after it; 0: messages */
} lt_Work;

/* Communication. All NULL: not supported. */
typedef struct lt_DeviceCommunication {
  /* Returns the name and version of the library ("Open MPI 4.1.4"); NULL, with the reason and the
   * remedy in `why`, when it was not found. Never sets the error slot. */
  const char *(*find_library)(char *why, size_t why_size);
  /* Starts the library in this process on the first call, and returns the rank of this process in
   * its job and the number of ranks. NULL on a backend that cannot know. */
  bool (*job)(int *rank, int *size);
  /* Ends the library in this process, after all communicators were destroyed. Blocks until all
   * ranks of the job have called it. May be NULL. */
  bool (*finalize)(void);
  /* Returns true when the library was started and has not ended. NULL: false. */
  bool (*is_started)(void);
  /* Writes the id of a new communicator, which one rank makes and all others get. NULL: not
   * needed. */
  bool (*unique_id)(char id[LT_COMM_ID_BYTES]);
  /* Creates a communicator. Called by all its members. */
  lt_Communicator *(*create)(int index, const lt_CommPlan *plan);
  /* Frees it. Calls that are not done are given up. */
  void (*destroy)(lt_Communicator *communicator);
  /* Submits `count` calls as one work; several calls are sends and recvs that may run in any
   * order. `now`: the caller waits at once. The tensors stay valid until the work is done. */
  lt_Work *(*submit)(lt_Communicator *communicator, const lt_CommCall *calls, int count, bool now);
  /* Returns true when the work is done or has failed. */
  bool (*is_done)(lt_Work *work);
  /* Waits for the work (see the top of this file); fails with the reason when the work failed, or
   * after the timeout. timeout: in seconds; 0: the communicator's. */
  bool (*wait)(lt_Work *work, double timeout);
  /* Frees a work, which is done or has failed. */
  void (*release)(lt_Work *work);
} lt_DeviceCommunication;

/* Returns the names of a kind and of a reduction. */
const char *lt_comm_kind_name(lt_CommKind kind);
const char *lt_comm_reduction_name(lt_CommReduction reduction);

/* Returns true for send and recv, which two ranks call, not all. */
bool lt_comm_is_message(lt_CommKind kind);
/* Returns true for collectives with a root, and for those with a reduction. */
bool lt_comm_has_root(lt_CommKind kind);
bool lt_comm_reduces(lt_CommKind kind);

/* Computes the payload of a call on this rank of a communicator: the bytes of its own that other
 * ranks need, each counted once however many ranks get them (`sent`), and the bytes of its result
 * that come from or depend on other ranks (`received`). Both are 0 in a group of one. They do not
 * depend on the algorithm; lt_comm_link_bytes tells what a ring moves. */
void lt_comm_bytes(const lt_CommCall *call, int rank, int size, int64_t *sent, int64_t *received);

/* Returns the bytes that the busiest link of a ring of `size` ranks moves in one direction. With
 * p = size and n = the bytes of `count` elements:
 *
 *   all_reduce                  2 (p - 1) / p n   reduce_scatter, then all_gather, of n / p each
 *   all_gather, reduce_scatter  (p - 1) n         p - 1 steps of n bytes
 *   all_to_all                  (p - 1) n         to each other rank; or its counts
 *   gather, scatter             (p - 1) n         all through the root's link
 *   broadcast, reduce           n                 in pieces, one behind the other
 *   send, recv                  n
 *
 * This divided by the time of the call is its bus bandwidth, which compares with the bandwidth of
 * the hardware whatever the number of ranks. */
int64_t lt_comm_link_bytes(const lt_CommCall *call, int rank, int size);

/* The functions of a backend's communication part, with trace events. Use these. Each fails as the
 * member of lt_DeviceCommunication does; lt_comm_submit also fails, before it sends anything, when
 * a tracer forbids the call. */
lt_Communicator *lt_comm_create(const struct lt_Backend *backend, int index,
                                const lt_CommPlan *plan);
lt_Work *lt_comm_submit(lt_Communicator *communicator, const lt_CommCall *calls, int count,
                        bool now);
bool lt_comm_wait(lt_Work *work, double timeout);

#endif
