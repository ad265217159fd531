// The C library of Apple's systems, as far as Fullbore calls it.
#pragma once
#include <darwin/types.h>
#include <darwin/files.h>
#include <darwin/memory.h>
#include <darwin/network.h>
#include <darwin/events.h>
