#ifndef QUERN_REWRITE_CHECK_H_
#define QUERN_REWRITE_CHECK_H_

#include <cstdio>
#include <cstdlib>

/// Aborts with the file, line and condition when an internal invariant is broken. Bad input never
/// ends here: it is an `absl::Status`. (The packaged Abseil predates `absl/log/check.h`.)
#define QUERN_CHECK(condition)                                                               \
  do {                                                                                       \
    if (!(condition)) [[unlikely]] {                                                         \
      std::fprintf(stderr, "%s:%d: broken invariant: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                          \
    }                                                                                        \
  } while (false)

/// As QUERN_CHECK, with a text that says what was expected.
#define QUERN_CHECK_MSG(condition, text)                                                         \
  do {                                                                                           \
    if (!(condition)) [[unlikely]] {                                                             \
      std::fprintf(stderr, "%s:%d: broken invariant: %s (%s)\n", __FILE__, __LINE__, #condition, \
                   text);                                                                        \
      std::abort();                                                                              \
    }                                                                                            \
  } while (false)

#endif  // QUERN_REWRITE_CHECK_H_
