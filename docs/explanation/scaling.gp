# docs/explanation/scaling.gp - the table of a sweep as a chart: gnuplot -c docs/explanation/scaling.gp TABLE TITLE CHART.svg
# Columns of TABLE (ghp-plan --sweep): workers, nodes, batch, plan, step, images/s, speed-up; rows of infeasible plans are shorter.
set terminal svg size 700,420 font "sans,13" background "white"
set output ARG3
set title ARG2
set logscale x 2
set logscale y 10
set xlabel "workers"
set ylabel "predicted speed-up over one worker [x]"
set yrange [0.1:*]
set key outside right
set grid
rows(plan) = sprintf("< awk '$4 == \"%s\" && NF > 6' '%s'", plan, ARG1)
plot for [plan in "ghp data model OWT"] rows(plan) using 1:7 with linespoints title plan, \
     rows("ghp") using 1:1 with lines dashtype 2 title "ideal"
