use super::*;

fn standing(rival: &str, rows_per_s: u64, max_us: f64) -> Standing {
    let run = json!({ "rows": 10, "load": { "rows_per_s": rows_per_s }, "commits": { "max_us": max_us } });
    Standing { rival: rival.to_owned(), runs: Ok(vec![run]) }
}

fn measure(name: &str) -> &'static Measure {
    MEASURES.iter().find(|measure| measure.name == name).expect("a measure")
}

#[test]
fn a_ratio_above_one_is_better_whichever_way_the_figure_goes() {
    let standings = [standing("folddb", 300, 2.0), standing("slow", 100, 8.0), standing("fast", 150, 10.0)];
    let (ratio, best) = ratio_to_best(measure("load, rows/s"), &standings).expect("both are there");
    assert_eq!((ratio, best.as_str()), (2.0, "fast"));
    let (ratio, best) = ratio_to_best(measure("commit max, µs"), &standings).expect("both are there");
    assert_eq!((ratio, best.as_str()), (4.0, "slow"));
}

#[test]
fn without_us_or_them_there_is_no_ratio() {
    assert!(ratio_to_best(measure("load, rows/s"), &[standing("fast", 1, 1.0)]).is_none());
    assert!(ratio_to_best(measure("load, rows/s"), &[standing("folddb", 1, 1.0)]).is_none());
    let failed = Standing { rival: "fast".to_owned(), runs: Err("no".to_owned()) };
    assert!(ratio_to_best(measure("load, rows/s"), &[standing("folddb", 1, 1.0), failed]).is_none());
}

#[test]
fn medians_go_figure_by_figure() {
    let runs = [
        json!({ "name": "a", "load": { "s": 3.5, "tenths": [1, 9] }, "seconds": [1] }),
        json!({ "name": "a", "load": { "s": 1.5, "tenths": [2, 8] }, "seconds": [1, 2] }),
        json!({ "name": "a", "load": { "s": 9.0, "tenths": [3, 7] }, "seconds": [3] }),
    ];
    let expected = json!({ "name": "a", "load": { "s": 3.5, "tenths": [2, 8] }, "seconds": [1] });
    assert_eq!(medians(&runs.iter().collect::<Vec<_>>()), expected);
    assert_eq!(median(&[4.0, 1.0]), 2.5);
}

#[test]
fn settling_counts() {
    let run = json!({ "rows": 100, "load": { "seconds": 1.5, "cpu_s": 0.001 }, "settle": { "seconds": 0.5, "cpu_s": 0.001 } });
    assert_eq!(settled_rows_per_s(&run), Some(50.0));
    assert_eq!(settled_cpu_us_per_row(&run), Some(20.0));
}

#[test]
fn a_figure_is_computed_in_each_round_before_its_median() {
    let run = |load_s: f64, settle_s: f64| json!({ "rows": 100, "load": { "seconds": load_s }, "settle": { "seconds": settle_s } });
    let runs = vec![run(1.0, 9.0), run(2.0, 2.0), run(8.0, 1.0)];
    let standing = Standing { rival: "fast".to_owned(), runs: Ok(runs) };
    let settled = measure("load and settle, rows/s");
    assert_eq!(spread(settled, &standing), Some(Spread { median: 11.0, min: 10.0, max: 25.0 }));
    assert_eq!(spread(measure("commit max, µs"), &standing), None);
}
