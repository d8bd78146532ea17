# SPDX-License-Identifier: MIT
# sdepth_warnings: the flags of our own tests, examples and benchmarks. Never exported, so users are not held to them.
add_library(sdepth_warnings INTERFACE)

target_compile_options(sdepth_warnings INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror>)

# ptxas warns of a kernel that spills registers or keeps a stack frame; -Werror makes that fail the build.
# A target that compiles without optimising sets SDEPTH_UNOPTIMISED: there every kernel has a stack frame.
# -Wpedantic and -Wconversion would flag the code that nvcc generates.
target_compile_options(sdepth_warnings INTERFACE
    $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings -Xcompiler=-Wall,-Wextra>
    $<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<NOT:$<CONFIG:Debug>>,$<NOT:$<BOOL:$<TARGET_PROPERTY:SDEPTH_UNOPTIMISED>>>>:-Xptxas=-warn-spills,-warn-lmem-usage>)
