package org.folddb.flink;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashSet;
import java.util.Random;
import java.util.Set;
import org.apache.flink.runtime.state.KeyGroupRange;
import org.apache.flink.runtime.state.KeyGroupRangeAssignment;
import org.apache.flink.runtime.state.VoidNamespace;
import org.apache.flink.runtime.state.heap.HeapPriorityQueueElement;
import org.apache.flink.runtime.state.heap.HeapPriorityQueueSet;
import org.apache.flink.streaming.api.operators.TimerHeapInternalTimer;
import org.junit.jupiter.api.Test;

/** Timers come by their time, and those of one time key group by key group. */
class GroupedTimersTest {
    private static final int GROUPS = 16;

    private final HeapPriorityQueueSet<TimerHeapInternalTimer<Integer, VoidNamespace>> timers =
            GroupedTimers.factory(KeyGroupRange.of(0, GROUPS - 1), GROUPS).create("timers", null);

    private static TimerHeapInternalTimer<Integer, VoidNamespace> timer(long time, int key) {
        return new TimerHeapInternalTimer<>(time, key, VoidNamespace.INSTANCE);
    }

    @Test
    void timersOfOneTimeComeGroupByGroup() {
        Random random = new Random(3);
        Set<TimerHeapInternalTimer<Integer, VoidNamespace>> all = new HashSet<>();
        for (int at = 0; at < 5_000; at++) {
            TimerHeapInternalTimer<Integer, VoidNamespace> timer =
                    timer(random.nextInt(5), random.nextInt(2_000));
            all.add(timer);
            timers.add(timer);
            if (random.nextInt(3) == 0) {
                TimerHeapInternalTimer<Integer, VoidNamespace> gone =
                        timer(random.nextInt(5), random.nextInt(2_000));
                all.remove(gone);
                timers.remove(gone);
            }
            assertEquals(all.size(), timers.size());
        }
        assertEquals(all, new HashSet<>(Set.of(timers.toArray(new HeapPriorityQueueElement[0]))));
        Set<Long> timesAndGroups = new HashSet<>();
        long last = -1;
        while (!timers.isEmpty()) {
            assertEquals(timers.peek(), timers.peek());
            TimerHeapInternalTimer<Integer, VoidNamespace> timer = timers.poll();
            int group = KeyGroupRangeAssignment.assignToKeyGroup(timer.getKey(), GROUPS);
            long at = timer.getTimestamp() * GROUPS + group;
            assertTrue(timer.getTimestamp() >= last / GROUPS, "times ascend");
            assertTrue(at == last || timesAndGroups.add(at), "a group comes once for each time");
            last = at;
            assertTrue(all.remove(timer), "each comes once");
        }
        assertTrue(all.isEmpty());
        assertNull(timers.poll());
    }

    @Test
    void anAddSaysWhetherTheFirstTimerIsAnotherOne() {
        assertTrue(timers.add(timer(10, 1)));
        assertTrue(timers.add(timer(5, 2)));
        assertEquals(5, timers.peek().getTimestamp());
        timers.add(timer(7, 3));
        assertEquals(5, timers.peek().getTimestamp());
        timers.clear();
        assertTrue(timers.isEmpty());
    }
}
