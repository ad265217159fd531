// What a C program pays that is linked to the libraries of `fullbore`: the loader's work, and theirs at the start.
#include <stdio.h>

int main(void) {
  puts("0");
  return 0;
}
