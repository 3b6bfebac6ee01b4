# Where the program and its data go: bin/rehearse finds ../share/rehearse.
include(GNUInstallDirs)
if(TARGET rehearse)
  install(TARGETS rehearse RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(DIRECTORY topologies scenarios DESTINATION ${CMAKE_INSTALL_DATADIR}/rehearse)
install(DIRECTORY calibrate/profiles calibrate/collectives DESTINATION ${CMAKE_INSTALL_DATADIR}/rehearse/calibrate)
install(FILES calibrate/data/nics.json DESTINATION ${CMAKE_INSTALL_DATADIR}/rehearse/calibrate/data)
install(PROGRAMS tools/convert-runs DESTINATION ${CMAKE_INSTALL_DATADIR}/rehearse/tools)
install(FILES sim/frameworks/data/settings.py DESTINATION ${CMAKE_INSTALL_DATADIR}/rehearse/sim/frameworks/data)
install(FILES tools/practices.json DESTINATION ${CMAKE_INSTALL_DATADIR}/rehearse/tools)
install(FILES calibrate/data/runs/families.json calibrate/data/runs/mechanisms.json
        DESTINATION ${CMAKE_INSTALL_DATADIR}/rehearse/calibrate/data/runs)
