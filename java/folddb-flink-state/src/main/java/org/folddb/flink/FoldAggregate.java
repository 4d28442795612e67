package org.folddb.flink;

import org.apache.flink.api.common.functions.AggregateFunction;

/**
 * An aggregate function whose accumulator is the value of one of FoldDB's folds, see {@link
 * FoldAggregates}. In the keyed state of FoldDB it is folded natively; everywhere else this class
 * folds the same bytes.
 *
 * @param <IN> what is aggregated
 * @param <OUT> the result
 */
public abstract class FoldAggregate<IN, OUT> implements AggregateFunction<IN, FoldValue, OUT> {
    private static final long serialVersionUID = 1L;

    /** The fold in plain Java. */
    final PlainFold fold;

    FoldAggregate(PlainFold fold) {
        this.fold = fold;
    }

    /**
     * The fold, as the rules of a table name it.
     *
     * @return its spec, such as {@code sum:i64}
     */
    public final String spec() {
        return fold.spec();
    }

    /** What is folded for one input; no bytes for nothing, where the fold has such a value. */
    abstract byte[] operandOf(IN value);

    /** The result of the bytes of a value, which are none where nothing was seen. */
    abstract OUT resultOf(byte[] value);

    @Override
    public final FoldValue createAccumulator() {
        return new FoldValue();
    }

    @Override
    public final FoldValue add(IN value, FoldValue accumulator) {
        byte[] operand = operandOf(value);
        accumulator.bytes =
                accumulator.bytes.length == 0 ? operand : fold.foldInto(accumulator.bytes, operand);
        return accumulator;
    }

    @Override
    public final OUT getResult(FoldValue accumulator) {
        return resultOf(accumulator.bytes);
    }

    @Override
    public final FoldValue merge(FoldValue a, FoldValue b) {
        if (a.bytes.length == 0 || b.bytes.length == 0) {
            // Not shared: adding may change the bytes of an accumulator.
            a.bytes = (b.bytes.length == 0 ? a : b).bytes.clone();
        } else {
            a.bytes = fold.foldInto(a.bytes, b.bytes).clone();
        }
        return a;
    }
}
