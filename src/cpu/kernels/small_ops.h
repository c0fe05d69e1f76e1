/* small_ops.h: the ops that have loops for integers of 8 and 16 bits. Their results, of operands
 * of the dtype, are those of the same expression for int32, wrapped to the dtype: these may be
 * computed in fewer bits. Loads convert such integers to one another. */
#ifndef LT_CPU_SMALL_OPS_H
#define LT_CPU_SMALL_OPS_H

/* LT_IS_SMALL(name) is 1 for the names that have a macro here, else 0: the macro's comma makes
 * its 1 the second argument. */
#define LT_IS_SMALL(name)          LT_SMALL_SECOND_(LT_SMALL_##name, 0, )
#define LT_SMALL_SECOND_(...)      LT_SMALL_SECOND(__VA_ARGS__)
#define LT_SMALL_SECOND(a, b, ...) b

#define LT_SMALL_neg                 , 1
#define LT_SMALL_abs                 , 1
#define LT_SMALL_sign                , 1
#define LT_SMALL_sgn                 , 1
#define LT_SMALL_square              , 1
#define LT_SMALL_relu                , 1
#define LT_SMALL_floor               , 1
#define LT_SMALL_ceil                , 1
#define LT_SMALL__round              , 1
#define LT_SMALL_trunc               , 1
#define LT_SMALL_bitwise_not         , 1
#define LT_SMALL_logical_not         , 1
#define LT_SMALL_isnan               , 1
#define LT_SMALL_isinf               , 1
#define LT_SMALL_isposinf            , 1
#define LT_SMALL_isneginf            , 1
#define LT_SMALL_isreal              , 1
#define LT_SMALL_isfinite            , 1
#define LT_SMALL_signbit             , 1
#define LT_SMALL_add                 , 1
#define LT_SMALL_sub                 , 1
#define LT_SMALL_mul                 , 1
#define LT_SMALL_maximum             , 1
#define LT_SMALL_minimum             , 1
#define LT_SMALL_fmax                , 1
#define LT_SMALL_fmin                , 1
#define LT_SMALL__clamp              , 1
#define LT_SMALL__hardtanh           , 1
#define LT_SMALL_threshold           , 1
#define LT_SMALL_addcmul             , 1
#define LT_SMALL_eq                  , 1
#define LT_SMALL_ne                  , 1
#define LT_SMALL_lt                  , 1
#define LT_SMALL_le                  , 1
#define LT_SMALL_gt                  , 1
#define LT_SMALL_ge                  , 1
#define LT_SMALL_logical_and         , 1
#define LT_SMALL_logical_or          , 1
#define LT_SMALL_logical_xor         , 1
#define LT_SMALL_bitwise_and         , 1
#define LT_SMALL_bitwise_or          , 1
#define LT_SMALL_bitwise_xor         , 1
#define LT_SMALL_bitwise_left_shift  , 1
#define LT_SMALL_bitwise_right_shift , 1

#define LT_SMALL_INTEGERS(DO)      DO(uint8, uint8_t) DO(int8, int8_t) DO(int16, int16_t)
#define SMALL_LOAD(name, storage)  LOAD(load_##name, name, storage, INTEGER)
#define SMALL_ENTRY(name, storage) [LT_##name] = load_##name,

#endif
