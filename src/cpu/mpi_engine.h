/* mpi_engine.h: what the files mpi_*.c share: the calls of lt.distributed on CPU tensors, which
 * MPI runs.
 *
 * The engine has a list of communicators, each with a queue of collectives, and a list of messages.
 * `lt_mpi_progress` starts what can start and tests what runs; it never blocks (but see below). It
 * is called by the thread that waits for a work, else by the helper thread, never by both at once.
 *
 * A collective runs in two steps. First the ranks compare what they call, in an all_reduce of 16
 * bytes: when its results differ, they exchange their records, and the call fails on all ranks with
 * a message that names them. (The sizes of the pieces of all_to_all are compared likewise, in one
 * more all_reduce.) Then the data is exchanged. So the second step only begins when all
 * ranks are there, and the communicator of the job (which no other call can be mixed with) may use
 * MPI's blocking functions, which are faster than its nonblocking ones.
 *
 * Invariants: `calls_lock` is held while MPI is called; `queue_lock` protects the inbox and is
 * never held during a call. */
#ifndef LT_MPI_ENGINE_H
#define LT_MPI_ENGINE_H

#include "kernel.h"
#include "mpi_library.h"
#include "mpi_reduce.h"

#include <pthread.h>
#include <stdatomic.h>

/* What a rank calls: compared between the ranks, and shown in messages. */
typedef struct lt_MpiRecord {
  int32_t number; /* of the call on its communicator, from 1; 0: none yet */
  int32_t active; /* the call has not ended */
  int32_t kind, reduction, dtype, peer, ndim;
  int32_t elsewhere; /* the data is exchanged by another library: the tensor is on a CUDA device */
  int32_t refused;   /* the label is why the rank cannot make the call */
  int64_t shape[LT_MAX_DIMS];
  char label[LT_COMM_LABEL_BYTES];
} lt_MpiRecord;

typedef enum lt_MpiState {
  LT_MPI_QUEUED,
  LT_MPI_CHECKING,  /* the hashes of all ranks are compared */
  LT_MPI_COMPARING, /* they differ: the records are exchanged */
  LT_MPI_CHECKING_COUNTS,
  LT_MPI_COMPARING_COUNTS, /* the counts of all_to_all do not fit: they are exchanged */
  LT_MPI_RUNNING,
  LT_MPI_ENDED
} lt_MpiState;

struct lt_MpiWork;
typedef struct lt_MpiOp {
  struct lt_MpiOp *next;
  struct lt_MpiWork *work;
  lt_CommCall call;
  lt_MpiRecord record;
  lt_MpiState state;
  lt_Mpi request;
  int64_t started;          /* nanoseconds: when it was at the head of its queue; 0: not yet */
  int64_t moved;            /* elements of earlier parts of a long call */
  uint64_t hash[2], all[2]; /* of this rank, and the maximum over the ranks; of counts: the sum */
  lt_MpiRecord *records;    /* of all ranks */
  int64_t *all_counts;      /* of all_to_all: the input and output counts of all ranks */
  int *counts;              /* of all_to_all: input counts, offsets, output counts, offsets */
  void *misfit;             /* of a recv: a message of another size than its tensor, or NULL */
} lt_MpiOp;

typedef struct lt_MpiCommunicator {
  lt_Communicator base;
  struct lt_MpiCommunicator *next;
  lt_Mpi data, control;  /* MPI's communicators: of the calls, and of checks and questions */
  double timeout;        /* seconds */
  bool check, whole;     /* compare calls; it is the one that has all ranks of the job */
  int *members;          /* ranks of the job, by rank; NULL: they are the same */
  bool broken;           /* a call timed out */
  lt_MpiRecord last;     /* the last call; when broken, the one that timed out */
  int32_t submitted;     /* calls so far, written by the program's thread */
  lt_MpiOp *first, *end; /* queue of collectives */
} lt_MpiCommunicator;

typedef struct lt_MpiWork {
  lt_Work base;
  atomic_int left; /* ops that have not ended */
  bool failed;     /* of one op at least; written before `left` becomes 0 */
  char message[1200];
  int count, rank; /* of ops; of this process in the job */
  lt_MpiOp ops[];
} lt_MpiWork;

typedef struct lt_MpiEngine {
  pthread_mutex_t calls_lock, queue_lock;
  pthread_cond_t wake; /* the helper thread */
  pthread_t helper;
  bool started;
  atomic_bool stopping;
  lt_MpiOp *inbox, *inbox_end;       /* submitted, not yet seen by progress; under queue_lock */
  lt_MpiCommunicator *communicators; /* under calls_lock */
  lt_MpiOp *messages;                /* sends and recvs that run; under calls_lock */
  atomic_int pending;                /* ops that have not ended */
  int64_t answered;                  /* when questions were answered last, nanoseconds */
} lt_MpiEngine;
extern lt_MpiEngine lt_mpi_engine;

/* mpi_calls.c: starts the data exchange of a call, or its next part. Returns MPI's error code; on
 * success op->request is set, or request_null when it has ended already. */
int lt_mpi_start(lt_MpiOp *op);
/* Begins to receive the message for a recv that runs, if it has come: then sets op->request. Ends
 * the op when there is no memory for the message. Returns MPI's error code. */
int lt_mpi_match(lt_MpiOp *op);
/* Returns whether an op is a recv that runs and whose message has not come. */
bool lt_mpi_is_unmatched(const lt_MpiOp *op);
/* Returns how many elements each part of a long call has. */
int64_t lt_mpi_part(const lt_MpiOp *op);

/* mpi_progress.c. Ends an op; `message` (NULL: it succeeded) is the reason for a failure. */
void lt_mpi_end(lt_MpiOp *op, const char *message);
/* Moves new ops to the queues of their communicators, and to the list of messages. */
void lt_mpi_take_inbox(void);
/* Advances all ops. Returns whether one of them advanced. The caller holds calls_lock. */
bool lt_mpi_progress(void);
/* The helper thread: advances ops that nobody waits for, and answers questions of other ranks. */
void *lt_mpi_helper(void *unused);

/* mpi_check.c. Returns the rank in the job of a rank of a communicator; -1 for -1. */
int lt_mpi_job_rank(const lt_MpiCommunicator *c, int rank);
/* Fills in the record and hash of a call. */
void lt_mpi_record(lt_MpiOp *op, lt_MpiCommunicator *c);
/* Writes the message for calls that differ between the ranks, from op->records. */
void lt_mpi_describe_difference(const lt_MpiOp *op, char *text, size_t size);
/* Returns a number for the counts of an all_to_all whose sum over the ranks is 0 when each rank
 * expects what the others send. */
uint64_t lt_mpi_counts_hash(const lt_MpiOp *op);
/* Writes the message for counts that do not fit, from op->all_counts. */
void lt_mpi_describe_counts(const lt_MpiOp *op, char *text, size_t size);
/* Writes the message for a call that timed out: asks all ranks of the communicator where they are,
 * and blocks up to a second for their answers. */
void lt_mpi_describe_timeout(lt_MpiOp *op, double seconds, char *text, size_t size);
/* Answers the questions of other ranks. */
void lt_mpi_answer(void);

#endif
