# HMAC for what proves that a process belongs to the job.
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
# Seen by tests/ and adapters/ too, which link the layer.
set_target_properties(OpenSSL::Crypto PROPERTIES IMPORTED_GLOBAL TRUE)
target_link_libraries(farandole_crypto PRIVATE OpenSSL::Crypto)
