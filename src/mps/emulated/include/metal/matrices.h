/* matrices.h: matrices of 8 x 8 numbers that a SIMD group holds together, two numbers in each lane.
 *
 * A product is computed by the lane that calls it last, for all lanes. */
#ifndef LT_EMULATED_METAL_MATRICES_H
#define LT_EMULATED_METAL_MATRICES_H

namespace metal {

template <class T, int C, int R> struct simdgroup_matrix {
  static_assert(C == 8 && R == 8, "simdgroup_matrix: expected 8 rows and columns");
  static_assert(is_floating_point<T>::value, "simdgroup_matrix: expected float, half or bfloat");
  vec<T, 2> held;
  simdgroup_matrix() = default;
  /* Creates a diagonal matrix. */
  LT_EMULATED explicit simdgroup_matrix(T v);
  LT_EMULATED vec<T, 2> &thread_elements() { return held; }
  LT_EMULATED const vec<T, 2> &thread_elements() const { return held; }
};
typedef simdgroup_matrix<float, 8, 8> simdgroup_float8x8;
typedef simdgroup_matrix<half, 8, 8> simdgroup_half8x8;
typedef simdgroup_matrix<bfloat, 8, 8> simdgroup_bfloat8x8;

/* Return the row, and the column of the first of the two numbers, of a lane; as on Apple's GPUs. */
LT_EMULATED unsigned lt_row_of(unsigned lane) { return (lane / 4 & 4) + lane / 2 % 4; }
LT_EMULATED unsigned lt_column_of(unsigned lane) { return (lane / 4 & 2) * 2 + lane % 2 * 2; }

template <class T, int C, int R> LT_EMULATED simdgroup_matrix<T, C, R>::simdgroup_matrix(T v) {
  unsigned row = lt_row_of(lt_lane()), column = lt_column_of(lt_lane());
  held.x = row == column ? v : (T)0;
  held.y = row == column + 1 ? v : (T)0;
}
template <class T, int C, int R>
LT_EMULATED simdgroup_matrix<T, C, R> make_filled_simdgroup_matrix(T v) {
  simdgroup_matrix<T, C, R> m;
  m.held = vec<T, 2>(v);
  return m;
}

template <class T, class P>
LT_EMULATED void simdgroup_load(simdgroup_matrix<T, 8, 8> &m, const P *from, ulong stride = 8,
                                ulong2 origin = ulong2(0), bool transpose = false) {
  static_assert(is_same<T, P>::value, "simdgroup_load: expected memory of the matrix's type");
  ulong row = lt_row_of(lt_lane()), column = lt_column_of(lt_lane());
  for (int i = 0; i < 2; i++, column++)
    m.held[i] = transpose ? from[(origin.y + column) * stride + origin.x + row]
                          : from[(origin.y + row) * stride + origin.x + column];
}
template <class T>
LT_EMULATED void simdgroup_store(simdgroup_matrix<T, 8, 8> m, T *to, ulong stride = 8,
                                 ulong2 origin = ulong2(0), bool transpose = false) {
  ulong row = lt_row_of(lt_lane()), column = lt_column_of(lt_lane());
  for (int i = 0; i < 2; i++, column++)
    (transpose ? to[(origin.y + column) * stride + origin.x + row]
               : to[(origin.y + row) * stride + origin.x + column]) = m.held[i];
}

/* The matrices of one lane for d = a b + c. */
template <class D, class A, class B, class C> struct lt_Product : lt_EmulatedCall {
  vec<D, 2> *d;
  const vec<A, 2> *a;
  const vec<B, 2> *b;
  const vec<C, 2> *c;

  template <class T> static void gather(float to[8][8], unsigned lane, const vec<T, 2> *from) {
    float *at = &to[lt_row_of(lane)][lt_column_of(lane)];
    at[0] = (float)from->x;
    at[1] = (float)from->y;
  }
  static void all(lt_EmulatedCall *const *lanes, unsigned set) {
    float left[8][8], right[8][8], sum[8][8];
    if (set != ~0u) lt_emulated_trap(LT_EMULATED_FAILURE); /* a lane has returned */
    for (unsigned lane = 0; lane < 32; lane++) {
      const lt_Product *p = (const lt_Product *)lanes[lane];
      gather(left, lane, p->a);
      gather(right, lane, p->b);
      gather(sum, lane, p->c);
    }
    for (int i = 0; i < 8; i++)
      for (int k = 0; k < 8; k++)
        for (int j = 0; j < 8; j++) sum[i][j] += left[i][k] * right[k][j];
    for (unsigned lane = 0; lane < 32; lane++) {
      const float *at = &sum[lt_row_of(lane)][lt_column_of(lane)];
      *((lt_Product *)lanes[lane])->d = vec<D, 2>((D)at[0], (D)at[1]);
    }
  }
};
template <class D, class A, class B, class C>
LT_EMULATED void
simdgroup_multiply_accumulate(simdgroup_matrix<D, 8, 8> &d, simdgroup_matrix<A, 8, 8> a,
                              simdgroup_matrix<B, 8, 8> b, simdgroup_matrix<C, 8, 8> c) {
  lt_Product<D, A, B, C> p;
  p.run = lt_Product<D, A, B, C>::all;
  p.d = &d.held;
  p.a = &a.held;
  p.b = &b.held;
  p.c = &c.held;
  lt_emulated_warp(~0u, LT_EMULATED_CALL, (unsigned long long)(lt_EmulatedCall *)&p, 0, 32);
}
template <class D, class A, class B>
LT_EMULATED void simdgroup_multiply(simdgroup_matrix<D, 8, 8> &d, simdgroup_matrix<A, 8, 8> a,
                                    simdgroup_matrix<B, 8, 8> b) {
  simdgroup_multiply_accumulate(d, a, b, make_filled_simdgroup_matrix<D, 8, 8>((D)0));
}
template <class T>
LT_EMULATED simdgroup_matrix<T, 8, 8> operator*(simdgroup_matrix<T, 8, 8> a,
                                                simdgroup_matrix<T, 8, 8> b) {
  simdgroup_matrix<T, 8, 8> d;
  simdgroup_multiply(d, a, b);
  return d;
}

} // namespace metal

#endif
