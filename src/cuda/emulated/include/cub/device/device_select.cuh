/* device_select.cuh: a part of cub.cuh. */
#include "../cub.cuh"
