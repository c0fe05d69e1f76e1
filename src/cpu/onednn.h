/* onednn.h: convolutions by oneDNN, which is loaded at its first use. Without the library every
 * call reports that it is not done, and the caller computes it. */
#ifndef LT_CPU_ONEDNN_H
#define LT_CPU_ONEDNN_H

#include "convolution.h"

/* Computes a call, on lt_num_threads() threads. Sets *done to false when the library is missing,
 * switched off or does not support the call. Returns false with the error set on failure. Thread
 * safe. */
bool lt_onednn_convolution(const lt_ConvolutionCall *k, bool *done);
/* Returns the library's name and version; NULL when it was not found. Loads it. */
const char *lt_cpu_onednn_name(void);
/* Reads (value -1) or sets (0 or 1) whether the library is used; returns the previous value. */
int lt_cpu_onednn_enabled(int value);

#endif
