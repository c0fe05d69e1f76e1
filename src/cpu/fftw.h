/* fftw.h: Fourier transforms by FFTW where it is installed and faster than fft.c. Its licence is
 * the GPL: Lutra is not linked with it, but finds it at run time. */
#ifndef LT_CPU_FFTW_H
#define LT_CPU_FFTW_H

#include "fft.h"

/* Transforms the lines, on up to lt_num_threads() threads; the result does not depend on their
 * number. Sets *done to false when the library is missing, switched off or not the faster one.
 * Returns false with the error set on failure. Thread safe. */
bool lt_fftw_run(const lt_FftLines *lines, bool *done);
/* Returns the library's name and version; NULL when it is missing or switched off. Loads it. */
const char *lt_fftw_name(void);

#endif
