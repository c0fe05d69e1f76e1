/* in_process.h: runs an action of a test program in a new process, with other settings of the
 * emulation (C++). Include check.h before. */
#ifndef LT_TESTS_IN_PROCESS_H
#define LT_TESTS_IN_PROCESS_H

#include <stdlib.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

struct Result {
  int status;
  std::string text;
};

/* The path of this program as it was called: in a bundle /proc/self/exe is the loader. */
static const char *program;

/* Runs an action in a new process. `settings` is "NAME=value NAME=value ..."; the settings of the
 * calling process are removed. */
static Result in_process(const char *action, const char *settings) {
  int pipes[2];
  Result result = {-1, ""};
  if (pipe(pipes) != 0) return result;
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    for (const char *name :
         {"LUTRA_EMULATE", "LUTRA_EMULATE_STRICT", "LUTRA_EMULATE_POISON", "LUTRA_EMULATE_ORDER",
          "LUTRA_EMULATE_DELAY", "LUTRA_EMULATE_FAULT", "LUTRA_EMULATE_WORKERS",
          "LUTRA_EMULATE_TIMEOUT", "LUTRA_EMULATE_DRIVER", "CUDA_VISIBLE_DEVICES",
          "CUDA_LAUNCH_BLOCKING"})
      unsetenv(name);
    std::string rest = settings;
    for (size_t at = 0; at < rest.size();) {
      size_t end = rest.find(' ', at);
      if (end == std::string::npos) end = rest.size();
      std::string one = rest.substr(at, end - at);
      size_t is = one.find('=');
      setenv(one.substr(0, is).c_str(), one.substr(is + 1).c_str(), 1);
      at = end + 1;
    }
    dup2(pipes[1], 1);
    dup2(pipes[1], 2);
    close(pipes[0]);
    close(pipes[1]);
    const char *emulator = getenv("LUTRA_TEST_EMULATOR"); /* of the CPU: tests/run */
    if (emulator)
      execlp(emulator, emulator, program, action, (char *)nullptr);
    else
      execl(program, "test", action, (char *)nullptr);
    _exit(99);
  }
  close(pipes[1]);
  char piece[512];
  for (ssize_t n; (n = read(pipes[0], piece, sizeof piece)) > 0;)
    result.text.append(piece, (size_t)n);
  close(pipes[0]);
  waitpid(child, &result.status, 0);
  return result;
}

#define CONTAINS(text, piece)                                                                      \
  do {                                                                                             \
    std::string actual_text = text, expected_text = piece;                                         \
    CHECK_CONTAINS(actual_text.c_str(), expected_text.c_str());                                    \
  } while (0)
#define PRINTS(action, settings, expected)                                                         \
  do {                                                                                             \
    Result result_ = in_process(action, settings);                                                 \
    std::string expected_text = expected;                                                          \
    CHECK_INT(result_.status, 0);                                                                  \
    CHECK_STR(result_.text.c_str(), expected_text.c_str());                                        \
  } while (0)

#endif
