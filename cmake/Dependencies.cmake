# Everything the project needs from the system; tools/packages.txt names the Debian packages.
find_package(PkgConfig REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(fmt 9 REQUIRED)
find_package(CLI11 2.1 REQUIRED)
find_package(Boost 1.74 REQUIRED)
find_package(SQLite3 3.40 REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(simgrid REQUIRED IMPORTED_TARGET simgrid>=3.32)

if(REHEARSE_TESTS)
  find_package(GTest REQUIRED)
  find_package(benchmark REQUIRED)
  find_library(RAPIDCHECK rapidcheck REQUIRED)
endif()

if(REHEARSE_CUDA)
  find_package(CUDAToolkit 12 REQUIRED)
endif()
