-- Whoever tells of the end of an export has a lease of its own: as a date on which the message is due it could not be told
-- from a pause, and so not be seen to have lapsed when the clock went back.
alter table sluice.exports add column notify_lease_until timestamptz;

comment on column sluice.exports.notify_lease_until is 'Until when whoever is telling of the end owns the message; null: nobody is.';
