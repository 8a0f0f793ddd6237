# sw_levels: the level table of levels.yaml as C data. Included once, by whoever comes first.
if(NOT TARGET sw_levels)
  set(LEVELS_DIR ${CMAKE_SOURCE_DIR}/signatures)
  set(LEVELS_C ${CMAKE_BINARY_DIR}/generated/levels_builtin.c)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/generated)
  add_executable(levels_gen ${LEVELS_DIR}/levels_gen.c)
  target_link_libraries(levels_gen PRIVATE sw_core PkgConfig::YAML)
  add_custom_command(OUTPUT ${LEVELS_C}
    COMMAND levels_gen ${LEVELS_DIR}/levels.yaml ${LEVELS_C}
    DEPENDS levels_gen ${LEVELS_DIR}/levels.yaml VERBATIM)
  add_library(sw_levels STATIC ${LEVELS_C})
  target_link_libraries(sw_levels PUBLIC sw_core)
endif()
