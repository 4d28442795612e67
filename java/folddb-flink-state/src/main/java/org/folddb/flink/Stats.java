package org.folddb.flink;

/** What {@link FoldAggregates#stats} says of the numbers of a window. */
public final class Stats {
    /** How many numbers there were. */
    public long count;

    /** Their sum, rounded once; 0 where there were none. */
    public double sum;

    /** The smallest; NaN where there were none, or nothing but NaN. */
    public double min = Double.NaN;

    /** The largest; NaN where there were none, or nothing but NaN. */
    public double max = Double.NaN;

    /** The arithmetic mean; NaN where there were none. */
    public double mean = Double.NaN;

    /** The variance of the population, divided by the count; NaN where there were none. */
    public double variance = Double.NaN;

    /** Of no numbers. */
    public Stats() {}

    /**
     * The square root of the variance.
     *
     * @return the standard deviation of the population
     */
    public double standardDeviation() {
        return Math.sqrt(variance);
    }

    @Override
    public String toString() {
        return "count " + count + ", sum " + sum + ", min " + min + ", max " + max + ", mean " + mean
                + ", variance " + variance;
    }
}
