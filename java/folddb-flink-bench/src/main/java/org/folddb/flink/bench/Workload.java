package org.folddb.flink.bench;

import java.util.Locale;

/** What is run: an operator of Flink and the order of its records. */
enum Workload {
    WINDOW_REDUCE,
    WINDOW_AGGREGATE,
    WINDOW_LIST,
    VALUE_RMW,
    MAP_JOIN,
    SESSIONS;

    /** The milliseconds of a tumbling window. */
    static final long WINDOW_MS = 60_000;

    /** The name in arguments and results. */
    String title() {
        return name().toLowerCase(Locale.ROOT).replace('_', '-');
    }

    static Workload named(String title) {
        return valueOf(title.toUpperCase(Locale.ROOT).replace('-', '_'));
    }

    /** Whether FoldDB has a fold for what it computes. */
    boolean hasNativeFold() {
        return this == WINDOW_REDUCE || this == WINDOW_AGGREGATE || this == SESSIONS;
    }

    /** The time of its records from the first to the last. */
    long millis(Load load) {
        return this == SESSIONS ? load.records() : load.windows() * WINDOW_MS;
    }

    /** Gives all records of a load to the operator. */
    void run(Load load, Meter meter) throws Exception {
        switch (this) {
            case WINDOW_REDUCE, WINDOW_AGGREGATE, WINDOW_LIST -> windows(load, meter);
            case VALUE_RMW -> updates(load, meter);
            case MAP_JOIN -> pairs(load, meter);
            case SESSIONS -> sessions(load, meter);
        }
    }

    static long keyOf(long number, Load load) {
        return Long.remainderUnsigned(Results.mixed(number), load.keys());
    }

    static long valueOf(long number) {
        return Results.mixed(~number) >>> 44; // sums stay exact as doubles
    }

    /** The records of a window in random order, then the watermark that fires it for all keys. */
    private static void windows(Load load, Meter meter) throws Exception {
        long perWindow = load.keys() * load.perKey();
        for (long window = 0; window < load.windows(); window++) {
            long start = window * WINDOW_MS;
            for (long at = 0; at < perWindow; at++) {
                long number = window * perWindow + at;
                long time = start + at * WINDOW_MS / perWindow;
                meter.record(keyOf(number, load), valueOf(number), time);
            }
            meter.watermark(start + WINDOW_MS - 1);
        }
    }

    private static void updates(Load load, Meter meter) throws Exception {
        for (long number = 0; number < load.records(); number++) {
            meter.record(keyOf(number, load), valueOf(number), number);
        }
    }

    /** Each left event is met by its right one after as many other pairs as there are keys. */
    private static void pairs(Load load, Meter meter) throws Exception {
        long pairs = load.records() / 2;
        long lag = Math.min(load.keys(), pairs);
        for (long step = 0; step < pairs + lag; step++) {
            if (step < pairs) {
                meter.record(keyOf(step, load), step << 1, step);
            }
            if (step >= lag) {
                meter.record(keyOf(step - lag, load), (step - lag) << 1 | 1, step);
            }
        }
    }

    /** A record each millisecond; the gap is the mean time between two records of a key. */
    private static void sessions(Load load, Meter meter) throws Exception {
        long between = Math.max(1, load.keys() / 10);
        for (long number = 0; number < load.records(); number++) {
            meter.record(keyOf(number, load), valueOf(number), number);
            if (number % between == between - 1) {
                meter.watermark(number);
            }
        }
        meter.watermark(load.records() + 2 * load.keys());
    }
}
