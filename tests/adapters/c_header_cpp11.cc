// farandole.h as a C++11 program sees it.
#include "c_header.h"

#if __cplusplus >= 201402L
#error "this file shows that farandole.h is C++11"
#endif

farandole_request requestFromCpp11() {
  farandole_request request = FARANDOLE_REQUEST_INIT;
  return request;
}

farandole_init_options optionsFromCpp11() {
  const farandole_init_options options = FARANDOLE_INIT_OPTIONS_INIT;
  return options;
}
