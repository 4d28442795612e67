package org.folddb.flink;

import java.math.BigInteger;

/**
 * A sum of doubles without rounding error, which is rounded when it is read. The total is a double
 * where one can hold it; otherwise a whole number of units of 2^-2176.
 */
final class ExactSum {
    /** The fold of such sums. */
    static final PlainFold FOLD = new Fold();

    static final int UNIT_BITS = 2176;
    private static final int SIGN = 0x8000;

    private final double plain;

    /** Null where the total is the double. */
    private final BigInteger units;

    private ExactSum(double plain, BigInteger units) {
        this.plain = plain;
        this.units = units;
    }

    static ExactSum of(double number) {
        return new ExactSum(number, null);
    }

    static ExactSum ofSquare(double number) {
        if (!Double.isFinite(number)) {
            return of(number * number);
        }
        BigInteger mantissa = BigInteger.valueOf(mantissaOf(number));
        return ofUnits(mantissa.multiply(mantissa).shiftLeft(2 * exponentOf(number) + UNIT_BITS));
    }

    private static long mantissaOf(double number) {
        long bits = Double.doubleToRawLongBits(number);
        long fraction = bits & ((1L << 52) - 1);
        return (bits >>> 52 & 0x7ff) == 0 ? fraction : fraction | 1L << 52;
    }

    private static int exponentOf(double number) {
        return Math.max((int) (Double.doubleToRawLongBits(number) >>> 52 & 0x7ff), 1) - 1075;
    }

    /** Whether it is an infinity or no number. */
    boolean isSpecial() {
        return units == null && !Double.isFinite(plain);
    }

    boolean isLong() {
        return units != null;
    }

    double plain() {
        return plain;
    }

    /** The total in units; of a finite one. */
    BigInteger units() {
        if (units != null) {
            return units;
        }
        BigInteger magnitude =
                BigInteger.valueOf(mantissaOf(plain)).shiftLeft(exponentOf(plain) + UNIT_BITS);
        return plain < 0 ? magnitude.negate() : magnitude;
    }

    ExactSum plus(ExactSum other) {
        if (units == null && other.units == null) {
            double total = plain + other.plain;
            double back = total - plain;
            // The rounding error of an addition is itself a double (Knuth, TAOCP 2, 4.2.2).
            if (Double.isFinite(total) && (plain - (total - back)) + (other.plain - back) == 0.0) {
                return of(total + 0.0);
            }
        }
        if (isSpecial() || other.isSpecial()) {
            double total = (isSpecial() ? plain : 0.0) + (other.isSpecial() ? other.plain : 0.0);
            return of(Double.isNaN(total) ? Double.NaN : total);
        }
        return ofUnits(units().add(other.units()));
    }

    private static ExactSum ofUnits(BigInteger units) {
        BigInteger magnitude = units.abs();
        int low = Math.max(magnitude.getLowestSetBit(), 0);
        int top = magnitude.bitLength() - 1;
        if (top - low < 53 && top - UNIT_BITS <= 1023 && low - UNIT_BITS >= -1074 || top < 0) {
            double number = Math.scalb((double) magnitude.shiftRight(low).longValue(), low - UNIT_BITS);
            return of(units.signum() < 0 ? -number : number);
        }
        return new ExactSum(0, units);
    }

    /** The nearest double, ties to even. */
    double value() {
        return units == null ? plain : round(units, -UNIT_BITS);
    }

    /** {@code number · 2^exponent} as the nearest double, ties to even. */
    static double round(BigInteger number, int exponent) {
        BigInteger magnitude = number.abs();
        int top = magnitude.bitLength() - 1;
        double rounded;
        if (top < 0) {
            return 0.0;
        } else if (top + exponent > 1023) {
            rounded = Double.POSITIVE_INFINITY;
        } else if (top + exponent < -1075) {
            rounded = 0.0;
        } else {
            // How many leading bits fit; fewer among the subnormal numbers.
            int cut = Math.max(top + 1 - Math.min(top + exponent + 1075, 53), 0);
            long kept = magnitude.shiftRight(cut).longValue();
            boolean isHalf = cut > 0 && magnitude.testBit(cut - 1);
            if (isHalf && (magnitude.getLowestSetBit() < cut - 1 || (kept & 1) == 1)) {
                kept++;
            }
            rounded = Math.scalb((double) kept, cut + exponent);
        }
        return number.signum() < 0 ? -rounded : rounded;
    }

    /**
     * <pre>
     *   plain   8 bytes      the double
     *   long    3+4n bytes   [place u16, sign in bit 15][n u8][n words u32, lowest first]
     * </pre>
     */
    void put(FoldBytes out) {
        if (units == null) {
            out.putWord(Double.doubleToRawLongBits(plain));
            return;
        }
        BigInteger magnitude = units.abs();
        int place = magnitude.getLowestSetBit() / 16;
        BigInteger words = magnitude.shiftRight(16 * place);
        int count = (words.bitLength() + 31) / 32;
        int head = place | (units.signum() < 0 ? SIGN : 0);
        out.putByte(head);
        out.putByte(head >> 8);
        out.putByte(count);
        byte[] highestFirst = words.toByteArray();
        for (int at = 0; at < 4 * count; at++) {
            int from = highestFirst.length - 1 - at;
            out.putByte(from < 0 ? 0 : highestFirst[from]);
        }
    }

    /** The long form. */
    static ExactSum longFrom(FoldBytes in) {
        int head = in.nextByte() | in.nextByte() << 8;
        byte[] words = in.nextBytes(4 * in.nextByte());
        byte[] highestFirst = new byte[words.length];
        for (int at = 0; at < words.length; at++) {
            highestFirst[words.length - 1 - at] = words[at];
        }
        BigInteger magnitude = new BigInteger(1, highestFirst).shiftLeft(16 * (head & ~SIGN));
        return new ExactSum(0, (head & SIGN) != 0 ? magnitude.negate() : magnitude);
    }

    static ExactSum from(byte[] value) {
        return value.length == 8 ? of(FoldBytes.number(value)) : longFrom(new FoldBytes(value));
    }

    private static final class Fold implements PlainFold {
        private static final long serialVersionUID = 1L;

        @Override
        public String spec() {
            return "sum:f64";
        }

        @Override
        public byte[] fold(byte[] earlier, byte[] later) {
            FoldBytes out = new FoldBytes(8);
            from(earlier).plus(from(later)).put(out);
            return out.written();
        }

        @Override
        public boolean hasEmptyValue() {
            return false;
        }
    }
}
