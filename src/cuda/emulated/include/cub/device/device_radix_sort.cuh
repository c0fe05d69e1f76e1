/* device_radix_sort.cuh: a part of cub.cuh. */
#include "../cub.cuh"
