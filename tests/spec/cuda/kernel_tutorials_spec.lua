-- lt.cuda.kernel: kernels as tutorials have them, which must run as they stand: each against ops
-- and sums; and, where NVIDIA's compiler is, each is compiled by it.

local devices = require "device_support"
if devices.elsewhere("cuda/kernel_tutorials", _ENV, {compiles = true, reverse = true}) then
  return
end

local lt = require "lutra"
local device = "cuda:0"

local sources = {} -- all of this file, with the kernel's name
local function kernel(name, source)
  sources[name] = source
  return lt.cuda.kernel(source, name)
end

local function tensor(list, dtype) return lt.tensor(list, {dtype = dtype, device = device}) end
local function zeros(n, dtype) return lt.zeros({n}, {dtype = dtype, device = device}) end
local function same(list, x) assert.same(list, x:cpu():totable()) end

describe("a kernel of a tutorial:", function()
  it("sums by shuffles in warps, and over warps in shared memory", function()
    local sum = kernel("block_sum", [[
      __inline__ __device__ int warp_sum(int value) {
        for (int offset = warpSize / 2; offset > 0; offset /= 2)
          value += __shfl_down_sync(0xffffffff, value, offset);
        return value;
      }
      __global__ void block_sum(const int *__restrict__ in, int *out, int n) {
        static __shared__ int of_warp[32];
        int value = 0, lane = threadIdx.x % warpSize, warp = threadIdx.x / warpSize;
        for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
          value += __ldg(&in[i]);
        value = warp_sum(value);
        if (lane == 0) of_warp[warp] = value;
        __syncthreads();
        value = threadIdx.x < blockDim.x / warpSize ? of_warp[lane] : 0;
        if (warp == 0) value = warp_sum(value);
        if (threadIdx.x == 0) atomicAdd(out, value);
      }]])
    local out = zeros(1, "int32")
    sum({3, 128}, lt.arange(1000, {dtype = "int32", device = device}), out, 1000)
    same({500500}, out)
  end)

  it("multiplies matrices by tiles", function()
    local multiply = kernel("multiply", [[
      #define TILE 4
      typedef struct { int stride; float *elements; } Matrix;
      __device__ Matrix tile_of(Matrix m, int row, int column) {
        Matrix part = {m.stride, &m.elements[m.stride * TILE * row + TILE * column]};
        return part;
      }
      __global__ void multiply(float *a, float *b, float *c, int n) {
        Matrix A = {n, a}, B = {n, b}, C = {n, c};
        int row = threadIdx.y, column = threadIdx.x;
        float sum = 0;
        for (int m = 0; m < n / TILE; ++m) {
          __shared__ float As[TILE][TILE], Bs[TILE][TILE];
          As[row][column] = tile_of(A, blockIdx.y, m).elements[row * n + column];
          Bs[row][column] = tile_of(B, m, blockIdx.x).elements[row * n + column];
          __syncthreads();
          #pragma unroll
          for (int k = 0; k < TILE; ++k) sum += As[row][k] * Bs[k][column];
          __syncthreads();
        }
        tile_of(C, blockIdx.y, blockIdx.x).elements[row * n + column] = sum;
      }]])
    local a = lt.arange(64, {dtype = "float32", device = device}):reshape(8, 8)
    local c = lt.zeros_like(a)
    multiply({{2, 2}, {4, 4}}, a, a, c, 8)
    assert.is_true(lt.equal(a:matmul(a), c))
  end)

  it("transposes by padded tiles", function()
    local transpose = kernel("transpose", [[
      const int TILE = 32, ROWS = 8;
      __global__ void transpose(float *out, const float *in) {
        __shared__ float tile[TILE][TILE + 1];
        int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
        int width = gridDim.x * TILE;
        for (int j = 0; j < TILE; j += ROWS)
          tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * width + x];
        __syncthreads();
        x = blockIdx.y * TILE + threadIdx.x;
        y = blockIdx.x * TILE + threadIdx.y;
        for (int j = 0; j < TILE; j += ROWS)
          out[(y + j) * width + x] = tile[threadIdx.x][threadIdx.y + j];
      }]])
    local a = lt.arange(4096, {dtype = "float32", device = device}):reshape(64, 64)
    local b = lt.zeros_like(a)
    transpose({{2, 2}, {32, 8}}, b, a)
    assert.is_true(lt.equal(a:t(), b))
  end)

  it("counts in unsigned integers, for which signed tensors are given", function()
    local count = kernel("count", [[
      __global__ void count(const unsigned char *in, size_t n, unsigned int *bins,
                            unsigned long long *total) {
        __shared__ unsigned int own[256];
        for (int i = threadIdx.x; i < 256; i += blockDim.x) own[i] = 0;
        __syncthreads();
        for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
          atomicAdd(&own[in[i] ], 1);
        __syncthreads();
        for (int i = threadIdx.x; i < 256; i += blockDim.x) {
          atomicAdd(&bins[i], own[i]);
          atomicAdd(total, own[i]);
        }
      }]])
    local bins, total = zeros(256, "int32"), zeros(1, "int64")
    count({2, 64}, lt.arange(1000, {device = device}):remainder(250):to "uint8", 1000, bins, total)
    assert.equal(4, bins[250]:item())
    same({1000}, total)
    devices.fails({"count: expected dtype \"int32\" for argument 'bins' (#3, unsigned int *), got "
      .. '"float32"\nhint: x:to("int32")'}, count, {2, 64}, zeros(4, "uint8"), 4,
      zeros(256, "float32"), total)
    devices.fails({"count: expected a tensor of dtype \"int32\" for argument 'bins' (#3, unsigned "
      .. "int *), got 3"}, count, {2, 64}, zeros(4, "uint8"), 4, 3, total)
  end)

  it("shares one dynamic array among types", function()
    local both = kernel("both", [[
      extern __shared__ char memory[];
      __global__ void both(float *out) {
        float *a = (float *)memory;
        int *b = reinterpret_cast<int *>(memory) + blockDim.x, t = threadIdx.x;
        a[t] = t;
        b[t] = 10 * t;
        __syncthreads();
        out[t] = a[(t + 1) % blockDim.x] + b[t];
      }]])
    local out = zeros(4, "float32")
    both({1, 4, 32}, out)
    same({1, 12, 23, 30}, out)
  end)

  it("adds doubles by comparing, and locks", function()
    local add = kernel("add", [[
      #if defined(__CUDACC__) && __CUDA_ARCH__ >= 600
      #define NEW 1
      #endif
      __device__ int mutex = 0;
      __device__ double add_by_cas(double *place, double value) {
        unsigned long long *bits = (unsigned long long *)place, old = *bits, seen;
        do {
          seen = old;
          old = atomicCAS(bits, seen, __double_as_longlong(value + __longlong_as_double(seen)));
        } while (seen != old);
        return __longlong_as_double(old);
      }
      __global__ void add(double *sum, int *locked) {
        add_by_cas(sum, NEW);
        if (threadIdx.x) return;
        while (atomicCAS(&mutex, 0, 1) != 0);
        locked[0] = locked[0] + 1;
        __threadfence();
        atomicExch(&mutex, 0);
      }]])
    local sum, locked = zeros(1, "float64"), zeros(1, "int32")
    add({3, 50}, sum, locked)
    same({150}, sum)
    same({3}, locked)
  end)

  it("calls the functions of half and bfloat16", function()
    local halves = kernel("halves", [[
      #include <cuda_fp16.h>
      #include <cuda_bf16.h>
      __global__ void halves(half *h, __nv_bfloat16 *b, const half2 *pairs) {
        half2 sum = __hfma2(pairs[0], pairs[1], pairs[0]);
        h[0] = __low2half(sum);
        h[1] = __hgt(h[0], h[1]) ? __hmax(h[0], hsqrt(__int2half_rn(9))) : h[1];
        h[2] = hexp(__float2half(0.0f)) + hrcp(__float2half(4.0f));
        b[0] = __hfma(b[0], b[0], __hmin(b[1], __int2bfloat16_rn(1)));
      }]])
    local h, b = zeros(3, "float16"), tensor({3, 4}, "bfloat16")
    halves({1, 1}, h, b, tensor({1, 2, 3, 4}, "float16"))
    same({4, 4, 1.25}, h)
    same({10, 4}, b)
  end)

  it("calls CUDA's functions of numbers", function()
    local maths = kernel("maths", [[
      __global__ void maths(double *y) {
        float s, c, whole;
        int exponent;
        clock_t start = clock();
        __sincosf(0.0f, &s, &c);
        y[0] = s + c + exp10f(2) + sinpif(1.5f) + cospi(0.5) + rcbrt(8.0) + norm3df(2, 3, 6);
        y[1] = frexpf(8, &exponent);
        y[2] = exponent + (double)(clock() - start < 0);
        y[3] = modff(-2.5f, &whole);
        y[4] = whole + lrintf(2.5f) + llround(2.5) + signbit(-1.0f) + scalbnf(1, 3);
        y[5] = __float2uint_rn(-3.0f) + __double2int_ru(1.5) + __double2int_rd(1e300);
        y[6] = __hadd(3, 5) + __rhadd(1, 2) + __mul24(-3, 5) + __usad(1u, 4u, 10u);
        y[7] = __byte_perm(0x33221100, 0x77665544, 0x7061);
        y[8] = min(3u, 4) + max(1.5, 2.5f) + normcdf(0.0);
      }]])
    local y = zeros(9, "float64")
    maths({1, 1}, y)
    same({1 + 100 - 1 + 0 + 0.5 + 7, 0.5, 4, -0.5, -2 + 2 + 3 + 1 + 8, 2 + 2 ^ 31 - 1,
      4 + 2 - 15 + 13, 0x77006611, 3 + 2.5 + 0.5}, y)
  end)

  it("that asks for the active threads of a warp gets an error with the reason", function()
    if os.getenv "LUTRA_TEST_GPU" then return end
    devices.fails({"line 1", "__activemask", "0xffffffff"}, lt.cuda.kernel,
      "__global__ void f(unsigned *x) { x[0] = __activemask(); }")
  end)

  it("NVRTC takes them all", function()
    for name, source in pairs(sources) do
      local result, why = devices.nvrtc(source, name)
      if not result then return pending(why) end
      assert.equal(0, result.status, result.out .. result.err)
    end
  end)
end)
