# cmake/GhpHash.cmake - the hash of sources as a C string, made by the build.
#
#   ghp_hash(<target> <name> <pattern>...)   adds `const char <name>[]`: 16 digits of the contents of all files that
#                                            match, of the compiler and of its flags
#
# The file runs itself as the script that writes a C file: cmake -DLIST=... -DSALT=... -DNAME=... -DOUTPUT=... -P
# GhpHash.cmake
if(CMAKE_SCRIPT_MODE_FILE)
  file(STRINGS "${LIST}" files)
  set(all "${SALT}")
  foreach(file IN LISTS files)
    file(SHA256 "${file}" one)
    string(APPEND all "${one}")
  endforeach()
  string(SHA256 all "${all}")
  string(SUBSTRING "${all}" 0 16 all)
  file(WRITE "${OUTPUT}" "extern const char ${NAME}[];\nconst char ${NAME}[] = \"${all}\";\n")
  return()
endif()

set(GHP_HASH "${CMAKE_CURRENT_LIST_FILE}")

function(ghp_hash target name)
  list(TRANSFORM ARGN PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/" OUTPUT_VARIABLE patterns)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS ${patterns})
  set(output "${CMAKE_CURRENT_BINARY_DIR}/${name}.c")
  string(REPLACE ";" "\n" lines "${files}")
  file(CONFIGURE OUTPUT "${output}.list" CONTENT "${lines}\n")
  set(salt "${CMAKE_C_COMPILER_ID} ${CMAKE_C_COMPILER_VERSION} ${CMAKE_BUILD_TYPE} ${CMAKE_C_FLAGS} ${GHP_NATIVE}")
  add_custom_command(OUTPUT "${output}"
                     COMMAND "${CMAKE_COMMAND}" "-DLIST=${output}.list" "-DSALT=${salt}" "-DNAME=${name}"
                             "-DOUTPUT=${output}" -P "${GHP_HASH}"
                     DEPENDS ${files} "${output}.list" "${GHP_HASH}" VERBATIM)
  target_sources(${target} PRIVATE "${output}")
endfunction()
