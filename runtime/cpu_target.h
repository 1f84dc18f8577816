#ifndef QUERN_RUNTIME_CPU_TARGET_H_
#define QUERN_RUNTIME_CPU_TARGET_H_

#include <string>

#include "rewrite/target.h"

namespace quern {

/// The processor that this program runs on: LLVM's name and features for it, cores that the process
/// may use, vector width and cache sizes.
Target DetectCpu();

/// Everything of a target that changes machine code or its speed, as one line: part of every cache
/// key.
std::string TargetFingerprint(const Target& target);

}  // namespace quern

#endif  // QUERN_RUNTIME_CPU_TARGET_H_
