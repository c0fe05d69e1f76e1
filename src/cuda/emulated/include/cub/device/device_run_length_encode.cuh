/* device_run_length_encode.cuh: a part of cub.cuh. */
#include "../cub.cuh"
