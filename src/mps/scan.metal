/* scan.metal: running sums, products, maxima and minima.
 *
 * A threadgroup processes a line tile by tile and carries the state along. Long lines are divided
 * into pieces for several groups: first the state of each piece is computed, then the pieces, each
 * of which starts from the state of those before it. So the order of operations depends on sizes
 * alone. Where there are many lines, or they are short, each is processed by one thread.
 *
 * A scanner is a struct: In is the type as which elements are loaded, Acc the state. of() is the
 * state of one element, join() that of two parts, and put() stores what a state says.
 */
#include "extended.metal.h"
#include "scan.h"

#define DTYPE     K0
#define OUT_DTYPE K1
#define OTHER     K2 /* products, minima; not sums, maxima */
#define TOTALS    K3 /* only computes the states of the pieces */

#define THREADS LT_MPS_SCAN_THREADS
#define EACH    LT_MPS_SCAN_EACH

/* ---- sums and products ----------------------------------------------------------------------- */

struct Floats {
  typedef float In;
  typedef Extended Acc;
  static Acc nothing() { return Extended(OTHER ? 1.0f : 0.0f); }
  static Acc of(In v, int64_t) { return Extended(v); }
  static Acc join(Acc a, Acc b) { return OTHER ? a * b : a + b; }
  static void put(device char *out, device char *, int64_t i, Acc v) {
    store_float(out, OUT_DTYPE, i, narrowed(v));
  }
};

struct Integers { /* they wrap */
  typedef int64_t In;
  typedef int64_t Acc;
  static Acc nothing() { return OTHER ? 1 : 0; }
  static Acc of(In v, int64_t) { return v; }
  static Acc join(Acc a, Acc b) {
    return (int64_t)(OTHER ? (uint64_t)a * (uint64_t)b : (uint64_t)a + (uint64_t)b);
  }
  static void put(device char *out, device char *, int64_t i, Acc v) {
    store(out, OUT_DTYPE, i, v);
  }
};

/* ---- maxima and minima ----------------------------------------------------------------------- */

/* An element and its index in the line, from 0; -1: none. */
template <typename T> struct ValueIndex {
  T value;
  int64_t at;
};
template <typename T> static inline ValueIndex<T> value_index(T value, int64_t at) {
  ValueIndex<T> v;
  v.value = value, v.at = at;
  return v;
}
template <typename T> static inline ValueIndex<T> lane_up(ValueIndex<T> v, uint step) {
  return value_index<T>(lane_up(v.value, step), lane_up(v.at, step));
}

/* Of equal elements the last counts; NaN is more extreme than any number. */
template <typename T> struct Extremes {
  typedef T In;
  typedef ValueIndex<T> Acc;
  static Acc nothing() { return value_index<T>(0, -1); }
  static Acc of(In v, int64_t i) { return value_index<T>(v, i); }
  static Acc join(Acc a, Acc b) {
    bool replaces = (OTHER ? b.value <= a.value : b.value >= a.value) || b.value != b.value;
    return b.at >= 0 && (a.at < 0 || replaces) ? b : a;
  }
  static void put(device char *values, device char *indices, int64_t i, Acc v) {
    store(values, OUT_DTYPE, i, v.value);
    ((device int64_t *)indices)[i] = v.at + LT_INDEX_BASE;
  }
};

/* ---- lines ----------------------------------------------------------------------------------- */

/* Combines the states of the threads in their order. Returns that of the threads before this one,
 * and writes that of all to `all`. */
template <typename S>
static inline typename S::Acc
exclusive_scan(typename S::Acc mine, thread typename S::Acc &all,
               threadgroup typename InMemory<typename S::Acc>::Type *scratch, uint thread_index) {
  typedef typename S::Acc Acc;
  typedef InMemory<Acc> Memory;
  uint lane = thread_index % LT_SIMD, simd = thread_index / LT_SIMD;
  Acc upto = mine;
  for (uint step = 1; step < LT_SIMD; step *= 2) {
    Acc other = lane_up(upto, step);
    if (lane >= step) upto = S::join(other, upto);
  }
  Acc before = lane_up(upto, 1);
  if (lane == 0) before = S::nothing();
  if (lane == LT_SIMD - 1) scratch[simd] = Memory::pack(upto);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  Acc sum = S::nothing();
  for (uint k = 0; k < THREADS / LT_SIMD; k++) {
    if (k == simd) before = S::join(sum, before);
    sum = S::join(sum, Memory::unpack(scratch[k]));
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  all = sum;
  return before;
}

/* Returns the offset of a line's first element. */
static inline int64_t line_start(constant lt_MpsScan &s, int64_t line) {
  int64_t outer = line / s.inner;
  return outer * s.n * s.inner + (line - outer * s.inner);
}

/* Scans lines, or computes the states of their pieces, a group for each piece. */
template <typename S>
static inline void scan_pieces(device const char *x, device char *out, device char *indices,
                               device char *states, constant lt_MpsScan &s,
                               threadgroup typename InMemory<typename S::Acc>::Type *scratch,
                               uint group, uint groups, uint thread_index) {
  typedef typename S::Acc Acc;
  typedef InMemory<Acc> Memory;
  device typename Memory::Type *piece_states = (device typename Memory::Type *)states;
  for (int64_t b = group; b < s.lines * s.pieces; b += groups) {
    int64_t line = b / s.pieces, piece = b - line * s.pieces, start = line_start(s, line);
    int64_t from = piece * s.size, to = from + s.size < s.n ? from + s.size : s.n;
    Acc carry = S::nothing(), all;
    if (!TOTALS && (int64_t)thread_index < piece)
      carry = Memory::unpack(piece_states[b - piece + thread_index]);
    exclusive_scan<S>(carry, all, scratch, thread_index);
    carry = all;
    for (int64_t tile = from; tile < to; tile += THREADS * EACH) {
      int64_t first = tile + (int64_t)thread_index * EACH;
      Acc v[EACH], mine = S::nothing();
      for (int k = 0; k < EACH; k++) {
        v[k] = S::nothing();
        if (first + k < to)
          v[k] = S::of(load<typename S::In>(x, DTYPE, start + (first + k) * s.inner), first + k);
        mine = S::join(mine, v[k]);
      }
      Acc state = S::join(carry, exclusive_scan<S>(mine, all, scratch, thread_index));
      for (int k = 0; k < EACH && first + k < to && !TOTALS; k++) {
        state = S::join(state, v[k]);
        S::put(out, indices, start + (first + k) * s.inner, state);
      }
      carry = S::join(carry, all);
    }
    if (TOTALS && thread_index == 0) piece_states[b] = Memory::pack(carry);
  }
}

/* Scans lines, one to a thread. */
template <typename S>
static inline void scan_columns(device const char *x, device char *out, device char *indices,
                                constant lt_MpsScan &s, uint group, uint groups,
                                uint thread_index) {
  int64_t step = (int64_t)groups * THREADS;
  for (int64_t line = (int64_t)group * THREADS + thread_index; line < s.lines; line += step) {
    int64_t at = line_start(s, line);
    typename S::Acc state = S::nothing();
    for (int64_t i = 0; i < s.n; i++, at += s.inner) {
      state = S::join(state, S::of(load<typename S::In>(x, DTYPE, at), i));
      S::put(out, indices, at, state);
    }
  }
}

/* ---- kernels --------------------------------------------------------------------------------- */

#define LT_SCAN_KERNELS(name, S)                                                                   \
  kernel void lines_##name(                                                                        \
      device const char *x [[buffer(0)]], device char *out [[buffer(1)]],                          \
      device char *indices [[buffer(2)]], device char *states [[buffer(3)]],                       \
      constant lt_MpsScan &s [[buffer(4)]], uint3 group [[threadgroup_position_in_grid]],          \
      uint3 groups [[threadgroups_per_grid]], uint thread_index [[thread_index_in_threadgroup]]) { \
    threadgroup InMemory<S::Acc>::Type scratch[THREADS / LT_SIMD];                                 \
    scan_pieces<S>(x, out, indices, states, s, scratch, group.x, groups.x, thread_index);          \
  }                                                                                                \
  kernel void columns_##name(                                                                      \
      device const char *x [[buffer(0)]], device char *out [[buffer(1)]],                          \
      device char *indices [[buffer(2)]], device char *states [[buffer(3)]],                       \
      constant lt_MpsScan &s [[buffer(4)]], uint3 group [[threadgroup_position_in_grid]],          \
      uint3 groups [[threadgroups_per_grid]], uint thread_index [[thread_index_in_threadgroup]]) { \
    scan_columns<S>(x, out, indices, s, group.x, groups.x, thread_index);                          \
  }
LT_SCAN_KERNELS(floats, Floats)
LT_SCAN_KERNELS(integers, Integers)
LT_SCAN_KERNELS(float_extremes, Extremes<float>)
LT_SCAN_KERNELS(integer_extremes, Extremes<int64_t>)
