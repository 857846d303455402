// main.c: the program's entry.
#include <stdio.h>

int main(void) {
    puts("fxray");
    return 0;
}
