# Finds iniparser (Debian: libiniparser-dev): Iniparser::Iniparser.
find_path(Iniparser_INCLUDE_DIR iniparser.h PATH_SUFFIXES iniparser)
find_library(Iniparser_LIBRARY iniparser)
# The header carries no version; Debian's package manager knows it.
set(LAP_INIPARSER_VERSION "unknown")
find_program(LAP_DPKG_QUERY dpkg-query)
if(LAP_DPKG_QUERY)
  execute_process(COMMAND ${LAP_DPKG_QUERY} -W -f=\${Version} libiniparser-dev
    OUTPUT_VARIABLE LAP_INIPARSER_DPKG ERROR_QUIET)
  if(LAP_INIPARSER_DPKG)
    set(LAP_INIPARSER_VERSION ${LAP_INIPARSER_DPKG})
  endif()
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Iniparser REQUIRED_VARS Iniparser_LIBRARY Iniparser_INCLUDE_DIR)
if(Iniparser_FOUND AND NOT TARGET Iniparser::Iniparser)
  add_library(Iniparser::Iniparser UNKNOWN IMPORTED)
  set_target_properties(Iniparser::Iniparser PROPERTIES
    IMPORTED_LOCATION ${Iniparser_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${Iniparser_INCLUDE_DIR})
endif()
