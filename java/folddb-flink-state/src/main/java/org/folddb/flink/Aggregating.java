package org.folddb.flink;

import java.util.Arrays;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.state.AggregatingStateDescriptor;
import org.apache.flink.api.common.state.StateDescriptor;
import org.apache.flink.runtime.state.internal.InternalAggregatingState;

/**
 * An aggregating state. An operand is the accumulator of one input, and operands are merged when the
 * state is read. Flink itself calls {@code merge} for session windows only, so that many functions
 * have none, or a wrong one: the first inputs are added by reading, and each is tried both ways. A
 * function whose accumulators then differ goes on reading; so does one with a time to live.
 */
final class Aggregating<K, N, IN, ACC, OUT> extends Folding<K, N, IN, ACC, OUT>
        implements InternalAggregatingState<K, N, IN, ACC, OUT> {
    /** So many inputs are tried. */
    private static final int TRIALS = 16;

    private AggregateFunction<IN, ACC, OUT> function;
    private boolean isBlind;
    private int trialsLeft;

    Aggregating(FoldDbKeyedStateBackend<K> backend, StateTable table) {
        super(backend, table);
    }

    @Override
    @SuppressWarnings("unchecked")
    void update(StateDescriptor<?, ACC> descriptor) {
        super.update(descriptor);
        function = ((AggregatingStateDescriptor<IN, ACC, OUT>) descriptor).getAggregateFunction();
        FoldDbOptions.Adding adding = backend.aggregating();
        boolean mayBeBlind =
                adding != FoldDbOptions.Adding.READING && mayBeBlind(descriptor, function);
        isBlind = mayBeBlind && adding == FoldDbOptions.Adding.BLIND;
        trialsLeft = mayBeBlind && !isBlind ? TRIALS : 0;
    }

    @Override
    public OUT get() {
        ACC accumulator = getInternal();
        return accumulator == null ? null : function.getResult(accumulator);
    }

    @Override
    public void add(IN value) {
        byte[] key = currentRow();
        if (isBlind) {
            append(key, function.add(value, function.createAccumulator()));
            return;
        }
        if (trialsLeft > 0) {
            isBlind = mergesAsItAdds(value) && --trialsLeft == 0;
        }
        ACC present = read(key);
        write(key, function.add(value, present == null ? function.createAccumulator() : present));
    }

    /** Whether adding an input twice, and merging it with itself, make the same bytes. */
    private boolean mergesAsItAdds(IN value) {
        try {
            ACC added = function.add(value, function.add(value, function.createAccumulator()));
            ACC one = function.add(value, function.createAccumulator());
            ACC other = function.add(value, function.createAccumulator());
            ACC merged = function.merge(one, other);
            if (merged != null
                    && Arrays.equals(serialize(added, valueSerializer), serialize(merged, valueSerializer))) {
                return true;
            }
        } catch (RuntimeException refused) {
            // It has no merge.
        }
        trialsLeft = 0;
        return false;
    }

    /** Whether it adds without reading now. */
    boolean isBlind() {
        return isBlind;
    }

    @Override
    ACC combine(ACC earlier, ACC later) {
        return function.merge(earlier, later);
    }

    @Override
    Operands.Combine<ACC> combineElsewhere() throws Exception {
        return copy(function)::merge;
    }
}
