-- The same number without its way through text, which took 0.4 µs of each row that is written. The name is deprecated since
-- PostgreSQL 13, and there is no other function that returns a bigint.
create or replace function sluice.current_position() returns bigint
  language sql stable
  return txid_current() + sluice.position_offset();
