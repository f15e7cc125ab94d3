#include "internal.h"

int nd_interface(void) { return ND_INTERFACE; }
