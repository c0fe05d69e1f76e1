/* float64_ops.h: the ops of type WF that have vector loops of float64 (special_float64.h). The
 * others have those of src/cpu/special.c, as have the elements for which a vector loop is not
 * exact. */
#ifndef LT_CPU_FLOAT64_OPS_H
#define LT_CPU_FLOAT64_OPS_H

/* How a vector loop computes an op of float64: 0: there is none; ALL: all elements; PARTLY: it
 * leaves some to src/cpu/special.c. Names without a macro here have 0: the macro's comma makes its
 * word the second argument. LT_VECTORF: the same of float32, where all ops of type WF have a loop.
 */
#define LT_VECTOR(name)             LT_VECTOR_SECOND_(LT_VECTOR_##name, 0, )
#define LT_VECTORF(name)            LT_VECTOR_SECOND_(LT_VECTORF_##name, ALL, )
#define LT_VECTOR_SECOND_(...)      LT_VECTOR_SECOND(__VA_ARGS__)
#define LT_VECTOR_SECOND(a, b, ...) b

#define LT_VECTOR_mish              , ALL
#define LT_VECTOR_selu              , ALL
#define LT_VECTOR_celu              , ALL
#define LT_VECTOR__logit            , ALL
#define LT_VECTOR_erfinv            , ALL
#define LT_VECTOR__sinc             , ALL
#define LT_VECTOR_special_ndtri     , ALL
#define LT_VECTOR_nextafter         , ALL
#define LT_VECTOR_special_ndtr      , ALL
#define LT_VECTOR_special_entr      , ALL
#define LT_VECTOR_xlogy             , ALL
#define LT_VECTOR_special_bessel_j0 , PARTLY
#define LT_VECTOR_special_bessel_j1 , PARTLY
#define LT_VECTOR_special_bessel_y0 , PARTLY
#define LT_VECTOR_special_bessel_y1 , PARTLY

#define LT_VECTORF_lgamma , PARTLY

#endif
