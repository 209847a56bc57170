use super::*;
use crate::etcd::member::{Alarm, AlarmKind, Health};
use crate::etcd::simulation::{at, down, leading, learner, membership, peer_url, unstarted, voter};

const FRESH: LearnerProgress<'_> =
    LearnerProgress { started: false, limit: Duration::from_secs(600), ..LearnerProgress::STARTED };
const STARTED: LearnerProgress<'_> = LearnerProgress { started: true, ..FRESH };
const LATE: LearnerProgress<'_> = LearnerProgress { waited: Duration::from_secs(600), ..STARTED };

fn goal() -> MemberGoal {
    MemberGoal { name: "n".to_owned(), peer_url: peer_url("n") }
}

fn add() -> Move {
    Move::Change(MembershipChange::AddLearner { peer_url: peer_url("n") })
}

fn others() -> Vec<Member> {
    vec![leading(voter(1, "a")), voter(2, "b"), voter(3, "c")]
}

fn with(mut members: Vec<Member>, more: Member) -> Membership {
    members.push(more);
    membership(members)
}

fn moved(mut member: Member, url: &str) -> Member {
    member.peer_urls = vec![url.to_owned()];
    member
}

#[test]
fn each_situation_has_one_next_move() {
    let down_b = || vec![leading(voter(1, "a")), down(voter(2, "b")), voter(3, "c")];
    let waits_for_b = || Move::WaitForVoters { complaints: vec!["b: no answer".to_owned()] };
    let start = || Move::StartLearner {
        id: 9,
        initial_cluster: "a=https://a:2380,b=https://b:2380,c=https://c:2380,n=https://n:2380".to_owned(),
    };
    let late =
        || Move::Change(MembershipChange::Remove { id: 9, why: "made no progress in 600 s".to_owned() });
    let promote = || Move::Change(MembershipChange::Promote { id: 9 });

    let cases: Vec<(&str, Membership, LearnerProgress<'_>, Move)> = vec![
        ("not there, all healthy", membership(others()), FRESH, add()),
        ("not there, a voter is down", membership(down_b()), FRESH, waits_for_b()),
        (
            "not there, no leader",
            membership(vec![voter(1, "a")]),
            FRESH,
            Move::WaitForVoters { complaints: vec!["no member reports that it is the leader".to_owned()] },
        ),
        (
            "another learner is there",
            with(others(), learner(4, "d")),
            FRESH,
            Move::WaitForLearner { learner: "d".to_owned() },
        ),
        (
            "another learner is there and has not started",
            with(others(), unstarted(learner(4, "d"))),
            FRESH,
            Move::WaitForLearner { learner: peer_url("d") },
        ),
        ("added by an earlier run", with(others(), unstarted(learner(9, "n"))), FRESH, start()),
        ("added as a voter by someone", with(others(), unstarted(voter(9, "n"))), FRESH, start()),
        ("started before, and stopped", with(others(), down(learner(9, "n"))), FRESH, start()),
        (
            "added, while another has not started",
            with(with(others(), unstarted(voter(4, "d"))).members, unstarted(learner(9, "n"))),
            FRESH,
            Move::WaitForVoters { complaints: vec!["https://d:2380: has not started".to_owned()] },
        ),
        (
            "started just now",
            with(others(), unstarted(learner(9, "n"))),
            STARTED,
            Move::WaitForStart { id: 9, reason: "has not started".to_owned() },
        ),
        ("never came up", with(others(), unstarted(learner(9, "n"))), LATE, late()),
        (
            "never came up, and never started by this run",
            with(others(), unstarted(learner(9, "n"))),
            LearnerProgress { started: false, ..LATE },
            late(),
        ),
        ("copying", with(others(), at(learner(9, "n"), 5000)), STARTED, Move::WaitForSync { behind: 5000 }),
        ("copying for too long", with(others(), at(learner(9, "n"), 5000)), LATE, late()),
        ("close enough", with(others(), at(learner(9, "n"), 9_200)), STARTED, promote()),
        ("in time at the last moment", with(others(), at(learner(9, "n"), 10_000)), LATE, promote()),
        ("caught up, a voter is down", with(down_b(), at(learner(9, "n"), 10_000)), STARTED, waits_for_b()),
        (
            "caught up, a voter is down for too long",
            with(down_b(), at(learner(9, "n"), 10_000)),
            LATE,
            Move::Change(MembershipChange::Remove {
                id: 9,
                why: "could not be promoted in 600 s: b: no answer".to_owned(),
            }),
        ),
        ("a voter", with(others(), voter(9, "n")), FRESH, Move::Holds),
        ("a voter, others are down", with(down_b(), voter(9, "n")), FRESH, Move::Holds),
        (
            "a voter that is down is never removed",
            with(others(), down(voter(9, "n"))),
            LATE,
            Move::WaitForStart { id: 9, reason: "no answer".to_owned() },
        ),
        (
            "our address under another name",
            with(others(), moved(voter(9, "old"), &peer_url("n"))),
            FRESH,
            Move::Blocked(Obstacle::AddressTaken { other: "old".to_owned(), peer_url: peer_url("n") }),
        ),
        (
            "our name at another address",
            with(others(), moved(voter(9, "n"), "https://x:2380")),
            FRESH,
            Move::Blocked(Obstacle::NameTaken {
                name: "n".to_owned(),
                there: "https://x:2380".to_owned(),
                here: peer_url("n"),
            }),
        ),
        (
            "our name at another address, and our address added",
            with(with(others(), moved(voter(8, "n"), "https://x:2380")).members, unstarted(learner(9, "n"))),
            FRESH,
            Move::Blocked(Obstacle::NameTaken {
                name: "n".to_owned(),
                there: "https://x:2380".to_owned(),
                here: peer_url("n"),
            }),
        ),
    ];
    for (what, observed, progress, expected) in cases {
        assert_eq!(next(&goal(), &observed, progress), expected, "{what}");
    }
}

#[test]
fn a_small_log_does_not_make_a_learner_look_close() {
    let mut observed = with(vec![leading(voter(1, "a"))], at(learner(9, "n"), 3));
    let Health::Healthy(leader) = &mut observed.members[0].health else { panic!("a is healthy") };
    leader.raft_applied = 40;
    assert_eq!(next(&goal(), &observed, STARTED), Move::WaitForSync { behind: 37 });
}

#[test]
fn nothing_is_added_while_an_alarm_is_raised() {
    let mut observed = membership(others());
    observed.alarms.push(Alarm { member: 2, kind: AlarmKind::NoSpace });
    assert_eq!(
        next(&goal(), &observed, FRESH),
        Move::Blocked(Obstacle::Alarm { alarm: "NOSPACE".to_owned(), member: 2 })
    );
}

#[test]
fn a_learner_is_not_promoted_while_a_voter_has_an_alarm() {
    let mut observed = with(others(), learner(9, "n"));
    let promote = Move::Change(MembershipChange::Promote { id: 9 });
    assert_eq!(next(&goal(), &observed, STARTED), promote);
    observed.alarms.push(Alarm { member: 2, kind: AlarmKind::NoSpace });
    let waits = Move::WaitForVoters { complaints: vec!["b: alarm NOSPACE".to_owned()] };
    assert_eq!(next(&goal(), &observed, STARTED), waits);
}

#[test]
fn a_learner_that_can_never_start_is_removed_at_once_and_a_voter_never() {
    let why = "does not start: container etcd exited 3 times";
    let hopeless = LearnerProgress { hopeless: Some(why), ..STARTED };
    let remove = Move::Change(MembershipChange::Remove { id: 9, why: why.to_owned() });
    assert_eq!(next(&goal(), &with(others(), unstarted(learner(9, "n"))), hopeless), remove);
    let voting = next(&goal(), &with(others(), down(voter(9, "n"))), hopeless);
    assert!(matches!(voting, Move::WaitForStart { .. }), "{voting:?}");
    // Before the static pod was written, what crashed was an earlier member.
    let before = LearnerProgress { started: false, ..hopeless };
    let start = next(&goal(), &with(others(), unstarted(learner(9, "n"))), before);
    assert!(matches!(start, Move::StartLearner { .. }), "{start:?}");
}

fn replace_member(voter: bool) -> Move {
    Move::Change(MembershipChange::Replace { id: 9, voter })
}

#[test]
fn a_member_that_lost_its_data_is_replaced_when_the_others_allow_it() {
    let lost = |replace| LearnerProgress { data: MemberData::Lost { replace }, ..FRESH };
    let name = || "n".to_owned();
    let three = |b: Member| vec![leading(voter(1, "a")), b, down(voter(9, "n"))];
    let irreplaceable = |healthy, others, quorum, complaint: &str| {
        let (voters, complaints) = (others + 1, vec![complaint.to_owned()]);
        let numbers = Obstacle::Irreplaceable { name: name(), healthy, others, quorum, voters, complaints };
        Move::Blocked(numbers)
    };
    let there = "https://x:2380";
    let elsewhere =
        |b: Member| membership(vec![leading(voter(1, "a")), b, moved(down(voter(9, "n")), there)]);
    let taken = || {
        let (there, here) = (there.to_owned(), peer_url("n"));
        Move::Blocked(Obstacle::NameTaken { name: name(), there, here })
    };
    let waiting = |other: &str| Move::WaitForLearner { learner: other.to_owned() };
    let with_learner = || with(three(voter(2, "b")), learner(4, "d"));
    let abandoned = LearnerProgress { abandoned: Some(4), ..lost(true) };
    let evict = || MembershipChange::Evict { id: 4, why: "d made no progress in 600 s".to_owned() };
    let cases: Vec<(&str, Membership, LearnerProgress<'_>, Move)> = vec![
        (
            "not asked for",
            membership(three(voter(2, "b"))),
            lost(false),
            Move::Blocked(Obstacle::DataLost { name: name(), healthy: 2, voters: 3 }),
        ),
        ("asked for", membership(three(voter(2, "b"))), lost(true), replace_member(true)),
        (
            "another voter is down too",
            membership(three(down(voter(2, "b")))),
            lost(true),
            irreplaceable(1, 2, 2, "b: no answer"),
        ),
        (
            "the same, not asked for",
            membership(three(down(voter(2, "b")))),
            lost(false),
            irreplaceable(1, 2, 2, "b: no answer"),
        ),
        (
            "one of four others is down: quorum keeps as many members as before",
            membership([three(voter(2, "b")), vec![voter(3, "c"), down(voter(4, "d"))]].concat()),
            lost(true),
            replace_member(true),
        ),
        (
            "two of four others are down",
            membership([three(voter(2, "b")), vec![down(voter(3, "c")), down(voter(4, "d"))]].concat()),
            lost(true),
            Move::Blocked(Obstacle::Irreplaceable {
                name: name(),
                healthy: 2,
                others: 4,
                quorum: 3,
                voters: 5,
                complaints: vec!["c: no answer".to_owned(), "d: no answer".to_owned()],
            }),
        ),
        (
            "of two voters the other has no quorum",
            membership(vec![leading(voter(1, "a")), down(voter(9, "n"))]),
            lost(true),
            Move::Blocked(Obstacle::Irreplaceable {
                name: name(),
                healthy: 1,
                others: 1,
                quorum: 2,
                voters: 2,
                complaints: Vec::new(),
            }),
        ),
        ("another learner goes first", with_learner(), lost(true), waiting("d")),
        ("another learner was abandoned", with_learner(), abandoned, Move::Change(evict())),
        (
            "it answers: what was seen of its data is old",
            with(others(), voter(9, "n")),
            lost(true),
            Move::Holds,
        ),
        (
            "a learner costs no vote",
            with(others(), down(learner(9, "n"))),
            lost(false),
            replace_member(false),
        ),
        (
            "a learner that has never started has no data to lose",
            with(others(), unstarted(learner(9, "n"))),
            lost(false),
            Move::StartLearner {
                id: 9,
                initial_cluster: "a=https://a:2380,b=https://b:2380,c=https://c:2380,n=https://n:2380"
                    .to_owned(),
            },
        ),
        ("removed by now", membership(others()), lost(true), add()),
        ("the new machine has another address", elsewhere(voter(2, "b")), lost(true), replace_member(true)),
        (
            "at another address, and another voter is down too",
            elsewhere(down(voter(2, "b"))),
            lost(true),
            irreplaceable(1, 2, 2, "b: no answer"),
        ),
        (
            "at another address, beside another learner",
            with(elsewhere(voter(2, "b")).members, learner(4, "d")),
            lost(true),
            waiting("d"),
        ),
        ("at another address, not asked for", elsewhere(voter(2, "b")), lost(false), taken()),
        (
            "the member at another address answers",
            with(others(), moved(voter(9, "n"), there)),
            lost(true),
            taken(),
        ),
        (
            "our address was added beside it",
            with(elsewhere(voter(2, "b")).members, unstarted(learner(8, "n"))),
            lost(true),
            taken(),
        ),
    ];
    for (what, observed, progress, expected) in cases {
        assert_eq!(next(&goal(), &observed, progress), expected, "{what}");
    }
    let mut alarmed = membership(three(voter(2, "b")));
    alarmed.alarms.push(Alarm { member: 1, kind: AlarmKind::NoSpace });
    assert!(matches!(next(&goal(), &alarmed, lost(true)), Move::Blocked(Obstacle::Alarm { .. })));
}

#[test]
fn an_abandoned_learner_is_removed_and_no_other() {
    let abandoned = |id| LearnerProgress { abandoned: Some(id), ..FRESH };
    let why = || "https://d:2380 made no progress in 600 s".to_owned();
    let observed = || with(others(), unstarted(learner(4, "d")));
    let evict = Move::Change(MembershipChange::Evict { id: 4, why: why() });
    assert_eq!(next(&goal(), &observed(), abandoned(4)), evict);
    let wait = Move::WaitForLearner { learner: peer_url("d") };
    assert_eq!(next(&goal(), &observed(), FRESH), wait);
    assert_eq!(next(&goal(), &observed(), abandoned(3)), wait, "what was abandoned is not there any more");
    // It was promoted meanwhile.
    assert_eq!(next(&goal(), &with(others(), voter(4, "d")), abandoned(4)), add());
}
