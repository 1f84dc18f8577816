# Warnings for our own code, and the sanitizers asked for with QUERN_SANITIZE.
add_library(quern_flags INTERFACE)
target_compile_options(quern_flags INTERFACE -Wall -Wextra -Wno-unused-parameter -Werror=return-type
                                             -Werror=switch)
if(QUERN_SANITIZE)
  # LLVM has no type information to check virtual calls with, and compiled kernels do not carry the
  # type in front of a function that checks of function pointers read.
  target_compile_options(
    quern_flags INTERFACE -fsanitize=${QUERN_SANITIZE} -fno-sanitize=vptr,function
                          -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(quern_flags INTERFACE -fsanitize=${QUERN_SANITIZE})
endif()
find_program(QUERN_LLD NAMES ld.lld-22 ld.lld)
if(QUERN_LLD AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  target_link_options(quern_flags INTERFACE --ld-path=${QUERN_LLD})
endif()
find_program(QUERN_CCACHE ccache)
if(QUERN_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${QUERN_CCACHE})
endif()
