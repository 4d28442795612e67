package org.folddb.flink;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import org.apache.flink.api.common.ExecutionConfig;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.typeinfo.TypeHint;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.configuration.CheckpointingOptions;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;
import org.apache.flink.runtime.state.SharedStateRegistryImpl;
import org.apache.flink.runtime.state.StateBackend;
import org.apache.flink.runtime.state.hashmap.HashMapStateBackend;
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction;
import org.apache.flink.streaming.api.operators.OneInputStreamOperator;
import org.apache.flink.streaming.api.windowing.assigners.EventTimeSessionWindows;
import org.apache.flink.streaming.api.windowing.assigners.SlidingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.assigners.WindowAssigner;
import org.apache.flink.streaming.api.windowing.triggers.EventTimeTrigger;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.streaming.runtime.operators.windowing.WindowOperatorBuilder;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.streaming.util.KeyedOneInputStreamOperatorTestHarness;
import org.apache.flink.util.Collector;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Flink's own window operator over FoldDB fires what it fires over the heap. */
class WindowsTest {
    private static final TypeInformation<Tuple2<Integer, String>> TYPE =
            TypeInformation.of(new TypeHint<Tuple2<Integer, String>>() {});

    private static final KeySelector<Tuple2<Integer, String>, Integer> KEY = record -> record.f0;

    /** What a window does with its records. */
    enum Job {
        TUMBLING_REDUCE(TumblingEventTimeWindows.of(Duration.ofMillis(100))),
        SLIDING_REDUCE(SlidingEventTimeWindows.of(Duration.ofMillis(100), Duration.ofMillis(50))),
        SESSION_REDUCE(EventTimeSessionWindows.withGap(Duration.ofMillis(30))),
        TUMBLING_AGGREGATE(TumblingEventTimeWindows.of(Duration.ofMillis(100))),
        SESSION_AGGREGATE(EventTimeSessionWindows.withGap(Duration.ofMillis(30))),
        TUMBLING_LIST(TumblingEventTimeWindows.of(Duration.ofMillis(100))),
        SESSION_LIST(EventTimeSessionWindows.withGap(Duration.ofMillis(30))),
        TUMBLING_FOLD(TumblingEventTimeWindows.of(Duration.ofMillis(100))),
        SLIDING_FOLD(SlidingEventTimeWindows.of(Duration.ofMillis(100), Duration.ofMillis(50))),
        SESSION_FOLD(EventTimeSessionWindows.withGap(Duration.ofMillis(30)));

        private final WindowAssigner<Object, TimeWindow> assigner;

        Job(WindowAssigner<Object, TimeWindow> assigner) {
            this.assigner = assigner;
        }

        OneInputStreamOperator<Tuple2<Integer, String>, String> operator() {
            WindowOperatorBuilder<Tuple2<Integer, String>, Integer, TimeWindow> builder =
                    new WindowOperatorBuilder<>(
                            assigner, EventTimeTrigger.create(), new ExecutionConfig(), TYPE, KEY, Types.INT);
            if (this == SESSION_REDUCE) {
                // The order in which sessions are merged is not the same in all backends of Flink.
                return builder.reduce(
                        (a, b) -> Tuple2.of(a.f0, new Longest().merge(a.f1, b.f1)), new Shown<>());
            }
            if (name().endsWith("REDUCE")) {
                return builder.reduce(
                        (a, b) -> Tuple2.of(a.f0, "(" + a.f1 + b.f1 + ")"), new Shown<>());
            }
            if (name().endsWith("AGGREGATE")) {
                return builder.aggregate(new Longest(), new Shown<>(), Types.STRING);
            }
            if (name().endsWith("FOLD")) {
                FoldAggregate<Tuple2<Integer, String>, Stats> function =
                        FoldAggregates.stats(record -> record.f1.hashCode() / 7.0);
                return builder.aggregate(function, new Shown<>(), TypeInformation.of(FoldValue.class));
            }
            return builder.process(new Shown<>());
        }
    }

    /** The longest text, and the greatest of these: its merge agrees with its add. */
    private static final class Longest
            implements AggregateFunction<Tuple2<Integer, String>, String, String> {
        private static final long serialVersionUID = 1L;

        @Override
        public String createAccumulator() {
            return "";
        }

        @Override
        public String add(Tuple2<Integer, String> value, String accumulator) {
            return merge(accumulator, value.f1);
        }

        @Override
        public String getResult(String accumulator) {
            return accumulator;
        }

        @Override
        public String merge(String a, String b) {
            return a.length() > b.length() || (a.length() == b.length() && a.compareTo(b) > 0) ? a : b;
        }
    }

    /** Shows key, window and values. */
    private static final class Shown<T> extends ProcessWindowFunction<T, String, Integer, TimeWindow> {
        private static final long serialVersionUID = 1L;

        @Override
        public void process(Integer key, Context context, Iterable<T> values, Collector<String> out) {
            List<String> all = new ArrayList<>();
            values.forEach(value -> all.add(value.toString()));
            out.collect(key + " " + context.window() + " " + all);
        }
    }

    private static KeyedOneInputStreamOperatorTestHarness<Integer, Tuple2<Integer, String>, String> open(
            Job job, StateBackend backend, OperatorSubtaskState restored) throws Exception {
        KeyedOneInputStreamOperatorTestHarness<Integer, Tuple2<Integer, String>, String> harness =
                new KeyedOneInputStreamOperatorTestHarness<>(job.operator(), KEY, Types.INT);
        harness.setStateBackend(backend);
        harness.setup();
        if (restored != null) {
            harness.initializeState(restored);
        }
        harness.open();
        return harness;
    }

    private static List<String> firedBy(Iterable<Object> outputs) {
        List<String> fired = new ArrayList<>();
        for (Object output : outputs) {
            if (output instanceof StreamRecord) {
                fired.add(String.valueOf(((StreamRecord<?>) output).getValue()));
            }
        }
        Collections.sort(fired);
        return fired;
    }

    /** What the job fires; the operator is closed and restored several times on the way. */
    private static List<String> run(Job job, StateBackend backend) throws Exception {
        Random random = new Random(11);
        List<String> fired = new ArrayList<>();
        OperatorSubtaskState state = null;
        SharedStateRegistryImpl registry = new SharedStateRegistryImpl();
        long time = 0;
        for (int round = 0; round < 4; round++) {
            KeyedOneInputStreamOperatorTestHarness<Integer, Tuple2<Integer, String>, String> harness =
                    open(job, backend, state);
            for (int step = 0; step < 500; step++) {
                int key = random.nextInt(12);
                long at = time + random.nextInt(60);
                harness.processElement(Tuple2.of(key, round + ":" + step + " "), at);
                time += random.nextInt(4);
                if (step % 50 == 49) {
                    harness.processWatermark(time - 1);
                }
            }
            state = harness.snapshot(round, time);
            state.registerSharedStates(registry, round); // as the job manager does
            fired.addAll(firedBy(harness.getOutput()));
            harness.close();
        }
        return fired;
    }

    @ParameterizedTest
    @EnumSource
    void whatFiresIsWhatFiresOverTheHeap(Job job) throws Exception {
        List<String> expected = run(job, new HashMapStateBackend());
        assertTrue(expected.size() > 100, expected.size() + " windows fired");
        assertEquals(expected, run(job, new FoldDbStateBackend()));
        Configuration incremental = new Configuration();
        incremental.set(CheckpointingOptions.INCREMENTAL_CHECKPOINTS, true);
        FoldDbStateBackend backend =
                new FoldDbStateBackend().configure(incremental, WindowsTest.class.getClassLoader());
        assertEquals(expected, run(job, backend));
    }
}
