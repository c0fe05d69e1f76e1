/* mpi_calls.c: each kind of call as a call of MPI. */
#include "mpi_engine.h"

#define MOST (INT64_C(1) << 30) /* values in one call: MPI counts in int */

int64_t lt_mpi_part(const lt_MpiOp *op) {
  int64_t left = op->call.count - op->moved, most = MOST / lt_mpi_type(op->call.dtype).each;
  return left < most ? left : most;
}

/* Returns the communicator of an op. */
static const lt_MpiCommunicator *communicator_of(const lt_MpiOp *op) {
  return (const lt_MpiCommunicator *)op->work->base.communicator;
}

/* Returns whether the call may block: all ranks have compared their calls, and no other
 * communicator's calls block. */
static bool may_block(const lt_MpiCommunicator *c) { return c->check && c->whole; }

static int start_all_reduce(lt_MpiOp *op, char *data, int n, lt_Mpi type, lt_Mpi operation) {
  const lt_MpiLibrary *m = lt_mpi();
  const lt_MpiCommunicator *c = communicator_of(op);
  if (may_block(c)) return m->Allreduce(m->in_place, data, n, type, operation, c->data);
  return m->Iallreduce(m->in_place, data, n, type, operation, c->data, &op->request);
}

static int start_broadcast(lt_MpiOp *op, char *data, int n, lt_Mpi type) {
  const lt_MpiLibrary *m = lt_mpi();
  const lt_MpiCommunicator *c = communicator_of(op);
  if (may_block(c)) return m->Bcast(data, n, type, op->call.peer, c->data);
  return m->Ibcast(data, n, type, op->call.peer, c->data, &op->request);
}

static int start_reduce(lt_MpiOp *op, char *data, int n, lt_Mpi type, lt_Mpi operation) {
  const lt_MpiLibrary *m = lt_mpi();
  const lt_MpiCommunicator *c = communicator_of(op);
  bool root = c->base.rank == op->call.peer;
  return m->Ireduce(root ? m->in_place : data, root ? data : NULL, n, type, operation,
                    op->call.peer, c->data, &op->request);
}

static int start_all_gather(lt_MpiOp *op, int n, lt_Mpi type) {
  const lt_MpiLibrary *m = lt_mpi();
  const lt_MpiCommunicator *c = communicator_of(op);
  size_t piece = (size_t)op->call.count * lt_dtype_size(op->call.dtype);
  const char *own = (char *)op->call.output + piece * (size_t)c->base.rank;
  const void *input = op->call.input == own ? m->in_place : op->call.input;
  if (may_block(c)) return m->Allgather(input, n, type, op->call.output, n, type, c->data);
  return m->Iallgather(input, n, type, op->call.output, n, type, c->data, &op->request);
}

static int start_reduce_scatter(lt_MpiOp *op, int n, lt_Mpi type, lt_Mpi operation) {
  const lt_MpiLibrary *m = lt_mpi();
  const lt_MpiCommunicator *c = communicator_of(op);
  const void *input = op->call.input;
  void *output = op->call.output;
  if (may_block(c)) return m->Reduce_scatter_block(input, output, n, type, operation, c->data);
  return m->Ireduce_scatter_block(input, output, n, type, operation, c->data, &op->request);
}

/* Converts the counts of all_to_all to ints of MPI's values. Returns false without memory. */
static bool convert_counts(lt_MpiOp *op, int size, int each) {
  const int64_t *from[] = {op->call.input_counts, op->call.output_counts};
  op->counts = malloc(4 * (size_t)size * sizeof *op->counts);
  if (!op->counts) return false;
  for (int side = 0; side < 2; side++) {
    int *counts = op->counts + 2 * side * size, *offsets = counts + size;
    for (int i = 0, sum = 0; i < size; i++) {
      counts[i] = (int)from[side][i] * each;
      offsets[i] = sum;
      sum += counts[i];
    }
  }
  return true;
}

static int start_all_to_all(lt_MpiOp *op, int n, lt_MpiType type) {
  const lt_MpiLibrary *m = lt_mpi();
  const lt_MpiCommunicator *c = communicator_of(op);
  int size = c->base.size;
  if (!op->call.input_counts)
    return m->Ialltoall(op->call.input, n, type.type, op->call.output, n, type.type, c->data,
                        &op->request);
  if (!convert_counts(op, size, type.each)) return 1;
  return m->Ialltoallv(op->call.input, op->counts, op->counts + size, type.type, op->call.output,
                       op->counts + 2 * size, op->counts + 3 * size, type.type, c->data,
                       &op->request);
}

int lt_mpi_start(lt_MpiOp *op) {
  const lt_MpiLibrary *m = lt_mpi();
  const lt_MpiCommunicator *c = communicator_of(op);
  const lt_CommCall *call = &op->call;
  lt_MpiType type = lt_mpi_type(call->dtype);
  lt_Mpi operation = lt_mpi_operation(call->dtype, call->reduction);
  int n = (int)lt_mpi_part(op) * type.each;
  char *data = (char *)call->output + (size_t)op->moved * lt_dtype_size(call->dtype);
  op->request = m->request_null;
  switch (call->kind) {
  case LT_COMM_all_reduce:
    return start_all_reduce(op, data, n, type.type, operation);
  case LT_COMM_broadcast:
    return start_broadcast(op, data, n, type.type);
  case LT_COMM_reduce:
    return start_reduce(op, data, n, type.type, operation);
  case LT_COMM_all_gather:
    return start_all_gather(op, n, type.type);
  case LT_COMM_gather:
    return m->Igather(call->input, n, type.type, call->output, n, type.type, call->peer, c->data,
                      &op->request);
  case LT_COMM_scatter:
    return m->Iscatter(call->input, n, type.type, call->output, n, type.type, call->peer, c->data,
                       &op->request);
  case LT_COMM_reduce_scatter:
    return start_reduce_scatter(op, n, type.type, operation);
  case LT_COMM_all_to_all:
    return start_all_to_all(op, n, type);
  case LT_COMM_send:
    return m->Isend((const char *)call->input + (size_t)op->moved * lt_dtype_size(call->dtype), n,
                    type.type, call->peer, call->tag, c->data, &op->request);
  default: /* recv: see lt_mpi_match */
    return 0;
  }
}

/* ---- messages -------------------------------------------------------------------------------- */

bool lt_mpi_is_unmatched(const lt_MpiOp *op) {
  return op->call.kind == LT_COMM_recv && op->state == LT_MPI_RUNNING &&
         op->request == lt_mpi()->request_null;
}

/* Returns whether the next message of a rank is for a recv before this one. */
static bool is_taken(const lt_MpiOp *op, int source) {
  for (const lt_MpiOp *o = lt_mpi_engine.messages; o != op; o = o->next)
    if (lt_mpi_is_unmatched(o) && communicator_of(o) == communicator_of(op) &&
        o->call.tag == op->call.tag && (o->call.peer < 0 || o->call.peer == source))
      return true;
  return false;
}

/* Begins to receive a message that does not fit the tensor, so that its sender can go on. */
static int receive_misfit(lt_MpiOp *op, lt_Mpi message, const lt_MpiStatus *status) {
  const lt_MpiLibrary *m = lt_mpi();
  int bytes = 0;
  int code = m->Get_count(status, m->byte, &bytes);
  if (code) return code;
  op->misfit = bytes < 0 ? NULL : malloc((size_t)bytes + 1); /* less than 0: more than an int */
  if (op->misfit) return m->Imrecv(op->misfit, bytes, m->byte, &message, &op->request);
  lt_mpi_end(op, "recv: out of memory for a message that is larger than the tensor");
  return 0;
}

/* The message is found before it is received, as Open MPI (4.1.4, in shared memory) writes past the
 * end of memory that is too small for it. */
int lt_mpi_match(lt_MpiOp *op) {
  const lt_MpiLibrary *m = lt_mpi();
  const lt_MpiCommunicator *c = communicator_of(op);
  const lt_CommCall *call = &op->call;
  lt_MpiType type = lt_mpi_type(call->dtype);
  lt_MpiStatus status;
  lt_Mpi message = 0;
  int there = 0, got = 0, n = (int)lt_mpi_part(op) * type.each;
  int code =
      m->Iprobe(call->peer < 0 ? m->any_source : call->peer, call->tag, c->data, &there, &status);
  if (code || !there) return code;
  int source = status.words[m->source_word];
  if (is_taken(op, source)) return 0;
  code = m->Improbe(source, call->tag, c->data, &there, &message, &status);
  if (code || !there) return code;
  code = m->Get_count(&status, type.type, &got);
  if (code) return code;
  if (got != n) return receive_misfit(op, message, &status);
  return m->Imrecv((char *)call->output + (size_t)op->moved * lt_dtype_size(call->dtype), n,
                   type.type, &message, &op->request);
}
