package org.folddb.flink;

import java.io.IOException;
import java.util.Map;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.core.memory.DataInputDeserializer;
import org.apache.flink.runtime.state.CompositeKeySerializationUtils;
import org.apache.flink.runtime.state.KeyExtractorFunction;
import org.apache.flink.runtime.state.KeyGroupRange;
import org.apache.flink.runtime.state.Keyed;
import org.apache.flink.runtime.state.PriorityComparable;
import org.apache.flink.runtime.state.RegisteredPriorityQueueStateBackendMetaInfo;
import org.apache.flink.runtime.state.heap.HeapPriorityQueueElement;
import org.apache.flink.runtime.state.heap.HeapPriorityQueueSet;
import org.apache.flink.runtime.state.heap.HeapPriorityQueueSetFactory;
import org.apache.flink.runtime.state.heap.HeapPriorityQueueSnapshotRestoreWrapper;
import org.apache.flink.runtime.state.metainfo.StateMetaInfoSnapshot;

/** Puts timers of snapshots into their queues. */
final class TimerRestore {
    private final Map<String, HeapPriorityQueueSnapshotRestoreWrapper<?>> queues;
    private final KeyGroupRange keyGroups;
    private final int numberOfKeyGroups;
    private final HeapPriorityQueueSetFactory factory;

    TimerRestore(
            Map<String, HeapPriorityQueueSnapshotRestoreWrapper<?>> queues,
            KeyGroupRange keyGroups,
            int numberOfKeyGroups) {
        this.queues = queues;
        this.keyGroups = keyGroups;
        this.numberOfKeyGroups = numberOfKeyGroups;
        this.factory = GroupedTimers.factory(keyGroups, numberOfKeyGroups);
    }

    /** Takes timers of one queue, each with its key group before it. */
    interface Queue {
        void add(byte[] groupAndTimer) throws IOException;
    }

    /** The queue of this name, which is made if there is none. */
    Queue queue(StateMetaInfoSnapshot meta) {
        HeapPriorityQueueSnapshotRestoreWrapper<?> known = queues.get(meta.getName());
        HeapPriorityQueueSnapshotRestoreWrapper<?> queue =
                known != null
                        ? known
                        : newQueue(new RegisteredPriorityQueueStateBackendMetaInfo<>(meta));
        queues.put(meta.getName(), queue);
        return into(queue);
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private <T extends HeapPriorityQueueElement & PriorityComparable<? super T> & Keyed<?>>
            HeapPriorityQueueSnapshotRestoreWrapper<T> newQueue(
                    RegisteredPriorityQueueStateBackendMetaInfo meta) {
        HeapPriorityQueueSet<T> queue = factory.create(meta.getName(), meta.getElementSerializer());
        return new HeapPriorityQueueSnapshotRestoreWrapper<>(
                queue, meta, KeyExtractorFunction.forKeyedObjects(), keyGroups, numberOfKeyGroups);
    }

    private <T extends HeapPriorityQueueElement> Queue into(
            HeapPriorityQueueSnapshotRestoreWrapper<T> queue) {
        TypeSerializer<T> serializer = queue.getMetaInfo().getElementSerializer();
        DataInputDeserializer in = new DataInputDeserializer();
        int groupBytes =
                CompositeKeySerializationUtils.computeRequiredBytesInKeyGroupPrefix(numberOfKeyGroups);
        return groupAndTimer -> {
            in.setBuffer(groupAndTimer);
            if (keyGroups.contains(CompositeKeySerializationUtils.readKeyGroup(groupBytes, in))) {
                queue.getPriorityQueue().add(serializer.deserialize(in));
            }
        };
    }
}
