# rehearse_embed(TARGET NAMESPACE FILES...): files as constants of a library, read when it is built. html/page.css is
# kPageCss. Also a script of its own: cmake -DOUT= -DNAMESPACE= -DFILES= -P Embed.cmake writes the source.
if(CMAKE_SCRIPT_MODE_FILE)
  file(WRITE ${OUT} "#include <string_view>\n\nnamespace rehearse::${NAMESPACE} {\n\n")
  foreach(path ${FILES})
    get_filename_component(name ${path} NAME)
    string(REGEX REPLACE "[^A-Za-z0-9]+" ";" words ${name})
    set(constant k)
    foreach(word ${words})
      string(SUBSTRING ${word} 0 1 first)
      string(SUBSTRING ${word} 1 -1 rest)
      string(TOUPPER ${first} first)
      string(APPEND constant ${first}${rest})
    endforeach()
    file(READ ${path} text)
    file(APPEND ${OUT} "extern const std::string_view ${constant};\nconst std::string_view ${constant} = R\"EMBEDDED(")
    file(APPEND ${OUT} "${text}")
    file(APPEND ${OUT} ")EMBEDDED\";\n\n")
  endforeach()
  file(APPEND ${OUT} "}  // namespace rehearse::${NAMESPACE}\n")
  return()
endif()

set(REHEARSE_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})
function(rehearse_embed target namespace)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/embedded.cpp)
  list(TRANSFORM ARGN PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ OUTPUT_VARIABLE paths)
  add_custom_command(OUTPUT ${out} DEPENDS ${paths} ${REHEARSE_EMBED_SCRIPT} VERBATIM
                     COMMAND ${CMAKE_COMMAND} -DOUT=${out} -DNAMESPACE=${namespace} "-DFILES=${paths}"
                             -P ${REHEARSE_EMBED_SCRIPT})
  # Only the standard's least limit is exceeded: every compiler takes longer literals.
  set_source_files_properties(${out} PROPERTIES COMPILE_OPTIONS
                              "$<$<CXX_COMPILER_ID:Clang>:-Wno-overlength-strings>")
  target_sources(${target} PRIVATE ${out})
endfunction()
