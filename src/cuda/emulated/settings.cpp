/* settings.cpp: reads the environment variables; see settings.h. */
#include "settings.h"

#include <stdlib.h>
#include <string.h>

const char *const emulation::device_type = "cuda";
const bool emulation::barriers_need_all = false;

namespace emulated {
namespace {

/* Reads CUDA_VISIBLE_DEVICES. As in CUDA, the list ends at the first entry that is not a device; a
 * list with a duplicate hides all devices. */
void read_visible(Settings &s) {
  const char *list = getenv("CUDA_VISIBLE_DEVICES");
  const int devices = options().devices;
  if (!list) {
    s.visible = devices;
    for (int i = 0; i < devices; i++) s.visible_index[i] = i;
    return;
  }
  bool cut = false;
  s.visible = 0;
  for (const char *at = list; !cut && *at; at += *at == ',') {
    char *end;
    long n = strtol(at, &end, 10);
    const char *rest = end + strspn(end, " ");
    cut = end == at || (*rest && *rest != ',') || n < 0 || n >= devices;
    for (int i = 0; !cut && i < s.visible; i++)
      if (s.visible_index[i] == n) {
        s.visible = 0;
        return;
      }
    if (!cut) s.visible_index[s.visible++] = (int)n;
    at = rest;
  }
}

const Settings *read_settings() {
  Settings &s = *new Settings();
  read_visible(s);
  s.blocking = is_on("CUDA_LAUNCH_BLOCKING");
  const char *driver = getenv("LUTRA_EMULATE_DRIVER");
  s.driver = Driver::PRESENT;
  if (driver && strcmp(driver, "none") == 0)
    s.driver = Driver::NONE;
  else if (driver && strcmp(driver, "old") == 0)
    s.driver = Driver::OLD;
  else if (driver && *driver)
    report_invalid("LUTRA_EMULATE_DRIVER", driver, "none or old");
  return &s;
}

} // namespace

const Settings &settings() {
  static const Settings *read = read_settings();
  return *read;
}

} // namespace emulated
