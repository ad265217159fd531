#include <darwin.h>
