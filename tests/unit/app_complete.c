// app_complete.c: completion: every argument of every command has a list, the lists hold what there
// is in the model, and what is offered is accepted.
#include "app/app.h"
#include "app/complete.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

static App app;
static SessionOptions options;

static void start(const char *model, const char *grad) {
    options = (SessionOptions){.grad = grad, .toolchain = "tcc"};
    app_init(&app, 120, 40);
    app.options = &options;
    ck_assert_msg(app_open(&app, model), "%s: %s", model, diag_first(&app.diag));
}

static void end(void) {
    app_close(&app);
    app = (App){0};
}

static Prompt *type(char sign, const char *text) {
    prompt_open(&app.prompt, sign, text);
    complete(&app, &app.prompt);
    return &app.prompt;
}

static bool offers(const Prompt *p, const char *text) {
    for (int i = 0; i < p->choice.n; i++)
        if (!strcmp(p->choice.at[i].text, text))
            return true;
    return false;
}

static void check_offer(const char *line, const char *text) {
    ck_assert_msg(offers(type(':', line), text), "`%s` does not offer %s", line, text);
}

// A line that gets to argument i: words that are there, `x` where any will do.
static const char *line_before(Arena *a, const Command *c, int i) {
    Buf b = {.arena = a};
    buf_printf(&b, "%s ", c->name);
    for (int k = 0; k < i; k++) {
        const char *kind = command_kind(a, c, k);
        buf_printf(&b, "%s ",
                   !strcmp(kind, "breakkind")  ? "op"
                   : !strcmp(kind, "decision") ? "fuse"
                   : !strcmp(kind, "line")     ? "stage"
                                               : "x");
    }
    return buf_str(&b);
}

START_TEST(every_argument_of_every_command_has_choices) {
    static const char *const none[] = {"echo", "arrange", "key"}; // a text of one's own
    Arena a = {0};
    start("samples/classifier.txt", "params");
    app_run(&app, "stage kernels graph 1 ; stage partition graph 0 ; view saved");
    app_run(&app, "break op mul ; mark here ; view saved");
    for (const Command *c = commands; c->name; c++)
        for (int i = 0; i < 4 && str_index(c->name, none, COUNT(none)) < 0; i++) {
            const char *kind = command_kind(&a, c, i), *line = line_before(&a, c, i);
            if (*kind)
                ck_assert_msg(type(':', line)->choice.n > 0, "nothing is offered behind `%s` (%s)",
                              line, kind);
        }
    prompt_clear_choices(&app.prompt);
    arena_free(&a);
    end();
}
END_TEST

START_TEST(choices_are_what_the_model_has) {
    start("samples/block.pt2", "none");
    app_run(&app, "stage kernels ; stage joint");
    check_offer("goto er", "erf");
    check_offer("goto ", "twin");
    check_offer("why op", "op5");
    check_offer("fuse op5 op", "op6");
    check_offer("nofuse op0_", "op0_op1_op3");
    check_offer("stage kern", "kernels");
    check_offer("stage kernels graph ", "0");
    check_offer("graph ", "0");
    check_offer("graph ", "next");
    check_offer("break shape ", "[2,32,64]");
    check_offer("break op ge", "gelu");
    check_offer("override decomposition ", "aten.gelu.default");
    check_offer("set joint_custom_pre_pass=sam", "joint_custom_pre_pass=samples/");
    check_offer("open x grad=", "grad=params");
    check_offer("open x values=samples/block.v", "values=samples/block.values.safetensors");
    check_offer("ops leaky", "leaky_relu");
    check_offer("bind <C-t> vi", "view");
    check_offer("bind <C-t> view ti", "timing");
    check_offer("stage fx ; view ti", "timing");
    check_offer("find stage:joi", "stage:joint");
    ck_assert(!offers(type(':', "graph "), "N"));
    ck_assert(offers(type('F', "op:e"), "op:erf"));
    ck_assert(offers(type('F', "by"), "bytes>"));
    ck_assert(!offers(type('F', "de"), "delete")); // a query, no command
    ck_assert_int_eq(type('/', "er")->choice.n, 0);
    end();
}
END_TEST

START_TEST(the_command_is_told_while_it_is_typed) {
    start("samples/block.pt2", "none");
    ck_assert_ptr_null(type(':', "nofu")->usage);
    const char *usage = type(':', "nofuse ")->usage;
    ck_assert_ptr_nonnull(usage);
    ck_assert(str_starts(usage, "nofuse NODE NODE   forbid fusing two nodes"));
    // The only choice is taken, a blank behind it, and what comes then is offered.
    prompt_open(&app.prompt, ':', "theme da");
    app_key(&app, "<Tab>");
    ck_assert_str_eq(app.prompt.text, "theme dark ");
    end();
}
END_TEST

START_TEST(what_is_offered_is_accepted) {
    static const char *const lines[] = {"theme ", "layout ", "toolchain ", "stage ", "lock "};
    start("samples/block.pt2", "none");
    for (int i = 0; i < COUNT(lines); i++) {
        int n = type(':', lines[i])->choice.n;
        ck_assert_int_gt(n, 0);
        for (int k = 0; k < n; k++) {
            char line[200];
            Prompt *p = type(':', lines[i]);
            snprintf(line, sizeof line, "%s%s", lines[i], p->choice.at[k].text);
            prompt_close(p);
            if (strstr(line, "layout save") || strstr(line, "layout delete") ||
                strstr(line, "stage bytecode") || strstr(line, "stage run") ||
                strstr(line, "stage source"))
                continue;
            ck_assert_msg(app_run(&app, line), "`%s` is refused: %s", line, app.message);
        }
    }
    end();
}
END_TEST

Suite *suite_app_complete(void) {
    const TTest *const tests[] = {
        every_argument_of_every_command_has_choices,
        choices_are_what_the_model_has,
        the_command_is_told_while_it_is_typed,
        what_is_offered_is_accepted,
    };
    return unit_suite("app_complete", tests, (int)(sizeof tests / sizeof *tests));
}
