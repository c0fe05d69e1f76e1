/* nccl_tasks.h: the collectives and messages of the emulated NCCL, one task each, that advance in
 * steps as far as the channels allow.
 *
 * Collectives use a ring: each rank receives from the one before and sends to the one after. In
 * all_reduce each rank sends one part of the elements around the ring: it is added up from rank to
 * rank, and the sum then goes around once more. Element sums are therefore made in the order of
 * the ring, from the rank behind the part's own to that itself, in every run. */
#ifndef LT_EMULATED_NCCL_TASKS_H
#define LT_EMULATED_NCCL_TASKS_H

#include "nccl_world.h"

namespace emulated {

enum class Collective { ALL_REDUCE, REDUCE, BROADCAST, ALL_GATHER, REDUCE_SCATTER, SEND, RECV };

/* One step: a range of elements. */
struct Step {
  bool receive, reduce, store, send; /* reduce: combines what was received with the input */
  bool finish;                       /* the reduction is complete */
  size_t in, out, n;                 /* first element of the input and the output; elements */
};

struct Task {
  Collective kind;
  const char *in;
  char *out;
  size_t count;
  ncclDataType_t dtype;
  ncclRedOp_t op;
  int peer; /* the root, or the other rank */

  size_t at = 0;     /* the next step */
  int waits_for = 0; /* the rank on which the next step depends */

  /* Runs steps until one would block. Returns an error when the other rank's piece is of another
   * operation. *moved: a step has run. */
  ncclResult_t advance(const World &w, bool *moved);
  bool is_done(const World &w) const { return at == steps(w); }
  bool is_collective() const { return kind != Collective::SEND && kind != Collective::RECV; }

private:
  size_t steps(const World &w) const;
  size_t piece(const World &w) const;
  Step step(const World &w, size_t index) const;
  Step all_reduce_step(const World &w, size_t index) const;
  void run(const World &w, const Step &s, Channel &from, Channel &to) const;
  unsigned what() const;
};

/* ---- nccl_reduce.cpp ------------------------------------------------------------------------- */

/* Returns the bytes of an element; 0: not a dtype. */
size_t nccl_size(ncclDataType_t dtype);
/* Stores a op b for n elements; `to` may be one of them. `ranks`: in the average of floating
 * numbers, b is divided by it first; as in NCCL. */
void nccl_combine(void *to, const void *a, const void *b, size_t n, ncclDataType_t dtype,
                  ncclRedOp_t op, int ranks);
/* Stores the first input of a reduction, divided in the same way. */
void nccl_load(void *to, const void *from, size_t n, ncclDataType_t dtype, ncclRedOp_t op,
               int ranks);
/* Divides sums of integers, for an average. */
void nccl_finish(void *values, size_t n, ncclDataType_t dtype, ncclRedOp_t op, int ranks);

} // namespace emulated

#endif
