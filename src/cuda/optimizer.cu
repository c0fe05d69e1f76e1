/* optimizer.cu: the kernel of a step of Adam: four elements a thread, each read and written
 * once. */
#include "optimizer.h"
#include "slots.cuh"

#define THREADS 256

/* The step's numbers in the type that is worked in. */
template <class T> struct Numbers {
  T sign, decay, shrink, beta1, beta2, rest1, rest2, eps, size, root;
};

template <class T> LT_DEVICE_INLINE void step(T &p, T g, T &m, T &v, const Numbers<T> &k) {
  T d = k.sign * g + k.decay * p;
  m = k.beta1 * m + k.rest1 * d;
  v = k.beta2 * v + k.rest2 * (d * d);
  p = p * k.shrink - k.size * (m / (m_sqrt(v) * k.root + k.eps));
}

template <class T> __global__ void adam(lt_CudaAdam a, Numbers<T> k, bool vector) {
  int64_t i = ((int64_t)blockIdx.x * THREADS + threadIdx.x) * 4;
  if (vector && i + 4 <= a.n) {
    T p[4], g[4], m[4], v[4];
    load_some(p, a.p, a.dtype, i);
    load_some(g, a.g, a.dtype, i);
    load_some(m, a.m, a.dtype, i);
    load_some(v, a.v, a.dtype, i);
    for (int j = 0; j < 4; j++) step(p[j], g[j], m[j], v[j], k);
    store_some(a.p, a.dtype, i, p);
    store_some(a.m, a.dtype, i, m);
    store_some(a.v, a.dtype, i, v);
    return;
  }
  for (int64_t j = i; j < i + 4 && j < a.n; j++) {
    T p = load_float<T>(a.p, a.dtype, j), m = load_float<T>(a.m, a.dtype, j);
    T v = load_float<T>(a.v, a.dtype, j), g = load_float<T>(a.g, a.dtype, j);
    step(p, g, m, v, k);
    store_float(a.p, a.dtype, j, p);
    store_float(a.m, a.dtype, j, m);
    store_float(a.v, a.dtype, j, v);
  }
}

template <class T> static cudaError_t launch_adam(const lt_CudaAdam &a, cudaStream_t stream) {
  Numbers<T> k = {(T)a.sign,        (T)a.decay,       (T)a.shrink, (T)a.beta1, (T)a.beta2,
                  (T)(1 - a.beta1), (T)(1 - a.beta2), (T)a.eps,    (T)a.size,  (T)a.root};
  dim3 grid = grid_for(blocks_for(a.n, 4 * THREADS));
  return launch("adamw_step", adam<T>, grid, dim3(THREADS), 0, stream, a, k,
                rows_align(0, a.p, a.g, a.m, a.v));
}

cudaError_t lt_cuda_launch_adam(const lt_CudaAdam *a, cudaStream_t stream) {
  return a->dtype == LT_float64 ? launch_adam<double>(*a, stream) : launch_adam<float>(*a, stream);
}
