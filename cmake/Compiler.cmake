# Warnings, ccache and clang-tidy: what every target of the project is compiled with.
add_library(rehearse_options INTERFACE)
target_compile_options(rehearse_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wshadow;-Wnon-virtual-dtor>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>)
# g++ 13 and 14 take every function that takes a temporary, such as a name, to return a reference into it.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
  target_compile_options(rehearse_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-dangling-reference>)
endif()
if(REHEARSE_WERROR)
  target_compile_options(rehearse_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Werror> $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings;-Xcompiler=-Werror>)
endif()

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
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
  find_program(CLANG_TIDY clang-tidy REQUIRED)
  # It is a clang, and is given the flags of a GCC.
  set(CMAKE_CXX_CLANG_TIDY ${CLANG_TIDY} --extra-arg=-Wno-unknown-warning-option)
endif()

# rehearse_computes_little(TARGETS...): -O1 compiles them in two thirds of the time that -O3 takes.
function(rehearse_computes_little)
  foreach(target ${ARGN})
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  endforeach()
endfunction()
