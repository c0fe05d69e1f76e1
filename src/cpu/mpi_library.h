/* mpi_library.h: the functions of MPI that Lutra calls, from Open MPI (4, 5) or MPICH (3.2 and
 * later, and libraries of its ABI), which is loaded at run time. The standard is MPI 3.1.
 *
 * The two libraries differ in the type of handles (pointers, or integers of 32 bits) and in the
 * values of constants. Here a handle is an intptr_t: the low 32 bits are the integer. */
#ifndef LT_MPI_LIBRARY_H
#define LT_MPI_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef intptr_t lt_Mpi;      /* a communicator, type, operation, request, group */
typedef struct lt_MpiStatus { /* larger than either library's */
  int words[16];
} lt_MpiStatus;
typedef void lt_MpiFunction(void *input, void *output, int *count, void *type);

/* The functions, one row each: the name without "MPI_", and the parameters. All return an error
 * code, 0 for success. */
#define LT_MPI_FUNCTIONS(ROW)                                                                      \
  ROW(Init_thread, (int *, char ***, int, int *))                                                  \
  ROW(Query_thread, (int *))                                                                       \
  ROW(Initialized, (int *))                                                                        \
  ROW(Finalized, (int *))                                                                          \
  ROW(Finalize, (void))                                                                            \
  ROW(Error_string, (int, char *, int *))                                                          \
  ROW(Get_library_version, (char *, int *))                                                        \
  ROW(Comm_rank, (lt_Mpi, int *))                                                                  \
  ROW(Comm_size, (lt_Mpi, int *))                                                                  \
  ROW(Comm_dup, (lt_Mpi, lt_Mpi *))                                                                \
  ROW(Comm_group, (lt_Mpi, lt_Mpi *))                                                              \
  ROW(Comm_create_group, (lt_Mpi, lt_Mpi, int, lt_Mpi *))                                          \
  ROW(Comm_set_errhandler, (lt_Mpi, lt_Mpi))                                                       \
  ROW(Group_incl, (lt_Mpi, int, const int *, lt_Mpi *))                                            \
  ROW(Group_free, (lt_Mpi *))                                                                      \
  ROW(Op_create, (lt_MpiFunction *, int, lt_Mpi *))                                                \
  ROW(Allreduce, (const void *, void *, int, lt_Mpi, lt_Mpi, lt_Mpi))                              \
  ROW(Iallreduce, (const void *, void *, int, lt_Mpi, lt_Mpi, lt_Mpi, lt_Mpi *))                   \
  ROW(Bcast, (void *, int, lt_Mpi, int, lt_Mpi))                                                   \
  ROW(Ibcast, (void *, int, lt_Mpi, int, lt_Mpi, lt_Mpi *))                                        \
  ROW(Ireduce, (const void *, void *, int, lt_Mpi, lt_Mpi, int, lt_Mpi, lt_Mpi *))                 \
  ROW(Allgather, (const void *, int, lt_Mpi, void *, int, lt_Mpi, lt_Mpi))                         \
  ROW(Iallgather, (const void *, int, lt_Mpi, void *, int, lt_Mpi, lt_Mpi, lt_Mpi *))              \
  ROW(Igather, (const void *, int, lt_Mpi, void *, int, lt_Mpi, int, lt_Mpi, lt_Mpi *))            \
  ROW(Iscatter, (const void *, int, lt_Mpi, void *, int, lt_Mpi, int, lt_Mpi, lt_Mpi *))           \
  ROW(Reduce_scatter_block, (const void *, void *, int, lt_Mpi, lt_Mpi, lt_Mpi))                   \
  ROW(Ireduce_scatter_block, (const void *, void *, int, lt_Mpi, lt_Mpi, lt_Mpi, lt_Mpi *))        \
  ROW(Ialltoall, (const void *, int, lt_Mpi, void *, int, lt_Mpi, lt_Mpi, lt_Mpi *))               \
  ROW(Ialltoallv, (const void *, const int *, const int *, lt_Mpi, void *, const int *,            \
                   const int *, lt_Mpi, lt_Mpi, lt_Mpi *))                                         \
  ROW(Isend, (const void *, int, lt_Mpi, int, int, lt_Mpi, lt_Mpi *))                              \
  ROW(Recv, (void *, int, lt_Mpi, int, int, lt_Mpi, lt_MpiStatus *))                               \
  ROW(Iprobe, (int, int, lt_Mpi, int *, lt_MpiStatus *))                                           \
  ROW(Improbe, (int, int, lt_Mpi, int *, lt_Mpi *, lt_MpiStatus *))                                \
  ROW(Imrecv, (void *, int, lt_Mpi, lt_Mpi *, lt_Mpi *))                                           \
  ROW(Get_count, (const lt_MpiStatus *, lt_Mpi, int *))                                            \
  ROW(Test, (lt_Mpi *, int *, lt_MpiStatus *))                                                     \
  ROW(Request_free, (lt_Mpi *))

/* The constants that are handles: the name here, the symbol of Open MPI, the value of MPICH. */
#define LT_MPI_HANDLES(ROW)                                                                        \
  ROW(world, ompi_mpi_comm_world, 0x44000000)                                                      \
  ROW(request_null, ompi_request_null, 0x2c000000)                                                 \
  ROW(errors_return, ompi_mpi_errors_return, 0x54000001)                                           \
  ROW(byte, ompi_mpi_byte, 0x4c00010d)                                                             \
  ROW(float32, ompi_mpi_float, 0x4c00040a)                                                         \
  ROW(float64, ompi_mpi_double, 0x4c00080b)                                                        \
  ROW(int8, ompi_mpi_int8_t, 0x4c000137)                                                           \
  ROW(int16, ompi_mpi_int16_t, 0x4c000238)                                                         \
  ROW(int32, ompi_mpi_int32_t, 0x4c000439)                                                         \
  ROW(int64, ompi_mpi_int64_t, 0x4c00083a)                                                         \
  ROW(uint8, ompi_mpi_uint8_t, 0x4c00013b)                                                         \
  ROW(uint16, ompi_mpi_uint16_t, 0x4c00023c)                                                       \
  ROW(uint64, ompi_mpi_uint64_t, 0x4c00083e)                                                       \
  ROW(max, ompi_mpi_op_max, 0x58000001)                                                            \
  ROW(min, ompi_mpi_op_min, 0x58000002)                                                            \
  ROW(sum, ompi_mpi_op_sum, 0x58000003)                                                            \
  ROW(product, ompi_mpi_op_prod, 0x58000004)

enum { LT_MPI_THREAD_SERIALIZED = 2 };

typedef struct lt_MpiLibrary {
#define ROW(name, parameters) int(*name) parameters;
  LT_MPI_FUNCTIONS(ROW)
#undef ROW
#define ROW(name, symbol, value) lt_Mpi name;
  LT_MPI_HANDLES(ROW)
#undef ROW
  const void *in_place;
  int any_source;
  int source_word; /* of a status: the index of the source */
  char name[64];   /* "Open MPI 4.1.4" */
} lt_MpiLibrary;

/* Returns the library, which is loaded on the first call; NULL without an error when there is
 * none. The one that started this process, if it was started by mpirun, is tried first. */
const lt_MpiLibrary *lt_mpi(void);
/* Sets the error to what a call that returned `code` failed with, and returns false. */
bool lt_mpi_fail(const char *call, int code);

#endif
