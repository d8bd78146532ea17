# SPDX-License-Identifier: MIT
# OpenBLAS for the products of host<float>. The user's machine decides, not the one that installed the package: the package
# file includes this too.
include_guard()

# Makes users of `target` multiply with OpenBLAS where its CMake package is found. SDEPTH_CBLAS: AUTO (or unset), ON, OFF.
function(sdepth_use_openblas target)
    if(NOT "${SDEPTH_CBLAS}" MATCHES "^(AUTO|ON|OFF|)$")
        message(FATAL_ERROR "sdepth: SDEPTH_CBLAS is '${SDEPTH_CBLAS}'; it must be AUTO, ON or OFF")
    endif()
    if("${SDEPTH_CBLAS}" STREQUAL "OFF")
        return()
    endif()
    find_package(OpenBLAS CONFIG QUIET)
    if(OpenBLAS_FOUND)
        # BUILD_INTERFACE: these paths must not get into an installed package.
        set_property(TARGET ${target} APPEND PROPERTY INTERFACE_COMPILE_DEFINITIONS $<BUILD_INTERFACE:SDEPTH_CBLAS=1>)
        set_property(TARGET ${target} APPEND PROPERTY INTERFACE_SYSTEM_INCLUDE_DIRECTORIES $<BUILD_INTERFACE:${OpenBLAS_INCLUDE_DIRS}>)
        set_property(TARGET ${target} APPEND PROPERTY INTERFACE_INCLUDE_DIRECTORIES $<BUILD_INTERFACE:${OpenBLAS_INCLUDE_DIRS}>)
        set_property(TARGET ${target} APPEND PROPERTY INTERFACE_LINK_LIBRARIES $<BUILD_INTERFACE:${OpenBLAS_LIBRARIES}>)
    elseif("${SDEPTH_CBLAS}" STREQUAL "ON")
        message(FATAL_ERROR "sdepth: SDEPTH_CBLAS=ON, but OpenBLAS's CMake package was not found; set OpenBLAS_DIR")
    endif()
endfunction()
