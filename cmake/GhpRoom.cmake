# cmake/GhpRoom.cmake - rooms, their tools, and what the tools say of themselves.
# ghp_room(<room> [PUBLIC lib...] [PRIVATE lib...]): a room's library and tools.
#
# Makes the static library ghp_<room> from all *.c of the calling folder and the folders in it but ghp.c and
# ghp-*.c, and from each of these the tool of that name, linked to the library and installed.
function(ghp_room room)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "PUBLIC;PRIVATE")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.c")
  set(tools ${sources})
  list(FILTER tools INCLUDE REGEX "/ghp(-[^/]*)?\\.c$")
  list(FILTER sources EXCLUDE REGEX "/ghp(-[^/]*)?\\.c$")
  if(NOT GHP_HAS_CUDA) # by folder: what wraps NVIDIA's libraries
    list(FILTER sources EXCLUDE REGEX "/(cuda|nccl)/[^/]*\\.c$")
  endif()

  add_library(ghp_${room} STATIC ${sources})
  target_link_libraries(ghp_${room} PUBLIC ghp_flags ${arg_PUBLIC} PRIVATE ${arg_PRIVATE})
  target_compile_definitions(ghp_${room} PRIVATE GHP_VERSION="${PROJECT_VERSION}")

  foreach(source IN LISTS tools)
    get_filename_component(tool "${source}" NAME_WE)
    add_executable(${tool} "${source}")
    target_link_libraries(${tool} PRIVATE ghp_${room})
    target_compile_definitions(${tool} PRIVATE GHP_VERSION="${PROJECT_VERSION}")
    set_target_properties(${tool} PROPERTIES LINKER_LANGUAGE C) # though kernels are C++ inside
    install(TARGETS ${tool} RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
    ghp_manual(${tool})
  endforeach()
endfunction()

# ghp_source_options(<options> file...): compile options of some of a room's sources; a file that is not there is an
# error.
function(ghp_source_options options)
  foreach(file IN LISTS ARGN)
    file(REAL_PATH "${file}" path BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
    if(NOT EXISTS "${path}")
      message(FATAL_ERROR "ghp_source_options: there is no ${path}")
    endif()
  endforeach()
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS "${options}")
endfunction()

# ghp_manual(<tool>): its man page and bash completions, printed by the tool itself into build/man1 and
# build/completions, and installed. `ninja reference` writes the tools' pages in docs/reference/cli.
function(ghp_manual tool)
  set(page "${PROJECT_BINARY_DIR}/man1/${tool}.1")
  set(completions "${PROJECT_BINARY_DIR}/completions/${tool}")
  file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/man1" "${PROJECT_BINARY_DIR}/completions")
  # leaks are the tests' business
  set(say "${CMAKE_COMMAND}" -E env ASAN_OPTIONS=detect_leaks=0 "$<TARGET_FILE:${tool}>")
  add_custom_command(OUTPUT "${page}" "${completions}"
                     COMMAND ${say} --help=man > "${page}"
                     COMMAND ${say} --help=bash > "${completions}"
                     DEPENDS ${tool} VERBATIM)
  add_custom_target(manual_${tool} ALL DEPENDS "${page}" "${completions}")
  if(NOT tool STREQUAL ghp)
    if(NOT TARGET reference)
      add_custom_target(reference)
    endif()
    add_custom_target(reference_${tool} DEPENDS ${tool} VERBATIM
                      COMMAND ${say} --help=md > "${PROJECT_SOURCE_DIR}/docs/reference/cli/${tool}.md")
    add_dependencies(reference reference_${tool})
  endif()
  install(FILES "${page}" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")
  install(FILES "${completions}"
          DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions")
endfunction()
