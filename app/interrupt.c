// interrupt.c: Ctrl-C while a command without a screen searches.
#include "app/interrupt.h"

#include <stddef.h>

static bool interrupted; // of the process, as signals are

static void on_interrupt(int sig) {
    (void)sig;
    interrupted = true;
}

const bool *interrupt_begin(Interrupt *before) {
    struct sigaction act = {.sa_handler = on_interrupt, .sa_flags = SA_RESETHAND};
    interrupted = false;
    sigaction(SIGINT, &act, before);
    return &interrupted;
}

void interrupt_end(const Interrupt *before) {
    sigaction(SIGINT, before, NULL);
}
