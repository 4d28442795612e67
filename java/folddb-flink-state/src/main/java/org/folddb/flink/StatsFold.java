package org.folddb.flink;

import java.math.BigInteger;

/**
 * Count, sum, smallest and largest, and from them mean and variance.
 *
 * <pre>
 *   nothing seen   (empty)
 *   one number     [0xF0 | n][n high bytes of the f64, big-endian, its trailing zero bytes cut off]
 *   several        [lengths u16][count varint][smallest][largest][sum][sum of squares]
 *                  lengths: four nibbles in this order, lowest first; n up to 8: a cut f64 as above;
 *                  15: the long form of an exact sum
 * </pre>
 */
final class StatsFold implements PlainFold {
    private static final long serialVersionUID = 1L;
    private static final int SINGLE = 0xf0;
    private static final int LONG = 15;

    static final StatsFold FOLD = new StatsFold();

    @Override
    public String spec() {
        return "stats:f64";
    }

    @Override
    public boolean hasEmptyValue() {
        return true;
    }

    @Override
    public byte[] fold(byte[] earlier, byte[] later) {
        if (earlier.length == 0 || later.length == 0) {
            return later.length == 0 ? earlier : later;
        }
        Parts a = Parts.from(earlier);
        Parts b = Parts.from(later);
        FoldBytes out = new FoldBytes(48);
        out.putByte(0);
        out.putByte(0);
        out.putVarint(FoldBytes.saturatingSum(a.count, b.count));
        int smallest = putCut(WordFold.least(a.smallest, b.smallest), out);
        int largest = putCut(WordFold.greatest(a.largest, b.largest), out);
        int sum = putTotal(a.sum.plus(b.sum), out);
        int squares = putTotal(a.squares.plus(b.squares), out);
        out.setByte(0, smallest | largest << 4);
        out.setByte(1, sum | squares << 4);
        return out.written();
    }

    /** The value of one number. */
    static byte[] of(double number) {
        FoldBytes out = new FoldBytes(9);
        out.putByte(0);
        out.setByte(0, SINGLE | putCut(number, out));
        return out.written();
    }

    /** Writes the high bytes of a number, and says how many. */
    private static int putCut(double number, FoldBytes out) {
        long bits = Double.doubleToRawLongBits(number);
        int length = 8 - Long.numberOfTrailingZeros(bits) / 8;
        for (int at = 0; at < length; at++) {
            out.putByte((int) (bits >>> (56 - 8 * at)));
        }
        return length;
    }

    private static int putTotal(ExactSum total, FoldBytes out) {
        if (total.isLong()) {
            total.put(out);
            return LONG;
        }
        return putCut(total.plain(), out);
    }

    /** What a value says. */
    private static final class Parts {
        private long count;
        private double smallest;
        private double largest;
        private ExactSum sum;
        private ExactSum squares;

        static Parts from(byte[] value) {
            FoldBytes in = new FoldBytes(value);
            Parts parts = new Parts();
            int extremes = in.nextByte();
            if (extremes >= SINGLE) {
                double number = cut(extremes - SINGLE, in);
                parts.count = 1;
                parts.smallest = Double.isNaN(number) ? Double.NaN : number;
                parts.largest = parts.smallest;
                parts.sum = ExactSum.of(number);
                parts.squares = ExactSum.ofSquare(number);
                return parts;
            }
            int sums = in.nextByte();
            parts.count = in.nextVarint();
            parts.smallest = cut(extremes & 15, in);
            parts.largest = cut(extremes >> 4, in);
            parts.sum = total(sums & 15, in);
            parts.squares = total(sums >> 4, in);
            return parts;
        }

        private static double cut(int length, FoldBytes in) {
            if (length > 8) {
                throw new IllegalArgumentException("statistics have a number of " + length + " bytes");
            }
            long bits = 0;
            for (int at = 0; at < length; at++) {
                bits |= (long) in.nextByte() << (56 - 8 * at);
            }
            return Double.longBitsToDouble(bits);
        }

        private static ExactSum total(int length, FoldBytes in) {
            return length == LONG ? ExactSum.longFrom(in) : ExactSum.of(cut(length, in));
        }

        private double mean() {
            double plain = sum.value() / FoldBytes.toDouble(count);
            // The sum may be beyond all doubles where the mean is not.
            return Double.isInfinite(sum.value()) && !sum.isSpecial()
                    ? divided(sum.units(), -ExactSum.UNIT_BITS, FoldBytes.toDouble(count))
                    : plain;
        }

        /** (n·Σx² - (Σx)²) / n² in whole numbers, so that nothing cancels. */
        private double variance() {
            if (sum.isSpecial() || squares.isSpecial()) {
                return Double.NaN;
            }
            BigInteger total = sum.units();
            BigInteger difference =
                    squares.units()
                            .multiply(new BigInteger(Long.toUnsignedString(count)))
                            .shiftLeft(ExactSum.UNIT_BITS)
                            .subtract(total.multiply(total));
            double n = FoldBytes.toDouble(count);
            return divided(difference.max(BigInteger.ZERO), -2 * ExactSum.UNIT_BITS, n * n);
        }

        /** {@code number · 2^exponent / divisor}, without overflow on the way. */
        private static double divided(BigInteger number, int exponent, double divisor) {
            if (number.signum() == 0) {
                return 0.0;
            }
            // Divides a number near one. Its true size is put back at the end.
            int size = (number.abs().bitLength() - 1) / 64 * 64;
            double value = ExactSum.round(number, -size) / divisor;
            int rest = exponent + size;
            while (rest > 900 && Double.isFinite(value)) {
                value *= Math.scalb(1.0, 900);
                rest -= 900;
            }
            while (rest < -900 && value != 0) {
                value *= Math.scalb(1.0, -900);
                rest += 900;
            }
            return value * Math.scalb(1.0, Math.max(-900, Math.min(rest, 900)));
        }
    }

    static Stats result(byte[] value) {
        Stats stats = new Stats();
        if (value.length > 0) {
            Parts parts = Parts.from(value);
            stats.count = parts.count;
            stats.sum = parts.sum.value();
            stats.min = parts.smallest;
            stats.max = parts.largest;
            stats.mean = parts.mean();
            stats.variance = parts.variance();
        }
        return stats;
    }
}
