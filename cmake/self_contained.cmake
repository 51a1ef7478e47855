# farandole_self_contained(target): at run time the target needs nothing but a glibc of 2.34 or later, and its debugging
# information lies beside it in a file of its own (gdb and perf find it), so that what is copied to other machines is
# small. Sanitized builds need the shared run-time libraries and stay as they are.
function(farandole_self_contained target)
  if(FARANDOLE_SANITIZE)
    return()
  endif()
  target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src/base/glibc_compat.c)
  target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc LINKER:--exclude-libs,ALL)
  if(CMAKE_OBJCOPY)
    add_custom_command(TARGET ${target} POST_BUILD VERBATIM
      COMMAND ${CMAKE_OBJCOPY} --only-keep-debug $<TARGET_FILE:${target}> $<TARGET_FILE:${target}>.debug
      COMMAND ${CMAKE_OBJCOPY} --strip-unneeded --add-gnu-debuglink=$<TARGET_FILE:${target}>.debug $<TARGET_FILE:${target}>)
  endif()
endfunction()
