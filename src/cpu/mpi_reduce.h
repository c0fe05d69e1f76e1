/* mpi_reduce.h: dtypes and reductions as MPI's types and operations. */
#ifndef LT_MPI_REDUCE_H
#define LT_MPI_REDUCE_H

#include "communication.h"
#include "mpi_library.h"

/* An element as MPI's: `each` values of a type. */
typedef struct lt_MpiType {
  lt_Mpi type;
  int each; /* 2 for a complex number, else 1 */
} lt_MpiType;
lt_MpiType lt_mpi_type(lt_Dtype dtype);
/* Creates Lutra's own operations, after MPI was started. */
bool lt_mpi_operations_create(void);
/* Returns the operation of a reduction (avg: that of sum). */
lt_Mpi lt_mpi_operation(lt_Dtype dtype, lt_CommReduction reduction);
/* Divides each element by n, for avg. dtype: floating or complex. */
void lt_mpi_divide(void *data, int64_t count, lt_Dtype dtype, int n);

#endif
