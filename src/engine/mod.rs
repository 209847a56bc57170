//! One host: observe in one round trip, compare, apply, observe again; and a fleet of them.
