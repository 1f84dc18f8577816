#include "runtime/tile_permission.h"

#if defined(__linux__) && defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace quern {

bool RequestTileData() {
#if defined(__linux__) && defined(__x86_64__)
  // From asm/prctl.h, which is missing where the kernel's headers are old.
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kGetPermissions = 0x1022;     // ARCH_GET_XCOMP_PERM
  constexpr unsigned kTileData = 18;           // XFEATURE_XTILEDATA
  if (syscall(SYS_arch_prctl, kRequestPermission, kTileData) != 0) return false;
  unsigned long permitted = 0;
  return syscall(SYS_arch_prctl, kGetPermissions, &permitted) == 0 &&
         ((permitted >> kTileData) & 1) != 0;
#else
  return false;
#endif
}

void DropForbiddenTiles(std::vector<std::string>& features, bool (*request)()) {
  const auto is_tile = [](const std::string& f) { return f.starts_with("amx-"); };
  bool any = false;
  for (const std::string& f : features) any = any || is_tile(f);
  if (any && !request()) std::erase_if(features, is_tile);
}

}  // namespace quern
