# Finds CLBlast's C header (Debian: libclblast-dev) and, if it is there, where the library lies: it is
# looked up at run time.
find_path(CLBlastLib_INCLUDE_DIR clblast_c.h)
find_library(CLBlastLib_LIBRARY clblast)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CLBlastLib REQUIRED_VARS CLBlastLib_INCLUDE_DIR)
mark_as_advanced(CLBlastLib_INCLUDE_DIR CLBlastLib_LIBRARY)
