package org.folddb.flink.bench;

/**
 * How long calls took, each of them: buckets of 1/64 of a power of two, so that a quantile is at
 * most 1.6 % too high; the longest is exact.
 */
final class Latencies {
    private static final int BITS = 6;

    private final long[] buckets = new long[(64 - BITS + 1) << BITS];
    private long count;
    private long longest;

    void add(long nanos) {
        long positive = Math.max(0, nanos);
        buckets[bucketOf(positive)]++;
        count++;
        longest = Math.max(longest, positive);
    }

    private static int bucketOf(long nanos) {
        int shift = Math.max(0, 63 - Long.numberOfLeadingZeros(nanos | 1) - BITS);
        return (shift << BITS) + (int) (nanos >>> shift);
    }

    /** The largest number of a bucket. */
    private static long topOf(int bucket) {
        int shift = Math.max(0, (bucket >> BITS) - 1);
        long first = bucket - ((long) shift << BITS);
        return ((first + 1) << shift) - 1;
    }

    double micros(double quantile) {
        long rank = (long) Math.ceil(quantile * count);
        long seen = 0;
        for (int bucket = 0; bucket < buckets.length; bucket++) {
            seen += buckets[bucket];
            if (seen >= rank && seen > 0) {
                return Math.min(topOf(bucket), longest) / 1000.0;
            }
        }
        return 0;
    }

    double longestMicros() {
        return longest / 1000.0;
    }
}
