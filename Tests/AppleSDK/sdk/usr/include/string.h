#include <darwin/memory.h>
