/* args.h: the arguments of each body: for a row LT_EACH(name, ...) the struct lt_each_<name>_args.
 * Included by C, CUDA and Metal. */
#ifndef LT_EACH_ARGS_H
#define LT_EACH_ARGS_H

#include "grid.h"
#include "pad.h"
#include "resample.h"
#include "windows.h"

typedef lt_Windows lt_each__max_pool_args;
typedef lt_Windows lt_each__max_values_args;
typedef lt_Windows lt_each__max_pool_backward_args;
typedef lt_Windows lt_each__avg_pool_args;
typedef lt_Windows lt_each__avg_pool_backward_args;
typedef lt_Windows lt_each__im2col_args;
typedef lt_Windows lt_each__col2im_args;
typedef lt_Resample lt_each__resample_args;
typedef lt_Resample lt_each__resample_backward_args;
typedef lt_Pad lt_each__pad_args;
typedef lt_Grid lt_each__grid_sample_args;

#endif
