package org.folddb.flink.bench;

import java.util.concurrent.atomic.LongAdder;

/**
 * What the operators of a process have said, as a number that does not depend on the order. Nothing
 * is emitted, since the harness would keep it on the heap.
 */
final class Results {
    private static final LongAdder CHECKSUM = new LongAdder();
    private static final LongAdder COUNT = new LongAdder();

    private Results() {}

    static void clear() {
        CHECKSUM.reset();
        COUNT.reset();
    }

    static void add(long key, long when, long value) {
        CHECKSUM.add(mixed(key ^ mixed(when ^ mixed(value))));
        COUNT.increment();
    }

    static long count() {
        return COUNT.sum();
    }

    static String checksum() {
        return Long.toHexString(CHECKSUM.sum());
    }

    /** A number that looks random and depends on every bit of this one. */
    static long mixed(long number) {
        long mixed = number + 0x9e3779b97f4a7c15L;
        mixed = (mixed ^ (mixed >>> 30)) * 0xbf58476d1ce4e5b9L;
        mixed = (mixed ^ (mixed >>> 27)) * 0x94d049bb133111ebL;
        return mixed ^ (mixed >>> 31);
    }
}
