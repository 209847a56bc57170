//! etcd: the client, and membership as a pure function.
