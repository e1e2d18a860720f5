/* profiler/worklist/samples.h - seconds of one run as often as they were taken, and what they come to.
 *
 * Private to profiler/.  Tested  tests/profiler/measure/test_measure.c */
#ifndef GHP_PROFILER_WORKLIST_SAMPLES_H
#define GHP_PROFILER_WORKLIST_SAMPLES_H

enum { GHP_MAX_SAMPLES = 9 };

/* Seconds of one run, as often as they were taken. */
struct ghp_samples {
    int n;
    double values[GHP_MAX_SAMPLES];
};

/* What came out. */
struct ghp_timed {
    /* of one run: mean of the samples within 1.5 quartile distances of the quartiles; 0: no sample */
    double seconds;
    double spread; /* (third quartile - first quartile) / seconds */
    double drift;  /* of the same samples, (most - least) / (most + least) */
    int samples;
};

/* Median and spread of n >= 1 samples. */
struct ghp_timed ghp_samples_summary(const struct ghp_samples *samples);

#endif
