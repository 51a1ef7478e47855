/* farandole.h as a C99 program sees it. */
#include "c_header.h"

farandole_request requestFromC(void) {
  farandole_request request = FARANDOLE_REQUEST_INIT;
  return request;
}

farandole_init_options optionsFromC(void) {
  farandole_init_options options = FARANDOLE_INIT_OPTIONS_INIT;
  return options;
}
