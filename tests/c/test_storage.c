/* test_storage.c: storages of the CPU of every kind of size: tiny and small ones have their memory
 * in the block of the struct, large ones a block of the device. */
#include "check.h"
#include "core.h"

enum { LIVE = 64 };

static const size_t sizes[] = {0, 1, 63, 64, 65, 100, 511, 512, 4095, 4096, 4097, 70000};
enum { SIZES = sizeof sizes / sizeof *sizes };

/* Returns true when all bytes of a storage have this value. */
static bool holds(const lt_Storage *s, int value) {
  const unsigned char *byte = s->data;
  for (size_t i = 0; i < s->nbytes; i++)
    if (byte[i] != (unsigned char)value) return false;
  return true;
}

static void storages_of_every_size_have_memory_of_their_own(void) {
  static lt_Storage *live[SIZES][LIVE];
  int64_t before = lt_memory_live(), bytes = 0;
  for (int round = 0; round < 3; round++) { /* later rounds reuse memory */
    bytes = 0;
    for (int i = 0; i < SIZES; i++)
      for (int k = 0; k < LIVE; k++) {
        lt_Storage *s = live[i][k] = lt_storage_new(lt_cpu(), sizes[i]);
        CHECK(s != NULL);
        CHECK((s->data != NULL) == (sizes[i] > 0));
        CHECK((uintptr_t)s->data % (sizes[i] > 64 ? 64 : 16) == 0);
        if (sizes[i]) memset(s->data, i * LIVE + k, sizes[i]);
        bytes += (int64_t)sizes[i];
      }
    CHECK(lt_memory_live() - before == bytes);
    for (int i = 0; i < SIZES; i++)
      for (int k = 0; k < LIVE; k++) {
        CHECK(holds(live[i][k], i * LIVE + k));
        lt_storage_release(live[i][k]);
      }
    CHECK(lt_memory_live() == before);
  }
}

static void the_last_reference_frees_a_storage(void) {
  int64_t before = lt_memory_live();
  for (int i = 0; i < SIZES; i++) {
    lt_Storage *s = lt_storage_new(lt_cpu(), sizes[i]);
    CHECK(lt_storage_retain(s) == s);
    lt_storage_release(s);
    CHECK(lt_memory_live() - before == (int64_t)sizes[i]);
    if (sizes[i]) memset(s->data, 7, sizes[i]);
    CHECK(holds(s, 7));
    lt_storage_release(s);
    CHECK(lt_memory_live() == before);
  }
}

int main(void) {
  RUN(storages_of_every_size_have_memory_of_their_own);
  RUN(the_last_reference_frees_a_storage);
  return check_end();
}
