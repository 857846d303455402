// boxes.h: an artifact as boxes and lines for core/draw: the nodes of a graph, or the loops and
// calls of a schedule, in groups that are drawn as one box or unfolded with a frame round them. A
// group is a run of neighbours in order of execution, so that no two groups wait for each other.
#ifndef VIEWS_BOXES_H
#define VIEWS_BOXES_H

#include "core/draw/draw.h"
#include "views/brief.h"

// What makes a group; the forms of the drawing.
typedef enum BoxesBy {
    BY_kernel,
    BY_module,
    BY_line,
    BY_half,
    BY_block,               // what repeats: blocks.h
    BY_nothing,
    BOXES_BYS
} BoxesBy;
extern const char *const boxes_by[];    // kernel, module, …

// How much a box tells, from the least on. How many ops it stands for, chains of them drawn as one;
// names cut short; whole names; what each makes as well.
typedef enum BoxDetail {
    DETAIL_dots = 1,
    DETAIL_short,
    DETAIL_names,
    DETAIL_types,
    DETAIL_end
} BoxDetail;
extern const char *const box_details[]; // dots, short, names, types, NULL

typedef struct BoxPart {
    int item;               // of the artifact
    const char *name;
    const char *type;       // "": none; NULL: not asked for yet, boxes_type makes it of val
    const Value *val;       // of a node
    const char *key;        // of its group, NULL: in none
    uint64_t kind;          // what it does
    int kernel;             // number of its kernel's letter, -1 none
    bool quiet;             // an input, a view: drawn dim
    int group;              // -1: none
    int box;                // as drawn now
} BoxPart;

typedef struct BoxGroup {
    const char *title;
    int first, n;           // its parts
    int kernel;             // as of parts
    bool open;
} BoxGroup;

typedef struct Boxes {
    Arena *arena;
    VEC(BoxPart) parts;     // in order of execution
    VEC(BoxGroup) groups;
    VEC(DrawEdge) edges;    // between parts
    int *part_of;           // by item of the artifact: its part, -1
    int n_items;
    int inputs_hidden;      // parameters and constants are left out
    BoxesBy by;             // as asked for; by line if there are no modules, else by block; by
                            // block too where there would be too many groups
    DrawGraph graph;        // by boxes_draw
    int *first_part;        // by box
    int *next_part;         // by part: the next in the same box, -1
} Boxes;

// Parts, edges and groups; false and why if the artifact cannot be drawn. Groups begin open if all
// boxes together are few.
bool boxes_open(Boxes *b, ViewCtx *c, BoxesBy by, Buf *why);
// The graph to draw with the groups as they are now.
void boxes_draw(Boxes *b, BoxDetail detail);
// What a part makes, in words.
const char *boxes_type(const Boxes *b, BoxPart *p);
// Boxes that it has then.
int boxes_count(const Boxes *b);

#endif
