# cmake/GhpTables.cmake - a list of all tables of kernels in a folder, so that a new file of them is named nowhere.
#
#   ghp_tables(<library> <folder> <header> <type> <list>)
#
# A table is what a *.c or *.cu of the folder defines in a line `const struct <type> <name>[] = {` (in C++ after `extern
# "C"`). The library gets
#
#   const struct <type> *const <list>[]     all tables, in the order of their files; NULL ends it
#
# which <header> declares.
function(ghp_tables library folder header type list)
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.c"
       "${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cu")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${sources})
  set(declarations "")
  set(rows "")
  foreach(source IN LISTS sources)
    file(STRINGS "${source}" lines REGEX "^(extern \"C\" )?const struct ${type} [a-z0-9_]+\\[\\] = ")
    foreach(line IN LISTS lines)
      string(REGEX REPLACE "^.*const struct [a-z_]+ ([a-z0-9_]+).*" "\\1" table "${line}")
      string(APPEND declarations "extern const struct ${type} ${table}[];\n")
      string(APPEND rows "    ${table},\n")
    endforeach()
  endforeach()
  if(NOT rows)
    message(FATAL_ERROR "ghp_tables: no file of ${folder} has a table of struct ${type}")
  endif()
  set(output "${CMAKE_CURRENT_BINARY_DIR}/${list}.c")
  file(CONFIGURE OUTPUT "${output}" @ONLY CONTENT "/* The tables in @folder@, written by cmake/GhpTables.cmake. */
#include \"@header@\"

#include <stddef.h>

@declarations@
const struct @type@ *const @list@[] = {
@rows@    NULL,
};
")
  target_sources(${library} PRIVATE "${output}")
endfunction()
