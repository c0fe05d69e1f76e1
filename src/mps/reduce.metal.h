/* reduce.metal.h: the kernels of all reductions. They differ in a reducer, a struct:
 *
 *   In        the type as which elements are loaded: float, int64_t or bool
 *   Acc       the state of a thread
 *   nothing() the initial state
 *   take      adds eight elements to a state, one() adds one
 *   join      combines two states
 *   finish    stores the result
 *
 * A thread loads eight elements at a time, so that enough loads are in flight, and work that a
 * reducer does once for eight of them costs little. Which thread gets which elements depends on
 * sizes alone, and states are combined in a fixed tree: results are the same on every run and every
 * device.
 */
#ifndef LT_MPS_REDUCE_METAL_H
#define LT_MPS_REDUCE_METAL_H

#include "extended.metal.h"

#include "accel/reduce.h"
#include "reduce.h"
#include "mathx.h"

#define REDUCTION K0
#define DTYPE     K1
#define OUT_DTYPE K2 /* -1: there is no such result */

/* ---- one result, by the threads of a group --------------------------------------------------- */

/* Eight elements, and their indices among the result's elements. */
template <typename In> struct Eight {
  In v[8];
  int64_t first, far, near;
  int64_t at(int k) const { return first + (k >> 2) * far + (k & 3) * near; }
};

/* Where a kernel stores: the result, its index, and the states of pieces. */
struct Results {
  device char *out;
  device int64_t *at;
  device char *pieces;
};

/* Returns the offset of the result's element i. */
static inline int64_t element(constant lt_MpsReduce &p, int64_t i) {
  if (p.reduced.ndim == 1) return i * p.reduced.strides[0][0];
  int64_t offset[1];
  offsets_at<1>(p.reduced, i, offset);
  return offset[0];
}

/* Reduces this thread's elements of from..to to a state. `lane` is the thread's number among the
 * `width` threads of the result, whose first element is x[base]. */
template <typename R>
static inline typename R::Acc fold_share(constant lt_MpsReduce &p, device const char *x,
                                         int64_t base, int lane, int64_t from, int64_t to) {
  typedef typename R::In In;
  typename R::Acc state = R::nothing();
  Eight<In> v;
  int64_t i = from + lane, width = p.width;
  if (p.packs) {
    int64_t end = to - (to - from) % 4;
    v.far = 4 * width, v.near = 1;
    for (i = from + 4 * lane; i + 4 * width < end; i += 8 * width) {
      Four<In> a = load4<In>(x, DTYPE, base + element(p, i)),
               b = load4<In>(x, DTYPE, base + element(p, i + 4 * width));
      for (int k = 0; k < 4; k++) v.v[k] = a.v[k], v.v[k + 4] = b.v[k];
      v.first = i;
      state = R::take(p, state, v);
    }
    if (i < end) {
      int64_t at = base + element(p, i);
      for (int k = 0; k < 4; k++) state = R::one(p, state, load<In>(x, DTYPE, at + k), i + k);
    }
    i = end + lane;
  } else if (p.reduced.ndim == 1) {
    int64_t stride = p.reduced.strides[0][0];
    v.far = 4 * width, v.near = width;
    for (; i + 7 * width < to; i += 8 * width) {
      for (int k = 0; k < 8; k++) v.v[k] = load<In>(x, DTYPE, base + (i + k * width) * stride);
      v.first = i;
      state = R::take(p, state, v);
    }
  }
  for (; i < to; i += width) state = R::one(p, state, load<In>(x, DTYPE, base + element(p, i)), i);
  return state;
}

/* Combines the states of `width` neighbouring lanes; each of them gets the result. */
template <typename R> static inline typename R::Acc join_lanes(typename R::Acc acc, int width) {
  for (int step = width / 2; step > 0; step /= 2) acc = R::join(acc, lane_xor(acc, (uint)step));
  return acc;
}

/* Combines the states of the threads of each result; lane 0 gets the result's. */
template <typename R>
static inline typename R::Acc
join_group(constant lt_MpsReduce &p, typename R::Acc acc, int lane, int mine,
           threadgroup typename InMemory<typename R::Acc>::Type *scratch, int thread_index) {
  typedef InMemory<typename R::Acc> Memory;
  int threads = p.threads;
  if (p.rows && p.width <= LT_SIMD) return join_lanes<R>(acc, p.width);
  if (p.width == 1) return acc;
  scratch[thread_index] = Memory::pack(acc);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (!p.rows) {
    int results = threads / p.width;
    if (lane == 0)
      for (int k = 1; k < p.width; k++)
        acc = R::join(acc, Memory::unpack(scratch[k * results + mine]));
  } else if (thread_index < LT_SIMD) {
    for (int k = thread_index + LT_SIMD; k < threads; k += LT_SIMD)
      acc = R::join(acc, Memory::unpack(scratch[k]));
    acc = join_lanes<R>(acc, LT_SIMD);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return acc;
}

/* The first stage: one group computes the results, or the pieces of results, that `threads / width`
 * sets of threads have. */
template <typename R>
static inline void reduce_share(device const char *x, Results to_store, constant lt_MpsReduce &p,
                                threadgroup typename InMemory<typename R::Acc>::Type *scratch,
                                uint group, uint groups, int thread_index) {
  typedef typename R::Acc Acc;
  typedef InMemory<Acc> Memory;
  int results = p.threads / p.width;
  int lane = p.rows ? thread_index % p.width : thread_index / results,
      mine = p.rows ? thread_index / p.width : thread_index % results;
  for (int64_t b = group; b < p.blocks; b += groups) {
    int64_t split = b % p.splits, result = b / p.splits * results + mine;
    int64_t from = split * p.piece, to = from + p.piece < p.n ? from + p.piece : p.n;
    int64_t offset[2] = {0, 0};
    if (result < p.results)
      offsets_at<2>(p.kept, result, offset);
    else
      to = from;
    Acc acc = fold_share<R>(p, x, offset[0], lane, from, to);
    acc = join_group<R>(p, acc, lane, mine, scratch, thread_index);
    if (lane != 0 || result >= p.results) continue;
    if (p.splits > 1)
      ((device typename Memory::Type *)to_store.pieces)[result * p.splits + split] =
          Memory::pack(acc);
    else
      R::finish(to_store, p, offset[1], acc);
  }
}

/* The second stage: a SIMD group combines the pieces of a result. */
template <typename R>
static inline void reduce_pieces(Results to_store, constant lt_MpsReduce &p, uint group,
                                 uint groups, int thread_index) {
  typedef typename R::Acc Acc;
  typedef InMemory<Acc> Memory;
  for (int64_t result = group; result < p.results; result += groups) {
    device const typename Memory::Type *pieces =
        (device const typename Memory::Type *)to_store.pieces + result * p.splits;
    Acc acc = R::nothing();
    for (int64_t k = thread_index; k < p.splits; k += LT_SIMD)
      acc = R::join(acc, Memory::unpack(pieces[k]));
    acc = join_lanes<R>(acc, LT_SIMD);
    if (thread_index != 0) continue;
    int64_t offset[2];
    offsets_at<2>(p.kept, result, offset);
    R::finish(to_store, p, offset[1], acc);
  }
}

/* Defines the two kernels of a reducer. */
#define LT_REDUCE_KERNELS(name, R)                                                                 \
  kernel void reduce_##name(                                                                       \
      device const char *x [[buffer(0)]], device char *out [[buffer(1)]],                          \
      device char *at [[buffer(2)]], device char *pieces [[buffer(3)]],                            \
      constant lt_MpsReduce &p [[buffer(4)]], uint3 group [[threadgroup_position_in_grid]],        \
      uint3 groups [[threadgroups_per_grid]], uint thread_index [[thread_index_in_threadgroup]]) { \
    threadgroup InMemory<R::Acc>::Type scratch[LT_REDUCE_THREADS];                                 \
    Results to_store = {out, (device int64_t *)at, pieces};                                        \
    reduce_share<R>(x, to_store, p, scratch, group.x, groups.x, (int)thread_index);                \
  }                                                                                                \
  kernel void pieces_##name(                                                                       \
      device const char *x [[buffer(0)]], device char *out [[buffer(1)]],                          \
      device char *at [[buffer(2)]], device char *pieces [[buffer(3)]],                            \
      constant lt_MpsReduce &p [[buffer(4)]], uint3 group [[threadgroup_position_in_grid]],        \
      uint3 groups [[threadgroups_per_grid]], uint thread_index [[thread_index_in_threadgroup]]) { \
    Results to_store = {out, (device int64_t *)at, pieces};                                        \
    reduce_pieces<R>(to_store, p, group.x, groups.x, (int)thread_index);                           \
  }

/* ---- the forms of ops.def -------------------------------------------------------------------- */

/* FORM(name, rule, form) expands to FORM_<kind>(name, rule, expressions). */
#define FORM(name, rule, ...)        FORM_(name, rule, __VA_ARGS__)
#define FORM_(name, rule, kind, ...) kind(name, rule, __VA_ARGS__)
#define FOLD(...)                    FORM_FOLD, __VA_ARGS__
#define FOLD_WIDE(...)               FORM_FOLD_WIDE, __VA_ARGS__
#define CENTERED(...)                FORM_CENTERED, __VA_ARGS__
#define CENTERED_WIDE(...)           FORM_CENTERED_WIDE, __VA_ARGS__
#define BEST(...)                    FORM_BEST, __VA_ARGS__
#define NOTHING(...)
#define CASE(name, ...)                                                                            \
  case LT_REDUCTION_##name:                                                                        \
    return (T)(__VA_ARGS__);

/* The names used in the expressions of ops.def. Integers wrap. */
template <typename T> struct Limits {
  static T lowest() { return (T)(-INFINITY); }
  static T highest() { return (T)INFINITY; }
};
template <> struct Limits<int64_t> {
  static int64_t lowest() { return -9223372036854775807L - 1; }
  static int64_t highest() { return 9223372036854775807L; }
};
template <> struct Limits<int> {
  static int lowest() { return -2147483647 - 1; }
  static int highest() { return 2147483647; }
};
template <typename T> static inline T plus_of(T x, T y) { return x + y; }
template <> inline int64_t plus_of<int64_t>(int64_t x, int64_t y) {
  return (int64_t)((uint64_t)x + (uint64_t)y);
}
template <typename T> static inline T times_of(T x, T y) { return x * y; }
template <> inline int64_t times_of<int64_t>(int64_t x, int64_t y) {
  return (int64_t)((uint64_t)x * (uint64_t)y);
}
#define M(f)             m_##f
#define PICK(k, yes, no) ((k) ? (yes) : (T)(no))
#define LOWEST           Limits<T>::lowest()
#define HIGHEST          Limits<T>::highest()
#define PLUS(x, y)       plus_of<T>(x, y)
#define TIMES(x, y)      times_of<T>(x, y)

static inline void store_result(device char *out, int64_t i, float v) {
  store_float(out, OUT_DTYPE, i, v);
}
static inline void store_result(device char *out, int64_t i, Extended v) {
  store_float(out, OUT_DTYPE, i, narrowed(v));
}
static inline void store_result(device char *out, int64_t i, int64_t v) {
  store(out, OUT_DTYPE, i, v);
}

/* Returns an integer in a type that is computed in. */
template <typename T> struct Count {
  static T of(int64_t n) { return (T)n; }
};
template <> struct Count<Extended> {
  static Extended of(int64_t n) {
    return Extended((float)(n >> 24 << 24)) + Extended((float)(n & 0xffffff));
  }
};

#endif
