package org.folddb.flink;

import java.io.IOException;
import java.util.Collection;
import org.apache.flink.api.common.state.AggregatingStateDescriptor;
import org.apache.flink.api.common.state.StateDescriptor;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.core.memory.DataOutputSerializer;
import org.apache.flink.runtime.state.internal.InternalAggregatingState;
import org.apache.flink.runtime.state.ttl.TtlAwareSerializer;
import org.apache.flink.runtime.state.ttl.TtlTimeProvider;

/**
 * An aggregating state of a {@link FoldAggregate}. Its table has the fold of the function, so that an
 * input is a blind write of one operand, and no row has more than one value. The rows are bytes of
 * the fold as they are; elsewhere an accumulator is written with its length before it.
 */
final class NativeFold<K, N, IN, OUT> extends AbstractState<K, N, FoldValue>
        implements InternalAggregatingState<K, N, IN, FoldValue, OUT> {
    private FoldAggregate<IN, OUT> function;

    NativeFold(FoldDbKeyedStateBackend<K> backend, StateTable table) {
        super(backend, table);
    }

    /** The function of a state that is folded natively; null where it is not. */
    static FoldAggregate<?, ?> functionOf(StateDescriptor<?, ?> descriptor) {
        if (!(descriptor instanceof AggregatingStateDescriptor)
                || descriptor.getTtlConfig().isEnabled()
                || !(descriptor.getSerializer() instanceof FoldValueSerializer)) {
            return null;
        }
        Object function = ((AggregatingStateDescriptor<?, ?, ?>) descriptor).getAggregateFunction();
        return function instanceof FoldAggregate ? (FoldAggregate<?, ?>) function : null;
    }

    /** The bytes of an accumulator as other backends have them. */
    static byte[] framed(byte[] stored) throws IOException {
        DataOutputSerializer out = new DataOutputSerializer(stored.length + 4);
        FoldValueSerializer.INSTANCE.serialize(new FoldValue(stored), out);
        return out.getCopyOfBuffer();
    }

    @Override
    @SuppressWarnings("unchecked")
    void update(StateDescriptor<?, FoldValue> descriptor) {
        super.update(descriptor);
        function = (FoldAggregate<IN, OUT>) functionOf(descriptor);
    }

    @Override
    public void add(IN value) {
        table.append(rowKey(), function.operandOf(value));
    }

    @Override
    public OUT get() {
        byte[] stored = table.get(rowKey());
        return stored == null ? null : function.resultOf(stored);
    }

    @Override
    public FoldValue getInternal() {
        byte[] stored = table.get(rowKey());
        return stored == null ? null : new FoldValue(stored);
    }

    @Override
    public void updateInternal(FoldValue value) {
        byte[] key = rowKey();
        if (value == null || (value.bytes.length == 0 && !function.fold.hasEmptyValue())) {
            table.delete(key);
        } else {
            table.put(key, value.bytes);
        }
    }

    @Override
    public void mergeNamespaces(N target, Collection<N> sources) {
        appendNamespaces(target, sources);
    }

    @Override
    public byte[] getSerializedValue(
            byte[] serializedKeyAndNamespace,
            TypeSerializer<K> safeKeySerializer,
            TypeSerializer<N> safeNamespaceSerializer,
            TypeSerializer<FoldValue> safeValueSerializer)
            throws Exception {
        byte[] stored =
                super.getSerializedValue(
                        serializedKeyAndNamespace,
                        safeKeySerializer,
                        safeNamespaceSerializer,
                        safeValueSerializer);
        return stored == null ? null : framed(stored);
    }

    /** The rows do not depend on a serializer. */
    @Override
    byte[] migrate(
            byte[] stored,
            TtlAwareSerializer<?, ?> before,
            TtlAwareSerializer<?, ?> now,
            TtlTimeProvider time) {
        return stored;
    }
}
