package org.folddb.flink;

/** One of the members that {@link FoldAggregates#topKDouble} keeps. */
public final class RankedDouble {
    /** The member. */
    public String member;

    /** Its largest score. */
    public double score;

    /** For serializers. */
    public RankedDouble() {}

    RankedDouble(String member, double score) {
        this.member = member;
        this.score = score;
    }

    @Override
    public String toString() {
        return member + " " + score;
    }
}
