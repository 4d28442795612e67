package org.folddb.flink.bench;

/**
 * What the operators of a process have said, as a number that does not depend on the order. Nothing
 * is emitted, since the harness would keep it on the heap.
 */
final class Results {
    private static long checksum;
    private static long count;

    private Results() {}

    static void clear() {
        checksum = 0;
        count = 0;
    }

    static void add(long key, long when, long value) {
        checksum += mixed(key ^ mixed(when ^ mixed(value)));
        count++;
    }

    static long count() {
        return count;
    }

    static String checksum() {
        return Long.toHexString(checksum);
    }

    /** A number that looks random and depends on every bit of this one. */
    static long mixed(long number) {
        long mixed = number + 0x9e3779b97f4a7c15L;
        mixed = (mixed ^ (mixed >>> 30)) * 0xbf58476d1ce4e5b9L;
        mixed = (mixed ^ (mixed >>> 27)) * 0x94d049bb133111ebL;
        return mixed ^ (mixed >>> 31);
    }
}
