/* What the initial values of farandole.h's structs are in C99 and in C++11. */
#pragma once

#include <farandole.h>

#ifdef __cplusplus
extern "C" {
#endif

farandole_request requestFromC(void);
farandole_init_options optionsFromC(void);

farandole_request requestFromCpp11(void);
farandole_init_options optionsFromCpp11(void);

#ifdef __cplusplus
}
#endif
