/* inspect/report/limits.c - when another plan would be better: break-even values by layer, ranges of the whole plan.
 *
 * Only what the plan file carries; nothing if it carries nothing. */
#include "inspect/report/report_private.h"

#include <math.h>

static void put_value(struct ghp_page *page, enum ghp_quantity quantity, double value,
                      const char *none)
{
    if (isnan(value))
        ghp_page_add(page, "<td>%s</td>", none);
    else
        ghp_page_add(page, "<td>%.5g</td>", value * ghp_quantity_scale(quantity));
}

/* A quantity's name, its unit, and its value in the plan. */
static void put_quantity(struct ghp_page *page, enum ghp_quantity quantity, double nominal)
{
    ghp_page_add(page, "<td class=\"word\">%s</td><td class=\"word\">%s</td>",
                 ghp_quantity_name(quantity), ghp_quantity_unit(quantity));
    put_value(page, quantity, quantity == GHP_QUANTITY_MEMORY && !(nominal > 0) ? NAN : nominal,
              "no limit");
}

static void put_columns(struct ghp_page *page, const char *caption, const char *const *names,
                        const char *words)
{
    ghp_page_add(page,
                 "<div class=\"scroll tall\" tabindex=\"0\" role=\"region\" aria-label=\"%s\">"
                 "<table class=\"wraps\"><caption>%s</caption><thead><tr>",
                 caption, caption);
    for (int i = 0; names[i] != NULL; i++)
        ghp_page_add(page, "<th scope=\"col\"%s>%s</th>", words[i] == 't' ? " class=\"word\"" : "",
                     names[i]);
    ghp_page_add(page, "</tr></thead><tbody>\n");
}

static void put_break_even(struct ghp_page *page, const struct ghp_plan *plan,
                           const struct ghp_alternative *a, const struct ghp_break_even *b)
{
    char own[64], other[64];

    ghp_split_format(plan->splits[a->layer], own, sizeof own);
    ghp_split_format(a->split, other, sizeof other);
    ghp_page_add(page, "<tr><th scope=\"row\">");
    ghp_page_text(page, plan->model.layers[a->layer].name);
    ghp_page_add(page, "</th><td class=\"word\">%s</td><td class=\"word\">%s</td><td>%+.3f</td>",
                 own, other, (a->step_s - plan->predicted.step_s) * 1e3);
    put_quantity(page, b->quantity, b->nominal);
    put_value(page, b->quantity, b->low, "\xc2\xb7");
    put_value(page, b->quantity, b->high, "\xc2\xb7");
    ghp_page_add(page, "</tr>\n");
}

static void put_break_evens(struct ghp_page *page, const struct ghp_plan *plan)
{
    static const char *const names[] = {
        "layer", "split",       "second-best", "costs<br/>ms a step", "quantity",
        "unit",  "in the plan", "flips below", "flips above",         NULL};
    int with = 0, without = 0;

    for (int i = 0; i < plan->n_alternatives; i++)
        for (int k = 0; k < plan->alternatives[i].n_break_even; k++) {
            const struct ghp_break_even *b = &plan->alternatives[i].break_even[k];

            if (isnan(b->low) && isnan(b->high)) {
                without++;
                continue;
            }
            if (with++ == 0)
                put_columns(page,
                            "Where a layer\xe2\x80\x99s choice flips to its second-best, each "
                            "quantity alone",
                            names, "tttnttnnn");
            put_break_even(page, plan, &plan->alternatives[i], b);
        }
    if (with > 0) ghp_page_add(page, "</tbody></table></div>\n");
    ghp_page_add(page, "<p class=\"small\">Searched: ");
    ghp_page_text(page, plan->break_even_search);
    ghp_page_add(page,
                 ". %d further pairs of layer and quantity flip nowhere within a factor of "
                 "%d.</p>\n",
                 without, GHP_QUANTITY_FACTOR);
}

void ghp_report_put_limits(struct ghp_page *page, const struct ghp_report *report)
{
    const struct ghp_plan *plan = report->plan;

    if (plan->break_even_search == NULL) return;
    ghp_page_add(page, "<section><h2>When another plan would be better</h2>\n");
    put_break_evens(page, plan);
    ghp_page_add(page, "</section>\n");
}
