/* chain_ops.h: the elementwise ops, and the powers of powers.def, that take few instructions and
 * can be steps of a chain (chain_loop.h). */
#ifndef LT_CPU_CHAIN_OPS_H
#define LT_CPU_CHAIN_OPS_H

/* LT_IS_CHAINED(name) is 1 for the names that have a macro here, else 0: the macro's comma makes
 * its 1 the second argument. */
#define LT_IS_CHAINED(name)          LT_CHAINED_SECOND_(LT_CHAINED_##name, 0, )
#define LT_CHAINED_SECOND_(...)      LT_CHAINED_SECOND(__VA_ARGS__)
#define LT_CHAINED_SECOND(a, b, ...) b

#define LT_CHAINED_neg            , 1
#define LT_CHAINED_abs            , 1
#define LT_CHAINED_sign           , 1
#define LT_CHAINED_square         , 1
#define LT_CHAINED_relu           , 1
#define LT_CHAINED_sqrt           , 1
#define LT_CHAINED_rsqrt          , 1
#define LT_CHAINED_reciprocal     , 1
#define LT_CHAINED_leaky_relu     , 1
#define LT_CHAINED__hardtanh      , 1
#define LT_CHAINED_logical_not    , 1
#define LT_CHAINED_add            , 1
#define LT_CHAINED_sub            , 1
#define LT_CHAINED_mul            , 1
#define LT_CHAINED__true_divide   , 1
#define LT_CHAINED_maximum        , 1
#define LT_CHAINED_minimum        , 1
#define LT_CHAINED_eq             , 1
#define LT_CHAINED_ne             , 1
#define LT_CHAINED_lt             , 1
#define LT_CHAINED_le             , 1
#define LT_CHAINED_gt             , 1
#define LT_CHAINED_ge             , 1
#define LT_CHAINED_logical_and    , 1
#define LT_CHAINED_logical_or     , 1
#define LT_CHAINED__where         , 1
#define LT_CHAINED_masked_fill    , 1
#define LT_CHAINED__clamp         , 1
#define LT_CHAINED__relu_backward , 1
#define LT_CHAINED_power_two      , 1
#define LT_CHAINED_power_three    , 1

#endif
