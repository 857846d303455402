// case_grad.c: gradients of recorded samples.
#include "core/debug/case.h"

static void prepare(Case *c) {
    case_settle(c, CASE_skipped, "not yet");
}

static void finish(Case *c) {
    (void)c;
}

const CaseForm case_form_grad = {"code", prepare, finish};
