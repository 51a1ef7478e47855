# TLS 1.3 for the connections between machines.
find_package(OpenSSL REQUIRED COMPONENTS SSL Crypto)
set_target_properties(OpenSSL::SSL PROPERTIES IMPORTED_GLOBAL TRUE)
target_link_libraries(farandole_transport PRIVATE OpenSSL::SSL OpenSSL::Crypto)
