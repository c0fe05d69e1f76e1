/* instruction_sets.h: runs a test program again with fewer instructions than the CPU has. Include
 * it after check.h. */
#ifndef LT_TESTS_INSTRUCTION_SETS_H
#define LT_TESTS_INSTRUCTION_SETS_H

#include "cpu/vector.h"

#include <stdlib.h>

/* Runs a program with each instruction set below this process's own; each run must succeed. `words`
 * follow its path in the command. Skips the test when there is no other set. */
__attribute__((unused)) static void check_other_instruction_sets(const char *path,
                                                                 const char *words) {
  static const char *const names[] = {"avx512", "avx2", "base"};
  int own = 0;
  while (own < 2 && strcmp(names[own], lt_cpu_isa()->name) != 0) own++;
  if (own == 2) SKIP("the CPU has one instruction set");
  for (int i = own + 1; i < 3; i++) {
    char command[600];
    snprintf(command, sizeof command, "LUTRA_CPU_CAPABILITY=%s '%s' %s", names[i], path, words);
    CHECK_INT(system(command), 0);
  }
}

#endif
