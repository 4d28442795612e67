package org.folddb.flink;

import java.math.BigDecimal;
import java.util.Arrays;

/**
 * Any quantile of the numbers seen, each within a relative error: DDSketch, whose buckets widen with
 * the numbers.
 *
 * <pre>
 *   nothing seen   (empty)
 *   one number     8 bytes: f64 little-endian
 *   several        [smallest f64][largest f64][zeros varint]
 *                  [n varint] n x ([bucket][count varint])      numbers below zero, by magnitude
 *                  [n varint] n x ([bucket][count varint])      numbers above zero
 *                  bucket: the first as zigzag varint, each next as the varint of its distance - 1
 * </pre>
 */
final class QuantilesFold implements PlainFold {
    private static final long serialVersionUID = 1L;
    private static final double ERROR_DEFAULT = 0.01;
    private static final double A = 6.0 / 35.0;
    private static final double B = -3.0 / 5.0;
    private static final double C = 10.0 / 7.0;

    private final double error;
    private final double bucketsPerUnit;

    QuantilesFold(double error) {
        if (!(error >= 0.0001 && error <= 0.5)) {
            throw new IllegalArgumentException(
                    "the relative error of quantiles is from 0.0001 to 0.5, not " + error);
        }
        this.error = error;
        // ln((1+a)/(1-a)) = 2 (a + a^3/3 + a^5/5 + ...): the same on every machine.
        double ln = 0;
        double power = error;
        for (int odd = 1; odd < 120; odd += 2) {
            ln += 2.0 * power / odd;
            power *= error * error;
        }
        bucketsPerUnit = 0.7 / ln;
    }

    @Override
    public String spec() {
        return error == ERROR_DEFAULT
                ? "quantiles"
                : "quantiles:" + new BigDecimal(Double.toString(error)).toPlainString();
    }

    @Override
    public boolean hasEmptyValue() {
        return true;
    }

    /** The value of one number; NaN is not counted. */
    static byte[] of(double number) {
        return Double.isNaN(number) ? new byte[0] : FoldBytes.ofDouble(number);
    }

    /** The bucket of a positive number. */
    private int bucket(double number) {
        double finite = Math.min(number, Double.MAX_VALUE);
        long bits = Double.doubleToRawLongBits(finite);
        int exponent = -1023;
        if (bits >>> 52 == 0) {
            bits = Double.doubleToRawLongBits(finite * 0x1p54);
            exponent -= 54;
        }
        exponent += (int) (bits >>> 52);
        double s = Double.longBitsToDouble(bits & (1L << 52) - 1 | 1023L << 52) - 1.0;
        double log = ((A * s + B) * s + C) * s + exponent;
        return (int) Math.floor(log * bucketsPerUnit);
    }

    /** The lower boundary of a bucket; by bisection. */
    private double boundary(int bucket) {
        double log = bucket / bucketsPerUnit;
        double exponent = Math.max(-1100, Math.min(Math.floor(log), 1100));
        double target = log - exponent;
        double low = 0;
        double high = 1;
        for (int step = 0; step < 60; step++) {
            double s = 0.5 * (low + high);
            if (((A * s + B) * s + C) * s <= target) {
                low = s;
            } else {
                high = s;
            }
        }
        int half = (int) Math.floor(exponent / 2);
        return (1 + low) * Math.scalb(1.0, half) * Math.scalb(1.0, (int) exponent - half);
    }

    /** A number within the error of every number in a bucket. */
    private double middle(int bucket) {
        double low = boundary(bucket);
        double high = Math.min(boundary(bucket + 1), Double.MAX_VALUE);
        // The harmonic mean, written so that nothing overflows.
        return low > 0 ? high * (2 / (1 + high / low)) : high;
    }

    /** Buckets in order, with their counts. */
    private static final class Buckets {
        private static final Buckets NONE = new Buckets(0);

        private int size;
        private int[] places;
        private long[] counts;

        Buckets(int capacity) {
            places = new int[capacity];
            counts = new long[capacity];
        }

        void add(int place, long count) {
            if (size == places.length) {
                places = Arrays.copyOf(places, 2 * size + 8);
                counts = Arrays.copyOf(counts, 2 * size + 8);
            }
            places[size] = place;
            counts[size++] = count;
        }

        static Buckets of(int place) {
            Buckets one = new Buckets(1);
            one.add(place, 1);
            return one;
        }

        static Buckets from(FoldBytes in) {
            Buckets buckets = new Buckets(0);
            int last = 0;
            for (long left = in.nextVarint(); left != 0; left--) {
                long step = in.nextVarint();
                last = buckets.size == 0 ? (int) (step >>> 1 ^ -(step & 1)) : (int) (last + step + 1);
                buckets.add(last, in.nextVarint());
            }
            return buckets;
        }

        static Buckets merged(Buckets a, Buckets b) {
            Buckets out = new Buckets(a.size + b.size);
            int left = 0;
            int right = 0;
            while (left < a.size || right < b.size) {
                boolean isLeft =
                        right == b.size || (left < a.size && a.places[left] <= b.places[right]);
                boolean isRight =
                        left == a.size || (right < b.size && b.places[right] <= a.places[left]);
                long count = 0;
                int place = isLeft ? a.places[left] : b.places[right];
                if (isLeft) {
                    count = a.counts[left++];
                }
                if (isRight) {
                    count = FoldBytes.saturatingSum(count, b.counts[right++]);
                }
                out.add(place, count);
            }
            return out;
        }

        void put(FoldBytes out) {
            out.putVarint(size);
            for (int at = 0; at < size; at++) {
                long place = places[at];
                out.putVarint(at == 0 ? place << 1 ^ place >> 63 : place - places[at - 1] - 1);
                out.putVarint(counts[at]);
            }
        }

        long count() {
            long total = 0;
            for (int at = 0; at < size; at++) {
                total = FoldBytes.saturatingSum(total, counts[at]);
            }
            return total;
        }
    }

    /** What a value says. */
    private static final class Parts {
        private double smallest;
        private double largest;
        private long zeros;
        private Buckets negative;
        private Buckets positive;

        long count() {
            long signed = FoldBytes.saturatingSum(negative.count(), positive.count());
            return FoldBytes.saturatingSum(zeros, signed);
        }
    }

    private Parts parts(byte[] value) {
        FoldBytes in = new FoldBytes(value);
        Parts parts = new Parts();
        parts.smallest = in.nextDouble();
        if (in.isAtEnd()) {
            double number = parts.smallest;
            parts.largest = number;
            parts.zeros = number == 0 ? 1 : 0;
            parts.negative = number < 0 ? Buckets.of(bucket(-number)) : Buckets.NONE;
            parts.positive = number > 0 ? Buckets.of(bucket(number)) : Buckets.NONE;
            return parts;
        }
        parts.largest = in.nextDouble();
        parts.zeros = in.nextVarint();
        parts.negative = Buckets.from(in);
        parts.positive = Buckets.from(in);
        return parts;
    }

    @Override
    public byte[] fold(byte[] earlier, byte[] later) {
        if (earlier.length == 0 || later.length == 0) {
            return later.length == 0 ? earlier : later;
        }
        Parts a = parts(earlier);
        Parts b = parts(later);
        FoldBytes out = new FoldBytes(earlier.length + later.length + 8);
        out.putWord(Double.doubleToRawLongBits(WordFold.least(a.smallest, b.smallest)));
        out.putWord(Double.doubleToRawLongBits(WordFold.greatest(a.largest, b.largest)));
        out.putVarint(FoldBytes.saturatingSum(a.zeros, b.zeros));
        Buckets.merged(a.negative, b.negative).put(out);
        Buckets.merged(a.positive, b.positive).put(out);
        return out.written();
    }

    /** The quantiles of a value, each of the nearest rank; NaN where nothing was seen. */
    double[] quantiles(byte[] value, double[] shares) {
        double[] found = new double[shares.length];
        Parts parts = value.length == 0 ? null : parts(value);
        for (int at = 0; at < shares.length; at++) {
            found[at] = parts == null ? Double.NaN : quantile(parts, shares[at]);
        }
        return found;
    }

    private double quantile(Parts parts, double share) {
        long count = parts.count();
        long rank = nearestRank(share, count);
        if (rank == 0 || rank == count - 1) {
            return rank == 0 ? parts.smallest : parts.largest;
        }
        return Math.max(parts.smallest, Math.min(ranked(parts, rank), parts.largest));
    }

    /** The number with so many numbers before it. */
    private double ranked(Parts parts, long rank) {
        long seen = 0;
        for (int at = parts.negative.size - 1; at >= 0; at--) {
            seen = FoldBytes.saturatingSum(seen, parts.negative.counts[at]);
            if (Long.compareUnsigned(seen, rank) > 0) {
                return -middle(parts.negative.places[at]);
            }
        }
        seen = FoldBytes.saturatingSum(seen, parts.zeros);
        if (Long.compareUnsigned(seen, rank) > 0) {
            return 0;
        }
        for (int at = 0; at < parts.positive.size; at++) {
            seen = FoldBytes.saturatingSum(seen, parts.positive.counts[at]);
            if (Long.compareUnsigned(seen, rank) > 0) {
                return middle(parts.positive.places[at]);
            }
        }
        return parts.largest;
    }

    /**
     * How many numbers come before the one at which this share of them is reached. A product that is
     * whole except for rounding counts as whole: 0.07 of 100 is 7.
     */
    private static long nearestRank(double share, long count) {
        double passed = share * FoldBytes.toDouble(count);
        double whole = Math.rint(passed);
        boolean isWhole = Math.abs(passed - whole) <= whole * (2 * Math.ulp(1.0));
        long number = (long) (isWhole ? whole : Math.ceil(passed));
        return Math.max(1, Math.min(number, Math.max(count, 1))) - 1;
    }
}
