// views.c: the list of views.
#include "views/view.h"

#include <string.h>

const View *const views[] = {
#define VIEW(name) &view_##name,
#include "views/views.def"
#undef VIEW
    NULL,
};

const View *view_find(const char *name) {
    for (int i = 0; views[i]; i++)
        if (!strcmp(views[i]->name, name))
            return views[i];
    return NULL;
}

int view_number(const View *v) {
    int i = 0;
    while (views[i] != v)
        i++;
    return i;
}
