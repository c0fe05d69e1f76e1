/* bessel_float64.h: Bessel functions J and Y of float64, without branches, for positive numbers
 * less than 2^20; written as special_float64.h. Near 0, J is the factor of its first zero times a
 * polynomial, and so is Y without its logarithm's multiple of J. Up to 8 they are factors of zeros
 * times polynomials of x, and from there on modulus times sine of the phase (DLMF 10.18), by
 * polynomials of u = 2 (8 / x)^2 - 1. */
#ifndef LT_CPU_BESSEL_FLOAT64_H
#define LT_CPU_BESSEL_FLOAT64_H

#include "maths.h"

/* ---- polynomials ----------------------------------------------------------------------------- */

/* J0(x) over x^2 less the square of its first zero, w = x^2 / 8 - 1: 2^-61.6 */
LT_MATHS double lt_j0_first(double w) {
  static const double c[] = {
      1.9187202618789587e-15, -1.3645500267075958e-13, 8.130830978784947e-12,
      -3.994329295091794e-10, 1.5832284373429136e-08,  -4.931799011580952e-07,
      1.1671878503732185e-05, -0.00020060356509921887, 0.002349675176132567,
      -0.017030107053326454,  0.06466008281491797,     -0.08866241912277732};
  return LT_EVEN_ODD(w, c);
}
/* J1(x) / x in the same way: 2^-57.3 */
LT_MATHS double lt_j1_first(double w) {
  static const double c[] = {
      -5.675682899387594e-15, 3.6906427532064693e-13,  -1.992450473377405e-11,
      8.770127892385496e-10,  -3.0710679689788497e-08, 8.297363254207275e-07,
      -1.66097920108534e-05,  0.0002328383160339415,   -0.0020996102272456477,
      0.010530564217109451,   -0.021174890016472454};
  return LT_EVEN_ODD(w, c);
}
/* J0(x) over x less its second zero, t = (x - 6) / 2: 2^-58.9 */
LT_MATHS double lt_j0_second(double t) {
  static const double c[] = {
      -1.596283366459897e-13, -3.1729557038135286e-12, 1.5488942784915502e-11,
      2.6539375346070314e-10, -1.1611098906069759e-09, -1.6671619653710766e-08,
      6.808286354218122e-08,  7.948294844017433e-07,   -3.017949636844922e-06,
      -2.749377860450752e-05, 9.646926483449232e-05,   0.0006459306455148286,
      -0.0020774283350247693, -0.00929255864945561,    0.027051463074431268,
      0.06771996395984485,    -0.17372013973805456,    -0.15507318473338452,
      0.3138953660581486};
  return LT_EVEN_ODD(t, c);
}
/* J1(x) in the same way: 2^-58.4 */
LT_MATHS double lt_j1_second(double t) {
  static const double c[] = {
      -3.3218988233091236e-13, 1.267606634784099e-12,   3.0968532755917507e-11,
      -1.0911945804243714e-10, -2.2108322398674538e-09, 7.107451925775086e-09,
      1.2226323964569002e-07,  -3.5445009945194157e-07, -5.0469890391254065e-06,
      1.2986891113421143e-05,  0.00014768450045295626,  -0.00032943003774602784,
      -0.0028436003833863786,  0.005284544402710377,    0.0320566373725303,
      -0.04577588300459663,    -0.17166720548714498,    0.14903352703224648,
      0.2724374653103688};
  return LT_EVEN_ODD(t, c);
}
/* With the first zero r of Y0: (Y0(x) - 2 / pi log(x / r) J0(x)) / (x^2 - r^2), w = x^2 / 8 - 1:
 * 2^-59.8 */
LT_MATHS double lt_y0_first(double w) {
  static const double c[] = {
      -4.086538985553719e-15,  2.8354381268860773e-13, -1.643564203290185e-11,
      7.826764477454297e-10,   -2.993779413663817e-08, 8.947348116814358e-07,
      -2.0158522930042173e-05, 0.000326248019800072,   -0.003540534876529221,
      0.023160013280629718,    -0.07560438045810589,   0.0794920345916413};
  return LT_EVEN_ODD(w, c);
}
/* x times the same of Y1 and J1: 2^-58.0 */
LT_MATHS double lt_y1_first(double w) {
  static const double c[] = {6.891734981560329e-14,  -4.314841150004963e-12, 2.2302019539282005e-10,
                             -9.331793446496384e-09, 3.076229502484303e-07,  -7.716740562373198e-06,
                             0.00014044210194861183, -0.0017276658851988326, 0.012737320428140752,
                             -0.042711138488216546,  -0.0030738712375509005, 0.18612623508607282};
  return LT_EVEN_ODD(w, c);
}
/* Y0(x) over x less its second zero, and less its third, t = (x - 5.5) / 2.5: 2^-56.6 */
LT_MATHS double lt_y0_second(double t) {
  static const double c[] = {
      -1.8924059043772112e-11, 4.3066443808354054e-11,  2.0155487689009436e-11,
      -4.534604179030454e-11,  -2.2321024400372007e-10, 5.106344740768828e-10,
      -6.528869595006567e-10,  1.5005588272303797e-09,  -3.958447632438963e-09,
      9.570017676108473e-09,   -2.3888105197622285e-08, 3.611539951702269e-08,
      -2.2613825847222623e-09, 7.207819366480911e-07,   -4.1789084434893895e-06,
      -1.0094001317480305e-05, 7.860381974764103e-05,   0.00021468888095858604,
      -0.0013311854923451212,  -0.0022980329358830063,  0.01310656480363646,
      0.014674307745835963,    -0.07222563164296746,    -0.03048294325426261,
      0.1387787118226028};
  return LT_EVEN_ODD(t, c);
}
/* Y1(x) over x less its second zero: 2^-58.4 */
LT_MATHS double lt_y1_second(double t) {
  static const double c[] = {
      -5.750452004328238e-11,  1.2637385119721015e-10,  1.2483962858314834e-10,
      -2.744995582222119e-10,  -6.543581019202446e-10,  1.4374205793270516e-09,
      -8.423978993473011e-10,  1.845346079298911e-09,   -6.826979787953501e-09,
      1.497611088951258e-08,   -3.0370187160110386e-08, 6.57170478336028e-08,
      -1.5202662528269378e-07, 3.654448702448287e-07,   -5.039363664243007e-07,
      -7.656475052042802e-08,  -9.184144304031403e-06,  5.0545977891628606e-05,
      0.00011191126683503334,  -0.0008073075422178613,  -0.0019326744162955537,
      0.010980007074897057,    0.016202588505386323,    -0.08246240187657773,
      -0.07440294406800137,    0.31254124632933233,     0.09609795801276624,
      -0.337863916427365};
  return LT_EVEN_ODD(t, c);
}
/* The modulus times sqrt(x): 2^-57.7 */
LT_MATHS double lt_modulus_0_wide(double u) {
  static const double c[] = {
      2.533981397176533e-14,   -8.032064853653186e-14, 1.9461991386646159e-13,
      -7.940511294595836e-13,  3.731636592397142e-12,  -1.938367108739232e-11,
      1.201730255404058e-10,   -9.346367274199032e-10, 9.787887520504891e-09,
      -1.5463414938686863e-07, 4.506774607901084e-06,  -0.00038006989744906674,
      0.797499818629752};
  return LT_EVEN_ODD(u, c);
}
LT_MATHS double lt_modulus_1_wide(double u) {
  static const double c[] = {
      -2.8703430557604533e-14, 9.166073069327924e-14,  -2.256465747724035e-13,
      9.306226639291377e-13,   -4.428580861431432e-12, 2.3436982692255685e-11,
      -1.490970952973669e-10,  1.204377532650878e-09,  -1.3406877911060055e-08,
      2.365360118492984e-07,   -8.61141358992924e-06,  0.001150783021443345,
      0.7990442065634052};
  return LT_EVEN_ODD(u, c);
}
/* x times the difference of the phase and x - pi/4, or x - 3 pi/4: 2^-58.2 */
LT_MATHS double lt_phase_0_wide(double u) {
  static const double c[] = {
      1.603475963865888e-14,  -3.987318608582664e-14,  4.014071548324922e-14,
      -1.293762838332983e-13, 5.421055806535029e-13,   -1.837060389667415e-12,
      6.73793048828243e-12,   -2.8050457197097218e-11, 1.3278730729960155e-10,
      -7.355335634951522e-10, 4.968350209100369e-09,   -4.339695787184612e-08,
      5.359525888887428e-07,  -1.0858254768004502e-05, 0.00048509785023360903,
      -0.12450345867138757};
  return LT_EVEN_ODD(u, c);
}
LT_MATHS double lt_phase_1_wide(double u) {
  static const double c[] = {
      4.2596167477398405e-14, -1.1247578450209442e-13, 1.55135488284074e-13,
      -5.211321315646556e-13, 2.113244560035037e-12,   -7.952211987606503e-12,
      3.324678082452645e-11,  -1.6015590284290683e-10, 9.093148803808907e-10,
      -6.366035042379798e-09, 5.886119439614259e-08,   -8.039686306472023e-07,
      1.979074382811709e-05,  -0.0012394706674388042,  0.37373986827925865};
  return LT_EVEN_ODD(u, c);
}

/* ---- functions ------------------------------------------------------------------------------- */

/* Returns the modulus times sin(x + turn + difference), 8 <= x < 2^20: the angle less a multiple of
 * pi in two parts, so that results near zeros are accurate. The turn, too, has two parts. */
LT_MATHS double lt_bessel_wave(double x, bool one, double turn, double turn_low) {
  double i = 1 / x, u = MADDD(128 * i, i, -1.0);
  double n = rint((x + turn) * 0.31830988618379067), r = x - n * 0x1.921fb544p1; /* exact */
  double sum = r + turn, part = sum - r, lost = (r - (sum - part)) + (turn - part);
  double more = (one ? lt_phase_1_wide(u) : lt_phase_0_wide(u)) * i;
  double low = lost + (MADDD(n, -0x1.0b4611a626331p-33, more) + turn_low);
  double s = sum + low, s_low = (sum - s) + low, z = s * s, z2 = z * z;
  double even = -7.643963965925357e-13,
         odd = 2.731365867494017e-15; /* (sin(s) - s) / s^3: 2^-58.6 */
  even = MADDD(even, z2, -2.505210761393476e-08);
  odd = MADDD(odd, z2, 1.6058977114074673e-10);
  even = MADDD(even, z2, -0.00019841269841254885);
  odd = MADDD(odd, z2, 2.7557319219139183e-06);
  even = MADDD(even, z2, -0.16666666666666666);
  odd = MADDD(odd, z2, 0.008333333333333316);
  double sine = s + MADDD(s * z, MADDD(odd, z, even), MADDD(-0.5 * z, s_low, s_low)),
         half = 0.5 * n;
  double size = (one ? lt_modulus_1_wide(u) : lt_modulus_0_wide(u)) * lt_m_sqrt(i);
  return size * (half == rint(half) ? sine : -sine);
}

/* Returns x^2 less the square of a zero. */
LT_MATHS double lt_zero_factor(double x, double zero, double zero_low) {
  return ((x - zero) - zero_low) * (x + zero);
}

/* Return J0(x) or J1(x) of x in [0, 4], and in [4, 8]. */
LT_MATHS double lt_bessel_j_first(double x, bool one) {
  double w = MADDD(x * x, 0.125, -1.0);
  return one ? x * (lt_zero_factor(x, 3.8317059702075125, -1.5269184090088067e-16) * lt_j1_first(w))
             : lt_zero_factor(x, 2.404825557695773, -1.176691651530894e-16) * lt_j0_first(w);
}
LT_MATHS double lt_bessel_j_second(double x, bool one) {
  double t = 0.5 * (x - 6);
  return one ? ((x - 7.015586669815619) + 9.414165653410389e-17) * lt_j1_second(t)
             : ((x - 5.520078110286311) - 8.088597146146722e-17) * lt_j0_second(t);
}

/* Returns the function J of |x| < 2^20; `near`: |x| < 4. */
LT_MATHS double lt_bessel_j_wide(double x, bool one, bool near) {
  double a = fabs(x), small = lt_not_over(a, 4), mid = lt_not_over(lt_not_under(a, 4), 8);
  const double sign = one ? -1 : 1; /* of pi/4 */
  double first = lt_bessel_j_first(small, one), second = lt_bessel_j_second(mid, one);
  double far = lt_bessel_wave(lt_not_under(a, 8), one, sign * 0.78539816339744831,
                              sign * 3.061616997868383e-17);
  first = lt_not_over(first, 1); /* exact at 0 */
  double y = near || a < 4 ? first : a < 8 ? second : far;
  return one ? copysign(1.0, x) * y : y;
}

/* Returns the function Y of positive normal numbers less than 2^20. Without FMA, what the rounding
 * of q loses is not found: an error of 1e-17 near the first zero. */
LT_MATHS double lt_bessel_y_wide(double x, bool one) {
  double small = x >= 0x1p-1022 ? lt_not_over(x, 3) : 1.0;
  double mid = lt_not_over(lt_not_under(x, 3), 8), t = 0.4 * (mid - 5.5);
  double zero = one ? 2.197141326031017 : 0.8935769662791675, inverse = 1 / small;
  double zero_low = one ? -4.8259835876454966e-17 : 2.6596231539720385e-17;
  double q = small * (one ? 0.4551368581312111 : 1.1190977808704887);
  double lost = MADDD(-q, zero_low, MADDD(-q, zero, small)) * inverse; /* of log(x / zero) */
  double log = 0.63661977236758138 * (lt_m_log(q) + lost), w = MADDD(small * small, 0.125, -1.0);
  double rest = one ? lt_y1_first(w) * inverse : lt_y0_first(w);
  double first =
      MADDD(log, lt_bessel_j_first(small, one), lt_zero_factor(small, zero, zero_low) * rest);
  double second = one ? ((mid - 5.429681040794135) - 4.162514026670377e-16) * lt_y1_second(t)
                      : ((mid - 3.957678419314858) + 1.0764340697562706e-16) *
                            ((mid - 7.086051060301773) + 8.835285723085408e-17) * lt_y0_second(t);
  double far =
      lt_bessel_wave(lt_not_under(x, 8), one, one ? -2.356194490192345 : -0.78539816339744831,
                     one ? -9.184850993605148e-17 : -3.061616997868383e-17);
  return x < 3 ? first : x < 8 ? second : far;
}

#define lt_j0(x) lt_bessel_j_wide(x, false, LT_NEAR)
#define lt_j1(x) lt_bessel_j_wide(x, true, LT_NEAR)
#define lt_y0(x) lt_bessel_y_wide(x, false)
#define lt_y1(x) lt_bessel_y_wide(x, true)

#endif
