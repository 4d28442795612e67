package org.folddb.flink;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * The members with the largest scores, each with its largest score.
 *
 * <pre>
 *   [score, 8 bytes little-endian][length varint][member] ...
 *                  largest score first, of equal scores the smaller member first; each member once
 * </pre>
 */
final class TopFold implements PlainFold {
    private static final long serialVersionUID = 1L;
    private static final int KEPT_MAX = 10_000;

    private final int kept;
    private final boolean isOfWholeScores;

    TopFold(int kept, boolean isOfWholeScores) {
        if (kept < 1 || kept > KEPT_MAX) {
            throw new IllegalArgumentException(
                    "a ranking is of 1 to " + KEPT_MAX + " members, not of " + kept);
        }
        this.kept = kept;
        this.isOfWholeScores = isOfWholeScores;
    }

    @Override
    public String spec() {
        return "top:" + kept + (isOfWholeScores ? ":i64" : "");
    }

    @Override
    public boolean hasEmptyValue() {
        return true;
    }

    static byte[] of(long score, String member) {
        byte[] bytes = member.getBytes(UTF_8);
        FoldBytes out = new FoldBytes(16 + bytes.length);
        put(new Entry(score, bytes), out);
        return out.written();
    }

    /** NaN counts as the least score. */
    static byte[] of(double score, String member) {
        double number = Double.isNaN(score) ? Double.NEGATIVE_INFINITY : score;
        return of(Double.doubleToRawLongBits(number), member);
    }

    /** A member, and the bits of its score. */
    private static final class Entry {
        private final long score;
        private final byte[] member;

        Entry(long score, byte[] member) {
            this.score = score;
            this.member = member;
        }
    }

    private static void put(Entry entry, FoldBytes out) {
        out.putWord(entry.score);
        out.putVarint(entry.member.length);
        out.putBytes(entry.member);
    }

    private static Entry next(FoldBytes in) {
        return in.isAtEnd() ? null : new Entry(in.nextWord(), in.nextBytes((int) in.nextVarint()));
    }

    private boolean isFirst(Entry a, Entry b) {
        int order =
                isOfWholeScores
                        ? Long.compare(b.score, a.score)
                        : Double.compare(
                                Double.longBitsToDouble(b.score), Double.longBitsToDouble(a.score));
        return order < 0 || (order == 0 && Arrays.compareUnsigned(a.member, b.member) <= 0);
    }

    @Override
    public byte[] fold(byte[] earlier, byte[] later) {
        FoldBytes left = new FoldBytes(earlier);
        FoldBytes right = new FoldBytes(later);
        FoldBytes out = new FoldBytes(earlier.length + later.length);
        Set<ByteBuffer> seen = new HashSet<>();
        Entry a = next(left);
        Entry b = next(right);
        while (seen.size() < kept && (a != null || b != null)) {
            boolean isLeft = b == null || (a != null && isFirst(a, b));
            Entry best = isLeft ? a : b;
            if (seen.add(ByteBuffer.wrap(best.member))) {
                put(best, out);
            }
            if (isLeft) {
                a = next(left);
            } else {
                b = next(right);
            }
        }
        return out.written();
    }

    static Ranked[] ranking(byte[] value) {
        FoldBytes in = new FoldBytes(value);
        List<Ranked> all = new ArrayList<>();
        for (Entry entry = next(in); entry != null; entry = next(in)) {
            all.add(new Ranked(new String(entry.member, UTF_8), entry.score));
        }
        return all.toArray(new Ranked[0]);
    }

    static RankedDouble[] rankingOfDoubles(byte[] value) {
        FoldBytes in = new FoldBytes(value);
        List<RankedDouble> all = new ArrayList<>();
        for (Entry entry = next(in); entry != null; entry = next(in)) {
            all.add(
                    new RankedDouble(
                            new String(entry.member, UTF_8), Double.longBitsToDouble(entry.score)));
        }
        return all.toArray(new RankedDouble[0]);
    }
}
