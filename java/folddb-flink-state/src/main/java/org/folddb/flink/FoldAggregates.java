package org.folddb.flink;

import java.io.Serializable;

/**
 * Aggregate functions for windows and aggregating states: what FoldDB's folds compute.
 *
 * <pre>{@code
 * flights.keyBy(flight -> flight.carrier)
 *         .window(TumblingEventTimeWindows.of(Duration.ofHours(6)))
 *         .aggregate(FoldAggregates.stats(flight -> flight.delay));
 * }</pre>
 *
 * <p>They run over any state backend, with the same results. Over that of FoldDB the value of a key
 * and window is folded natively: an input is a blind write of one operand, and a million of them take
 * the space of one value.
 */
public final class FoldAggregates {
    private FoldAggregates() {}

    /**
     * A whole number of an input.
     *
     * @param <IN> the type of inputs
     */
    @FunctionalInterface
    public interface ToLong<IN> extends Serializable {
        /**
         * The number.
         *
         * @param value the input
         * @return its number
         */
        long of(IN value);
    }

    /**
     * A number of an input.
     *
     * @param <IN> the type of inputs
     */
    @FunctionalInterface
    public interface ToDouble<IN> extends Serializable {
        /**
         * The number.
         *
         * @param value the input
         * @return its number
         */
        double of(IN value);
    }

    /**
     * A member of an input.
     *
     * @param <IN> the type of inputs
     * @param <T> the type of members
     */
    @FunctionalInterface
    public interface ToMember<IN, T> extends Serializable {
        /**
         * The member.
         *
         * @param value the input
         * @return its member; null where it has none
         */
        T of(IN value);
    }

    /**
     * How many inputs there were.
     *
     * @param <IN> the type of inputs
     * @return the function, which folds by {@code sum:u64}
     */
    public static <IN> FoldAggregate<IN, Long> count() {
        return new Whole<>(WordFold.SUM_U64, value -> 1);
    }

    /**
     * The sum of whole numbers, which wraps beyond 64 bits.
     *
     * @param number the number of an input
     * @param <IN> the type of inputs
     * @return the function, which folds by {@code sum:i64}
     */
    public static <IN> FoldAggregate<IN, Long> sum(ToLong<IN> number) {
        return new Whole<>(WordFold.SUM_I64, number);
    }

    /**
     * The least of whole numbers.
     *
     * @param number the number of an input
     * @param <IN> the type of inputs
     * @return the function, which folds by {@code min:i64}
     */
    public static <IN> FoldAggregate<IN, Long> min(ToLong<IN> number) {
        return new Whole<>(WordFold.MIN_I64, number);
    }

    /**
     * The greatest of whole numbers.
     *
     * @param number the number of an input
     * @param <IN> the type of inputs
     * @return the function, which folds by {@code max:i64}
     */
    public static <IN> FoldAggregate<IN, Long> max(ToLong<IN> number) {
        return new Whole<>(WordFold.MAX_I64, number);
    }

    /**
     * The sum of numbers, which is exact and rounded once, so that it is the same in any order.
     *
     * @param number the number of an input
     * @param <IN> the type of inputs
     * @return the function, which folds by {@code sum:f64}
     */
    public static <IN> FoldAggregate<IN, Double> sumDouble(ToDouble<IN> number) {
        return new Real<>(ExactSum.FOLD, number);
    }

    /**
     * The least of numbers; NaN only where there is nothing else.
     *
     * @param number the number of an input
     * @param <IN> the type of inputs
     * @return the function, which folds by {@code min:f64}
     */
    public static <IN> FoldAggregate<IN, Double> minDouble(ToDouble<IN> number) {
        return new Real<>(WordFold.MIN_F64, number);
    }

    /**
     * The greatest of numbers; NaN only where there is nothing else.
     *
     * @param number the number of an input
     * @param <IN> the type of inputs
     * @return the function, which folds by {@code max:f64}
     */
    public static <IN> FoldAggregate<IN, Double> maxDouble(ToDouble<IN> number) {
        return new Real<>(WordFold.MAX_F64, number);
    }

    /**
     * Count, sum, least, greatest, mean and variance of numbers, all exact until they are rounded.
     *
     * @param number the number of an input
     * @param <IN> the type of inputs
     * @return the function, which folds by {@code stats:f64}
     */
    public static <IN> FoldAggregate<IN, Stats> stats(ToDouble<IN> number) {
        return new OfStats<>(number);
    }

    /**
     * How many distinct members there were, with a standard error of 1.6 %.
     *
     * @param member the member of an input: text, a whole number, which counts as it is written, or
     *     {@code byte[]}; an input without one is not counted
     * @param <IN> the type of inputs
     * @return the function, which folds by {@code hll:12}
     */
    public static <IN> FoldAggregate<IN, Long> hll(ToMember<IN, ?> member) {
        return hll(12, member);
    }

    /**
     * How many distinct members there were, with a standard error of 1.04 divided by the root of the
     * number of registers, 2^precision. A value takes at most a byte for each.
     *
     * @param precision from 4 to 18
     * @param member as that of {@link #hll(ToMember)}
     * @param <IN> the type of inputs
     * @return the function, which folds by {@code hll:PRECISION}
     */
    public static <IN> FoldAggregate<IN, Long> hll(int precision, ToMember<IN, ?> member) {
        return new Distinct<>(new HllFold(precision), member);
    }

    /**
     * Quantiles of numbers, each within a relative error of 0.01; the least and the greatest are
     * exact. NaN is not counted.
     *
     * @param number the number of an input
     * @param shares which quantiles, from 0 to 1: 0.5 is the median
     * @param <IN> the type of inputs
     * @return the function, which folds by {@code quantiles}; its result has a number for each share,
     *     NaN where there were none
     */
    public static <IN> FoldAggregate<IN, double[]> quantiles(ToDouble<IN> number, double... shares) {
        return quantilesWithin(0.01, number, shares);
    }

    /**
     * Quantiles of numbers within another error. Otherwise as {@link #quantiles}.
     *
     * @param error the relative error, from 0.0001 to 0.5
     * @param number the number of an input
     * @param shares which quantiles, from 0 to 1
     * @param <IN> the type of inputs
     * @return the function, which folds by {@code quantiles:ERROR}
     */
    public static <IN> FoldAggregate<IN, double[]> quantilesWithin(
            double error, ToDouble<IN> number, double... shares) {
        for (double share : shares) {
            if (!(share >= 0 && share <= 1)) {
                throw new IllegalArgumentException("a quantile is from 0 to 1, not " + share);
            }
        }
        return new OfQuantiles<>(new QuantilesFold(error), number, shares.clone());
    }

    /**
     * The members with the largest scores, each with its largest score, best first; of equal scores
     * the member that comes first in the order of its UTF-8 bytes.
     *
     * @param kept how many members, from 1 to 10,000
     * @param score the score of an input
     * @param member the member of an input; one without a member is left out
     * @param <IN> the type of inputs
     * @return the function, which folds by {@code top:KEPT:i64}
     */
    public static <IN> FoldAggregate<IN, Ranked[]> topK(
            int kept, ToLong<IN> score, ToMember<IN, String> member) {
        return new Top<>(new TopFold(kept, true), score, member);
    }

    /**
     * The same with scores that are doubles; NaN is the least of them.
     *
     * @param kept how many members, from 1 to 10,000
     * @param score the score of an input
     * @param member the member of an input; one without a member is left out
     * @param <IN> the type of inputs
     * @return the function, which folds by {@code top:KEPT}
     */
    public static <IN> FoldAggregate<IN, RankedDouble[]> topKDouble(
            int kept, ToDouble<IN> score, ToMember<IN, String> member) {
        return new TopOfDoubles<>(new TopFold(kept, false), score, member);
    }

    private static final byte[] NOTHING = {};

    // Flink finds the types of accumulators and results in the classes below, each of which has one.

    private static final class Whole<IN> extends FoldAggregate<IN, Long> {
        private static final long serialVersionUID = 1L;

        private final ToLong<IN> number;

        Whole(WordFold fold, ToLong<IN> number) {
            super(fold);
            this.number = number;
        }

        @Override
        byte[] operandOf(IN value) {
            return FoldBytes.ofWord(number.of(value));
        }

        @Override
        Long resultOf(byte[] value) {
            return value.length == 0 ? 0L : FoldBytes.word(value);
        }
    }

    private static final class Real<IN> extends FoldAggregate<IN, Double> {
        private static final long serialVersionUID = 1L;

        private final ToDouble<IN> number;

        Real(PlainFold fold, ToDouble<IN> number) {
            super(fold);
            this.number = number;
        }

        @Override
        byte[] operandOf(IN value) {
            return FoldBytes.ofDouble(number.of(value));
        }

        @Override
        Double resultOf(byte[] value) {
            return value.length == 0 ? 0.0 : ExactSum.from(value).value();
        }
    }

    private static final class OfStats<IN> extends FoldAggregate<IN, Stats> {
        private static final long serialVersionUID = 1L;

        private final ToDouble<IN> number;

        OfStats(ToDouble<IN> number) {
            super(StatsFold.FOLD);
            this.number = number;
        }

        @Override
        byte[] operandOf(IN value) {
            return StatsFold.of(number.of(value));
        }

        @Override
        Stats resultOf(byte[] value) {
            return StatsFold.result(value);
        }
    }

    private static final class Distinct<IN> extends FoldAggregate<IN, Long> {
        private static final long serialVersionUID = 1L;

        private final HllFold sketches;
        private final ToMember<IN, ?> member;

        Distinct(HllFold sketches, ToMember<IN, ?> member) {
            super(sketches);
            this.sketches = sketches;
            this.member = member;
        }

        @Override
        byte[] operandOf(IN value) {
            Object found = member.of(value);
            return found == null ? NOTHING : sketches.of(HllFold.bytesOf(found));
        }

        @Override
        Long resultOf(byte[] value) {
            return sketches.estimate(value);
        }
    }

    private static final class OfQuantiles<IN> extends FoldAggregate<IN, double[]> {
        private static final long serialVersionUID = 1L;

        private final QuantilesFold sketches;
        private final ToDouble<IN> number;
        private final double[] shares;

        OfQuantiles(QuantilesFold sketches, ToDouble<IN> number, double[] shares) {
            super(sketches);
            this.sketches = sketches;
            this.number = number;
            this.shares = shares;
        }

        @Override
        byte[] operandOf(IN value) {
            return QuantilesFold.of(number.of(value));
        }

        @Override
        double[] resultOf(byte[] value) {
            return sketches.quantiles(value, shares);
        }
    }

    private static final class Top<IN> extends FoldAggregate<IN, Ranked[]> {
        private static final long serialVersionUID = 1L;

        private final ToLong<IN> score;
        private final ToMember<IN, String> member;

        Top(TopFold fold, ToLong<IN> score, ToMember<IN, String> member) {
            super(fold);
            this.score = score;
            this.member = member;
        }

        @Override
        byte[] operandOf(IN value) {
            String found = member.of(value);
            return found == null ? NOTHING : TopFold.of(score.of(value), found);
        }

        @Override
        Ranked[] resultOf(byte[] value) {
            return TopFold.ranking(value);
        }
    }

    private static final class TopOfDoubles<IN> extends FoldAggregate<IN, RankedDouble[]> {
        private static final long serialVersionUID = 1L;

        private final ToDouble<IN> score;
        private final ToMember<IN, String> member;

        TopOfDoubles(TopFold fold, ToDouble<IN> score, ToMember<IN, String> member) {
            super(fold);
            this.score = score;
            this.member = member;
        }

        @Override
        byte[] operandOf(IN value) {
            String found = member.of(value);
            return found == null ? NOTHING : TopFold.of(score.of(value), found);
        }

        @Override
        RankedDouble[] resultOf(byte[] value) {
            return TopFold.rankingOfDoubles(value);
        }
    }
}
