# SPDX-License-Identifier: MIT
# Decides whether the CUDA backend is built (SDEPTH_HAS_CUDA), and makes C++20 work for CUDA on every CMake from 3.25.0.

# CMake before 3.25.2 knows no C++20 flag for nvcc 12 and later: cxx_std_20 would silently do nothing.
if(CMAKE_VERSION VERSION_LESS 3.25.2)
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
endif()

# Asks for C++20 in the CUDA code of users of `target`, inside this build only: an exported cuda_std_20 breaks
# consumers on CMake 3.25.1, so the package file adds the right form at their side (sdepthConfig.cmake.in).
function(sdepth_cuda_cxx20 target)
    if(CMAKE_VERSION VERSION_LESS 3.25.2)
        target_compile_options(${target} INTERFACE $<BUILD_INTERFACE:$<$<COMPILE_LANGUAGE:CUDA>:-std=c++20>>)
    else()
        target_compile_features(${target} INTERFACE $<BUILD_INTERFACE:cuda_std_20>)
    endif()
endfunction()

# Sets the optimisation level of host code in the CUDA units of the calling folder and of those below it; kernels stay as they are.
# No option of a target does it: nvcc hands its own -O to the host compiler behind what -Xcompiler gives.
macro(sdepth_cuda_host_level level)
    string(REGEX REPLACE "-O[0-3]" "-O${level}" CMAKE_CUDA_FLAGS_RELEASE "${CMAKE_CUDA_FLAGS_RELEASE}")
endmacro()

if(NOT SDEPTH_CUDA MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "sdepth: SDEPTH_CUDA is '${SDEPTH_CUDA}'; it must be AUTO, ON or OFF")
endif()

# AUTO never enables a language inside somebody else's project: there the parent must have enabled CUDA itself.
set(SDEPTH_HAS_CUDA OFF)
if(SDEPTH_CUDA STREQUAL "ON" OR (SDEPTH_CUDA STREQUAL "AUTO" AND (PROJECT_IS_TOP_LEVEL OR CMAKE_CUDA_COMPILER)))
    include(CheckLanguage)
    check_language(CUDA)
    if(CMAKE_CUDA_COMPILER)
        if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
            set(CMAKE_CUDA_ARCHITECTURES 90a-real)
        endif()
        enable_language(CUDA)
        find_package(CUDAToolkit 13.0 REQUIRED)
        set(SDEPTH_HAS_CUDA ON)
        # One clear line here instead of an overload error in a kernel later.
        foreach(arch IN LISTS CMAKE_CUDA_ARCHITECTURES)
            if(arch MATCHES "^([0-9]+)" AND CMAKE_MATCH_1 LESS 80)
                message(FATAL_ERROR "sdepth: CMAKE_CUDA_ARCHITECTURES has ${arch}; the oldest supported is 80 (Ampere)")
            endif()
        endforeach()
    elseif(SDEPTH_CUDA STREQUAL "ON")
        message(FATAL_ERROR "sdepth: SDEPTH_CUDA=ON, but no CUDA compiler was found; set CUDACXX or put nvcc on PATH")
    endif()
endif()
message(STATUS "sdepth: ${PROJECT_VERSION}, CUDA backend ${SDEPTH_HAS_CUDA}")
