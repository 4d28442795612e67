//! The sample of an access log, `samples/access.log.gz`, is what the generator here makes.
//!
//! `UPDATE=1 cargo test -p folddb-cli --test access_log` writes it.

mod support;

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use support::{Random, project};

const LINES: u64 = 2000;

/// Three days of a web shop that does not exist, in the combined form.
fn generated() -> String {
    let mut random = Random(0x5eed_0001);
    let paths =
        ["/", "/", "/shop", "/shop/cart", "/shop/item?id=7", "/shop/item?id=12", "/search?q=tea", "/health"];
    let agents =
        ["Mozilla/5.0 (X11; Linux x86_64)", "Mozilla/5.0 (iPhone; like Mac OS X)", "curl/8.5.0", "-"];
    let (mut text, mut second) = (String::new(), 0);
    for _ in 0..LINES {
        second += random.below(260);
        let (day, hour, minute) = (1 + second / 86_400, second / 3600 % 24, second / 60 % 60);
        let (path, agent) = (random.of(&paths), random.of(&agents));
        let host = format!("203.0.113.{}", 1 + random.below(40) * random.below(6));
        let user = if random.below(9) == 0 { "ann" } else { "-" };
        let (status, bytes) = match random.below(40) {
            0 => ("500", "-".to_owned()),
            1 | 2 => ("404", "162".to_owned()),
            _ => ("200", (200 + random.below(9000)).to_string()),
        };
        let referer = if random.below(3) == 0 { "https://shop.example/" } else { "-" };
        let time = format!("{day:02}/Nov/2026:{hour:02}:{minute:02}:{:02} +0000", second % 60);
        text.push_str(&format!(
            "{host} - {user} [{time}] \"GET {path} HTTP/1.1\" {status} {bytes} \"{referer}\" \"{agent}\"\n"
        ));
    }
    text
}

#[test]
fn the_sample_of_an_access_log_is_what_its_generator_makes() {
    let file = project().join("samples/access.log.gz");
    if std::env::var_os("UPDATE").is_some() {
        let mut packed = GzEncoder::new(Vec::new(), Compression::best());
        packed.write_all(generated().as_bytes()).expect("it is packed");
        std::fs::write(&file, packed.finish().expect("it is packed")).expect("the sample is written");
    }
    let mut kept = String::new();
    let packed = std::fs::File::open(&file).expect("the sample is there");
    GzDecoder::new(packed).read_to_string(&mut kept).expect("it is unpacked");
    assert!(kept == generated(), "the sample differs from what the generator makes");
}
