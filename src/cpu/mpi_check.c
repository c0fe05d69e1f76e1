/* mpi_check.c: compares what the ranks of a communicator call, and finds out where they are when a
 * call does not end.
 *
 * A rank whose call timed out sends a question to each other rank, and each that is in a call of
 * lt.distributed, or whose helper thread runs, answers with the record of its last call. Questions
 * and answers are messages of their own tags on the communicator `control`. */
#include "mpi_engine.h"

#include <sched.h>

enum { TAG_QUESTION = 1, TAG_ANSWER = 2 };
#define SECOND INT64_C(1000000000)
#define BASIS  UINT64_C(14695981039346656037) /* of FNV-1a */

/* Returns the FNV-1a hash of `n` bytes, continued from `hash`. */
static uint64_t hash_bytes(uint64_t hash, const void *data, size_t n) {
  const unsigned char *bytes = data;
  for (size_t i = 0; i < n; i++) hash = (hash ^ bytes[i]) * UINT64_C(1099511628211);
  return hash;
}

void lt_mpi_record(lt_MpiOp *op, lt_MpiCommunicator *c) {
  const lt_CommCall *call = &op->call;
  lt_MpiRecord *r = &op->record;
  *r = (lt_MpiRecord){.active = 1,
                      .kind = (int32_t)call->kind,
                      .reduction = lt_comm_reduces(call->kind) ? (int32_t)call->reduction : -1,
                      .dtype = (int32_t)call->dtype,
                      .peer = call->peer,
                      .ndim = call->ndim,
                      .elsewhere = call->check_only};
  if (call->ndim > 0) memcpy(r->shape, call->shape, (size_t)call->ndim * sizeof *r->shape);
  const char *label = call->refusal ? call->refusal : call->label;
  r->refused = call->refusal != NULL;
  snprintf(r->label, sizeof r->label, "%s", label ? label : "");
  int32_t values[] = {r->kind,      r->reduction,
                      r->dtype,     lt_comm_has_root(call->kind) ? r->peer : -1,
                      r->ndim,      r->refused ? 1 + c->base.rank : 0,
                      r->elsewhere, call->input_counts != NULL};
  uint64_t hash = hash_bytes(BASIS, values, sizeof values);
  op->hash[0] = hash_bytes(hash, r->shape, sizeof r->shape);
  op->hash[1] = ~op->hash[0];
}

int lt_mpi_job_rank(const lt_MpiCommunicator *c, int rank) {
  return c->members && rank >= 0 ? c->members[rank] : rank;
}

/* Writes what a rank of c calls: "all_reduce (sum) of float32, shape {3}, at train.lua:4". */
static void describe(const lt_MpiCommunicator *c, const lt_MpiRecord *r, char *text, size_t size) {
  lt_CommKind kind = (lt_CommKind)r->kind;
  lt_Text t = {text, size, 0};
  if (r->refused) {
    lt_text_append(&t, "cannot make the call: %s", r->label);
    return;
  }
  lt_text_append(&t, "%s", lt_comm_kind_name(kind));
  if (r->reduction >= 0)
    lt_text_append(&t, " (%s)", lt_comm_reduction_name((lt_CommReduction)r->reduction));
  if (kind != LT_COMM_barrier)
    lt_text_append(&t, " of %s, shape %s", lt_dtype_name((lt_Dtype)r->dtype),
                   lt_shape_text(r->ndim, r->shape));
  if (r->elsewhere) lt_text_append(&t, ", on a CUDA device");
  if (lt_comm_has_root(kind))
    lt_text_append(&t, ", %s %d",
                   kind == LT_COMM_broadcast || kind == LT_COMM_scatter ? "src" : "dst",
                   lt_mpi_job_rank(c, r->peer));
  if (lt_comm_is_message(kind) && r->peer >= 0)
    lt_text_append(&t, ", %s %d", kind == LT_COMM_send ? "to" : "from",
                   lt_mpi_job_rank(c, r->peer));
  if (r->label[0]) lt_text_append(&t, ", at %s", r->label);
}

/* Appends a line for each different description: "  ranks 0, 2, 3: ...". */
static void append_groups(lt_Text *t, const lt_MpiCommunicator *c, char (*lines)[320]) {
  int size = c->base.size;
  for (int i = 0; i < size; i++) {
    bool first = true;
    int same = 0, shown = 0;
    for (int k = 0; k < i && first; k++) first = strcmp(lines[i], lines[k]) != 0;
    if (!first) continue;
    for (int k = i; k < size; k++) same += strcmp(lines[i], lines[k]) == 0;
    lt_text_append(t, "\n  rank%s ", same > 1 ? "s" : "");
    for (int k = i; k < size && shown <= 8; k++) {
      if (strcmp(lines[i], lines[k]) != 0) continue;
      if (shown == 8)
        lt_text_append(t, ", ...");
      else
        lt_text_append(t, "%s%d", shown ? ", " : "", lt_mpi_job_rank(c, k));
      shown++;
    }
    lt_text_append(t, ": %s", lines[i]);
  }
}

void lt_mpi_describe_difference(const lt_MpiOp *op, char *text, size_t size) {
  const lt_MpiCommunicator *c = (lt_MpiCommunicator *)op->work->base.communicator;
  int n = c->base.size;
  lt_Text t = {text, size, 0};
  lt_text_append(&t, "%s: the ranks of the process group make different calls",
                 lt_comm_kind_name(op->call.kind));
  char(*lines)[320] = calloc((size_t)n, sizeof *lines);
  for (int i = 0; lines && i < n; i++) describe(c, &op->records[i], lines[i], sizeof lines[i]);
  if (lines) append_groups(&t, c, lines);
  free(lines);
  bool refused = false;
  for (int i = 0; i < n; i++) refused = refused || op->records[i].refused;
  if (!op->record.label[0] && !refused)
    lt_text_append(&t,
                   "\nhint: with LUTRA_DISTRIBUTED_DEBUG=detail the message has the lines of the "
                   "program");
}

uint64_t lt_mpi_counts_hash(const lt_MpiOp *op) {
  int own = op->work->base.communicator->rank;
  uint64_t sum = 0;
  for (int32_t i = 0; i < op->work->base.communicator->size; i++) {
    uint64_t sent = hash_bytes(BASIS, (int32_t[]){own, i}, 2 * sizeof i);
    uint64_t received = hash_bytes(BASIS, (int32_t[]){i, own}, 2 * sizeof i);
    sum += sent * (uint64_t)op->call.input_counts[i];
    sum -= received * (uint64_t)op->call.output_counts[i];
  }
  return sum;
}

void lt_mpi_describe_counts(const lt_MpiOp *op, char *text, size_t size) {
  const lt_MpiCommunicator *c = (lt_MpiCommunicator *)op->work->base.communicator;
  int n = c->base.size, shown = 0;
  lt_Text t = {text, size, 0};
  lt_text_append(&t, "%s: the ranks expect other numbers of elements than are sent to them",
                 lt_comm_kind_name(op->call.kind));
  for (int i = 0; i < n * n && shown < 8; i++) {
    int from = i / n, to = i % n;
    int64_t sent = op->all_counts[2 * from * n + to],
            expected = op->all_counts[(2 * to + 1) * n + from];
    if (sent == expected) continue;
    lt_text_append(&t, "\n  rank %d sends %lld to rank %d, which expects %lld",
                   lt_mpi_job_rank(c, from), (long long)sent, lt_mpi_job_rank(c, to),
                   (long long)expected);
    shown++;
  }
}

/* ---- questions ------------------------------------------------------------------------------- */

/* Sends bytes that stay valid until the program ends, and forgets the request. */
static void send_forgotten(lt_MpiCommunicator *c, const void *data, size_t n, int to, int tag) {
  const lt_MpiLibrary *m = lt_mpi();
  lt_Mpi request = 0;
  if (m->Isend(data, (int)n, m->byte, to, tag, c->control, &request) == 0)
    m->Request_free(&request);
}

/* Receives one message with a tag, if there is one; returns the rank that sent it, else -1. */
static int receive(lt_MpiCommunicator *c, lt_MpiRecord *to, int tag) {
  const lt_MpiLibrary *m = lt_mpi();
  lt_MpiStatus status;
  int there = 0;
  if (m->Iprobe(m->any_source, tag, c->control, &there, &status) || !there) return -1;
  int source = status.words[m->source_word];
  if (m->Recv(to, (int)sizeof *to, m->byte, source, tag, c->control, &status)) return -1;
  return source;
}

static void answer_on(lt_MpiCommunicator *c) {
  lt_MpiRecord question;
  for (int from; (from = receive(c, &question, TAG_QUESTION)) >= 0;) {
    lt_MpiRecord *answer = malloc(sizeof *answer); /* never freed: see send_forgotten */
    if (!answer) return;
    *answer = c->last;
    send_forgotten(c, answer, sizeof *answer, from, TAG_ANSWER);
  }
}

void lt_mpi_answer(void) {
  for (lt_MpiCommunicator *c = lt_mpi_engine.communicators; c; c = c->next)
    if (c->base.size > 1) answer_on(c);
}

/* Asks all other ranks for their last calls, and waits a second for the answers. answered[i] is set
 * for each rank whose record is in records[i]. */
static void ask(lt_MpiCommunicator *c, lt_MpiRecord *records, bool *answered) {
  static const lt_MpiRecord question = {0};
  int missing = c->base.size - 1;
  int64_t until = lt_trace_now() + SECOND;
  for (int i = 0; i < c->base.size; i++)
    if (i != c->base.rank) send_forgotten(c, &question, sizeof question, i, TAG_QUESTION);
  while (missing > 0 && lt_trace_now() < until) {
    lt_MpiRecord record;
    int from = receive(c, &record, TAG_ANSWER);
    if (from < 0) {
      lt_mpi_answer();
      sched_yield();
    } else if (!answered[from]) {
      records[from] = record;
      answered[from] = true;
      missing--;
    }
  }
}

/* Writes where a rank of c is. */
static void describe_place(const lt_MpiCommunicator *c, const lt_MpiRecord *r, bool answered,
                           char *text, size_t size) {
  char call[256] = "";
  if (r->number > 0) describe(c, r, call, sizeof call);
  if (!answered)
    snprintf(text, size, "does not answer: it has ended, or its machine cannot be reached");
  else if (r->number == 0)
    snprintf(text, size, "has made no call of this process group");
  else if (r->active)
    snprintf(text, size, "in call %d: %s", (int)r->number, call);
  else
    snprintf(text, size, "in no call; its last was call %d: %s", (int)r->number, call);
}

void lt_mpi_describe_timeout(lt_MpiOp *op, double seconds, char *text, size_t size) {
  lt_MpiCommunicator *c = (lt_MpiCommunicator *)op->work->base.communicator;
  size_t n = (size_t)c->base.size;
  lt_Text t = {text, size, 0};
  lt_MpiRecord *records = calloc(n, sizeof *records);
  bool *answered = calloc(n, sizeof *answered);
  char(*lines)[320] = calloc(n, sizeof *lines);
  lt_text_append(&t, "%s: timed out after %g s, on rank %d of %d", lt_comm_kind_name(op->call.kind),
                 seconds, lt_mpi_job_rank(c, c->base.rank), c->base.size);
  if (records && answered && lines) {
    ask(c, records, answered);
    records[c->base.rank] = op->record;
    answered[c->base.rank] = true;
    for (size_t i = 0; i < n; i++)
      describe_place(c, &records[i], answered[i], lines[i], sizeof lines[i]);
    append_groups(&t, c, lines);
  }
  free(records);
  free(answered);
  free(lines);
}
