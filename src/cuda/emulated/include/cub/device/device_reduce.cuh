/* device_reduce.cuh: a part of cub.cuh. */
#include "../cub.cuh"
