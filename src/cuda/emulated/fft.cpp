/* fft.cpp: cuFFT, computed in double by mixed
 * radix and, for sizes with a prime factor above 32, Bluestein's algorithm. As cuFFT does,
 * transforms to real numbers overwrite their input: here with NaN. */
#include "cufft.h"
#include "cuda_runtime.h"
#include "runtime.h"

#include <complex>
#include <limits>
#include <math.h>
#include <string.h>

using namespace emulated;

namespace {

typedef std::complex<double> Complex;

/* ---- lines ----------------------------------------------------------------------------------- */

const double PI = 3.14159265358979323846;
enum { MAX_FACTOR = 32 };

/* Returns exp(-2 pi i k / n). */
Complex root_of_one(size_t k, size_t n) { return std::polar(1.0, -2 * PI * (double)k / (double)n); }

size_t smallest_factor(size_t n) {
  for (size_t p = 2; p * p <= n; p++)
    if (n % p == 0) return p;
  return n;
}

bool is_smooth(size_t n) {
  while (n > 1) {
    size_t p = smallest_factor(n);
    if (p > MAX_FACTOR) return false;
    n /= p;
  }
  return true;
}

/* Forward transforms of n numbers. */
class Line {
public:
  explicit Line(size_t n) : n_(n) {
    if (!is_smooth(n))
      make_chirp();
    else
      for (size_t k = 0; k < n; k++) roots_.push_back(root_of_one(k, n));
  }
  void run(std::vector<Complex> &x) const {
    if (inner_) return run_chirp(x);
    std::vector<Complex> y(n_);
    step(x.data(), 1, y.data(), n_);
    x.swap(y);
  }

private:
  /* Transforms the n numbers x[j * stride] to y. */
  void step(const Complex *x, size_t stride, Complex *y, size_t n) const {
    if (n == 1) {
      *y = *x;
      return;
    }
    size_t p = smallest_factor(n), m = n / p, turn = n_ / n;
    for (size_t j = 0; j < p; j++) step(x + j * stride, stride * p, y + j * m, m);
    Complex parts[MAX_FACTOR];
    for (size_t k = 0; k < m; k++) {
      for (size_t j = 0; j < p; j++) parts[j] = y[j * m + k];
      for (size_t i = 0; i < p; i++) {
        Complex sum = 0;
        for (size_t j = 0; j < p; j++) sum += parts[j] * roots_[j * (k + i * m) % n * turn];
        y[i * m + k] = sum;
      }
    }
  }

  void make_chirp() {
    size_t m = 1;
    while (m < 2 * n_ - 1) m *= 2;
    inner_ = std::make_unique<Line>(m);
    kernel_.assign(m, 0);
    for (size_t k = 0; k < n_; k++) {
      roots_.push_back(root_of_one(k * k % (2 * n_), 2 * n_));
      kernel_[k] = kernel_[(m - k) % m] = std::conj(roots_[k]);
    }
    inner_->run(kernel_);
  }

  void run_chirp(std::vector<Complex> &x) const {
    size_t m = kernel_.size();
    std::vector<Complex> y(m);
    for (size_t k = 0; k < n_; k++) y[k] = x[k] * roots_[k];
    inner_->run(y);
    for (size_t k = 0; k < m; k++) y[k] = std::conj(y[k] * kernel_[k]);
    inner_->run(y);
    for (size_t k = 0; k < n_; k++) x[k] = std::conj(y[k]) * roots_[k] / (double)m;
  }

  size_t n_;
  std::vector<Complex> roots_;  /* or the chirp exp(-i pi k^2 / n) */
  std::unique_ptr<Line> inner_; /* of the convolution with the chirp; else NULL */
  std::vector<Complex> kernel_;
};

/* ---- plans ----------------------------------------------------------------------------------- */

/* The sizes of a transform in memory. */
struct Layout {
  size_t embed[3], stride, distance;
  /* Returns the index of the number at these coordinates. */
  size_t at(const size_t *k) const { return ((k[0] * embed[1] + k[1]) * embed[2] + k[2]) * stride; }
};

/* A transform of 3 dims, of which the first ones may have the size 1. */
struct Plan {
  cufftType type = CUFFT_C2C;
  size_t n[3], batch = 0, work_size = 0;
  Layout in, out;
  std::shared_ptr<Line> line[3];
  void *work = nullptr;
  cudaStream_t stream = nullptr;

  bool wide() const { return type >= CUFFT_Z2Z; }
  bool from_real() const { return type == CUFFT_R2C || type == CUFFT_D2Z; }
  bool to_real() const { return type == CUFFT_C2R || type == CUFFT_Z2D; }
  size_t half() const { return n[2] / 2 + 1; }
};

std::mutex plans_mutex;
std::map<int, Plan> &plans() {
  static std::map<int, Plan> &all = *new std::map<int, Plan>();
  return all;
}

/* ---- transforms ------------------------------------------------------------------------------ */

/* Calls f with all coordinates below n0, n1, n2. */
template <class F> void for_each(size_t n0, size_t n1, size_t n2, F f) {
  size_t k[3];
  for (k[0] = 0; k[0] < n0; k[0]++)
    for (k[1] = 0; k[1] < n1; k[1]++)
      for (k[2] = 0; k[2] < n2; k[2]++) f(k);
}

/* Transforms the lines of a dense array along a dim, forwards or, by conjugates, backwards. */
void transform_dim(const Plan &p, std::vector<Complex> &x, int dim, bool inverse) {
  size_t step = dim == 0 ? p.n[1] * p.n[2] : dim == 1 ? p.n[2] : 1, n = p.n[dim];
  std::vector<Complex> line(n);
  if (n == 1) return;
  for (size_t i = 0; i < x.size(); i++) {
    if (i / step % n) continue; /* not the first of a line */
    for (size_t k = 0; k < n; k++) line[k] = inverse ? std::conj(x[i + k * step]) : x[i + k * step];
    p.line[dim]->run(line);
    for (size_t k = 0; k < n; k++) x[i + k * step] = inverse ? std::conj(line[k]) : line[k];
  }
}

/* Completes the lines of a Hermitian spectrum from their first halves. After the transforms along
 * the other dims, each line is the spectrum of real numbers. */
void complete(const Plan &p, std::vector<Complex> &x) {
  for (size_t i = 0; i < x.size(); i += p.n[2])
    for (size_t k = p.half(); k < p.n[2]; k++) x[i + k] = std::conj(x[i + p.n[2] - k]);
}

template <class T> void transform_one(const Plan &p, T *in, T *out, bool inverse) {
  std::vector<Complex> x(p.n[0] * p.n[1] * p.n[2]);
  auto dense = [&p](const size_t *k) { return (k[0] * p.n[1] + k[1]) * p.n[2] + k[2]; };
  for_each(p.n[0], p.n[1], p.to_real() ? p.half() : p.n[2], [&](const size_t *k) {
    size_t i = p.in.at(k);
    x[dense(k)] = p.from_real() ? Complex(in[i]) : Complex(in[2 * i], in[2 * i + 1]);
    if (p.to_real()) in[2 * i] = in[2 * i + 1] = std::numeric_limits<T>::quiet_NaN();
  });
  transform_dim(p, x, 0, inverse);
  transform_dim(p, x, 1, inverse);
  if (p.to_real()) complete(p, x);
  transform_dim(p, x, 2, inverse);
  for_each(p.n[0], p.n[1], p.from_real() ? p.half() : p.n[2], [&](const size_t *k) {
    size_t i = p.out.at(k);
    Complex v = x[dense(k)];
    if (p.to_real()) {
      out[i] = (T)v.real();
    } else {
      out[2 * i] = (T)v.real();
      out[2 * i + 1] = (T)v.imag();
    }
  });
}

template <class T> void transform_all(const Plan &p, T *in, T *out, bool inverse) {
  for (size_t i = 0; i < p.batch; i++)
    transform_one(p, in + i * p.in.distance * (p.from_real() ? 1 : 2),
                  out + i * p.out.distance * (p.to_real() ? 1 : 2), inverse);
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* One call of an Exec function. */
struct Execution {
  Plan plan;
  void *in, *out;
  bool inverse;
};

/* Returns true when an array is in a live allocation or in pinned memory. */
bool is_accessible(const Plan &p, const Layout &l, const void *data, bool real, bool half) {
  size_t last[3] = {p.n[0] - 1, p.n[1] - 1, (half ? p.half() : p.n[2]) - 1};
  size_t bytes = ((p.batch - 1) * l.distance + l.at(last) + 1) * (real ? 1 : 2) *
                 (p.wide() ? sizeof(double) : sizeof(float));
  Device *d = device_of(data);
  return d ? is_live(&d->memory, data, bytes) : is_pinned(data, bytes);
}

/* Returns true when the work area is accessible, and fills it: nothing else may be there. */
bool use_work_area(const Plan &p) {
  Device *d = p.work ? device_of(p.work) : nullptr;
  if (!d || !is_live(&d->memory, p.work, p.work_size)) return false;
  memset(p.work, 0xff, p.work_size);
  return true;
}

/* Runs a queued call; illegal addresses are an error of the device, as for a kernel. */
void run(void *work) {
  const Execution &e = *(Execution *)work;
  const Plan &p = e.plan;
  if (!is_accessible(p, p.in, e.in, p.from_real(), p.to_real()) ||
      !is_accessible(p, p.out, e.out, p.to_real(), p.from_real()) || !use_work_area(p)) {
    device(current_device()).sticky = cudaErrorIllegalAddress;
    return;
  }
  if (p.wide())
    transform_all(p, (double *)e.in, (double *)e.out, e.inverse);
  else
    transform_all(p, (float *)e.in, (float *)e.out, e.inverse);
}

/* Checks a call as cuFFT does and queues it on the plan's stream. */
cufftResult submit(cufftHandle handle, cufftType type, void *in, void *out, bool inverse) {
  Lock lock(plans_mutex);
  auto at = plans().find(handle);
  if (at == plans().end() || at->second.type != type) return CUFFT_INVALID_PLAN;
  const Plan &p = at->second;
  size_t size = p.wide() ? 2 * sizeof(double) : 2 * sizeof(float);
  if (!in || !out || (uintptr_t)in % size || (uintptr_t)out % size) return CUFFT_INVALID_VALUE;
  if (injected(Fault::FFT)) return CUFFT_EXEC_FAILED;
  cudaError_t status = lt_emulated_enqueue(
      p.stream, run, [](void *work) { delete (Execution *)work; },
      new Execution{p, in, out, inverse});
  return status == cudaSuccess ? CUFFT_SUCCESS : CUFFT_EXEC_FAILED;
}

/* Sets a member of a plan. */
template <class T> cufftResult set(cufftHandle handle, T Plan::*member, T value) {
  Lock lock(plans_mutex);
  auto at = plans().find(handle);
  if (at == plans().end()) return CUFFT_INVALID_PLAN;
  at->second.*member = value;
  return CUFFT_SUCCESS;
}

Layout layout(int rank, const long long *embed, long long stride, long long distance) {
  Layout l = {{1, 1, 1}, (size_t)stride, (size_t)distance};
  for (int i = 0; i < rank; i++) l.embed[3 - rank + i] = (size_t)embed[i];
  return l;
}

} // namespace

extern "C" bool lt_emulated_has_cufft(void);
extern "C" bool lt_emulated_has_cufft(void) { return options().libraries; }

cufftResult cufftCreate(cufftHandle *handle) {
  static int count;
  if (enter() != cudaSuccess) return CUFFT_EXEC_FAILED;
  Lock lock(plans_mutex);
  *handle = ++count;
  plans()[*handle] = Plan();
  return CUFFT_SUCCESS;
}

cufftResult cufftDestroy(cufftHandle handle) {
  Lock lock(plans_mutex);
  return plans().erase(handle) ? CUFFT_SUCCESS : CUFFT_INVALID_PLAN;
}

cufftResult cufftGetVersion(int *version) {
  *version = CUFFT_VERSION;
  return CUFFT_SUCCESS;
}

/* Plans have no memory of their own. */
cufftResult cufftSetAutoAllocation(cufftHandle, int automatic) {
  return automatic ? CUFFT_NOT_SUPPORTED : CUFFT_SUCCESS;
}

cufftResult cufftMakePlanMany64(cufftHandle handle, int rank, long long *n, long long *in_embed,
                                long long in_stride, long long in_distance, long long *out_embed,
                                long long out_stride, long long out_distance, cufftType type,
                                long long batch, size_t *work_size) {
  if (injected(Fault::PLAN)) return CUFFT_INVALID_SIZE;
  if (rank < 1 || rank > 3 || batch < 1 || !work_size) return CUFFT_INVALID_VALUE;
  if (!in_embed || !out_embed) return CUFFT_NOT_SUPPORTED;
  Plan p;
  p.type = type;
  p.batch = (size_t)batch;
  p.work_size = 2 * sizeof(double) * p.batch;
  for (int i = 0; i < 3; i++) {
    long long size = i < 3 - rank ? 1 : n[i - (3 - rank)];
    if (size < 1) return CUFFT_INVALID_SIZE;
    p.n[i] = (size_t)size;
    p.line[i] = std::make_shared<Line>(p.n[i]);
    p.work_size *= p.n[i];
  }
  p.in = layout(rank, in_embed, in_stride, in_distance);
  p.out = layout(rank, out_embed, out_stride, out_distance);
  *work_size = p.work_size;
  Lock lock(plans_mutex);
  auto at = plans().find(handle);
  if (at == plans().end()) return CUFFT_INVALID_PLAN;
  at->second = p;
  return CUFFT_SUCCESS;
}

cufftResult cufftSetStream(cufftHandle handle, cudaStream_t stream) {
  return set(handle, &Plan::stream, stream);
}
cufftResult cufftSetWorkArea(cufftHandle handle, void *work) {
  return set(handle, &Plan::work, work);
}

cufftResult cufftExecC2C(cufftHandle handle, cufftComplex *in, cufftComplex *out, int direction) {
  return submit(handle, CUFFT_C2C, in, out, direction == CUFFT_INVERSE);
}
cufftResult cufftExecZ2Z(cufftHandle handle, cufftDoubleComplex *in, cufftDoubleComplex *out,
                         int direction) {
  return submit(handle, CUFFT_Z2Z, in, out, direction == CUFFT_INVERSE);
}
cufftResult cufftExecR2C(cufftHandle handle, cufftReal *in, cufftComplex *out) {
  return submit(handle, CUFFT_R2C, in, out, false);
}
cufftResult cufftExecD2Z(cufftHandle handle, cufftDoubleReal *in, cufftDoubleComplex *out) {
  return submit(handle, CUFFT_D2Z, in, out, false);
}
cufftResult cufftExecC2R(cufftHandle handle, cufftComplex *in, cufftReal *out) {
  return submit(handle, CUFFT_C2R, in, out, true);
}
cufftResult cufftExecZ2D(cufftHandle handle, cufftDoubleComplex *in, cufftDoubleReal *out) {
  return submit(handle, CUFFT_Z2D, in, out, true);
}
