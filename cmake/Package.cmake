# cmake --build build/release --target package: a .deb of the program, its data, man pages and completion.
if(NOT TARGET rehearse)
  return()
endif()

# Written by the program itself, so that they list the flags that it has.
set(generated ${CMAKE_BINARY_DIR}/generated)
install(CODE "
  file(MAKE_DIRECTORY ${generated})
  foreach(shell bash zsh fish)
    execute_process(COMMAND $<TARGET_FILE:rehearse> completion \${shell} OUTPUT_FILE ${generated}/\${shell}
                    COMMAND_ERROR_IS_FATAL ANY)
  endforeach()")
install(FILES ${generated}/bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME rehearse)
install(FILES ${generated}/zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions RENAME _rehearse)
install(FILES ${generated}/fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d RENAME rehearse.fish)
find_program(HELP2MAN help2man)
if(HELP2MAN)
  install(CODE "
    execute_process(COMMAND ${CMAKE_COMMAND} -E env REHEARSE=$<TARGET_FILE:rehearse>
                    ${CMAKE_SOURCE_DIR}/tools/man-pages ${generated}/man1 COMMAND_ERROR_IS_FATAL ANY)")
  install(DIRECTORY ${generated}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
else()
  message(STATUS "help2man was not found: the package has no man pages")
endif()
install(FILES LICENSE NOTICE CHANGELOG.md README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_VENDOR "The Rehearse authors")
set(CPACK_PACKAGE_CONTACT "The Rehearse authors <maintainers@users.noreply.rehearse.example>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "simulator of large-model training on GPU clusters")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)  # the libraries that the program is linked with, by their packages
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "librsvg2-bin, openmpi-bin, python3")
include(CPack)
