# cmake/GhpDebian.cmake - Debian packages: `cpack -G DEB` in the build folder makes ghp_*.deb, with the tools and
# libghp, and ghp-dev_*.deb, what programs are built with against it (docs/how-to/installation.md).
#
# CPack runs this file a second time, as a script on what it has installed for the packages: man pages are compressed,
# and the licence stands as Debian wants it.
#
# GHP_MAINTAINER   who answers for the packages: name <address>
if(CPACK_TEMPORARY_DIRECTORY)
  string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC) # of SOURCE_DATE_EPOCH, where that is set
  file(GLOB packages "${CPACK_TEMPORARY_DIRECTORY}/*/usr")
  foreach(package IN LISTS packages)
    get_filename_component(component "${package}" DIRECTORY)
    get_filename_component(component "${component}" NAME)
    string(TOUPPER "${component}" component)
    set(doc "${package}/share/doc/${CPACK_DEBIAN_${component}_PACKAGE_NAME}")
    if(EXISTS "${doc}/LICENSE") # README links to it
      file(REMOVE "${doc}/LICENSE")
      file(CREATE_LINK ../../common-licenses/Apache-2.0 "${doc}/LICENSE" SYMBOLIC)
    endif()
    file(MAKE_DIRECTORY "${doc}")
    file(COPY_FILE "${CMAKE_CURRENT_LIST_DIR}/copyright" "${doc}/copyright")
    file(WRITE "${doc}/changelog" "ghp (${CPACK_DEBIAN_PACKAGE_VERSION}) unstable; urgency=medium\n\n"
         "  * Made by ghp's own build.\n\n -- ${CPACK_PACKAGE_CONTACT}  ${date}\n")
    file(GLOB pages "${package}/share/man/*/*.[1-9]")
    execute_process(COMMAND gzip -9n "${doc}/changelog" ${pages} COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
  return()
endif()

set(GHP_MAINTAINER "ghp maintainers <maintainers@ghp.example>" CACHE STRING "of Debian packages: name <address>")
set(CPACK_PACKAGE_NAME ghp)
set(CPACK_PACKAGE_VENDOR ghp)
set(CPACK_PACKAGE_CONTACT "${GHP_MAINTAINER}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_PRE_BUILD_SCRIPTS "${CMAKE_CURRENT_LIST_FILE}")
set(CPACK_COMPONENTS_ALL ghp dev)
set(CPACK_COMPONENTS_GROUPING IGNORE) # a package each
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_VERSION "${PROJECT_VERSION}")
set(ghp_processors "")
if(GHP_NATIVE) # a package for others has -DGHP_NATIVE=OFF
  string(APPEND CPACK_DEBIAN_PACKAGE_VERSION "+native")
  set(ghp_processors "\nCompiled for processors like the one that it was built on.")
endif()

set(CPACK_DEBIAN_GHP_PACKAGE_NAME ghp)
set(CPACK_DEBIAN_GHP_PACKAGE_SECTION science)
set(CPACK_DEBIAN_GHP_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
file(WRITE "${PROJECT_BINARY_DIR}/debian/triggers" "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_GHP_PACKAGE_CONTROL_EXTRA "${PROJECT_BINARY_DIR}/debian/triggers")
set(ghp_mpi_package openmpi-bin) # of the MPI that it is built against (cmake/GhpMpi.cmake)
if(GHP_MPI_KIND STREQUAL mpich)
  set(ghp_mpi_package mpich)
endif()
set(CPACK_DEBIAN_GHP_PACKAGE_RECOMMENDS "${ghp_mpi_package}, bash-completion")
set(CPACK_DEBIAN_GHP_DESCRIPTION 
"ghp measures what each layer and each collective costs on a machine, chooses
for every layer data parallelism or a split over its channels, proves how far
that choice can be from the optimum, and trains by it on several workers with
the result of one.${ghp_processors}")

set(CPACK_DEBIAN_DEV_PACKAGE_NAME ghp-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "ghp (= ${CPACK_DEBIAN_PACKAGE_VERSION})")
set(CPACK_DEBIAN_DEV_PACKAGE_RECOMMENDS "pkg-config")
set(CPACK_DEBIAN_DEV_DESCRIPTION 
"What a program is built with that plans by libghp, ghp's library: ghp.h, ghp.pc
and a package configuration for CMake.")
include(CPack)
