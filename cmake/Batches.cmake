# rehearse_in_batches(TARGET [APART SOURCES...]): its sources are compiled 16 at a time, where
# REHEARSE_BATCHES is on. Names in unnamed namespaces must then differ within the target: the compiler refuses a second
# definition, though not an overload that fits better. APART: sources whose names do not differ.
function(rehearse_in_batches target)
  cmake_parse_arguments(ARG "" "" "APART" ${ARGN})
  if(REHEARSE_BATCHES)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 16)
    set_source_files_properties(${ARG_APART} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endfunction()
