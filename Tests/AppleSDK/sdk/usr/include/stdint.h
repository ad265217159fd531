#include <darwin/types.h>
