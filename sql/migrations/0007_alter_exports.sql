-- What exports need besides: who was told of their end, and how those that leave something behind are found.

alter table sluice.exports add column emails_told text[] not null default '{}';
comment on column sluice.exports.emails_told is
  'Addresses that have had their message, or are refused for good: a later try leaves them out.';

create index exports_leftovers_idx on sluice.exports (ended_at)
where status in ('failed', 'cancelled') and files_expired_at is null;
