# cmake/GhpRoom.cmake - ghp_room(<room> [PUBLIC lib...] [PRIVATE lib...]): a room's library and tools.
#
# Makes the static library ghp_<room> from all *.c of the calling folder but ghp-*.c, and from each ghp-*.c the tool
# of that name, linked to the library and installed.  A room without sources is an empty interface library.
function(ghp_room room)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "PUBLIC;PRIVATE")
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.c")
  file(GLOB tools CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/ghp-*.c")
  if(tools)
    list(REMOVE_ITEM sources ${tools})
  endif()

  if(sources)
    add_library(ghp_${room} STATIC ${sources})
    target_link_libraries(ghp_${room} PUBLIC ghp_flags ${arg_PUBLIC} PRIVATE ${arg_PRIVATE})
    target_compile_definitions(ghp_${room} PRIVATE GHP_VERSION="${PROJECT_VERSION}")
  else()
    add_library(ghp_${room} INTERFACE)
    target_link_libraries(ghp_${room} INTERFACE ghp_flags ${arg_PUBLIC} ${arg_PRIVATE})
  endif()

  foreach(source IN LISTS tools)
    get_filename_component(tool "${source}" NAME_WE)
    add_executable(${tool} "${source}")
    target_link_libraries(${tool} PRIVATE ghp_${room})
    target_compile_definitions(${tool} PRIVATE GHP_VERSION="${PROJECT_VERSION}")
    install(TARGETS ${tool} RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
  endforeach()
endfunction()
