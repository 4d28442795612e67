package org.folddb.flink.example;

import java.time.Duration;
import java.util.Arrays;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.AggregatingState;
import org.apache.flink.api.common.state.AggregatingStateDescriptor;
import org.apache.flink.api.common.state.MapState;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.state.ReducingState;
import org.apache.flink.api.common.state.ReducingStateDescriptor;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.connector.datagen.source.GeneratorFunction;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction;
import org.apache.flink.streaming.api.windowing.assigners.EventTimeSessionWindows;
import org.apache.flink.streaming.api.windowing.assigners.SlidingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.util.Collector;
import org.folddb.flink.FoldAggregates;
import org.folddb.flink.FoldValue;
import org.folddb.flink.Ranked;
import org.folddb.flink.Stats;

/**
 * A job over the flights with every kind of state, which fails where it is told to, and is as slow as
 * it is told to be. It runs in the process of the test, which has its results.
 */
final class FlightsJob {
    static final Duration DAY = Duration.ofDays(1);
    static final Duration QUARTER = Duration.ofHours(6);
    static final Duration GAP = Duration.ofHours(5);

    /** After all flights, so that its timer is the last one. */
    static final long END = 4_102_444_800_000L;

    /** The results: of each kind, key and window. */
    static final ConcurrentHashMap<String, String> RESULTS = new ConcurrentHashMap<>();

    /** Results that differ from an earlier one of the same window. */
    static final ConcurrentLinkedQueue<String> CONFLICTS = new ConcurrentLinkedQueue<>();

    /** The source fails at its next flight. */
    static final AtomicBoolean SOURCE_FAILS = new AtomicBoolean();

    /** An operator with keyed state fails at its next flight. */
    static final AtomicBoolean OPERATOR_FAILS = new AtomicBoolean();

    /** The number of the flight from which on the source is slow, and then slower. */
    static volatile int fastUntil;

    private FlightsJob() {}

    private static void failIf(AtomicBoolean told) {
        if (told.compareAndSet(true, false)) {
            throw new IllegalStateException("as it was told to");
        }
    }

    private static Flight next(long number) throws InterruptedException {
        failIf(SOURCE_FAILS);
        long ahead = number - fastUntil;
        if (ahead >= 0) {
            Thread.sleep(Math.min(1 + ahead / 50, 50)); // so that it does not end before its failures
        }
        return Flights.get((int) number);
    }

    private static void collect(DataStream<Tuple2<String, String>> results) {
        results.map(
                        result -> {
                            String before = RESULTS.put(result.f0, result.f1);
                            if (before != null && !before.equals(result.f1)) {
                                CONFLICTS.add(result.f0 + ": " + before + ", and then " + result.f1);
                            }
                            return result;
                        })
                .returns(Types.TUPLE(Types.STRING, Types.STRING))
                .sinkTo(new DiscardingSink<>());
    }

    static void build(StreamExecutionEnvironment env) {
        GeneratorFunction<Long, Flight> rows = FlightsJob::next;
        DataStream<Flight> flights =
                env.fromSource(
                                new DataGeneratorSource<>(
                                        rows, Flights.count(), TypeInformation.of(Flight.class)),
                                WatermarkStrategy.<Flight>forBoundedOutOfOrderness(DAY)
                                        .withTimestampAssigner((flight, before) -> flight.time),
                                "flights")
                        .setParallelism(1)
                        .uid("flights");
        DataStream<Flight> left = flights.filter(Flight::hasLeft).setParallelism(1);
        collect(
                left.keyBy(flight -> flight.carrier)
                        .window(TumblingEventTimeWindows.of(DAY))
                        .aggregate(FoldAggregates.stats(flight -> flight.delay), new Shown<Stats>("stats"))
                        .uid("stats"));
        collect(
                left.keyBy(flight -> flight.origin)
                        .window(TumblingEventTimeWindows.of(DAY))
                        .aggregate(
                                FoldAggregates.topK(3, flight -> (long) flight.delay, flight -> flight.tail),
                                new Shown<Ranked[]>("top"))
                        .uid("top"));
        collect(
                flights.filter(flight -> flight.tail != null)
                        .setParallelism(1)
                        .keyBy(flight -> flight.tail)
                        .window(EventTimeSessionWindows.withGap(GAP))
                        .aggregate(FoldAggregates.count(), new Shown<Long>("sessions"))
                        .uid("sessions"));
        collect(
                left.keyBy(flight -> flight.dest)
                        .window(SlidingEventTimeWindows.of(QUARTER.multipliedBy(2), QUARTER))
                        .aggregate(new Mean(), new Shown<String>("mean"))
                        .uid("mean"));
        collect(
                flights.map(flight -> Tuple3.of(flight.carrier + flight.dest, flight.time, 1L))
                        .returns(Types.TUPLE(Types.STRING, Types.LONG, Types.LONG))
                        .setParallelism(1)
                        .keyBy(pair -> pair.f0)
                        .window(TumblingEventTimeWindows.of(QUARTER))
                        // Not associative: it shows the order.
                        .reduce(
                                (a, b) -> Tuple3.of(a.f0, a.f1 * 31 + b.f1, a.f2 + b.f2),
                                new Shown<Tuple3<String, Long, Long>>("chain"))
                        .uid("chain"));
        collect(
                flights.keyBy(flight -> flight.origin)
                        .window(TumblingEventTimeWindows.of(QUARTER))
                        .process(new Listed())
                        .uid("list"));
        collect(flights.keyBy(flight -> flight.carrier).process(new Totals()).uid("totals"));
    }

    static String name(String kind, String key, long window) {
        return kind + " " + key + " " + window;
    }

    static String shown(Object result) {
        return result instanceof Object[] ? Arrays.toString((Object[]) result) : result.toString();
    }

    /** Shows kind, key, window and result. */
    private static final class Shown<T>
            extends ProcessWindowFunction<T, Tuple2<String, String>, String, TimeWindow> {
        private static final long serialVersionUID = 1L;

        private final String kind;

        Shown(String kind) {
            this.kind = kind;
        }

        @Override
        public void process(
                String key, Context context, Iterable<T> results, Collector<Tuple2<String, String>> out) {
            for (T result : results) {
                out.collect(Tuple2.of(name(kind, key, context.window().getStart()), shown(result)));
            }
        }
    }

    /** All flights of a window in their order, as one number. */
    private static final class Listed
            extends ProcessWindowFunction<Flight, Tuple2<String, String>, String, TimeWindow> {
        private static final long serialVersionUID = 1L;

        @Override
        public void process(
                String key, Context context, Iterable<Flight> flights, Collector<Tuple2<String, String>> out) {
            long chain = 0;
            for (Flight flight : flights) {
                chain = chain * 31 + flight.time + flight.dest.hashCode();
            }
            out.collect(Tuple2.of(name("list", key, context.window().getStart()), "" + chain));
        }
    }

    /** A function of a user, whose merge agrees with its add. */
    private static final class Mean implements AggregateFunction<Flight, Tuple2<Long, Double>, String> {
        private static final long serialVersionUID = 1L;

        @Override
        public Tuple2<Long, Double> createAccumulator() {
            return Tuple2.of(0L, 0.0);
        }

        @Override
        public Tuple2<Long, Double> add(Flight flight, Tuple2<Long, Double> sum) {
            failIf(OPERATOR_FAILS);
            return Tuple2.of(sum.f0 + 1, sum.f1 + flight.delay);
        }

        @Override
        public String getResult(Tuple2<Long, Double> sum) {
            return sum.f0 + " " + sum.f1;
        }

        @Override
        public Tuple2<Long, Double> merge(Tuple2<Long, Double> a, Tuple2<Long, Double> b) {
            return Tuple2.of(a.f0 + b.f0, a.f1 + b.f1);
        }
    }

    /** What a carrier has flown in all, in states of every kind. */
    private static final class Totals
            extends KeyedProcessFunction<String, Flight, Tuple2<String, String>> {
        private static final long serialVersionUID = 1L;

        private transient ValueState<Long> count;
        private transient MapState<String, Long> dests;
        private transient ReducingState<Long> latest;
        private transient AggregatingState<Flight, Long> aircraft;

        @Override
        public void open(OpenContext context) {
            count = getRuntimeContext().getState(new ValueStateDescriptor<>("count", Types.LONG));
            dests =
                    getRuntimeContext()
                            .getMapState(new MapStateDescriptor<>("dests", Types.STRING, Types.LONG));
            latest =
                    getRuntimeContext()
                            .getReducingState(
                                    new ReducingStateDescriptor<>("latest", Math::max, Types.LONG));
            aircraft =
                    getRuntimeContext()
                            .getAggregatingState(
                                    new AggregatingStateDescriptor<>(
                                            "aircraft",
                                            FoldAggregates.<Flight>hll(flight -> flight.tail),
                                            FoldValue.class));
        }

        @Override
        public void processElement(
                Flight flight, Context context, Collector<Tuple2<String, String>> out) throws Exception {
            Long before = count.value();
            count.update(before == null ? 1 : before + 1);
            Long there = dests.get(flight.dest);
            dests.put(flight.dest, there == null ? 1 : there + 1);
            latest.add(flight.time);
            aircraft.add(flight);
            context.timerService().registerEventTimeTimer(END);
        }

        @Override
        public void onTimer(long time, OnTimerContext context, Collector<Tuple2<String, String>> out)
                throws Exception {
            TreeMap<String, Long> sorted = new TreeMap<>();
            dests.entries().forEach(entry -> sorted.put(entry.getKey(), entry.getValue()));
            out.collect(
                    Tuple2.of(
                            name("totals", context.getCurrentKey(), time),
                            count.value() + " " + latest.get() + " " + aircraft.get() + " " + sorted));
        }
    }
}
