package org.folddb.flink;

import java.util.Arrays;
import java.util.Collection;
import java.util.Set;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.runtime.state.KeyExtractorFunction;
import org.apache.flink.runtime.state.KeyGroupRange;
import org.apache.flink.runtime.state.Keyed;
import org.apache.flink.runtime.state.PriorityComparable;
import org.apache.flink.runtime.state.PriorityComparator;
import org.apache.flink.runtime.state.heap.HeapPriorityQueueElement;
import org.apache.flink.runtime.state.heap.HeapPriorityQueueSet;
import org.apache.flink.runtime.state.heap.HeapPriorityQueueSetFactory;
import org.apache.flink.runtime.state.heap.KeyGroupPartitionedPriorityQueue;
import org.apache.flink.util.CloseableIterator;

/**
 * Timers on the heap, a queue for each key group: of those that are due at the same time, all of
 * one key group come before those of another. The rows of a window that fires are then asked for
 * where they lie, see {@link FiringWindow}. Flink's own queue gives them in any order.
 *
 * <p>Flink's snapshots of timers ask for the class that this extends; what that has is not used.
 */
final class GroupedTimers<T extends HeapPriorityQueueElement> extends HeapPriorityQueueSet<T> {
    private static final int CAPACITY = 16;

    private final KeyGroupPartitionedPriorityQueue<T, OfGroup<T>> groups;

    GroupedTimers(
            PriorityComparator<T> comparator,
            KeyExtractorFunction<T> extractor,
            KeyGroupRange keyGroups,
            int numberOfKeyGroups) {
        super(comparator, extractor, 1, groupOf(keyGroups.getStartKeyGroup()), numberOfKeyGroups);
        groups =
                new KeyGroupPartitionedPriorityQueue<T, OfGroup<T>>(
                        extractor,
                        comparator,
                        (group, all, keys, order) -> new OfGroup<>(order, keys, group, all),
                        keyGroups,
                        numberOfKeyGroups);
    }

    private static KeyGroupRange groupOf(int group) {
        return KeyGroupRange.of(group, group);
    }

    /** Makes such queues for a backend. */
    static HeapPriorityQueueSetFactory factory(KeyGroupRange keyGroups, int numberOfKeyGroups) {
        return new HeapPriorityQueueSetFactory(keyGroups, numberOfKeyGroups, CAPACITY) {
            @Override
            public <E extends HeapPriorityQueueElement & PriorityComparable<? super E> & Keyed<?>>
                    HeapPriorityQueueSet<E> create(String name, TypeSerializer<E> serializer) {
                return new GroupedTimers<E>(
                        PriorityComparator.forPriorityComparableObjects(),
                        KeyExtractorFunction.forKeyedObjects(),
                        keyGroups,
                        numberOfKeyGroups);
            }
        };
    }

    /** Those of one key group; their place among the others is by the first of them. */
    private static final class OfGroup<T extends HeapPriorityQueueElement>
            extends HeapPriorityQueueSet<T> implements HeapPriorityQueueElement {
        private int index = NOT_CONTAINED;

        OfGroup(PriorityComparator<T> comparator, KeyExtractorFunction<T> extractor, int group, int all) {
            super(comparator, extractor, CAPACITY, groupOf(group), all);
        }

        @Override
        public int getInternalIndex() {
            return index;
        }

        @Override
        public void setInternalIndex(int newIndex) {
            index = newIndex;
        }
    }

    @Override
    public T poll() {
        return groups.poll();
    }

    @Override
    public T peek() {
        return groups.peek();
    }

    @Override
    public boolean add(T timer) {
        return groups.add(timer);
    }

    @Override
    public boolean remove(T timer) {
        return groups.remove(timer);
    }

    @Override
    public boolean isEmpty() {
        return groups.isEmpty();
    }

    @Override
    public int size() {
        return groups.size();
    }

    @Override
    public void addAll(Collection<? extends T> timers) {
        groups.addAll(timers);
    }

    @Override
    public CloseableIterator<T> iterator() {
        return groups.iterator();
    }

    @Override
    public Set<T> getSubsetForKeyGroup(int group) {
        return groups.getSubsetForKeyGroup(group);
    }

    @Override
    @SuppressWarnings("unchecked")
    public <O> O[] toArray(O[] out) {
        O[] all = out.length < size() ? Arrays.copyOf(out, size()) : out;
        int at = 0;
        for (CloseableIterator<T> timers = iterator(); timers.hasNext(); at++) {
            all[at] = (O) timers.next();
        }
        if (at < all.length) {
            all[at] = null;
        }
        return all;
    }

    @Override
    public void clear() {
        while (poll() != null) {
            // each leaves its group
        }
    }
}
