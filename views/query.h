// query.h: things of all stages that meet conditions: `op:mul dtype:bf16 users>2 bytes>1M
// stage:joint`; a word alone is a part of the name, or a regular expression.
#ifndef VIEWS_QUERY_H
#define VIEWS_QUERY_H

#include "views/brief.h"

typedef enum QueryField {
#define QUERY(field, ...) QUERY_##field,
#include "views/query.def"
#undef QUERY
    QUERY_fields
} QueryField;
typedef struct QueryInfo {
    const char *name;
    bool number;
    const char *doc;
} QueryInfo;
extern const QueryInfo query_info[QUERY_fields];

typedef struct Found {
    int unit;
    const Artifact *art;
    int item;
    const void *thing; // its Node, SchedNode or CKernel, by the kind of art
} Found;
typedef struct FoundList {
    VEC(Found) at;
    int looked_at; // things
} FoundList;

typedef struct Query Query;

// NULL and an error if the query means nothing.
const Query *query_read(const char *text, Arena *a, Diag *d);
// Adds what one artifact has.
void query_ask(Session *s, const Query *q, int unit, const Artifact *art, Arena *keep,
               FoundList *out);
// In the stages that are built, of all graphs. False and an error if the query means nothing.
bool query_run(Session *s, const char *text, Arena *a, FoundList *out, Diag *d);
// A thing in words for a list; `name` is what `goto` takes. fields: bits of QueryField that are
// wanted, the name beside them; others may be empty.
enum { QUERY_all = (1 << QUERY_fields) - 1 };
typedef struct FoundFacts {
    const char *name, *op, *type, *place;
    double number[QUERY_fields]; // of those fields that are numbers
} FoundFacts;
FoundFacts found_facts(Session *s, const Found *at, unsigned fields, Arena *a);

#endif
