/* test_metal_library.cpp: the standard library of the emulated Metal and the built-in parameters of
 * kernels, against plain loops here. */
#include "metal_support.h"

#include <math.h>
#include <string>

/* A library that is compiled from a source; the program ends where that has errors. */
struct Compiled {
  lt_MetalLibrary *made;
  explicit Compiled(const char *source) {
    lt_MetalError error = {};
    char *log = nullptr;
    std::string all = std::string("#include <metal_stdlib>\nusing namespace metal;\n") + source;
    made = lt_metal_library_new(device(), all.c_str(), &log, &error);
    if (!made || log) printf("%s\n%s\n", error.text, log ? log : "");
    free(log);
    if (!made) exit(1);
  }
  /* Runs a kernel and waits for it. */
  void run(const char *name, const std::vector<lt_MetalArgument> &arguments,
           std::vector<uint32_t> grid, std::vector<uint32_t> group,
           const std::vector<int32_t> &constants = {}, uint32_t threadgroup = 0) {
    lt_MetalError error = {};
    TestQueue queue;
    lt_MetalPipeline *p =
        lt_metal_pipeline_new(made, name, constants.data(), (int)constants.size(), nullptr, &error);
    if (!p) printf("%s\n", error.text);
    REQUIRE(p);
    grid.resize(3, 1);
    group.resize(3, 1);
    lt_MetalDispatch d = {p,
                          arguments.data(),
                          (int)arguments.size(),
                          {grid[0], grid[1], grid[2]},
                          {group[0], group[1], group[2]},
                          threadgroup};
    lt_MetalCommands *c = queue.commands();
    lt_metal_dispatch(c, &d);
    lt_MetalResult result = finish(c);
    if (result.error.status != LT_METAL_OK) printf("%s\n", result.error.text);
    CHECK_INT(result.error.status, LT_METAL_OK);
  }
};

/* ---- built-in parameters --------------------------------------------------------------------- */

/* Each thread writes what it gets; a second kernel has the types ushort. */
static const char *const BUILTINS = R"(
struct Seen {
  uint3 in_grid, in_group, group, grid_size, group_size, groups, full_size;
  uint index, lane, simd, simds, width;
};
kernel void three(device Seen *out, uint3 in_grid [[thread_position_in_grid]],
                  uint3 in_group [[thread_position_in_threadgroup]],
                  uint3 group [[threadgroup_position_in_grid]],
                  uint3 grid_size [[threads_per_grid]],
                  uint3 group_size [[threads_per_threadgroup]],
                  uint3 groups [[threadgroups_per_grid]],
                  uint3 full_size [[dispatch_threads_per_threadgroup]],
                  uint index [[thread_index_in_threadgroup]],
                  uint lane [[thread_index_in_simdgroup]],
                  uint simd [[simdgroup_index_in_threadgroup]],
                  uint simds [[simdgroups_per_threadgroup]],
                  uint width [[threads_per_simdgroup]]) {
  device Seen &s = out[in_grid.x + grid_size.x * (in_grid.y + grid_size.y * in_grid.z)];
  s.in_grid = in_grid; s.in_group = in_group; s.group = group; s.grid_size = grid_size;
  s.group_size = group_size; s.groups = groups; s.full_size = full_size; s.index = index;
  s.lane = lane; s.simd = simd; s.simds = simds; s.width = width;
}
kernel void two(device int *out, ushort2 at [[thread_position_in_grid]],
                ushort2 size [[threads_per_grid]]) {
  out[at.y * size.x + at.x] = at.y * 100 + at.x;
}
kernel void one(device int *out, ushort at [[thread_position_in_grid]]) { out[at] = at; }
)";

struct Index {
  uint32_t x, y, z, unused;
};
struct Seen {
  Index in_grid, in_group, group, grid_size, group_size, groups, full_size;
  uint32_t index, lane, simd, simds, width, unused[3];
};
static bool is(Index i, uint32_t x, uint32_t y, uint32_t z) {
  return i.x == x && i.y == y && i.z == z;
}

static void builtins() {
  Compiled library(BUILTINS);
  const uint32_t g[3] = {11, 5, 3}, b[3] = {4, 4, 2}; /* smaller groups at each edge */
  Array<Seen> out(g[0] * g[1] * g[2]);
  library.run("three", {in(out.buffer)}, {g[0], g[1], g[2]}, {b[0], b[1], b[2]});
  int wrong = 0;
  for (uint32_t z = 0; z < g[2]; z++)
    for (uint32_t y = 0; y < g[1]; y++)
      for (uint32_t x = 0; x < g[0]; x++) {
        Seen s = out[x + g[0] * (y + g[1] * z)];
        uint32_t w = x / 4 == 2 ? 3 : 4, h = y / 4 == 1 ? 1 : 4, d = z / 2 == 1 ? 1 : 2;
        uint32_t index = x % 4 + w * (y % 4 + h * (z % 2));
        wrong += !(is(s.in_grid, x, y, z) && is(s.in_group, x % 4, y % 4, z % 2) &&
                   is(s.group, x / 4, y / 4, z / 2) && is(s.grid_size, 11, 5, 3) &&
                   is(s.group_size, w, h, d) && is(s.groups, 3, 2, 2) && is(s.full_size, 4, 4, 2));
        wrong += !(s.index == index && s.lane == index % 32 && s.simd == index / 32 &&
                   s.simds == (w * h * d + 31) / 32 && s.width == 32);
      }
  CHECK_INT(wrong, 0);
  Array<int> n(70);
  library.run("two", {in(n.buffer)}, {7, 10}, {4, 4});
  for (int i = 0; i < 70; i++) CHECK_INT(n[(size_t)i], i / 7 * 100 + i % 7);
  library.run("one", {in(n.buffer)}, {70}, {32});
  CHECK_INT(n[69], 69);
}

/* ---- kernels and their memory ---------------------------------------------------------------- */

static const char *const KERNELS = R"(
constant int K0 [[function_constant(0)]];
constant bool K1 [[function_constant(1)]];
constant uint K2 [[function_constant(2)]];
constant bool HAS = is_function_constant_defined(K2);
constant int SUM = K0 + (HAS ? (int)K2 : 1000);
constant float TABLE[4] = {0.5, 1.5f, 2, 3e0};
namespace parts {
template <typename T> struct Twice {
  T operator()(T v) const { return v + v; }
};
} // namespace parts
struct Args { int n; float scale; };
static inline int sum3(device const int *x) { return x[0] + x[1] + x[2]; }
static inline int sum3(threadgroup const int *x) { return x[0] + x[1] + x[2]; }
static inline int sum3(thread const int *x) { return x[0] + x[1] + x[2]; }

kernel void constants(device int *out) { out[0] = K0; out[1] = K1; out[2] = HAS; out[3] = SUM; }

template <typename T, int N>
[[max_total_threads_per_threadgroup(N * 16)]]
kernel void scaled(device const T *x [[buffer(0)]], device T *out [[buffer(1)]],
                   constant Args &args [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  if ((int)i < args.n) out[i] = parts::Twice<T>()(x[i]) * (T)args.scale + (T)(N * TABLE[i % 4]);
}
template [[host_name("scaled_float")]] kernel void
scaled<float, 2>(device const float *x [[buffer(0)]], device float *out [[buffer(1)]],
                 constant Args &args [[buffer(2)]], uint i [[thread_position_in_grid]]);
template [[host_name("scaled_int")]] [[kernel]] decltype(scaled<int, 4>) scaled<int, 4>;

kernel void overloads(device const int *x, device int *out,
                      uint i [[thread_index_in_threadgroup]]) {
  constexpr int SIZE = 4;
  threadgroup int s[SIZE], more[2][SIZE - 1];
  threadgroup int total;
  int own[3] = {1, 2, 3};
  if (i == 0) { s[0] = 10; s[1] = 20; s[2] = 30; total = 7; more[1][2] = 5; }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = sum3(x) + sum3(s) + sum3(own) + total + more[1][2];
}
/* Adds up in threadgroup memory, of the launch and of the kernel. */
kernel void tree(device const int *x, device int *out, threadgroup int *shared [[threadgroup(0)]],
                 uint i [[thread_index_in_threadgroup]], uint n [[threads_per_threadgroup]],
                 uint g [[threadgroup_position_in_grid]]) {
  threadgroup int guard[3];
  if (i < 3) guard[i] = -1;
  shared[i] = x[g * n + i];
  for (uint step = n / 2; step > 0; step /= 2) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (i < step) shared[i] += shared[i + step];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (i == 0) out[g] = shared[0] + guard[0] + guard[1] + guard[2];
}
)";

static void kernels() {
  Compiled library(KERNELS);
  Array<int> x(512), out(512);
  library.run("constants", {in(out.buffer)}, {1}, {1}, {5, 7});
  const int without[] = {5, 1, 0, 1005}, with[] = {-5, 0, 1, 4};
  for (size_t i = 0; i < 4; i++) CHECK_INT(out[i], without[i]);
  library.run("constants", {in(out.buffer)}, {1}, {1}, {-5, 0, 9});
  for (size_t i = 0; i < 4; i++) CHECK_INT(out[i], with[i]);

  struct {
    int n;
    float scale;
  } args = {5, 3};
  Array<float> f(6), g(6);
  for (int i = 0; i < 6; i++) f[(size_t)i] = (float)i, x[(size_t)i] = i, out[(size_t)i] = -1;
  const float table[] = {0.5f, 1.5f, 2, 3};
  library.run("scaled_float", {in(f.buffer), in(g.buffer), value(args)}, {6}, {4});
  library.run("scaled_int", {in(x.buffer), in(out.buffer), value(args)}, {6}, {4});
  for (int i = 0; i < 5; i++) {
    CHECK_NEAR(g[(size_t)i], 6.0f * (float)i + 2 * table[i % 4], 0);
    CHECK_INT(out[(size_t)i], 6 * i + (int)(4 * table[i % 4]));
  }
  CHECK_INT(out[5], -1);

  library.run("overloads", {in(x.buffer), in(out.buffer)}, {64}, {64});
  CHECK_INT(out[63], 3 + 60 + 6 + 7 + 5);
  for (int i = 0; i < 512; i++) x[(size_t)i] = i;
  library.run("tree", {in(x.buffer), in(out.buffer)}, {512}, {128}, {}, 512);
  for (int i = 0; i < 4; i++) CHECK_INT(out[(size_t)i], 128 * 127 / 2 + 128 * 128 * i - 3);
}

/* ---- SIMD groups ----------------------------------------------------------------------------- */

/* Every function writes 128 numbers: for each thread of two groups of 50 and 14 ... threads. */
static const char *const SIMD = R"(
kernel void simd(device const int *x, device int *out, uint i [[thread_position_in_grid]],
                 uint n [[threads_per_grid]], uint lane [[thread_index_in_simdgroup]]) {
  int v = x[i], k = 0;
#define SAY(e) out[n * k++ + i] = (int)(e)
  SAY(simd_sum(v)); SAY(simd_product(v % 3 + 1)); SAY(simd_min(v)); SAY(simd_max(v));
  SAY(simd_and(v)); SAY(simd_or(v)); SAY(simd_xor(v)); SAY(simd_sum((float)v));
  SAY(simd_shuffle(v, (ushort)(31 - lane))); SAY(simd_broadcast(v, 5));
  SAY(simd_shuffle_up(v, 3)); SAY(simd_shuffle_down(v, 3)); SAY(simd_shuffle_xor(v, 6));
  SAY(simd_shuffle_rotate_up(v, 5)); SAY(simd_shuffle_rotate_down(v, 5));
  SAY(simd_prefix_inclusive_sum(v)); SAY(simd_prefix_exclusive_sum(v));
  SAY(simd_prefix_inclusive_product(v % 2 + 1)); SAY(simd_prefix_exclusive_product(v % 2 + 1));
  SAY((ulong)simd_ballot(v % 3 == 0)); SAY(simd_all(v >= 0)); SAY(simd_any(v == 40));
  SAY(quad_sum(v)); SAY(quad_shuffle_xor(v, 1)); SAY(quad_broadcast(v, 2));
  SAY(simd_shuffle_and_fill_up(v, -v - 1, 2)); SAY(simd_shuffle_and_fill_down(v, -v - 1, 2));
  SAY(simd_sum(half(v))); SAY(simd_max(float2(v, -v)).y); SAY(simd_shuffle(uint2(v, v + 1), 3).y);
}
)";

/* The same for one SIMD group of 32 numbers. */
static std::vector<int> expected_simd(const int *x, int lane) {
  int sum = 0, product = 1, low = x[0], high = x[0], all = -1, some = 0, odd = 0, v = x[lane];
  unsigned ballot = 0;
  int any40 = 0, before = 0, factors = 1, quad = 0;
  for (int i = 0; i < 32; i++) {
    sum += x[i];
    product *= x[i] % 3 + 1;
    low = x[i] < low ? x[i] : low;
    high = x[i] > high ? x[i] : high;
    all &= x[i], some |= x[i], odd ^= x[i];
    ballot |= x[i] % 3 == 0 ? 1u << i : 0u;
    any40 |= x[i] == 40;
    if (i < lane) before += x[i], factors *= x[i] % 2 + 1;
    if (i / 4 == lane / 4) quad += x[i];
  }
  return {sum,
          product,
          low,
          high,
          all,
          some,
          odd,
          sum,
          x[31 - lane],
          x[5],
          lane < 3 ? v : x[lane - 3],
          lane > 28 ? v : x[lane + 3],
          x[lane ^ 6],
          x[(lane + 27) % 32],
          x[(lane + 5) % 32],
          before + v,
          before,
          factors * (v % 2 + 1),
          factors,
          (int)ballot,
          1,
          any40,
          quad,
          x[lane ^ 1],
          x[lane / 4 * 4 + 2],
          lane < 2 ? -x[(lane + 30) % 32] - 1 : x[lane - 2],
          lane > 29 ? -x[(lane + 2) % 32] - 1 : x[lane + 2],
          sum,
          -low,
          x[3] + 1};
}

static void simd_groups() {
  Compiled library(SIMD);
  const int n = 128;
  Array<int> x((size_t)n), out((size_t)n * 40);
  for (int i = 0; i < n; i++) x[(size_t)i] = i * 7 % 45;
  library.run("simd", {in(x.buffer), in(out.buffer)}, {(uint32_t)n}, {64});
  int wrong = 0;
  for (int i = 0; i < n; i++) {
    std::vector<int> expected = expected_simd(&x[(size_t)i / 32 * 32], i % 32);
    for (size_t k = 0; k < expected.size(); k++) {
      int actual = out[(size_t)n * k + (size_t)i];
      if (actual != expected[k] && wrong++ < 5)
        check_report(__FILE__, __LINE__, "function %d, thread %d: %d, expected %d", (int)k, i,
                     actual, expected[k]);
    }
  }
  CHECK_INT(wrong, 0);
}

/* A SIMD group that is not full, or of which some threads have returned: the others count. */
static const char *const PARTIAL = R"(
kernel void partial(device int *out, uint i [[thread_position_in_grid]]) {
  if (i == 3) return;
  out[i] = simd_sum((int)i);
  simdgroup_barrier(mem_flags::mem_none);
  out[i] += 1000 * simd_max((int)i) + 100000 * simd_prefix_inclusive_sum(1);
}
)";

static void partial_groups() {
  Compiled library(PARTIAL);
  Array<int> out(40);
  library.run("partial", {in(out.buffer)}, {40}, {64});
  for (int i = 0; i < 40; i++) {
    if (i == 3) continue;
    int count = i < 32 ? i + (i < 3) : i - 31;
    CHECK_INT(out[(size_t)i],
              (i < 32 ? 31 * 16 - 3 : 32 * 8 + 28) + 1000 * (i < 32 ? 31 : 39) + 100000 * count);
  }
}

/* In Metal all threads of a threadgroup must call a barrier: strict mode reports when some have
 * returned. */
static void barriers_after_returns() {
  Compiled library("kernel void early(device int *out, uint i [[thread_position_in_grid]]) {\n"
                   "  if (i == 3) return;\n"
                   "  threadgroup_barrier(mem_flags::mem_none);\n"
                   "  out[i] = (int)i;\n"
                   "}\n");
  const char *strict = getenv("LUTRA_EMULATE_STRICT");
  Array<int> out(40);
  lt_MetalError error = {};
  TestQueue queue;
  lt_MetalPipeline *p = lt_metal_pipeline_new(library.made, "early", nullptr, 0, nullptr, &error);
  REQUIRE(p);
  lt_MetalCommands *c = queue.commands();
  dispatch(c, p, {in(out.buffer)}, 40, 40);
  lt_MetalResult result = finish(c);
  if (!strict) CHECK_INT(result.error.status, LT_METAL_OK);
  if (strict)
    CHECK(strstr(result.error.text, "a barrier after some threads of the block have returned"));
}

/* ---- atomics --------------------------------------------------------------------------------- */

static const char *const ATOMICS = R"(
kernel void count(device atomic_int *x, device atomic_uint *u, device atomic_float *f,
                  device int *out, uint i [[thread_position_in_grid]],
                  uint t [[thread_index_in_threadgroup]]) {
  threadgroup atomic_int local;
  if (t == 0) atomic_store_explicit(&local, 0, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  atomic_fetch_add_explicit(&local, 1, memory_order_relaxed);
  int at = atomic_fetch_add_explicit(&x[0], 1, memory_order_relaxed);
  out[at] = 1;
  atomic_fetch_sub_explicit(&x[1], 2, memory_order_relaxed);
  atomic_fetch_min_explicit(&x[2], -(int)i, memory_order_relaxed);
  atomic_fetch_max_explicit(&x[3], (int)i, memory_order_relaxed);
  atomic_fetch_or_explicit(&u[0], 1u << i % 32, memory_order_relaxed);
  atomic_fetch_and_explicit(&u[1], ~(1u << i % 16), memory_order_relaxed);
  atomic_fetch_xor_explicit(&u[2], i, memory_order_relaxed);
  atomic_fetch_min_explicit(&u[3], i + 5, memory_order_relaxed);
  atomic_fetch_add_explicit(f, 0.5f, memory_order_relaxed);
  uint old = atomic_load_explicit(&u[4], memory_order_relaxed);
  while (!atomic_compare_exchange_weak_explicit(&u[4], &old, old + 3, memory_order_relaxed,
                                                memory_order_relaxed)) {
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (t == 0) {
    atomic_fetch_add_explicit(&x[4], atomic_load_explicit(&local, memory_order_relaxed),
                              memory_order_relaxed);
    atomic_exchange_explicit(&x[5], 77, memory_order_relaxed);
  }
}
)";

static void atomics() {
  Compiled library(ATOMICS);
  const int n = 1024;
  Array<int> x(6), out((size_t)n);
  Array<uint32_t> u(5);
  Array<float> f(1);
  for (size_t i = 0; i < 6; i++) x[i] = 0;
  for (size_t i = 0; i < 5; i++) u[i] = i % 2 ? ~0u : 0u;
  for (size_t i = 0; i < (size_t)n; i++) out[i] = 0;
  u[4] = 0;
  f[0] = 0;
  library.run("count", {in(x.buffer), in(u.buffer), in(f.buffer), in(out.buffer)}, {(uint32_t)n},
              {128});
  const int expected[] = {n, -2 * n, 1 - n, n - 1, n, 77};
  for (size_t i = 0; i < 6; i++) CHECK_INT(x[i], expected[i]);
  CHECK_INT(u[0], ~0u);
  CHECK_INT(u[1], 0xffff0000u);
  CHECK_INT(u[2], 0);
  CHECK_INT(u[3], 5);
  CHECK_INT(u[4], 3 * n);
  CHECK_NEAR(f[0], n / 2, 0);
  for (size_t i = 0; i < (size_t)n; i++) CHECK_INT(out[i], 1);
}

/* ---- matrices -------------------------------------------------------------------------------- */

static const char *const MATRICES = R"(
kernel void product(device const float *a, device const float *b, device const half *h,
                    device float *out, uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float tile[12 * 10];
  simdgroup_float8x8 x, y, sum = make_filled_simdgroup_matrix<float, 8, 8>(1.0f);
  simdgroup_half8x8 z;
  simdgroup_load(x, a, 20, ulong2(3, 2));
  simdgroup_load(y, b, 8, ulong2(0, 0), true);
  simdgroup_multiply_accumulate(sum, x, y, sum);
  simdgroup_store(sum, tile, 10, ulong2(1, 3));
  simdgroup_barrier(mem_flags::mem_threadgroup);
  for (uint i = lane; i < 64; i += 32) out[i] = tile[(i / 8 + 3) * 10 + i % 8 + 1];
  simdgroup_multiply(sum, x, y);
  simdgroup_store(sum, out + 64, 8, ulong2(0, 0), true);
  simdgroup_load(z, h);
  simdgroup_multiply_accumulate(sum, z, z, sum);
  simdgroup_store(sum, out + 128);
  simdgroup_store(simdgroup_float8x8(2.0f), out + 192);
  x.thread_elements()[0] += 100;
  simdgroup_store(x, out + 256);
}
)";

static void matrices() {
  Compiled library(MATRICES);
  Array<float> a(300), b(64), out(320);
  Array<uint16_t> h(64);
  const uint16_t halves[] = {0x0000, 0x3c00, 0x4000, 0xbc00}; /* 0, 1, 2, -1 */
  const float values[] = {0, 1, 2, -1};
  for (size_t i = 0; i < 300; i++) a[i] = (float)(i * 5 % 13) - 6;
  for (size_t i = 0; i < 64; i++) b[i] = (float)(i * 3 % 11) - 5, h[i] = halves[i * 3 % 7 % 4];
  library.run("product", {in(a.buffer), in(b.buffer), in(h.buffer), in(out.buffer)}, {32}, {32});
  int changed = 0;
  for (size_t i = 0; i < 8; i++)
    for (size_t j = 0; j < 8; j++) {
      float sum = 0, square = 0;
      for (size_t k = 0; k < 8; k++) {
        sum += a[(i + 2) * 20 + k + 3] * b[j * 8 + k];
        square += values[(i * 8 + k) * 3 % 7 % 4] * values[(k * 8 + j) * 3 % 7 % 4];
      }
      CHECK_NEAR(out[i * 8 + j], sum + 1, 0);
      CHECK_NEAR(out[64 + j * 8 + i], sum, 0);
      CHECK_NEAR(out[128 + i * 8 + j], sum + square, 0);
      CHECK_NEAR(out[192 + i * 8 + j], i == j ? 2 : 0, 0);
      changed += out[256 + i * 8 + j] == a[(i + 2) * 20 + j + 3] + 100;
    }
  CHECK_INT(changed, 32); /* one of the two elements of each lane */
}

/* ---- vectors and functions ------------------------------------------------------------------- */

static const char *const VECTORS = R"(
struct Packed { packed_float3 v; float last; };
kernel void vectors(device float *out, device Packed *packed, device half *h, device bfloat *b) {
  int k = 0;
#define SAY2(e) out[k++] = (float)(e)
  float4 v = float4(1, 2, 3, 4), w = float4(float2(5, 6), 7, 8);
  SAY2((v + w).x); SAY2((v * w).w); SAY2((v - 1).y); SAY2((2 * v).z); SAY2((-v).x);
  SAY2(v.yx.x); SAY2(v.xyz.z); SAY2(v.rgba.g + v.r); SAY2(v.zw[1]); SAY2(dot(v, w)); SAY2(v[2]);
  v.xy = v.zw; SAY2(v.x); v.wz += 1; SAY2(v.w); SAY2(v.z); SAY2(length(float2(3, 4)));
  SAY2(any(v > w)); SAY2(all(v < w)); SAY2(select(v, w, bool4(true, false, false, true)).w);
  SAY2(max(v, 4.5f).x); SAY2(clamp(v, 2.0f, 3.5f).w); SAY2(int4(w).w / 3); SAY2(fma(v, w, v).x);
  SAY2(as_type<int2>(float2(1, 2)).y == 0x40000000); SAY2(sizeof(float3)); SAY2(sizeof(Packed));
  packed[1].v = float3(1, 2, 3); packed[1].last = 9; float3 u = packed[1].v; SAY2(u.z);
  SAY2(packed[1].v[0] + packed[1].v.x); SAY2(cross(float3(1, 0, 0), float3(0, 1, 0)).z);
  h[0] = 1.0h / 3; h[1] = h[0] * 3; h[2] = half(70000.0f); SAY2(h[0] + 1.0f); SAY2(h[1] == 1);
  SAY2(isinf(h[2])); b[0] = bfloat(1.0f) / 3; SAY2(b[0]); SAY2(half2(1, 2).y); SAY2(1.5h);
  uchar4 c = uchar4(255, 1, 2, 3); c += 1; SAY2(c.x); SAY2((int2(7, 9) % 4).y);
  SAY2((uint2(1) << 4).y); SAY2((ushort2(3, 5) & ushort2(6)).y);
}
)";

static void vectors() {
  Compiled library(VECTORS);
  Array<float> out(64);
  Array<float> packed(8);
  Array<uint16_t> h(4), b(4);
  library.run("vectors", {in(out.buffer), in(packed.buffer), in(h.buffer), in(b.buffer)}, {1}, {1});
  const float third = 0x1.554p-2f;
  const float expected[] = {6, 32, 1,         6, -1, 2,          3,    3,    4,  70, 3,  3,  5,
                            4, 5,  0,         1, 8,  4.5f,       3.5f, 2,    18, 1,  16, 16, 3,
                            2, 1,  third + 1, 1, 1,  0x1.56p-2f, 2,    1.5f, 0,  1,  16, 4};
  for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
    if (out[i] != expected[i])
      check_report(__FILE__, __LINE__, "%d: %g, expected %g", (int)i, out[i], expected[i]);
  CHECK_NEAR(packed[6], 3, 0);
  CHECK_NEAR(packed[7], 9, 0);
  CHECK_INT(h[0], 0x3555);
  CHECK_INT(h[2], 0x7c00);
  CHECK_INT(b[0], 0x3eab);
}

static const char *const FUNCTIONS = R"(
#define ALL(X) X(acos) X(asin) X(asinh) X(atan) X(ceil) X(cos) X(cosh) X(exp) X(exp2) X(fabs) \
  X(floor) X(log) X(log10) X(log2) X(rint) X(round) X(sin) X(sinh) X(sqrt) X(tan) X(tanh) \
  X(trunc) X(atanh)
kernel void of_one(device const float *x, device float *out, uint i [[thread_position_in_grid]],
                   uint n [[threads_per_grid]]) {
  int k = 0;
#define X(name) out[n * k++ + i] = precise::name(x[i]);
  ALL(X)
}
kernel void of_integers(device const int *x, device int *out) {
  int k = 0, a = x[0], b = x[1];
  uint u = (uint)a;
  out[k++] = popcount(u); out[k++] = clz(u); out[k++] = ctz(u); out[k++] = clz(0);
  out[k++] = mulhi(a, b); out[k++] = (int)mulhi(u, 0x80000000u); out[k++] = abs(b);
  out[k++] = min(a, b); out[k++] = max(a, b); out[k++] = clamp(a, 0, 10); out[k++] = rotate(1, 33);
  out[k++] = (int)reverse_bits(1u); out[k++] = addsat(INT_MAX, a); out[k++] = subsat(0u, u) == 0;
  out[k++] = (int)extract_bits(0xabcdu, 4, 8); out[k++] = (int)insert_bits(0u, 0xfu, 8, 4);
  out[k++] = hadd(INT_MAX, INT_MAX) == INT_MAX; out[k++] = (int)absdiff(a, b);
  out[k++] = (int)(mulhi((ulong)~0ul, (ulong)2) == 1); out[k++] = (int)mulhi(-1l, 2l);
  out[k++] = numeric_limits<short>::max(); out[k++] = (int)numeric_limits<uchar>::max();
  out[k++] = select(a, b, true); out[k++] = popcount((uchar)0xff); out[k++] = clz((short)1);
}
kernel void of_floats(device float *out) {
  int k = 0;
  float rest, whole; int e;
  out[k++] = fma(2.0f, 3.0f, 4.0f); out[k++] = fmin(NAN, 2.0f); out[k++] = max(2.0f, NAN);
  out[k++] = sign(-3.0f); out[k++] = step(1.0f, 0.5f); out[k++] = mix(2.0f, 4.0f, 0.25f);
  out[k++] = saturate(1.5f); out[k++] = fract(-0.25f); out[k++] = ldexp(1.5f, 3);
  out[k++] = frexp(12.0f, e); out[k++] = e; rest = modf(2.75f, whole); out[k++] = rest;
  out[k++] = whole; out[k++] = copysign(2.0f, -0.0f); out[k++] = fmod(7.5f, 2.0f);
  out[k++] = pow(2.0f, 0.5f); out[k++] = atan2(1.0f, -1.0f); out[k++] = rsqrt(4.0f);
  out[k++] = isnan(NAN) + 2 * isinf(INFINITY) + 4 * isfinite(1.0f) + 8 * signbit(-0.0f);
  out[k++] = sinpi(0.5f); out[k++] = cospi(1.0f); out[k++] = exp10(2.0f);
  out[k++] = smoothstep(0.0f, 1.0f, 0.5f); out[k++] = fmedian3(3.0f, 1.0f, 2.0f);
  out[k++] = FLT_MAX == numeric_limits<float>::max(); out[k++] = 1.0 / 3.0 == 1.0f / 3.0f;
}
)";

static void functions() {
  Compiled library(FUNCTIONS);
  static float (*const reference[])(float) = {
      acosf,  asinf, asinhf, atanf,  ceilf, cosf,  coshf, expf, exp2f, fabsf,  floorf, logf,
      log10f, log2f, rintf,  roundf, sinf,  sinhf, sqrtf, tanf, tanhf, truncf, atanhf};
  const size_t count = sizeof reference / sizeof *reference, n = 9;
  const float inputs[n] = {0, 0.3f, -0.7f, 1, -1, 2.5f, INFINITY, NAN, -3.25f};
  Array<float> x(n), out(n * 40);
  for (size_t i = 0; i < n; i++) x[i] = inputs[i];
  library.run("of_one", {in(x.buffer), in(out.buffer)}, {n}, {n});
  for (size_t k = 0; k < count; k++)
    for (size_t i = 0; i < n; i++) {
      float actual = out[n * k + i], expected = reference[k](inputs[i]);
      if (isnan(actual) && isnan(expected)) continue;
      if (!(actual == expected || fabsf(actual - expected) <= 1e-6f * fabsf(expected)))
        check_report(__FILE__, __LINE__, "function %d of %g: %g, expected %g", (int)k, inputs[i],
                     actual, expected);
    }

  Array<int> v(2), integers(32);
  v[0] = 0x1200, v[1] = -7;
  library.run("of_integers", {in(v.buffer), in(integers.buffer)}, {1}, {1});
  const int whole[] = {2,  19, 9,         32,        -1, 0x900, 7,     -7, 0x1200,
                       10, 2,  INT32_MIN, INT32_MAX, 1,  0xbc,  0xf00, 1,  0x1207,
                       1,  -1, 32767,     255,       -7, 8,     15};
  for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
    if (integers[i] != whole[i])
      check_report(__FILE__, __LINE__, "integer %d: %d, expected %d", (int)i, integers[i],
                   whole[i]);

  library.run("of_floats", {in(out.buffer)}, {1}, {1});
  const float floats[] = {10,    2, 2,  -1,   0,           2.5f,        1,    0.75f, 12, 0.75f, 4,
                          0.75f, 2, -2, 1.5f, 1.41421354f, 2.35619449f, 0.5f, 15,    1,  -1,    100,
                          0.5f,  2, 1,  1};
  for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) CHECK_NEAR(out[i], floats[i], 1e-6);
}

int main(void) {
  setenv("LUTRA_EMULATE", "mps", 1);
  RUN(builtins);
  RUN(kernels);
  RUN(simd_groups);
  RUN(partial_groups);
  RUN(atomics);
  RUN(matrices);
  RUN(vectors);
  RUN(functions);
  RUN(barriers_after_returns);
  return check_end();
}
