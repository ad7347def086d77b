# Finds CLBlast's C interface (Debian: libclblast-dev): CLBlastLib::CLBlastLib.
find_path(CLBlastLib_INCLUDE_DIR clblast_c.h)
find_library(CLBlastLib_LIBRARY clblast)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CLBlastLib REQUIRED_VARS CLBlastLib_LIBRARY CLBlastLib_INCLUDE_DIR)
if(CLBlastLib_FOUND AND NOT TARGET CLBlastLib::CLBlastLib)
  add_library(CLBlastLib::CLBlastLib UNKNOWN IMPORTED)
  set_target_properties(CLBlastLib::CLBlastLib PROPERTIES
    IMPORTED_LOCATION ${CLBlastLib_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${CLBlastLib_INCLUDE_DIR})
endif()
