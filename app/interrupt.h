// interrupt.h: without a screen Ctrl-C ends a search, and what is known is told; a second one ends
// the program.
#ifndef APP_INTERRUPT_H
#define APP_INTERRUPT_H

#include <signal.h>
#include <stdbool.h>

typedef struct sigaction Interrupt; // what stood there before
// True once Ctrl-C was pressed. Ends with interrupt_end.
const bool *interrupt_begin(Interrupt *before);
void interrupt_end(const Interrupt *before);

#endif
