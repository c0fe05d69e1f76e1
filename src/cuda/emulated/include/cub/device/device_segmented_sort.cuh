/* device_segmented_sort.cuh: a part of cub.cuh. */
#include "../cub.cuh"
