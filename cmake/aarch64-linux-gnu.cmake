# Cross-compiles for arm64 Linux with Debian's compiler. The libraries and headers of arm64 lie in a
# folder of their own (tools/arm64 unpacks them there): nothing of the machine's own is looked at.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

get_filename_component(FARANDOLE_ARM64_ROOT "${CMAKE_CURRENT_LIST_DIR}/../build-arm64/root" ABSOLUTE)
set(CMAKE_FIND_ROOT_PATH ${FARANDOLE_ARM64_ROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
# Not every package's headers are named by its targets: OpenSSL's configuration is in the folder of the architecture.
set(CMAKE_CXX_FLAGS_INIT "-isystem ${FARANDOLE_ARM64_ROOT}/usr/include -isystem ${FARANDOLE_ARM64_ROOT}/usr/include/aarch64-linux-gnu")
set(CMAKE_EXE_LINKER_FLAGS_INIT "-Wl,-rpath-link,${FARANDOLE_ARM64_ROOT}/usr/lib/aarch64-linux-gnu")

# Tests run in an emulator, and are listed when they run, not when they are built.
find_program(FARANDOLE_QEMU_ARM64 NAMES qemu-aarch64-static qemu-aarch64)
if(FARANDOLE_QEMU_ARM64)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${FARANDOLE_QEMU_ARM64};-L;/usr/aarch64-linux-gnu;-E;LD_LIBRARY_PATH=${FARANDOLE_ARM64_ROOT}/usr/lib/aarch64-linux-gnu)
endif()
set(CMAKE_GTEST_DISCOVER_TESTS_DISCOVERY_MODE PRE_TEST)
