// Measures the cost of a C program that is linked to the libraries of `fullbore`: the loader and library
// initialization.
#include <stdio.h>

int main(void) {
  puts("0");
  return 0;
}
