//! Nodes that stay get other roles, whatever goes wrong meanwhile.

use metalform::model::role::Role;

use crate::play::Play;

/// The first node keeps its own: it has the CAs, and a member of etcd is left.
const ROLES: [&[Role]; 4] = [&[Role::Master, Role::Etcd], &[Role::Etcd], &[Role::Master], &[Role::Node]];

impl Play {
    /// An operator changes labels, and runs `metalform expand` until all is as they say.
    ///
    /// # Errors
    /// What happened that must not.
    pub async fn change_roles(&mut self) -> Result<(), String> {
        for at in 1..self.hosts.len() {
            if self.dice.one_in(2) {
                let (name, roles) = (self.hosts[at].0, *self.dice.pick(&ROLES));
                self.hosts[at].1 = roles;
                self.world.lock().unwrap().host(name).change_roles(roles.iter().copied().collect());
                self.tell(&format!("the roles of {name} are {roles:?}"));
            }
        }
        for _ in 0..self.dice.roll(3) {
            self.troubled(&self.names()).await?;
        }
        self.repair();
        self.converge().await
    }
}
