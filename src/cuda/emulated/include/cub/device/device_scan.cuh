/* device_scan.cuh: a part of cub.cuh. */
#include "../cub.cuh"
