/* float64_ops.h: the ops of type WF that have vector loops of float64 (special_float64.h). The
 * others have those of src/cpu/special.c. */
#ifndef LT_CPU_FLOAT64_OPS_H
#define LT_CPU_FLOAT64_OPS_H

/* LT_IS_VECTOR(name) is 1 for the names that have a macro here, else 0: the macro's comma makes its
 * 1 the second argument. */
#define LT_IS_VECTOR(name)          LT_VECTOR_SECOND_(LT_VECTOR_##name, 0, )
#define LT_VECTOR_SECOND_(...)      LT_VECTOR_SECOND(__VA_ARGS__)
#define LT_VECTOR_SECOND(a, b, ...) b

#define LT_VECTOR_mish          , 1
#define LT_VECTOR_selu          , 1
#define LT_VECTOR_celu          , 1
#define LT_VECTOR__logit        , 1
#define LT_VECTOR_erfinv        , 1
#define LT_VECTOR__sinc         , 1
#define LT_VECTOR_special_ndtri , 1
#define LT_VECTOR_nextafter     , 1

#endif
