/* loss.h: the arguments of the kernels of the negative log likelihood of rows of log probabilities,
 * and of its gradient. Included by C and by kernels. */
#ifndef LT_MPS_LOSS_H
#define LT_MPS_LOSS_H

#include "dtypes.h"

/* How the losses of the rows are reduced: a loss for each row; their sum; their sum divided by the
 * sum of the weights. */
enum { LT_MPS_EACH, LT_MPS_TOTAL, LT_MPS_AVERAGE };

#define LT_LOSS_ROWS 1024 /* rows of a threadgroup */

/* n rows of `classes` log probabilities, summed in `parts` parts of LT_LOSS_ROWS. */
typedef struct lt_MpsNll {
  int64_t n, classes, ignore, parts;
} lt_MpsNll;

#endif
