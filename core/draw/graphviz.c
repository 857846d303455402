// graphviz.c: layout and pictures by Graphviz's library, the one place that knows it. Its memory
// and its messages are its own: a helper runs this.
#include "core/draw/draw.h"

#include <graphviz/gvc.h>
#include <stdio.h>
#include <string.h>

enum { SPLINE_STEPS = 6 }; // points taken of each piece of a curve

static char said[256]; // Graphviz's first complaint

static int keep_message(char *text) {
    if (!said[0])
        snprintf(said, sizeof said, "%s", text);
    return 0;
}

static GVC_t *context(void) {
    static GVC_t *gvc;
    if (!gvc) {
        agseterrf(keep_message);
        gvc = gvContext();
    }
    said[0] = 0;
    return gvc;
}

static graph_t *laid_out(const char *dot, Diag *d) {
    GVC_t *gvc = context();
    graph_t *g = gvc ? agmemread(dot) : NULL;
    if (g && gvLayout(gvc, g, "dot") == 0)
        return g;
    if (g)
        agclose(g);
    diag_tool(d, "graphviz cannot lay this out: %s", said[0] ? said : "no reason given");
    return NULL;
}

static double on_curve(double a, double b, double c, double d, double t) {
    double s = 1 - t;
    return s * s * s * a + 3 * s * s * t * b + 3 * s * t * t * c + t * t * t * d;
}

// No %f: its comma depends on the locale. Half a point is a fourteenth of a cell.
static void put_point(Buf *out, double x, double y) {
    buf_printf(out, " %ld %ld", (long)(x < 0 ? x - 0.5 : x + 0.5),
               (long)(y < 0 ? y - 0.5 : y + 0.5));
}

static void put_edge(Buf *out, Agedge_t *e, double top) {
    static char name[] = "id"; // older versions do not promise to leave it as it is
    const char *id = agget(e, name);
    const splines *s = ED_spl(e);
    buf_printf(out, "edge %s", id ? id : "-1");
    for (int i = 0; s && i < (int)s->size; i++)
        for (int k = 0; k + 3 < (int)s->list[i].size; k += 3) {
            const pointf *p = s->list[i].list + k;
            for (int t = k ? 1 : 0; t <= SPLINE_STEPS; t++) {
                double at = (double)t / SPLINE_STEPS;
                put_point(out, on_curve(p[0].x, p[1].x, p[2].x, p[3].x, at),
                          top - on_curve(p[0].y, p[1].y, p[2].y, p[3].y, at));
            }
        }
    buf_putc(out, '\n');
}

static void put_places(Buf *out, graph_t *g) {
    double top = GD_bb(g).UR.y;
    for (node_t *n = agfstnode(g); n; n = agnxtnode(g, n)) {
        buf_printf(out, "box %s", agnameof(n) + 1);
        put_point(out, ND_coord(n).x, top - ND_coord(n).y);
        buf_putc(out, '\n');
    }
    for (node_t *n = agfstnode(g); n; n = agnxtnode(g, n))
        for (edge_t *e = agfstout(g, n); e; e = agnxtout(g, e))
            put_edge(out, e, top);
    for (int i = 1; i <= GD_n_cluster(g); i++) {
        graph_t *c = GD_clust(g)[i];
        buf_printf(out, "group %s", agnameof(c) + strlen("cluster_"));
        put_point(out, GD_bb(c).LL.x, GD_bb(c).UR.x);
        buf_putc(out, '\n');
    }
}

bool draw_graphviz_places(const char *dot, Buf *out, Diag *d) {
    graph_t *g = laid_out(dot, d);
    if (!g)
        return false;
    put_places(out, g);
    gvFreeLayout(context(), g);
    agclose(g);
    return true;
}

bool draw_graphviz_picture(const char *dot, const char *format, Buf *out, Diag *d) {
    graph_t *g = laid_out(dot, d);
    if (!g)
        return false;
    char *data = NULL;
    unsigned n = 0;
    bool ok = gvRenderData(context(), g, format, &data, &n) == 0 && data;
    if (ok)
        buf_add(out, data, n);
    else
        diag_tool(d, "graphviz cannot draw a %s: %s", format, said[0] ? said : "no reason given");
    if (data)
        gvFreeRenderData(data);
    gvFreeLayout(context(), g);
    agclose(g);
    return ok;
}
