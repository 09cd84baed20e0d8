# Run at each build: writes TO from FROM with PENSTOCK_VERSION, as given, and
# PENSTOCK_REVISION of the sources in SOURCE. An unchanged TO is not touched.
execute_process(
  COMMAND git -C ${SOURCE} describe --always --exclude=* --abbrev=12 --dirty
  OUTPUT_VARIABLE PENSTOCK_REVISION OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT PENSTOCK_REVISION)
  set(PENSTOCK_REVISION unknown)
endif()
configure_file(${FROM} ${TO} @ONLY)
