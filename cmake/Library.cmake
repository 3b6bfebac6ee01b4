# rehearse_library(NAME SOURCES ... DEPENDS ... [PRIVATE ...]): the one library of a folder.
# DEPENDS names libraries of ours and repeats the table of who may include whom; PRIVATE names libraries of others.
function(rehearse_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;PRIVATE" ${ARGN})
  add_library(rehearse_${name} STATIC ${ARG_SOURCES})
  target_include_directories(rehearse_${name} PUBLIC ${CMAKE_SOURCE_DIR}/sim ${CMAKE_SOURCE_DIR})
  list(TRANSFORM ARG_DEPENDS PREPEND rehearse_)
  target_link_libraries(rehearse_${name} PUBLIC ${ARG_DEPENDS} PRIVATE rehearse_options ${ARG_PRIVATE})
endfunction()
