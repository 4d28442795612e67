package org.folddb.flink;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.Arrays;

/**
 * How many distinct members there were, about: HyperLogLog with 2^P registers.
 *
 * <pre>
 *   sparse   3n bytes, while less than 2^P   [register, 18 bits | rank, 6 bits; little-endian] ...
 *                                            ascending
 *   dense    2^P bytes                       [rank u8] ...
 * </pre>
 */
final class HllFold implements PlainFold {
    private static final long serialVersionUID = 1L;
    private static final int PRECISION_MIN = 4;
    private static final int PRECISION_MAX = 18;
    private static final int ENTRY_BYTES = 3;
    private static final int RANK_BITS = 6;
    private static final double ALPHA = 0.5 / Math.log(2);

    private final int precision;

    HllFold(int precision) {
        if (precision < PRECISION_MIN || precision > PRECISION_MAX) {
            throw new IllegalArgumentException(
                    "the precision of a sketch is from 4 to 18, not " + precision);
        }
        this.precision = precision;
    }

    @Override
    public String spec() {
        return "hll:" + precision;
    }

    @Override
    public boolean hasEmptyValue() {
        return true;
    }

    private int registers() {
        return 1 << precision;
    }

    /** The bytes of a member: a number counts as it is written. */
    static byte[] bytesOf(Object member) {
        if (member instanceof byte[]) {
            return (byte[]) member;
        }
        boolean isWhole =
                member instanceof Long
                        || member instanceof Integer
                        || member instanceof Short
                        || member instanceof Byte;
        if (member instanceof CharSequence || isWhole) {
            return member.toString().getBytes(UTF_8);
        }
        throw new IllegalArgumentException(
                "a member that is counted is text, a whole number or bytes, not of the type "
                        + member.getClass().getName());
    }

    byte[] of(byte[] member) {
        long hash = Xxh3.hash(member);
        int register = (int) (hash >>> (64 - precision));
        int rank = Math.min(Long.numberOfLeadingZeros(hash << precision), 64 - precision) + 1;
        byte[] sparse = new byte[ENTRY_BYTES];
        putEntry(sparse, 0, register << RANK_BITS | rank);
        return sparse;
    }

    private static void putEntry(byte[] sparse, int at, int entry) {
        sparse[at] = (byte) entry;
        sparse[at + 1] = (byte) (entry >> 8);
        sparse[at + 2] = (byte) (entry >> 16);
    }

    private static int entry(byte[] sparse, int at) {
        return sparse[at] & 0xff | (sparse[at + 1] & 0xff) << 8 | (sparse[at + 2] & 0xff) << 16;
    }

    private boolean isDense(byte[] value) {
        if (value.length != registers()
                && (value.length > registers() || value.length % ENTRY_BYTES != 0)) {
            throw new IllegalArgumentException(
                    "a sketch of " + registers() + " registers has " + value.length + " bytes");
        }
        return value.length == registers();
    }

    @Override
    public byte[] fold(byte[] earlier, byte[] later) {
        boolean isDense = isDense(earlier);
        return foldInto(isDense || isDense(later) ? earlier.clone() : earlier, later);
    }

    @Override
    public byte[] foldInto(byte[] earlier, byte[] later) {
        if (isDense(earlier)) {
            raise(earlier, later);
            return earlier;
        }
        if (isDense(later)) {
            byte[] dense = later.clone();
            raise(dense, earlier);
            return dense;
        }
        byte[] merged = merged(earlier, later);
        if (merged.length < registers()) {
            return merged;
        }
        byte[] dense = new byte[registers()];
        raiseBySparse(dense, merged);
        return dense;
    }

    /** Raises ranks to those of another sketch. */
    private void raise(byte[] dense, byte[] other) {
        if (isDense(other)) {
            for (int register = 0; register < dense.length; register++) {
                dense[register] = (byte) Math.max(dense[register], other[register]);
            }
        } else {
            raiseBySparse(dense, other);
        }
    }

    private static void raiseBySparse(byte[] dense, byte[] sparse) {
        for (int at = 0; at < sparse.length; at += ENTRY_BYTES) {
            int entry = entry(sparse, at);
            int register = entry >> RANK_BITS;
            dense[register] = (byte) Math.max(dense[register], entry & (1 << RANK_BITS) - 1);
        }
    }

    /** Sparse sketches as one; of one register the larger entry has the larger rank. */
    private static byte[] merged(byte[] a, byte[] b) {
        byte[] out = new byte[a.length + b.length];
        int length = 0;
        int left = 0;
        int right = 0;
        while (left < a.length || right < b.length) {
            int x = left < a.length ? entry(a, left) : Integer.MAX_VALUE;
            int y = right < b.length ? entry(b, right) : Integer.MAX_VALUE;
            int order = Integer.compare(x >> RANK_BITS, y >> RANK_BITS);
            putEntry(out, length, order < 0 ? x : order > 0 ? y : Math.max(x, y));
            length += ENTRY_BYTES;
            left += order <= 0 ? ENTRY_BYTES : 0;
            right += order >= 0 ? ENTRY_BYTES : 0;
        }
        return Arrays.copyOf(out, length);
    }

    /** The improved raw estimator of Ertl (2017), algorithm 6. */
    long estimate(byte[] value) {
        long[] counts = new long[64];
        if (isDense(value)) {
            for (byte rank : value) {
                counts[rank & 63]++;
            }
        } else {
            for (int at = 0; at < value.length; at += ENTRY_BYTES) {
                counts[entry(value, at) & 63]++;
            }
            counts[0] += registers() - value.length / ENTRY_BYTES;
        }
        double registers = registers();
        int longest = 64 - precision;
        double z = registers * tau((registers - counts[longest + 1]) / registers);
        for (int rank = longest; rank >= 1; rank--) {
            z = 0.5 * (z + counts[rank]);
        }
        z += registers * sigma(counts[0] / registers);
        return Math.round(ALPHA * registers * registers / z);
    }

    /** What registers still at zero contribute. */
    private static double sigma(double share) {
        if (share == 1) {
            return Double.POSITIVE_INFINITY;
        }
        double x = share;
        double y = 1;
        double z = x;
        double before;
        do {
            x *= x;
            before = z;
            z += x * y;
            y += y;
        } while (z != before);
        return z;
    }

    /** What saturated registers contribute. */
    private static double tau(double share) {
        if (share == 0 || share == 1) {
            return 0;
        }
        double x = share;
        double y = 1;
        double z = 1 - x;
        double before;
        do {
            x = Math.sqrt(x);
            before = z;
            y *= 0.5;
            z -= (1 - x) * (1 - x) * y;
        } while (z != before);
        return z / 3;
    }
}
