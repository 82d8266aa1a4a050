use earnest::bench::*;
use earnest::checkpoint::Checkpoint;
use earnest::engine::Engine;
use earnest::engine::native::*;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let c = Checkpoint::open(std::path::Path::new(&a[1])).unwrap();
    let threads = a[2].parse().unwrap();
    let t = std::time::Instant::now();
    let mut n = Native::load(&c, Options { threads: Some(threads), ..Default::default() }).unwrap();
    println!("load {:?} peak {:?} MB card {:?}", t.elapsed(), peak_memory().unwrap() >> 20, n.card());
    for (k, cnt, new) in
        [(WorkloadKind::FewShot, 64, 64), (WorkloadKind::ZeroShot, 128, 24), (WorkloadKind::ZeroShot, 1, 64)]
    {
        let w = Workload::new(k, cnt, new, &c.tokenizer).unwrap();
        let m = measure(&mut n, &w, a[3].parse().unwrap()).unwrap();
        println!("{}", serde_json::to_string(&m).unwrap());
    }
}
