package org.folddb.flink.bench;

import java.time.Duration;
import org.apache.flink.api.common.ExecutionConfig;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.MapState;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction;
import org.apache.flink.streaming.api.operators.KeyedProcessOperator;
import org.apache.flink.streaming.api.operators.OneInputStreamOperator;
import org.apache.flink.streaming.api.windowing.assigners.EventTimeSessionWindows;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.assigners.WindowAssigner;
import org.apache.flink.streaming.api.windowing.triggers.EventTimeTrigger;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.streaming.runtime.operators.windowing.WindowOperatorBuilder;
import org.apache.flink.util.Collector;
import org.folddb.flink.FoldAggregates;
import org.folddb.flink.FoldValue;
import org.folddb.flink.Stats;

/** Flink's operators with the functions of the workloads. A record is its key and a number. */
final class Operators {
    static final KeySelector<Tuple2<Long, Long>, Long> KEY = record -> record.f0;

    private static final TypeInformation<Tuple2<Long, Long>> RECORD = Types.TUPLE(Types.LONG, Types.LONG);

    private Operators() {}

    static OneInputStreamOperator<Tuple2<Long, Long>, Void> of(Load load, boolean isNative) {
        return switch (load.workload()) {
            case WINDOW_REDUCE -> reduce(tumbling(), isNative);
            case WINDOW_AGGREGATE -> aggregate(tumbling(), isNative);
            case WINDOW_LIST -> windows(tumbling()).process(new ListSaid());
            case VALUE_RMW -> new KeyedProcessOperator<>(new Update());
            case MAP_JOIN -> new KeyedProcessOperator<>(new Join());
            case SESSIONS ->
                reduce(EventTimeSessionWindows.withGap(Duration.ofMillis(load.keys())), isNative);
        };
    }

    private static WindowAssigner<Object, TimeWindow> tumbling() {
        return TumblingEventTimeWindows.of(Duration.ofMillis(Workload.WINDOW_MS));
    }

    private static WindowOperatorBuilder<Tuple2<Long, Long>, Long, TimeWindow> windows(
            WindowAssigner<Object, TimeWindow> assigner) {
        return new WindowOperatorBuilder<>(
                assigner, EventTimeTrigger.create(), new ExecutionConfig(), RECORD, KEY, Types.LONG);
    }

    private static OneInputStreamOperator<Tuple2<Long, Long>, Void> reduce(
            WindowAssigner<Object, TimeWindow> assigner, boolean isNative) {
        if (isNative) {
            return windows(assigner)
                    .aggregate(
                            FoldAggregates.sum(record -> record.f1),
                            new LongSaid(),
                            TypeInformation.of(FoldValue.class));
        }
        return windows(assigner)
                .reduce((a, b) -> Tuple2.of(a.f0, a.f1 + b.f1), new RecordSaid());
    }

    private static OneInputStreamOperator<Tuple2<Long, Long>, Void> aggregate(
            WindowAssigner<Object, TimeWindow> assigner, boolean isNative) {
        if (isNative) {
            return windows(assigner)
                    .aggregate(
                            FoldAggregates.stats(record -> record.f1),
                            new StatsSaid(),
                            TypeInformation.of(FoldValue.class));
        }
        return windows(assigner)
                .aggregate(
                        new CountSumMax(),
                        new LongSaid(),
                        Types.TUPLE(Types.LONG, Types.LONG, Types.LONG));
    }

    /** One number of three. */
    private static long joined(long count, long sum, long max) {
        return Results.mixed(count ^ Results.mixed(sum ^ Results.mixed(max)));
    }

    private static final class CountSumMax
            implements AggregateFunction<Tuple2<Long, Long>, Tuple3<Long, Long, Long>, Long> {
        private static final long serialVersionUID = 1L;

        @Override
        public Tuple3<Long, Long, Long> createAccumulator() {
            return Tuple3.of(0L, 0L, Long.MIN_VALUE);
        }

        @Override
        public Tuple3<Long, Long, Long> add(Tuple2<Long, Long> record, Tuple3<Long, Long, Long> sofar) {
            return Tuple3.of(sofar.f0 + 1, sofar.f1 + record.f1, Math.max(sofar.f2, record.f1));
        }

        @Override
        public Long getResult(Tuple3<Long, Long, Long> all) {
            return joined(all.f0, all.f1, all.f2);
        }

        @Override
        public Tuple3<Long, Long, Long> merge(Tuple3<Long, Long, Long> a, Tuple3<Long, Long, Long> b) {
            return Tuple3.of(a.f0 + b.f0, a.f1 + b.f1, Math.max(a.f2, b.f2));
        }
    }

    /** Adds what a window holds to the results. */
    private abstract static class Said<T> extends ProcessWindowFunction<T, Void, Long, TimeWindow> {
        private static final long serialVersionUID = 1L;

        abstract long valueOf(Iterable<T> values);

        @Override
        public void process(Long key, Context context, Iterable<T> values, Collector<Void> out) {
            Results.add(key, context.window().getStart() ^ context.window().getEnd(), valueOf(values));
        }
    }

    private static final class RecordSaid extends Said<Tuple2<Long, Long>> {
        private static final long serialVersionUID = 1L;

        @Override
        long valueOf(Iterable<Tuple2<Long, Long>> values) {
            return values.iterator().next().f1;
        }
    }

    private static final class LongSaid extends Said<Long> {
        private static final long serialVersionUID = 1L;

        @Override
        long valueOf(Iterable<Long> values) {
            return values.iterator().next();
        }
    }

    private static final class StatsSaid extends Said<Stats> {
        private static final long serialVersionUID = 1L;

        @Override
        long valueOf(Iterable<Stats> values) {
            Stats stats = values.iterator().next();
            return joined(stats.count, (long) stats.sum, (long) stats.max);
        }
    }

    /** All elements, in the order in which they came. */
    private static final class ListSaid extends Said<Tuple2<Long, Long>> {
        private static final long serialVersionUID = 1L;

        @Override
        long valueOf(Iterable<Tuple2<Long, Long>> values) {
            long all = 0;
            for (Tuple2<Long, Long> value : values) {
                all = all * 31 + value.f1;
            }
            return all;
        }
    }

    /** Reads a sum and writes it back with one number more. */
    private static final class Update extends KeyedProcessFunction<Long, Tuple2<Long, Long>, Void> {
        private static final long serialVersionUID = 1L;

        private transient ValueState<Long> sum;

        @Override
        public void open(OpenContext context) {
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>("sum", Types.LONG));
        }

        @Override
        public void processElement(Tuple2<Long, Long> record, Context context, Collector<Void> out)
                throws Exception {
            Long before = sum.value();
            long now = (before == null ? 0 : before) + record.f1;
            sum.update(now);
            Results.add(record.f0, context.timestamp(), now);
        }
    }

    /** Keeps left events, whose number is even, until the right one of the next number comes. */
    private static final class Join extends KeyedProcessFunction<Long, Tuple2<Long, Long>, Void> {
        private static final long serialVersionUID = 1L;

        private transient MapState<Long, Long> lefts;

        @Override
        public void open(OpenContext context) {
            lefts = getRuntimeContext().getMapState(
                    new MapStateDescriptor<>("lefts", Types.LONG, Types.LONG));
        }

        @Override
        public void processElement(Tuple2<Long, Long> record, Context context, Collector<Void> out)
                throws Exception {
            long pair = record.f1 >>> 1;
            if ((record.f1 & 1) == 0) {
                lefts.put(pair, context.timestamp());
            } else {
                Results.add(record.f0, pair, lefts.get(pair));
                lefts.remove(pair);
            }
        }
    }
}
