#ifndef QUERN_DRIVER_KEEP_MEMORY_H_
#define QUERN_DRIVER_KEEP_MEMORY_H_

namespace quern {

/// Lets the C library keep what is freed instead of giving it back to the system, for programs that
/// make many graphs, one after the other: on some virtual machines, touching new pages costs more
/// than what is done in them. For main functions; does nothing where the library is not glibc.
void KeepFreedMemory();

}  // namespace quern

#endif  // QUERN_DRIVER_KEEP_MEMORY_H_
