# Functions that every folder's CMakeLists.txt uses. One target per folder (or
# per idea in it), with explicit headers, sources and dependencies: no globs,
# no global flags.

# Flags of our own targets only; third-party code never sees them.
add_library(penstock_flags INTERFACE)
target_compile_features(penstock_flags INTERFACE cxx_std_20)
target_include_directories(penstock_flags INTERFACE ${CMAKE_SOURCE_DIR})
# -ffp-contract=off: whether a*b+c is fused is written down in the code (as an
# FMA intrinsic), never decided by the compiler, so bits survive a compiler.
# -fno-strict-aliasing: device memory is raw bytes that are used again under
# another element type (slots, scratch), and so are the bytes of files.
# -Wno-missing-field-initializers: designated initialisers leave out what has a
# default; g++ 12 and clang 14 warn of each.
# -Wno-sign-compare: counts and indices are signed here, a container's size is
# not; no size here is above 2^63, and a cast at each comparison hides more.
target_compile_options(penstock_flags INTERFACE
  -Wall -Wextra -Werror -Wno-sign-compare -Wno-missing-field-initializers
  -ffp-contract=off -fno-strict-aliasing)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(penstock_flags INTERFACE
    -Wthread-safety -Werror=thread-safety)
endif()

set(PENSTOCK_SANITIZE "" CACHE STRING "'' | address (with undefined) | thread")
if(PENSTOCK_SANITIZE STREQUAL "address")
  target_compile_options(penstock_flags INTERFACE
    -fsanitize=address,undefined -fno-sanitize-recover=all
    -fno-omit-frame-pointer)
  target_link_options(penstock_flags INTERFACE -fsanitize=address,undefined)
  # Coverage counters in the libraries too, or fuzz targets see nothing but
  # their own file and mutate blindly.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND BUILD_TESTING)
    target_compile_options(penstock_flags INTERFACE -fsanitize=fuzzer-no-link)
  endif()
elseif(PENSTOCK_SANITIZE STREQUAL "thread")
  # Debian's gRPC, protobuf and abseil are not instrumented. The ignore list
  # keeps their headers out of the instrumented code; there is no suppressions
  # file, because suppressed reports hide real races.
  target_compile_options(penstock_flags INTERFACE
    -fsanitize=thread -fno-omit-frame-pointer
    -fsanitize-ignorelist=${CMAKE_SOURCE_DIR}/cmake/tsan_ignorelist.txt)
  target_compile_definitions(penstock_flags INTERFACE PENSTOCK_TSAN=1)
  # Locks that gRPC's inline code takes: see the file.
  add_library(penstock_tsan_absl_locks STATIC
    ${CMAKE_SOURCE_DIR}/common/sync/tsan_absl_locks.cc)
  target_compile_options(penstock_tsan_absl_locks PRIVATE -fsanitize=thread)
  target_link_options(penstock_flags INTERFACE -fsanitize=thread
    -Wl,--wrap=_ZN4absl7debian35Mutex4LockEv
    -Wl,--wrap=_ZN4absl7debian35Mutex6UnlockEv)
  target_link_libraries(penstock_flags INTERFACE penstock_tsan_absl_locks
    absl::synchronization)
endif()

# penstock_library(NAME HDRS ... SRCS ... DEPS ... [NO_LINK_TEST])
# A static library named after its folder: common/status is penstock_common_status.
# DEPS are public. Every library also gets a link test (see below), except with
# NO_LINK_TEST: for libraries of tests, whose arrows nothing rests on.
function(penstock_library name)
  cmake_parse_arguments(arg "NO_LINK_TEST" "" "HDRS;SRCS;DEPS" ${ARGN})
  if(arg_SRCS)
    add_library(${name} STATIC ${arg_SRCS} ${arg_HDRS})
    target_link_libraries(${name} PUBLIC penstock_flags ${arg_DEPS})
    if(BUILD_TESTING AND NOT arg_NO_LINK_TEST AND NOT PENSTOCK_SANITIZE)
      penstock_link_test(${name})
    endif()
  else()
    add_library(${name} INTERFACE ${arg_HDRS})
    target_link_libraries(${name} INTERFACE penstock_flags ${arg_DEPS})
  endif()
endfunction()

# penstock_link_test(NAME): an empty program that links the whole of NAME and
# nothing but its declared dependencies and theirs. It fails to link when a
# library uses what none of them brings; that what it includes is declared by
# itself is tests/architecture/target_check.py's part.
function(penstock_link_test name)
  add_executable(${name}_link_test ${CMAKE_SOURCE_DIR}/tests/architecture/link_test.cc)
  target_link_libraries(${name}_link_test PRIVATE penstock_flags
    $<LINK_LIBRARY:WHOLE_ARCHIVE,${name}>)
  set_target_properties(${name}_link_test PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/link_tests)
endfunction()

# tests_LABEL builds every test of that label and nothing else.
function(penstock_label_target name)
  foreach(label ${ARGN})
    if(NOT TARGET tests_${label})
      add_custom_target(tests_${label})
    endif()
    add_dependencies(tests_${label} ${name})
  endforeach()
endfunction()

# For every test, its children too: docs/threading.md.
set(penstock_tsan_options
  "TSAN_OPTIONS=ignore_noninstrumented_modules=1:history_size=7:halt_on_error=1")

# penstock_test(NAME SRCS ... DEPS ... [DATA dir] [LABELS ...]
#               [TIMEOUT seconds])
# A GoogleTest binary, one ctest entry. This and the functions for benchmarks
# and fuzz targets are called below tests/ only, which BUILD_TESTING switches.
# DATA is a folder below tests/, passed as the environment variable
# PENSTOCK_TEST_DATA. LABELS: unit (default), conformance, integration, and
# threads (run under ThreadSanitizer), slow (left out of the sanitizers' share
# of ./dev test); e2e and fuzz have functions of their own. CONTRIBUTING.md says
# what they mean.
function(penstock_test name)
  cmake_parse_arguments(arg "" "DATA;TIMEOUT" "SRCS;DEPS;LABELS" ${ARGN})
  add_executable(${name} ${arg_SRCS})
  target_link_libraries(${name} PRIVATE penstock_flags ${arg_DEPS}
    GTest::gmock GTest::gtest_main)
  if(NOT arg_LABELS)
    set(arg_LABELS unit)
  endif()
  penstock_label_target(${name} ${arg_LABELS})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  set(env "${penstock_tsan_options}")
  if(arg_DATA)
    list(APPEND env "PENSTOCK_TEST_DATA=${CMAKE_SOURCE_DIR}/tests/${arg_DATA}")
  endif()
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES
    LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT} ENVIRONMENT "${env}")
endfunction()

# penstock_binary(NAME SRCS ... DEPS ...): a program in build/.../bin.
function(penstock_binary name)
  cmake_parse_arguments(arg "" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name} ${arg_SRCS})
  target_link_libraries(${name} PRIVATE penstock_flags ${arg_DEPS})
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
endfunction()

# penstock_benchmark(NAME SRCS ... DEPS ... [SMOKE arguments]): Google Benchmark,
# measured by hand. As a test, with the arguments of SMOKE, it runs each
# measurement once, so that it cannot rot.
function(penstock_benchmark name)
  cmake_parse_arguments(arg "" "" "SRCS;DEPS;SMOKE" ${ARGN})
  add_executable(${name} ${arg_SRCS})
  target_link_libraries(${name} PRIVATE penstock_flags ${arg_DEPS}
    benchmark::benchmark)
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/benchmarks)
  if(NOT arg_SMOKE)
    set(arg_SMOKE --benchmark_min_time=0)
  endif()
  add_test(NAME ${name}_smoke COMMAND ${name} ${arg_SMOKE})
  set_tests_properties(${name}_smoke PROPERTIES LABELS "benchmark" TIMEOUT 300)
  penstock_label_target(${name} benchmark)
endfunction()

# penstock_fuzz(NAME SRCS ... DEPS ... CORPUS dir): a libFuzzer target (clang
# with PENSTOCK_SANITIZE=address) that CI runs briefly over its corpus; in other
# builds the same entry point replays the corpus once.
function(penstock_fuzz name)
  cmake_parse_arguments(arg "" "CORPUS" "SRCS;DEPS" ${ARGN})
  set(corpus ${CMAKE_SOURCE_DIR}/tests/fuzz/${arg_CORPUS})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND PENSTOCK_SANITIZE STREQUAL "address")
    add_executable(${name} ${arg_SRCS})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    target_compile_options(${name} PRIVATE -fsanitize=fuzzer)
    set(scratch ${CMAKE_BINARY_DIR}/fuzz/${name})
    file(MAKE_DIRECTORY ${scratch})
    add_test(NAME ${name} COMMAND ${name} -max_total_time=20 -timeout=10
      -rss_limit_mb=2048 ${scratch} ${corpus})
  else()
    add_executable(${name} ${arg_SRCS} ${CMAKE_SOURCE_DIR}/tests/fuzz/replay_main.cc)
    add_test(NAME ${name} COMMAND ${name} ${corpus})
  endif()
  target_link_libraries(${name} PRIVATE penstock_flags ${arg_DEPS})
  penstock_label_target(${name} fuzz)
  set_tests_properties(${name} PROPERTIES LABELS "fuzz" TIMEOUT 120)
endfunction()

# penstock_proto(NAME PROTOS ...): generated messages; paths relative to proto/.
# penstock_grpc(NAME PROTOS ... DEPS ...): generated services of such files.
function(penstock_generate out_srcs suffix flags)
  set(out ${CMAKE_BINARY_DIR}/generated)
  file(MAKE_DIRECTORY ${out})
  set(srcs)
  foreach(proto ${ARGN})
    string(REGEX REPLACE "\\.proto$" "" stem ${proto})
    set(gen ${out}/${stem}.${suffix}.cc ${out}/${stem}.${suffix}.h)
    add_custom_command(OUTPUT ${gen}
      COMMAND protobuf::protoc -I ${CMAKE_SOURCE_DIR}/proto ${flags} ${proto}
      DEPENDS ${CMAKE_SOURCE_DIR}/proto/${proto} VERBATIM)
    list(APPEND srcs ${gen})
  endforeach()
  set(${out_srcs} ${srcs} PARENT_SCOPE)
endfunction()

# Generated code is not ours to warn about; under TSan it is compiled with the
# same flags and ignore list as our code.
function(penstock_generated_library name)
  target_include_directories(${name} SYSTEM PUBLIC ${CMAKE_BINARY_DIR}/generated)
  target_compile_features(${name} PUBLIC cxx_std_20)
  if(PENSTOCK_SANITIZE STREQUAL "thread")
    target_compile_options(${name} PRIVATE -fsanitize=thread
      -fsanitize-ignorelist=${CMAKE_SOURCE_DIR}/cmake/tsan_ignorelist.txt)
  endif()
endfunction()

function(penstock_proto name)
  cmake_parse_arguments(arg "" "" "PROTOS" ${ARGN})
  penstock_generate(srcs pb --cpp_out=${CMAKE_BINARY_DIR}/generated ${arg_PROTOS})
  add_library(${name} STATIC ${srcs})
  target_link_libraries(${name} PUBLIC protobuf::libprotobuf)
  penstock_generated_library(${name})
endfunction()

function(penstock_grpc name)
  cmake_parse_arguments(arg "" "" "PROTOS;DEPS" ${ARGN})
  penstock_generate(srcs grpc.pb
    "--grpc_out=${CMAKE_BINARY_DIR}/generated;--plugin=protoc-gen-grpc=${PENSTOCK_GRPC_CPP_PLUGIN}"
    ${arg_PROTOS})
  add_library(${name} STATIC ${srcs})
  target_link_libraries(${name} PUBLIC gRPC::grpc++ ${arg_DEPS})
  penstock_generated_library(${name})
endfunction()
