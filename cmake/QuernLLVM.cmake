# LLVM as an imported target, from llvm-config: Debian's CMake files for LLVM want libraries that we
# do not use.
find_program(QUERN_LLVM_CONFIG NAMES llvm-config-22 llvm-config REQUIRED)
execute_process(COMMAND ${QUERN_LLVM_CONFIG} --version OUTPUT_VARIABLE QUERN_LLVM_VERSION
                OUTPUT_STRIP_TRAILING_WHITESPACE)
if(QUERN_LLVM_VERSION VERSION_LESS 22)
  message(FATAL_ERROR "LLVM 22 or newer is needed, found ${QUERN_LLVM_VERSION}")
endif()
execute_process(COMMAND ${QUERN_LLVM_CONFIG} --includedir OUTPUT_VARIABLE QUERN_LLVM_INCLUDE
                OUTPUT_STRIP_TRAILING_WHITESPACE)
execute_process(COMMAND ${QUERN_LLVM_CONFIG} --libdir OUTPUT_VARIABLE QUERN_LLVM_LIBDIR
                OUTPUT_STRIP_TRAILING_WHITESPACE)
string(REGEX MATCH "^[0-9]+" QUERN_LLVM_MAJOR ${QUERN_LLVM_VERSION})
find_library(QUERN_LLVM_LIBRARY NAMES LLVM-${QUERN_LLVM_MAJOR} LLVM HINTS ${QUERN_LLVM_LIBDIR}
             REQUIRED)
add_library(quern_llvm INTERFACE)
target_include_directories(quern_llvm SYSTEM INTERFACE $<BUILD_INTERFACE:${QUERN_LLVM_INCLUDE}>)
target_link_libraries(quern_llvm INTERFACE ${QUERN_LLVM_LIBRARY})
target_compile_definitions(quern_llvm INTERFACE $<BUILD_INTERFACE:__STDC_CONSTANT_MACROS>
                           $<BUILD_INTERFACE:__STDC_LIMIT_MACROS>)
set_target_properties(quern_llvm PROPERTIES EXPORT_NAME llvm)
install(TARGETS quern_llvm EXPORT quernTargets)
