/* nccl_tasks.cpp: see nccl_tasks.h. */
#include "nccl_tasks.h"

#include <algorithm>
#include <string.h>

namespace emulated {

/* Returns the elements of a piece. */
size_t Task::piece(const World &w) const { return w.slot_bytes() / nccl_size(dtype); }

size_t Task::steps(const World &w) const {
  size_t n = (size_t)w.ranks, pieces = (count + piece(w) - 1) / piece(w);
  switch (kind) {
  case Collective::ALL_REDUCE:
    return n == 1 ? pieces : (count + n * piece(w) - 1) / (n * piece(w)) * (2 * n - 1);
  case Collective::ALL_GATHER:
  case Collective::REDUCE_SCATTER:
    return pieces * n;
  default:
    return pieces;
  }
}

/* A round of all_reduce takes up to a piece for each rank, and 2 n - 1 steps. */
Step Task::all_reduce_step(const World &w, size_t index) const {
  size_t n = (size_t)w.ranks, r = (size_t)w.rank, round = 2 * n - 1, j = index % round;
  size_t base = index / round * n * piece(w), left = std::min(count - base, n * piece(w));
  size_t part = (left + n - 1) / n;
  /* The part of this step: rank r begins with the part of r - 1 and ends with that of r + 1. */
  size_t c = (r + 2 * n - 1 - j) % n;
  size_t from = std::min(c * part, left), length = std::min(part, left - from);
  Step s = {j > 0,      j > 0 && j < n, j >= n - 1,  j < 2 * n - 2,
            j == n - 1, base + from,    base + from, length};
  return s;
}

/* Returns a step of this rank. In each, what it receives is what the rank before it sends in an
 * earlier step. */
Step Task::step(const World &w, size_t index) const {
  size_t n = (size_t)w.ranks, r = (size_t)w.rank;
  bool blocks = kind == Collective::ALL_GATHER || kind == Collective::REDUCE_SCATTER;
  size_t j = blocks ? index % n : 0, from = (blocks ? index / n : index) * piece(w);
  size_t length = from < count ? std::min(piece(w), count - from) : 0;
  size_t root = (size_t)peer, after_root = (root + 1) % n;
  bool is_root = r == root, is_last = j == n - 1;
  switch (kind) {
  case Collective::SEND:
    return {false, false, false, true, false, from, 0, length};
  case Collective::RECV:
    return {true, false, true, false, false, 0, from, length};
  case Collective::ALL_GATHER: {
    size_t block = (r + n - j) % n * count;
    return {j > 0, false, true, !is_last, false, from, block + from, length};
  }
  case Collective::REDUCE_SCATTER: {
    if (n == 1) break;
    size_t block = (r + 2 * n - 1 - j) % n * count;
    return {j > 0, j > 0, is_last, !is_last, is_last, block + from, from, length};
  }
  case Collective::BROADCAST:
    return {!is_root, false, true, (r + 1) % n != root, false, from, from, length};
  case Collective::REDUCE:
    if (n == 1) break;
    return {r != after_root, r != after_root, is_root, !is_root, is_root, from, from, length};
  case Collective::ALL_REDUCE:
    if (n > 1) return all_reduce_step(w, index);
  }
  return {false, false, true, false, false, from, from, length};
}

/* Returns a number for what all ranks must agree on. */
unsigned Task::what() const {
  unsigned hash = 2166136261u;
  auto add = [&](unsigned long long v) { hash = (hash ^ (unsigned)(v ^ v >> 32)) * 16777619u; };
  add(is_collective() ? (unsigned)kind : 100);
  add(count * nccl_size(dtype));
  if (is_collective()) {
    add((unsigned)dtype);
    add((unsigned)op);
    add((unsigned)peer);
  }
  return hash;
}

/* Runs a step, for which the channels are ready. */
void Task::run(const World &w, const Step &s, Channel &from, Channel &to) const {
  size_t size = nccl_size(dtype), bytes = s.n * size;
  const char *own = in ? in + s.in * size : nullptr, *received = nullptr;
  char *result = s.store ? out + s.out * size : nullptr, *sent = nullptr;
  if (s.receive) received = w.slot(from, from.read.load());
  if (s.send) sent = w.slot(to, to.written.load());
  char *first = sent ? sent : result;
  bool reduces = kind == Collective::ALL_REDUCE || kind == Collective::REDUCE ||
                 kind == Collective::REDUCE_SCATTER;
  if (s.reduce)
    nccl_combine(first, received, own, s.n, dtype, op, w.ranks);
  else if (s.receive)
    memcpy(first, received, bytes);
  else if (reduces && w.ranks > 1)
    nccl_load(first, own, s.n, dtype, op, w.ranks);
  else if (first != own)
    memmove(first, own, bytes);
  if (s.finish) nccl_finish(first, s.n, dtype, op, w.ranks);
  bool in_place = !s.receive && result == own;
  if (result && result != first && !in_place) memmove(result, first, bytes);
}

ncclResult_t Task::advance(const World &w, bool *moved) {
  int next = (w.rank + 1) % w.ranks, before = (w.rank + w.ranks - 1) % w.ranks;
  int source = is_collective() ? before : peer, target = is_collective() ? next : peer;
  Channel &from = is_collective() ? w.ring(before) : w.direct(peer, w.rank);
  Channel &to = is_collective() ? w.ring(w.rank) : w.direct(w.rank, peer);
  for (; at < steps(w); at++) {
    Step s = step(w, at);
    if (s.n == 0) continue;
    size_t bytes = s.n * nccl_size(dtype);
    if (s.receive && from.is_empty()) {
      waits_for = source;
      return ncclSuccess;
    }
    if (s.send && to.is_full()) {
      waits_for = target;
      return ncclSuccess;
    }
    unsigned long long number = from.read.load();
    const auto &piece = from.piece[number % NCCL_SLOTS];
    if (s.receive && (piece.bytes != bytes || piece.what != what())) {
      waits_for = source;
      return ncclInvalidUsage;
    }
    run(w, s, from, to);
    if (s.receive) from.read.store(number + 1, std::memory_order_release);
    if (s.send) {
      unsigned long long sent = to.written.load();
      to.piece[sent % NCCL_SLOTS].bytes = bytes;
      to.piece[sent % NCCL_SLOTS].what = what();
      to.written.store(sent + 1, std::memory_order_release);
    }
    *moved = true;
  }
  return ncclSuccess;
}

} // namespace emulated
