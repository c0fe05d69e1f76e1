/* composite_create.c: factory functions: an uninitialized tensor, and an op that fills it.
 *
 * All end in `made`: the tensor is filled before requires_grad is set, because a leaf that requires
 * grad must not be changed in place. */
#include "infer.h"

#include <math.h>

/* Returns the index of the first of the options dtype, device, requires_grad, which every factory
 * function has. */
static int options(const lt_Call *c) { return c->signature->requires_grad_param - 2; }

/* Returns the option dtype, or `otherwise`. */
static lt_Dtype dtype_option(const lt_Call *c, lt_Dtype otherwise) {
  return lt_dtype_or(c, options(c), otherwise);
}

/* Returns the option device; without it self's device, or the default device. */
static lt_Device device_option(const lt_Call *c) {
  int i = options(c) + 1;
  if (lt_given(c, i)) return c->arg[i].device;
  return lt_in(c, 0) ? lt_tensor_device(lt_in(c, 0)) : c->device;
}

/* Sets requires_grad as the option says, and returns the tensor as the result. */
static bool made(lt_Call *c, lt_Tensor *t) {
  if (!t) return false;
  if (c->arg[options(c) + 2].b) {
    if (!lt_dtype_is_float(t->dtype))
      return lt_fail("cannot require grad: expected a float dtype, got \"%s\"",
                     lt_dtype_name(t->dtype));
    if (!lt_tensor_set_requires_grad(t, true)) return false;
  }
  return lt_result_set(c, t);
}

static lt_Arg shape_of(const lt_Call *c) { return LT_INTS(lt_in(c, 0)->shape, lt_in(c, 0)->ndim); }

/* Allocates a tensor on the CPU without a call, which would cost several times what a small tensor
 * does. */
static lt_Tensor *empty_at_once(lt_Arg size, lt_Dtype dtype) {
  int64_t shape[LT_MAX_DIMS];
  int ndim;
  return lt_check_sizes(&size, &ndim, shape) ? lt_scope_own(lt_empty(dtype, lt_cpu(), ndim, shape))
                                             : NULL;
}

/* Allocates the result. A call of `empty` also writes bools. */
static lt_Tensor *fresh(const lt_Call *c, lt_Arg size, lt_Dtype otherwise) {
  lt_Dtype dtype = dtype_option(c, otherwise);
  lt_Device device = device_option(c);
  if (dtype != LT_bool && device.type == LT_DEVICE_cpu && lt_is_unobserved(c))
    return empty_at_once(size, dtype);
  return lt_do(empty, size, lt_arg_dtype(dtype), LT_ARG(device));
}

enum { FEW_BYTES = 4096 }; /* zeros up to this size take no loop */

/* Returns true when the memory of a new storage of the CPU is zeros already. */
static bool is_zero(const lt_Storage *s) {
  return lt_device_backend(LT_DEVICE_cpu)->memory.is_zero(s->data, s->nbytes);
}

/* Returns a tensor on the CPU with one real value, without the calls that allocate and fill it. */
static lt_Tensor *filled_at_once(lt_Arg size, lt_Dtype dtype, lt_Scalar value) {
  lt_Scalar unused = lt_scalar_int(0);
  lt_Tensor *t = empty_at_once(size, dtype);
  bool zero = value.kind == LT_INTEGER && value.i == 0; /* not -0.0 */
  if (t && zero && is_zero(t->storage)) return t;
  if (t && zero && t->storage->nbytes <= FEW_BYTES) {
    if (t->numel) memset(t->storage->data, 0, t->storage->nbytes);
    return lt_check_interrupt() ? t : NULL;
  }
  return t && lt_loop_run(LT_OP_fill, t, lt_dtype_compute(dtype), 1, (lt_Arg[]){LT_ARG(t)}, value,
                          unused)
             ? t
             : NULL;
}

/* Returns a tensor with one value. */
static bool filled(lt_Call *c, lt_Arg size, lt_Dtype otherwise, lt_Scalar value) {
  lt_Dtype dtype = dtype_option(c, otherwise);
  bool fits = value.kind != LT_COMPLEX &&
              (lt_dtype_is_float(dtype) || lt_scalar_is(value, 0) || lt_scalar_is(value, 1));
  if (fits && device_option(c).type == LT_DEVICE_cpu && lt_is_unobserved(c))
    return made(c, filled_at_once(size, dtype, value));
  lt_Tensor *t = fresh(c, size, otherwise);
  return made(c, lt_do_in_place(fill, LT_ARG(t), LT_ARG(value)));
}

/* Gives a result like self, of equal or undefined elements, the order that self has in memory,
 * unless the option memory_format says otherwise. */
static bool like(lt_Call *c, bool ok) {
  int format = options(c) + 3;
  bool plain = format < c->nargs && lt_given(c, format) &&
               strcmp(c->arg[format].string, "preserve_format") != 0;
  if (ok && !plain) lt_keep_order(c->out[0], 1, &c->arg[0].tensor);
  return ok;
}

/* ---- one value ------------------------------------------------------------------------------- */

bool lt_composite_zeros(lt_Call *c) {
  return filled(c, c->arg[0], lt_dtype_default(), lt_scalar_int(0));
}
bool lt_composite_ones(lt_Call *c) {
  return filled(c, c->arg[0], lt_dtype_default(), lt_scalar_int(1));
}

/* full (size, fill_value): without a dtype, the value's kind determines it. */
bool lt_composite_full(lt_Call *c) {
  lt_Scalar value = c->arg[1].scalar;
  lt_Dtype natural = lt_result_type((lt_Arg[]){LT_ARG(value)}, 1);
  return filled(c, c->arg[0], natural, value);
}

bool lt_composite_empty_like(lt_Call *c) {
  return like(c, made(c, fresh(c, shape_of(c), lt_in(c, 0)->dtype)));
}

bool lt_composite_zeros_like(lt_Call *c) {
  return like(c, filled(c, shape_of(c), lt_in(c, 0)->dtype, lt_scalar_int(0)));
}

bool lt_composite_ones_like(lt_Call *c) {
  return like(c, filled(c, shape_of(c), lt_in(c, 0)->dtype, lt_scalar_int(1)));
}

bool lt_composite_full_like(lt_Call *c) {
  return like(c, filled(c, shape_of(c), lt_in(c, 0)->dtype, c->arg[1].scalar));
}

bool lt_composite_new_empty(lt_Call *c) { return made(c, fresh(c, c->arg[1], lt_in(c, 0)->dtype)); }

bool lt_composite_new_zeros(lt_Call *c) {
  return filled(c, c->arg[1], lt_in(c, 0)->dtype, lt_scalar_int(0));
}

bool lt_composite_new_ones(lt_Call *c) {
  return filled(c, c->arg[1], lt_in(c, 0)->dtype, lt_scalar_int(1));
}

bool lt_composite_new_full(lt_Call *c) {
  return filled(c, c->arg[1], lt_in(c, 0)->dtype, c->arg[2].scalar);
}

/* ---- rows of numbers ------------------------------------------------------------------------- */

/* Returns true when the dtype is an integer dtype and a bound is an integer that does not fit. */
static bool wraps(lt_Dtype dtype, lt_Arg start, lt_Arg stop) {
  int64_t low, high;
  if (dtype == LT_bool || lt_dtype_is_float(dtype) || lt_dtype_is_complex(dtype)) return false;
  if (start.scalar.kind == LT_FLOATING || stop.scalar.kind == LT_FLOATING) return false;
  lt_dtype_range(dtype, &low, &high);
  int64_t a = lt_scalar_to_int(start.scalar), b = lt_scalar_to_int(stop.scalar);
  return a < low || a > high || b < low || b > high;
}

/* arange (start, stop?, step): with start alone, 1..start. Negative numbers of an unsigned dtype
 * wrap, as in PyTorch. */
bool lt_composite_arange(lt_Call *c) {
  lt_Arg start = lt_given(c, 1) ? c->arg[0] : LT_ARG(lt_scalar_int(LT_INDEX_BASE));
  lt_Arg stop = lt_given(c, 1) ? c->arg[1] : c->arg[0], device = LT_ARG(device_option(c));
  if (!lt_given(c, 3) || c->arg[3].dtype != LT_uint8 || !wraps(LT_uint8, start, stop))
    return made(c, lt_do(_arange, start, stop, c->arg[2], c->arg[3], device));
  lt_Tensor *wide = lt_do(_arange, start, stop, c->arg[2], lt_arg_dtype(LT_int64), device);
  return made(c, lt_do(to, LT_ARG(wide), LT_NIL, c->arg[3]));
}

/* Returns the real or imaginary part of a number. */
static lt_Arg part_of(lt_Scalar s, bool imaginary) {
  if (s.kind == LT_COMPLEX) return LT_ARG(imaginary ? s.im : s.f);
  return imaginary ? LT_ARG(0.0) : LT_ARG(s);
}

/* Returns `steps` numbers from start to stop, of any dtype. */
static lt_Tensor *spaced(lt_Arg start, lt_Arg stop, lt_Arg steps, lt_Dtype dtype,
                         lt_Device device) {
  lt_Arg at = LT_ARG(device);
  if (!lt_dtype_is_complex(dtype))
    return lt_do(_linspace, start, stop, steps, lt_arg_dtype(dtype), at);
  lt_Arg real = lt_arg_dtype(lt_dtype_real(dtype));
  lt_Tensor *re = lt_do(_linspace, part_of(start.scalar, false), part_of(stop.scalar, false), steps,
                        real, at),
            *im = lt_do(_linspace, part_of(start.scalar, true), part_of(stop.scalar, true), steps,
                        real, at);
  return lt_do(complex, LT_ARG(re), LT_ARG(im));
}

/* Returns the dtype option; without it the default float, or the complex dtype of its parts when
 * one of the ends is complex. */
static lt_Dtype spaced_dtype(const lt_Call *c) {
  bool complex = c->arg[0].scalar.kind == LT_COMPLEX || c->arg[1].scalar.kind == LT_COMPLEX;
  return dtype_option(c, complex ? lt_dtype_complex(lt_dtype_default()) : lt_dtype_default());
}

/* linspace (start, stop, steps) */
bool lt_composite_linspace(lt_Call *c) {
  return made(c, spaced(c->arg[0], c->arg[1], c->arg[2], spaced_dtype(c), device_option(c)));
}

/* eye (n, m?) */
bool lt_composite_eye(lt_Call *c) {
  lt_Dtype dtype = dtype_option(c, lt_dtype_default());
  bool complex = lt_dtype_is_complex(dtype);
  lt_Tensor *t =
      lt_do(_eye, c->arg[0], c->arg[1], lt_arg_dtype(complex ? lt_dtype_real(dtype) : dtype),
            LT_ARG(device_option(c)));
  return made(c, complex ? lt_do(to, LT_ARG(t), LT_NIL, lt_arg_dtype(dtype)) : t);
}

/* Rounds a number to a dtype. */
static bool round_to(lt_Arg *a, lt_Dtype dtype) {
  char element[16];
  if (a->scalar.kind == LT_COMPLEX) return true;
  if (!lt_dtype_is_float(dtype))
    a->scalar = lt_scalar_int(lt_scalar_to_int(a->scalar));
  else if (!lt_scalar_store(a->scalar, dtype, element))
    return false;
  else
    a->scalar = lt_scalar_load(dtype, element);
  return true;
}

/* logspace (start, stop, steps, base): the exponents, whose ends are rounded to the result's dtype,
 * are computed in float64 where the device has it, because an error in them is multiplied by the
 * result */
bool lt_composite_logspace(lt_Call *c) {
  lt_Device device = device_option(c);
  bool wide = lt_op_supported(LT_OP_pow, device.type, LT_float64);
  lt_Dtype dtype = wide ? LT_float64 : LT_float32, result = spaced_dtype(c);
  lt_Arg start = c->arg[0], stop = c->arg[1];
  lt_Tensor *powers;
  if (lt_dtype_is_complex(result)) {
    double base = lt_scalar_to_double(c->arg[3].scalar);
    lt_Tensor *exponents = spaced(start, stop, c->arg[2], lt_dtype_complex(dtype), device);
    powers = lt_do(exp, LT_ARG(lt_do(mul, LT_ARG(exponents), LT_ARG(log(base)))));
  } else {
    if (!round_to(&start, result) || !round_to(&stop, result)) return false;
    powers = lt_do(pow, c->arg[3], LT_ARG(spaced(start, stop, c->arg[2], dtype, device)));
  }
  return made(c, lt_do(to, LT_ARG(powers), LT_NIL, lt_arg_dtype(result)));
}

/* ---- random numbers -------------------------------------------------------------------------- */

/* Checks the option dtype of functions whose numbers are not integers. */
static bool check_float_option(const lt_Call *c, lt_Dtype otherwise) {
  lt_Dtype d = dtype_option(c, otherwise);
  return lt_dtype_is_float(d) || lt_dtype_is_complex(d) ||
         lt_fail("expected a float dtype, got \"%s\"", lt_dtype_name(d));
}

/* Returns t, or a real view of a complex t: both parts are random numbers, of which each has half
 * of the variance. */
static lt_Tensor *parts_of(lt_Tensor *t) {
  return t && lt_dtype_is_complex(t->dtype) ? lt_do(view_as_real, LT_ARG(t)) : t;
}

/* Fills t with random numbers of a distribution, uniform or normal, and returns it as the result.
 * The op is called for complex numbers, and to report a negative standard deviation. */
static bool drawn_from(lt_Call *c, lt_OpId op, lt_Tensor *t, double a, double b, lt_Arg generator) {
  const lt_Arg args[] = {LT_ARG(parts_of(t)), LT_ARG(a), LT_ARG(b), generator};
  if (t && t == args[0].tensor && b >= 0 && lt_is_unobserved(c))
    return lt_run_at_once(op, args, 4, t) && made(c, t);
  return made(c, lt_do_(op, true, args, 4, 0) ? t : NULL);
}

/* Returns uniform random numbers on [0, 1). */
static bool uniform(lt_Call *c, lt_Arg size, lt_Arg generator, lt_Dtype otherwise) {
  if (!check_float_option(c, otherwise)) return false;
  return drawn_from(c, LT_OP_uniform, fresh(c, size, otherwise), 0, 1, generator);
}

/* Returns normally distributed random numbers. */
static bool normal(lt_Call *c, lt_Arg size, double mean, double std, lt_Arg generator,
                   lt_Dtype otherwise) {
  if (!check_float_option(c, otherwise)) return false;
  lt_Tensor *t = fresh(c, size, otherwise);
  if (t && lt_dtype_is_complex(t->dtype)) std *= sqrt(0.5);
  return drawn_from(c, LT_OP_normal, t, mean, std, generator);
}

/* Returns random integers. */
static bool random_integers(lt_Call *c, lt_Arg size, lt_Arg low, lt_Arg high, lt_Arg generator,
                            lt_Dtype otherwise) {
  lt_Tensor *t = fresh(c, size, otherwise);
  return made(c, lt_do_in_place(random, LT_ARG(t), low, high, generator));
}

bool lt_composite_rand(lt_Call *c) { return uniform(c, c->arg[0], c->arg[1], lt_dtype_default()); }
bool lt_composite_rand_like(lt_Call *c) {
  return uniform(c, shape_of(c), LT_NIL, lt_in(c, 0)->dtype);
}
bool lt_composite_randn(lt_Call *c) {
  return normal(c, c->arg[0], 0, 1, c->arg[1], lt_dtype_default());
}

bool lt_composite_randn_like(lt_Call *c) {
  return normal(c, shape_of(c), 0, 1, LT_NIL, lt_in(c, 0)->dtype);
}

bool lt_composite__normal(lt_Call *c) {
  return normal(c, c->arg[2], c->arg[0].f, c->arg[1].f, c->arg[3], lt_dtype_default());
}

/* randint (low, high?, size?, generator?): random_ reads one end as 1..low */
bool lt_composite_randint(lt_Call *c) {
  if (!lt_given(c, 2))
    return lt_fail("expected sizes (integers) for argument 'size', got no value\nhint: "
                   "lt.randint(6, {100}), or lt.randint(6, {size = {}}) for a tensor of 0 dims");
  return random_integers(c, c->arg[2], c->arg[0], c->arg[1], c->arg[3], LT_int64);
}

/* randint_like (self, low, high?) */
bool lt_composite_randint_like(lt_Call *c) {
  return random_integers(c, shape_of(c), c->arg[1], c->arg[2], LT_NIL, lt_in(c, 0)->dtype);
}

/* Returns contiguous memory for random numbers for self: kernels fill it in this order, whatever
 * the order of self. */
static lt_Tensor *room_for(const lt_Call *c, lt_Dtype dtype) {
  return lt_do(empty, shape_of(c), lt_arg_dtype(dtype), LT_ARG(lt_tensor_device(lt_in(c, 0))));
}

/* bernoulli (self, p?, generator?): without p, self holds the probabilities. */
bool lt_composite_bernoulli(lt_Call *c) {
  lt_Arg p = lt_given(c, 1) ? c->arg[1] : LT_ARG(0.5);
  if (c->in_place) return lt_result_set(c, lt_do_in_place(_bernoulli, c->arg[0], p, c->arg[2]));
  if (!lt_given(c, 1)) return lt_result_set(c, lt_do(_bernoulli_of, c->arg[0], c->arg[2]));
  lt_Tensor *t = room_for(c, lt_in(c, 0)->dtype);
  return lt_result_set(c, lt_do_in_place(_bernoulli, LT_ARG(t), p, c->arg[2]));
}

/* Returns the tensor in which random numbers for self are computed: self where it is changed in
 * place and has their dtype, float32 or float64; otherwise a new one. */
static lt_Tensor *drawn(const lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0);
  lt_Dtype dtype = self->dtype == LT_float64 ? LT_float64 : LT_float32;
  if (c->in_place && self->dtype == dtype && !lt_tensor_requires_grad(self)) return self;
  return room_for(c, dtype);
}

/* Sets the result to self, or to a new tensor like it, with the numbers of t. */
static bool set_drawn(lt_Call *c, lt_Tensor *t) {
  if (t == lt_in(c, 0)) return lt_result_set(c, t);
  lt_Arg to = c->in_place ? c->arg[0] : LT_ARG(room_for(c, lt_in(c, 0)->dtype));
  return lt_result_set(c, lt_do_in_place(_copy, to, LT_ARG(t)));
}

/* cauchy (self, median, sigma, generator?): tangents of angles from -pi / 2 to pi / 2 */
bool lt_composite_cauchy(lt_Call *c) {
  double median = c->arg[1].f, sigma = c->arg[2].f, right = 1.57079632679489661923;
  if (!lt_check_float(c, 0)) return false;
  if (!(sigma > 0))
    return lt_fail("expected a number above 0 for argument 'sigma', got %s", lt_number_text(sigma));
  lt_Tensor *t = drawn(c);
  t = lt_do_in_place(uniform, LT_ARG(t), LT_ARG(-right), LT_ARG(right), c->arg[3]);
  t = lt_do_in_place(tan, LT_ARG(t));
  if (sigma != 1) t = lt_do_in_place(mul, LT_ARG(t), LT_ARG(sigma));
  if (median != 0) t = lt_do_in_place(add, LT_ARG(t), LT_ARG(median));
  return set_drawn(c, t);
}

/* log_normal (self, mean, std, generator?) */
bool lt_composite_log_normal(lt_Call *c) {
  if (!lt_check_float(c, 0)) return false;
  if (!(c->arg[2].f > 0))
    return lt_fail("expected a number above 0 for argument 'std', got %s",
                   lt_number_text(c->arg[2].f));
  lt_Tensor *t = drawn(c);
  t = lt_do_in_place(normal, LT_ARG(t), c->arg[1], c->arg[2], c->arg[3]);
  return set_drawn(c, lt_do_in_place(exp, LT_ARG(t)));
}

/* geometric (self, p, generator?): the integers above exponential numbers, which exceed k with the
 * probability (1 - p)^k */
bool lt_composite_geometric(lt_Call *c) {
  double p = c->arg[1].f;
  if (!(p > 0 && p < 1))
    return lt_fail("expected a probability above 0 and below 1 for argument 'p', got %s",
                   lt_number_text(p));
  lt_Tensor *t = drawn(c);
  t = lt_do_in_place(exponential, LT_ARG(t), LT_ARG(-log1p(-p)), c->arg[2]);
  t = lt_do_in_place(ceil, LT_ARG(t));
  return set_drawn(c, lt_do_in_place(clamp, LT_ARG(t), LT_ARG(1))); /* the exponential may be 0 */
}

/* dropout (self, p, training): Srivastava et al. 2014; the scaling makes the expected value
 * what it is at test time */
bool lt_composite_dropout(lt_Call *c) {
  double p = c->arg[1].f;
  if (!(p >= 0 && p <= 1))
    return lt_fail("expected a probability from 0 to 1 for argument 'p', got %s",
                   lt_number_text(p));
  lt_Dtype real = lt_dtype_real(lt_in(c, 0)->dtype);
  if (real == lt_in(c, 0)->dtype && !lt_check_float(c, 0)) return false;
  if (!c->arg[2].b || p == 0) return lt_result_set(c, lt_in(c, 0));
  lt_Tensor *kept = room_for(c, real);
  kept = p == 1 ? lt_do_in_place(fill, LT_ARG(kept), LT_ARG(0))
                : lt_do_in_place(_bernoulli, LT_ARG(kept), LT_ARG(1 - p));
  if (p < 1) kept = lt_do_in_place(mul, LT_ARG(kept), LT_ARG(1 / (1 - p)));
  if (c->in_place) return lt_result_set(c, lt_do_in_place(mul, c->arg[0], LT_ARG(kept)));
  return lt_result_set(c, lt_do(mul, c->arg[0], LT_ARG(kept)));
}
