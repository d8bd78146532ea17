# SPDX-License-Identifier: MIT
# The ways to register a test:
#   sdepth_add_host_test(NAME SOURCES file... [LIBRARIES lib...] [TIMEOUT s])   Catch2 program, each TEST_CASE a ctest case
#   sdepth_add_cuda_test(NAME SOURCES file... [LIBRARIES lib...] [TIMEOUT s])   on a GPU; without one its cases report skipped
#   sdepth_add_build_test(NAME TARGET target)                                   compiling (and linking) the target is passing
#   sdepth_add_clang_test(NAME FILE)                                            clang++ accepts the file without a warning
include_guard()

function(sdepth_add_catch_test name main)
    cmake_parse_arguments(arg "" "TIMEOUT" "SOURCES;LIBRARIES;PROPERTIES" ${ARGN})
    if(NOT arg_SOURCES)
        message(FATAL_ERROR "sdepth: test ${name} has no SOURCES")
    endif()
    if(NOT arg_TIMEOUT)
        set(arg_TIMEOUT 300)
    endif()
    add_executable(sdepth_test_${name} ${arg_SOURCES})
    target_link_libraries(sdepth_test_${name} PRIVATE sdepth_test_support sdepth_catch ${main} ${arg_LIBRARIES})
    # One BLAS thread per test: ctest itself runs as many tests as there are cores.
    catch_discover_tests(sdepth_test_${name} TEST_PREFIX "${name}/"
                         PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS ${name} ENVIRONMENT "OPENBLAS_NUM_THREADS=1" ${arg_PROPERTIES})
endfunction()

# The operations are those of sdepth_host_operations: optimising what only calls them would cost more than it saves.
function(sdepth_add_host_test name)
    sdepth_add_catch_test(${name} sdepth_main_host ${ARGN})
    target_link_libraries(sdepth_test_${name} PRIVATE sdepth_host_operations)
    target_compile_options(sdepth_test_${name} PRIVATE -O0)
    target_precompile_headers(sdepth_test_${name} REUSE_FROM sdepth_main_host)
endfunction()

function(sdepth_add_cuda_test name)
    # Two tests that share one GPU would disturb each other's memory and timing.
    sdepth_add_catch_test(${name} sdepth_main_cuda ${ARGN} PROPERTIES SKIP_RETURN_CODE 4 RESOURCE_LOCK gpu)
    target_link_libraries(sdepth_test_${name} PRIVATE sdepth::cuda)
endfunction()

function(sdepth_add_build_test name)
    cmake_parse_arguments(arg "" "TARGET" "" ${ARGN})
    add_test(NAME ${name} COMMAND ${CMAKE_COMMAND} --build "${CMAKE_BINARY_DIR}" --target ${arg_TARGET})
    # Two builds in one build folder at the same time would race.
    set_tests_properties(${name} PROPERTIES RESOURCE_LOCK build LABELS compile TIMEOUT 900)
endfunction()

# For builds with another compiler. Without clang++ the test reports skipped.
function(sdepth_add_clang_test name file)
    find_program(SDEPTH_CLANGXX NAMES clang++)
    if(SDEPTH_CLANGXX)
        get_target_property(boost Boost::headers INTERFACE_INCLUDE_DIRECTORIES)
        list(REMOVE_ITEM boost /usr/include)
        list(TRANSFORM boost PREPEND -isystem)
        add_test(NAME ${name} COMMAND "${SDEPTH_CLANGXX}" -std=c++20 -fsyntax-only -Wall -Wextra -Wconversion -Wshadow -Werror
                 "-I${PROJECT_SOURCE_DIR}/include" "-I${PROJECT_SOURCE_DIR}/tests" ${boost} "${file}")
    else()
        add_test(NAME ${name} COMMAND ${CMAKE_COMMAND} -E echo "skipped: no clang++")
        set_tests_properties(${name} PROPERTIES SKIP_REGULAR_EXPRESSION "skipped: no clang")
    endif()
    set_tests_properties(${name} PROPERTIES LABELS "compile;thorough" TIMEOUT 300)
endfunction()
