/* float64_ops.h: the ops of type WF that have vector loops of float64 (special_float64.h). The
 * others have those of src/cpu/special.c, as have the elements for which a vector loop is not
 * exact. */
#ifndef LT_CPU_FLOAT64_OPS_H
#define LT_CPU_FLOAT64_OPS_H

/* LT_IS_VECTOR(name) is 1 for the names that have a macro here, else 0: the macro's comma makes its
 * 1 the second argument. */
#define LT_IS_VECTOR(name)          LT_VECTOR_SECOND_(LT_VECTOR_##name, 0, )
#define LT_VECTOR_SECOND_(...)      LT_VECTOR_SECOND(__VA_ARGS__)
#define LT_VECTOR_SECOND(a, b, ...) b

#define LT_VECTOR_mish              , 1
#define LT_VECTOR_selu              , 1
#define LT_VECTOR_celu              , 1
#define LT_VECTOR__logit            , 1
#define LT_VECTOR_erfinv            , 1
#define LT_VECTOR__sinc             , 1
#define LT_VECTOR_special_ndtri     , 1
#define LT_VECTOR_nextafter         , 1
#define LT_VECTOR_special_ndtr      , 1
#define LT_VECTOR_special_entr      , 1
#define LT_VECTOR_xlogy             , 1
#define LT_VECTOR_special_bessel_j0 , 1
#define LT_VECTOR_special_bessel_j1 , 1
#define LT_VECTOR_special_bessel_y0 , 1
#define LT_VECTOR_special_bessel_y1 , 1

/* Those whose elements the vector loops do not all compute: of float64, and of float32. */
#define LT_IS_PARTLY(name)          LT_VECTOR_SECOND_(LT_PARTLY_##name, 0, )
#define LT_IS_PARTLYF(name)         LT_VECTOR_SECOND_(LT_PARTLYF_##name, 0, )
#define LT_PARTLY_special_bessel_j0 , 1
#define LT_PARTLY_special_bessel_j1 , 1
#define LT_PARTLY_special_bessel_y0 , 1
#define LT_PARTLY_special_bessel_y1 , 1
#define LT_PARTLYF_lgamma           , 1

#endif
