//! Hosts whose disks are copies of one, with its machine ID, in one command.

use crate::scripts::Play;

#[tokio::test(start_paused = true)]
async fn of_two_clones_that_are_deployed_at_once_one_is_refused_and_not_changed() {
    let mut play = Play::new();
    for line in [
        "host bootstrap bootstrap master etcd infra",
        "host worker-1 node",
        "host worker-2 node",
        "deployed bootstrap",
    ] {
        play.prepare(line).await.unwrap();
    }
    let (one, other) = (play.stage.session("worker-1").unwrap(), play.stage.session("worker-2").unwrap());
    let machine_id = one.lock().facts.machine_id.clone();
    other.lock().facts.machine_id = machine_id;
    let lines = play.play("deploy worker-1 and worker-2").await.unwrap();
    let ended = |line: &str| lines.iter().any(|seen| seen.contains(line));
    assert!(ended("worker-1 | all hold"), "{}", lines.join("\n"));
    assert!(ended("worker-2 |   the host has the machine id of node worker-1"), "{}", lines.join("\n"));
    assert!(other.lock().performed.is_empty(), "{:?}", other.lock().performed);
}
