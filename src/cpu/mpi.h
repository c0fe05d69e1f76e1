/* mpi.h: the communication part of the CPU's backend (lt_DeviceCommunication), on MPI. */
#ifndef LT_CPU_MPI_H
#define LT_CPU_MPI_H

#include "device.h"

const char *lt_cpu_communication_find_library(char *why, size_t why_size);
bool lt_cpu_communication_job(int *rank, int *size);
bool lt_cpu_communication_finalize(void);
bool lt_cpu_communication_is_started(void);
lt_Communicator *lt_cpu_communicator_create(int index, const lt_CommPlan *plan);
void lt_cpu_communicator_destroy(lt_Communicator *communicator);
lt_Work *lt_cpu_communication_submit(lt_Communicator *communicator, const lt_CommCall *calls,
                                     int count, bool now);
bool lt_cpu_work_is_done(lt_Work *work);
bool lt_cpu_work_wait(lt_Work *work, double timeout);
void lt_cpu_work_release(lt_Work *work);

#endif
