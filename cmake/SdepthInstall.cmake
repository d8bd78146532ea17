# SPDX-License-Identifier: MIT
# Installs the headers and a relocatable package: find_package(sdepth 0.1 [COMPONENTS cuda]).
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(sdepth_package_dir "${CMAKE_INSTALL_DATADIR}/cmake/sdepth")
install(TARGETS sdepth EXPORT sdepthTargets FILE_SET HEADERS)
install(TARGETS sdepth_cuda EXPORT sdepthCudaTargets FILE_SET HEADERS)
install(EXPORT sdepthTargets NAMESPACE sdepth:: DESTINATION "${sdepth_package_dir}")
install(EXPORT sdepthCudaTargets NAMESPACE sdepth:: DESTINATION "${sdepth_package_dir}")

configure_package_config_file(cmake/sdepthConfig.cmake.in "${CMAKE_CURRENT_BINARY_DIR}/sdepthConfig.cmake"
                              INSTALL_DESTINATION "${sdepth_package_dir}")
# Before 1.0 a minor version may break users, so only the same one is compatible.
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/sdepthConfigVersion.cmake"
                                 COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/sdepthConfig.cmake" "${CMAKE_CURRENT_BINARY_DIR}/sdepthConfigVersion.cmake"
              "${CMAKE_CURRENT_LIST_DIR}/SdepthOpenblas.cmake"
        DESTINATION "${sdepth_package_dir}")
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DATADIR}/licenses/sdepth")
