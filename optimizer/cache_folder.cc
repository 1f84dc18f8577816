#include <cstdlib>

#include "optimizer/database.h"

namespace quern {

std::string DefaultCacheFolder() {
  const auto get = [](const char* name) -> std::string {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  if (std::string own = get("QUERN_CACHE_DIR"); !own.empty()) return own;
  // The XDG rules: a path that is not absolute does not count.
  if (std::string xdg = get("XDG_CACHE_HOME"); xdg.starts_with('/')) return xdg + "/quern";
  if (std::string home = get("HOME"); !home.empty()) return home + "/.cache/quern";
  return "";
}

}  // namespace quern
