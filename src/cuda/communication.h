/* communication.h: the communication part of the CUDA backend, by NCCL. */
#ifndef LT_CUDA_COMMUNICATION_H
#define LT_CUDA_COMMUNICATION_H

#include "cuda.h"

extern const lt_DeviceCommunication lt_cuda_communication;

/* Raises the error of a call between ranks that has failed on the device and was not raised before:
 * a tensor that it should have written has wrong values. Called where the host has synchronized
 * with the device. */
bool lt_cuda_communication_check(int index);

#endif
