package org.folddb.flink;

import java.io.IOException;
import java.io.Serializable;
import java.util.Arrays;
import java.util.Collection;
import org.apache.flink.api.common.state.StateDescriptor;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.core.memory.DataInputDeserializer;
import org.apache.flink.core.memory.DataOutputSerializer;
import org.apache.flink.runtime.state.internal.InternalMergingState;
import org.apache.flink.runtime.state.ttl.TtlAwareSerializer;
import org.apache.flink.runtime.state.ttl.TtlTimeProvider;
import org.apache.flink.util.FlinkRuntimeException;
import org.apache.flink.util.InstantiationUtil;

/**
 * What reducing and aggregating states have in common: operands are appended blind, and combined
 * when the state is read.
 *
 * <pre>
 *   add       append one operand                      no read
 *   get       combine the operands, from the left     the result of a long row waits to be written
 *   the next call, unless it clears that row          writes it: whoever reads after each add pays
 *                                                     what reading before each add would cost
 * </pre>
 */
abstract class Folding<K, N, IN, V, OUT> extends AbstractState<K, N, V>
        implements InternalMergingState<K, N, IN, V, OUT> {
    /** Rows of more operands are written back. */
    private static final int OPERANDS_MAX = 16;

    private final int[] count = new int[1];

    /** The row whose result waits, and the result; null where none does. */
    private byte[] waitingKey;

    private byte[] waitingValue;

    Folding(FoldDbKeyedStateBackend<K> backend, StateTable table) {
        super(backend, table);
    }

    /** Makes one value of two. */
    abstract V combine(V earlier, V later) throws Exception;

    /** A copy of the function for another thread. */
    abstract Operands.Combine<V> combineElsewhere() throws Exception;

    private void writeBack(byte[] unlessKey) {
        if (waitingKey == null) {
            return;
        }
        if (!Arrays.equals(waitingKey, unlessKey)) {
            table.put(waitingKey, waitingValue);
        }
        waitingKey = null;
        waitingValue = null;
    }

    /** The key of the current row, to be read or appended to. */
    final byte[] currentRow() {
        writeBack(null);
        return rowKey();
    }

    final void append(byte[] key, V operand) {
        table.hasOperands = true;
        table.append(key, serialize(operand, valueSerializer));
    }

    /** The value of a row, which is left as it is. */
    final V read(byte[] key) {
        byte[] stored = table.get(key);
        if (stored == null) {
            return null;
        }
        in.setBuffer(stored);
        try {
            return Operands.fold(in, valueSerializer, this::combine, count);
        } catch (IOException failure) {
            throw new FlinkRuntimeException("a value cannot be read by " + valueSerializer, failure);
        }
    }

    final void write(byte[] key, V value) {
        if (value == null) {
            table.delete(key);
        } else {
            table.put(key, serialize(value, valueSerializer));
        }
    }

    @Override
    public V getInternal() {
        byte[] key = currentRow();
        V value = read(key);
        if (value != null && count[0] > OPERANDS_MAX) {
            waitingKey = key;
            waitingValue = serialize(value, valueSerializer);
        }
        return value;
    }

    @Override
    public void updateInternal(V value) {
        byte[] key = rowKey();
        writeBack(key);
        write(key, value);
    }

    @Override
    public void clear() {
        byte[] key = rowKey();
        writeBack(key);
        table.delete(key);
    }

    @Override
    public void mergeNamespaces(N target, Collection<N> sources) throws Exception {
        writeBack(null);
        if (sources == null || sources.isEmpty()) {
            return;
        }
        V merged = null;
        for (N source : sources) {
            if (source == null) {
                continue;
            }
            setCurrentNamespace(source);
            byte[] key = rowKey();
            V value = read(key);
            if (value != null) {
                table.delete(key);
                merged = merged == null ? value : combine(merged, value);
            }
        }
        setCurrentNamespace(target);
        if (merged != null) {
            byte[] key = rowKey();
            V present = read(key);
            write(key, present == null ? merged : combine(merged, present));
        }
    }

    /** What a query reads: one value, also where there are operands. It may be another thread. */
    @Override
    public byte[] getSerializedValue(
            byte[] serializedKeyAndNamespace,
            TypeSerializer<K> safeKeySerializer,
            TypeSerializer<N> safeNamespaceSerializer,
            TypeSerializer<V> safeValueSerializer)
            throws Exception {
        byte[] stored =
                super.getSerializedValue(
                        serializedKeyAndNamespace,
                        safeKeySerializer,
                        safeNamespaceSerializer,
                        safeValueSerializer);
        return stored == null || !table.hasOperands
                ? stored
                : folding(safeValueSerializer, combineElsewhere()).apply(stored);
    }

    @Override
    RowTransform foldForSnapshot() {
        if (!table.hasOperands) {
            return null;
        }
        try {
            return folding(valueSerializer.duplicate(), combineElsewhere());
        } catch (Exception failure) {
            throw new FlinkRuntimeException(
                    "the function of a state cannot be copied for a snapshot", failure);
        }
    }

    private static <V> RowTransform folding(TypeSerializer<V> serializer, Operands.Combine<V> combine) {
        DataInputDeserializer in = new DataInputDeserializer();
        DataOutputSerializer out = new DataOutputSerializer(64);
        int[] count = new int[1];
        return stored -> {
            in.setBuffer(stored);
            V value = Operands.fold(in, serializer, combine, count);
            if (count[0] == 1) {
                return stored;
            }
            if (value == null) {
                return null;
            }
            out.clear();
            serializer.serialize(value, out);
            return out.getCopyOfBuffer();
        };
    }

    /** A copy of a user's function. */
    final <F extends Serializable> F copy(F function) throws Exception {
        return InstantiationUtil.clone(function, backend.userClassLoader());
    }

    /**
     * Whether operands may be added blind: values that live for a time ask inside of the function
     * whether they are alive, so they must be combined when they are added; a value of no bytes
     * cannot be told from none; and snapshots need a copy of the function.
     */
    final boolean mayBeBlind(StateDescriptor<?, ?> descriptor, Serializable function) {
        if (descriptor.getTtlConfig().isEnabled() || valueSerializer.getLength() == 0) {
            return false;
        }
        try {
            copy(function);
            return true;
        } catch (Exception refused) {
            return false;
        }
    }

    @Override
    byte[] migrate(
            byte[] stored,
            TtlAwareSerializer<?, ?> before,
            TtlAwareSerializer<?, ?> now,
            TtlTimeProvider time)
            throws IOException {
        return Operands.migrate(stored, before, now, time);
    }
}
