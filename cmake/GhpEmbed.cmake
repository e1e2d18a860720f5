# cmake/GhpEmbed.cmake - text files as C strings, made by the build.
#
#   ghp_embed(<target> <prefix> file...)   adds `const char <prefix>_<extension>[]`, ended by NUL, for each file
#   ghp_embed_folder(<target> <list> <folder> <extension>)
#                                          adds two arrays that NULL ends: `const char *const <list>_names[]`, the
#                                          files' names without the extension, and `<list>_texts[]`, their contents
#
# The file runs itself as the script that writes a C file: cmake -DINPUT=... -DNAME=... -DOUTPUT=... -P GhpEmbed.cmake
if(CMAKE_SCRIPT_MODE_FILE)
  file(READ "${INPUT}" bytes HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  file(WRITE "${OUTPUT}" "extern const char ${NAME}[];\nconst char ${NAME}[] = {${bytes}0};\n")
  return()
endif()

set(GHP_EMBED "${CMAKE_CURRENT_LIST_FILE}")

function(ghp_embed target prefix)
  foreach(file IN LISTS ARGN)
    get_filename_component(extension "${file}" LAST_EXT)
    string(REPLACE "." "${prefix}_" name "${extension}")
    set(output "${CMAKE_CURRENT_BINARY_DIR}/${name}.c")
    add_custom_command(OUTPUT "${output}"
                       COMMAND "${CMAKE_COMMAND}" "-DINPUT=${CMAKE_CURRENT_SOURCE_DIR}/${file}" "-DNAME=${name}"
                               "-DOUTPUT=${output}" -P "${GHP_EMBED}"
                       DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${file}" "${GHP_EMBED}" VERBATIM)
    target_sources(${target} PRIVATE "${output}")
  endforeach()
endfunction()

function(ghp_embed_folder target list folder extension)
  file(GLOB files CONFIGURE_DEPENDS "${folder}/*.${extension}")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files})
  set(arrays "")
  set(names "")
  set(texts "")
  foreach(file IN LISTS files)
    get_filename_component(name "${file}" NAME_WLE)
    string(MAKE_C_IDENTIFIER "text_${name}" text)
    file(READ "${file}" bytes HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
    string(APPEND arrays "static const char ${text}[] = {${bytes}0};\n")
    string(APPEND names "\"${name}\", ")
    string(APPEND texts "${text}, ")
  endforeach()
  set(output "${CMAKE_CURRENT_BINARY_DIR}/${list}.c")
  file(CONFIGURE OUTPUT "${output}" @ONLY CONTENT "extern const char *const @list@_names[], *const @list@_texts[];
@arrays@const char *const @list@_names[] = {@names@0};
const char *const @list@_texts[] = {@texts@0};
")
  target_sources(${target} PRIVATE "${output}")
endfunction()
