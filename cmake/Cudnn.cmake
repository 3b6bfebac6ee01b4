# Fused attention needs cuDNN and its C++ headers, cudnn-frontend (github.com/NVIDIA/cudnn-frontend). They are no
# part of the CUDA toolkit: CUDNN_FRONTEND says where a checkout of them or its include folder is, CUDNN where cuDNN
# is if it lies apart from the toolkit.
set(CUDNN_FRONTEND "" CACHE PATH "cudnn-frontend: the checkout or its include folder")
set(CUDNN "" CACHE PATH "cuDNN: the folder with its include and lib")
find_path(CUDNN_FRONTEND_INCLUDE cudnn_frontend.h HINTS ${CUDNN_FRONTEND} PATH_SUFFIXES include)
find_path(CUDNN_INCLUDE cudnn.h HINTS ${CUDNN} ${CUDAToolkit_INCLUDE_DIRS} PATH_SUFFIXES include)
find_library(CUDNN_LIBRARY NAMES cudnn libcudnn.so.9 HINTS ${CUDNN} ${CUDAToolkit_LIBRARY_DIR} PATH_SUFFIXES lib lib64)
# Not CUDA::nvrtc, which brings the driver: a machine without a GPU has none.
find_library(NVRTC_LIBRARY nvrtc HINTS ${CUDAToolkit_LIBRARY_DIR})

if(CUDNN_FRONTEND AND NOT CUDNN_FRONTEND_INCLUDE)
  message(FATAL_ERROR "CUDNN_FRONTEND: there is no cudnn_frontend.h in ${CUDNN_FRONTEND} nor in its include folder")
endif()
set(CUDNN_FOUND FALSE)
set(CUDNN_FRONTEND_VERSION 0.0)
if(CUDNN_FRONTEND_INCLUDE)
  file(READ ${CUDNN_FRONTEND_INCLUDE}/cudnn_frontend_version.h VERSION_HEADER)
  string(REGEX MATCH "MAJOR_VERSION ([0-9]+).*MINOR_VERSION ([0-9]+)" MATCHED "${VERSION_HEADER}")
  set(CUDNN_FRONTEND_VERSION ${CMAKE_MATCH_1}.${CMAKE_MATCH_2})
endif()
if(CUDNN_INCLUDE AND CUDNN_LIBRARY AND NVRTC_LIBRARY AND CUDNN_FRONTEND_VERSION VERSION_GREATER_EQUAL 1.14)
  set(CUDNN_FOUND TRUE)
  message(STATUS "Attention on the GPU: by cuDNN, ${CUDNN_LIBRARY}, through ${CUDNN_FRONTEND_INCLUDE}")
else()
  message(STATUS "Attention on the GPU: by our own kernels, without the tensor cores. cuDNN needs its library and "
                 "-DCUDNN_FRONTEND=DIR, a checkout of its headers cudnn-frontend, 1.14 or later")
endif()
