// vec.h: typed growing arrays in an arena. `VEC(Node *) v = {0}; vec_push(a, &v, node); v.at[i]`.
#ifndef CORE_BASE_VEC_H
#define CORE_BASE_VEC_H

#include "core/base/arena.h"

#define VEC(T) struct { T *at; int n, cap; }

// Adds one element; evaluates its arguments once each, except v.
#define vec_push(arena, v, ...)                                                                    \
    do {                                                                                           \
        if ((v)->n == (v)->cap) {                                                                  \
            int cap_ = (v)->cap ? (v)->cap * 2 : 8;                                                \
            (v)->at = arena_grow((arena), (v)->at, (size_t)(v)->n, (size_t)cap_, sizeof *(v)->at); \
            (v)->cap = cap_;                                                                       \
        }                                                                                          \
        (v)->at[(v)->n++] = __VA_ARGS__;                                                           \
    } while (0)

#define vec_last(v) ((v)->at[(v)->n - 1])
#define vec_pop(v) ((v)->at[--(v)->n])
// Takes out element i, keeping the order.
#define vec_remove(v, i)                                                                           \
    do {                                                                                           \
        for (int at_ = (i); at_ + 1 < (v)->n; at_++)                                               \
            (v)->at[at_] = (v)->at[at_ + 1];                                                       \
        (v)->n--;                                                                                  \
    } while (0)
#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

#endif
