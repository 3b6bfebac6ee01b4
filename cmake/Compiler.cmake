# Warnings, ccache and clang-tidy: what every target of the project is compiled with.
add_library(rehearse_options INTERFACE)
target_compile_options(rehearse_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wshadow;-Wnon-virtual-dtor;-Werror>
  $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings;-Xcompiler=-Wall,-Wextra,-Werror>)

find_program(CCACHE ccache)
if(CCACHE)
  # What ccache must not mind for it to keep what is compiled with precompiled headers.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE})
endif()

if(REHEARSE_CUDA)
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 90)  # Hopper, and later ones through its PTX
  endif()
  set(CMAKE_CUDA_STANDARD 17)  # CMake 3.25 knows no later one of nvcc
  enable_language(CUDA)
endif()

if(REHEARSE_TIDY)
  find_program(CLANG_TIDY NAMES clang-tidy-14 clang-tidy REQUIRED)
  set(CMAKE_CXX_CLANG_TIDY ${CLANG_TIDY})
endif()

# rehearse_precompile(TARGET HEADERS...): headers of others that most files of a target include are parsed once.
function(rehearse_precompile target)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND NOT REHEARSE_TIDY)
    target_precompile_headers(${target} PRIVATE ${ARGN})
  endif()
endfunction()
